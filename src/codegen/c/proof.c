/* SPDX-License-Identifier: Apache-2.0 */
/* The proof sheet in report.json: bounds of memory, stack and work of a run, deviations from MISRA C, and what the
 * package was made of. Every number is one of the compiler's; what a C compiler makes of it, a board tells (lathe
 * verify --target qemu-m4). */
#include "codegen/c/package.h"
#include "codegen/c/placement.h"

#include <stdio.h>
#include <string.h>

#include "abi/sha256.h"

/* All frames of tvmrt.c (docs/reference/tvmrt.md, which test/runtime/objects.sh checks), and what a kernel needs beside
 * its arrays. */
enum { FRAMES_ALONE = 576, FRAMES_THREADED = 1024, BESIDE_ARRAYS = 1024 };

/* C has no empty arrays. */
static uint64_t at_least_one(uint64_t n)
{
    return n > 0 ? n : 1;
}

/* A small package that is not asked for instances links none of them. */
uint64_t package_instance_bytes(const codegen_unit *u)
{
    const plan_problem *p = u->plan->problem;
    if (package_is_small(u))
        return 0;
    uint64_t ins = u->func->n_inputs + (u->places ? u->places->n_areas - 1 : 0), outs = u->func->results.len;
    uint64_t ops = p->ops.len, args = 0;
    for (uint32_t i = 0; i < p->ops.len; i++)
        args += p->ops.data[i].n_args + p->ops.data[i].n_scratch;
    const uint64_t words = 8u + at_least_one(ins) + at_least_one(outs) + 2u * at_least_one(ops) + at_least_one(args);
    return words * (u->target->address_bits == 32 ? 4 : 8);
}

uint64_t package_caller_bytes(const plan_problem *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->values.len; i++) {
        const plan_value *v = &p->values.data[i];
        sum += v->parent < 0 && (v->storage == STORE_INPUT || v->storage == STORE_OUTPUT) ? v->bytes : 0;
    }
    return sum;
}

static uint64_t runtime_frames(const codegen_unit *u)
{
    return u->target->workers > 1 ? FRAMES_THREADED : FRAMES_ALONE;
}

uint64_t package_stack_bound(const codegen_unit *u)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < u->plan->problem->ops.len; i++) {
        uint64_t bytes = package_stack_bytes(package_code(&u->plan->problem->ops.data[i]));
        most = bytes > most ? bytes : most;
    }
    return u->target->address_bits == 32 ? most + runtime_frames(u) + BESIDE_ARRAYS : 0;
}

static void write_memory(json_out *j, const package *p)
{
    json_out_object(j, "memory");
    json_out_uint(j, "workspace", p->pl->workspace_bytes);
    json_out_uint(j, "tables", package_instance_bytes(p->u));
    json_out_uint(j, "constants", p->pl->constant_bytes);
    json_out_uint(j, "caller", package_caller_bytes(p->pl->problem));
    json_out_end(j);
}

/* Wide vectors that a compiler spills are as large as it likes. */
static void write_stack(json_out *j, const package *p)
{
    const uint64_t bound = package_stack_bound(p->u);
    json_out_object(j, "stack");
    json_out_uint(j, "kernel_array_bytes", p->stack_bytes);
    json_out_uint(j, "runtime_frame_bytes", runtime_frames(p->u));
    json_out_text(j, "assumes", STACK_ASSUMES);
    if (bound > 0)
        json_out_uint(j, "bound_bytes", bound);
    else
        json_out_null(j, "bound_bytes");
    json_out_end(j);
}

/* The words of a text, one space between them. */
static void write_words(json_out *j, const char *key, const char *text)
{
    json_out_array(j, key);
    while (*text) {
        const size_t len = strcspn(text, " ");
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)len, text);
        json_out_text(j, NULL, word);
        text += len + (text[len] == ' ');
    }
    json_out_end(j);
}

static void write_misra(json_out *j, bool short_names)
{
    static const struct {
        const char *rule, *places, *what, *why;
    } rows[] = {
#define X(rule, places, what, why) {rule, places, what, why},
#include "codegen/c/misra.def"
#undef X
    };
    json_out_object(j, "misra_c_2012");
    json_out_array(j, "required_rules_deviated_from");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (short_names && strcmp(rows[i].rule, "5.2") == 0)
            continue; /* no name is longer */
        json_out_object(j, NULL);
        json_out_text(j, "rule", rows[i].rule);
        write_words(j, "places", rows[i].places);
        json_out_text(j, "what", rows[i].what);
        json_out_text(j, "why", rows[i].why);
        json_out_end(j);
    }
    json_out_end(j);
    json_out_end(j);
}

/* Of all other files: each one's path, a zero, its size as 8 bytes (little-endian) and its content, by their paths. */
static void hash_package(const artifact *files, char out[SHA256_TEXT])
{
    const char *last = "";
    sha256 s;
    sha256_init(&s);
    for (uint32_t n = 0; n < files->files.len; n++) {
        const artifact_file *next = NULL;
        for (uint32_t i = 0; i < files->files.len; i++) {
            const artifact_file *f = &files->files.data[i];
            bool after = strcmp(f->path, last) > 0 && strcmp(f->path, PACKAGE_REPORT) != 0;
            next = after && (!next || strcmp(f->path, next->path) < 0) ? f : next;
        }
        if (!next)
            break;
        uint8_t size[8];
        for (int k = 0; k < 8; k++)
            size[k] = (uint8_t)((uint64_t)next->len >> 8 * k);
        sha256_add(&s, next->path, strlen(next->path) + 1);
        sha256_add(&s, size, sizeof size);
        sha256_add(&s, next->data, next->len);
        last = next->path;
    }
    sha256_end_text(&s, out);
}

static void write_number(json_out *j, const char *key, int64_t n)
{
    if (n >= 0)
        json_out_int(j, key, n);
    else
        json_out_null(j, key);
}

static void write_work(json_out *j, const package *p)
{
    const package_work work = package_most_work(p->c, p->u);
    write_number(j, "most_operations", work.operations);
    write_number(j, "most_instructions", work.instructions);
    if (work.why)
        json_out_text(j, "unbounded_because", work.why);
}

void proof_write(json_out *j, const package *p)
{
    char hash[SHA256_TEXT];
    json_out_object(j, "proof");
    if (p->u->model_sha256)
        json_out_text(j, "model_sha256", p->u->model_sha256);
    if (p->u->model_sha256 && p->files) { /* a module is one file, which holds this text */
        hash_package(p->files, hash);
        json_out_text(j, "package_sha256", hash);
    }
    write_memory(j, p);
    placement_json(j, p->u->places);
    write_stack(j, p);
    write_work(j, p);
    write_misra(j, p->u->short_names);
    json_out_end(j);
}
