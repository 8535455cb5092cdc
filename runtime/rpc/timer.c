/* timer.c: rounds of calls. A client that went away ends them.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "timer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#if !defined(POLLRDHUP)
#define POLLRDHUP 0 /* there, requests that wait behind this one hide that the client has gone */
#endif

struct rpc_timer {
    rpc_timer_plan plan;
    lathe_value value;
    const struct rpc_function *global;
};

enum { MOST_ROUNDS = 1000000, LOOK_MS = 100 };
static const int64_t most_calls = 1000000000;

static bool within(int64_t v, int64_t least, int64_t most)
{
    return v >= least && v <= most;
}

int32_t rpc_timer_new(const rpc_timer_plan *p, const lathe_value *value, const struct rpc_function *global,
                      rpc_timer **out, lathe_error *error)
{
    *out = NULL;
    if (!within(p->number, 1, most_calls) || !within(p->repeat, 1, MOST_ROUNDS) ||
        !within(p->min_repeat_ms, 0, 3600000) || !within(p->cooldown_ms, 0, 3600000) ||
        !within(p->flush_bytes, 0, INT64_C(1) << 30) || (p->cooldown_ms > 0 && p->repeats_to_cooldown < 1))
        return rpc_fail(error, LATHE_E_ARGUMENT,
                        "time_evaluator: number is 1 to 10^9, repeat 1 to 10^6, times 0 to 3600000 ms, caches to flush "
                        "1 GiB at most");
    rpc_timer *t = calloc(1, sizeof *t);
    if (!t)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for a timer");
    t->plan = *p;
    t->global = global;
    if (value)
        t->value = lathe_retain(value);
    *out = t;
    return LATHE_OK;
}

void rpc_timer_free(rpc_timer *t)
{
    if (!t)
        return;
    lathe_release(&t->value);
    free(t);
}

/* --- a run --- */

struct run {
    rpc_state *s;
    const rpc_timer *t;
    const rpc_item *items;
    uint32_t n;
    rpc_args args;
    const lathe_device_api *device;
    uint8_t *flush;
    int64_t look; /* when the client is looked at next */
};

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool client_is_there(struct run *r)
{
    char byte;
    struct pollfd p[2] = {{.fd = r->s->link.fd, .events = POLLIN | POLLRDHUP},
                          {.fd = r->s->link.control, .events = POLLIN}};
    if (rpc_now() < r->look)
        return true;
    r->look = rpc_now() + LOOK_MS;
    if (poll(p, r->s->link.control >= 0 ? 2 : 1, 0) <= 0)
        return true;
    if (r->s->link.control >= 0 && p[1].revents)
        return false;
    if (!p[0].revents)
        return true;
    if (p[0].revents & POLLRDHUP)
        return false;
    ssize_t got = recv(r->s->link.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static int32_t call_once(struct run *r, lathe_error *error)
{
    if (r->t->global) {
        rpc_result result = {0};
        int32_t status = r->t->global->call(r->s, r->items, r->n, &result, error);
        rpc_timer_free(result.timer);
        rpc_result_release(&result);
        return status;
    }
    lathe_value result = {0};
    int32_t status = rpc_call_value(r->s, &r->t->value, &r->args, &result, error);
    lathe_release(&result);
    return status;
}

static int32_t wait_for_device(struct run *r, lathe_error *error)
{
    if (!r->device->sync)
        return LATHE_OK;
    int32_t status = r->device->sync(r->device->user, r->t->plan.device.id);
    if (status == LATHE_OK)
        return LATHE_OK;
    int32_t said = rpc_vta_check(&r->s->vta, error);
    return said != LATHE_OK ? said : rpc_fail(error, status, "%s failed", r->device->name);
}

static void flush_arguments(struct run *r)
{
#if defined(__x86_64__) && defined(__GNUC__)
    for (uint32_t i = 1; i < r->args.count; i++) {
        const lathe_dltensor *t = lathe_tensor_of(&r->args.values[i]);
        uint64_t bytes = 0;
        if (!t || t->device.type == LATHE_EXT_DEV || !rpc_tensor_bytes(t->dtype, t->shape, t->ndim, &bytes))
            continue;
        for (uint64_t at = 0; at < bytes; at += 64)
            __builtin_ia32_clflush((const char *)t->data + t->byte_offset + at);
    }
#else
    (void)r; /* rpc_timer_plan.flush_bytes does it there */
#endif
}

static void flush(struct run *r)
{
    if (r->t->plan.flush_arguments)
        flush_arguments(r);
    for (int64_t i = 0; i < r->t->plan.flush_bytes; i += 64)
        r->flush[i] = (uint8_t)(r->flush[i] + 1);
}

static void rest(struct run *r, int64_t ms)
{
    const int64_t end = rpc_now() + ms;
    for (int64_t left = ms; left > 0 && client_is_there(r); left = end - rpc_now()) {
        const long step = left < LOOK_MS ? (long)left : LOOK_MS;
        (void)nanosleep(&(struct timespec){.tv_nsec = step * 1000000}, NULL);
    }
}

/* Seconds of `number` calls. */
static int32_t time_calls(struct run *r, int64_t number, double *out, lathe_error *error)
{
    double start = seconds();
    for (int64_t i = 0; i < number; i++) {
        int32_t status = call_once(r, error);
        if (status != LATHE_OK)
            return status;
        if (!client_is_there(r))
            return rpc_fail(error, LATHE_E_FILE, "the client is gone");
    }
    int32_t status = wait_for_device(r, error);
    *out = seconds() - start;
    return status;
}

/* Mean seconds of a call in one round; *number grows until the round is as long as it must be. */
static int32_t time_round(struct run *r, int64_t *number, double *out, lathe_error *error)
{
    const rpc_timer_plan *p = &r->t->plan;
    double took = 0;
    for (int64_t zeros = 0;;) {
        flush(r);
        int32_t status = time_calls(r, *number, &took, error);
        if (status != LATHE_OK)
            return status;
        zeros += took == 0;
        if (1e3 * took >= (double)p->min_repeat_ms || zeros >= (p->zero_limit > 0 ? p->zero_limit : 1) ||
            *number >= most_calls)
            break;
        double more = took > 0 ? (double)p->min_repeat_ms / (1e3 * took) * (double)*number + 1 : 0;
        double least = (double)*number * 1.618 + 1;
        more = more > least ? more : least;
        *number = more < (double)most_calls ? (int64_t)more : most_calls;
    }
    *out = took / (double)*number;
    return LATHE_OK;
}

static int32_t time_rounds(struct run *r, rpc_result *out, lathe_error *error)
{
    const rpc_timer_plan *p = &r->t->plan;
    int64_t number = p->number;
    int32_t status = call_once(r, error);
    if (status == LATHE_OK)
        status = wait_for_device(r, error);
    for (int64_t i = 0; i < p->repeat && status == LATHE_OK; i++) {
        double mean = 0;
        if (p->cooldown_ms > 0 && i > 0 && i % p->repeats_to_cooldown == 0)
            rest(r, p->cooldown_ms);
        status = time_round(r, &number, &mean, error);
        rpc_put_bytes(&out->bytes, &mean, sizeof mean);
    }
    return status == LATHE_OK && out->bytes.full ? rpc_fail(error, LATHE_E_MEMORY, "no memory for the times") : status;
}

int32_t rpc_timer_run(rpc_state *s, const rpc_timer *t, const rpc_item *items, uint32_t n, rpc_result *out,
                      lathe_error *error)
{
    struct run r = {.s = s, .t = t, .items = items, .n = n};
    *out = (rpc_result){.type = RPC_BYTES};
    int32_t status = rpc_memory_device(&s->memory, t->plan.device, &r.device, error);
    if (status == LATHE_OK && !t->global)
        status = rpc_args_make(s, items, n, &r.args, error);
    if (status == LATHE_OK && t->plan.flush_bytes > 0) {
        r.flush = calloc(1, (size_t)t->plan.flush_bytes);
        status = r.flush ? status : rpc_fail(error, LATHE_E_MEMORY, "no memory to flush caches with");
    }
    if (status == LATHE_OK)
        status = time_rounds(&r, out, error);
    rpc_args_free(&r.args);
    free(r.flush);
    if (status != LATHE_OK)
        rpc_result_release(out);
    return status;
}
