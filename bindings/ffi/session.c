/* SPDX-License-Identifier: Apache-2.0 */
/* The table of command queues, and what queued transfers keep alive: see the header. */
#include "session.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vta_runtime.h"

enum { MAX_SESSIONS = 256 };

/* A tensor that the device reads or writes at the next synchronize. */
typedef struct bound {
    TVMFFIObject *owner; /* NULL: a copy of a view */
    char *host;
    size_t bytes;
    vta_buffer buffer;
    bool staged, stored;
} bound;

typedef struct bound_list {
    bound *items;
    size_t count, room;
} bound_list;

struct session {
    int64_t handle;
    uint32_t refs;         /* one is the table's */
    bool owns;             /* device, memory and context; else they are the run-time's default */
    _Atomic bool detached; /* the context was the default one: it goes with this session */
    vta_device device;
    vta_context *context;
    void *memory;
    pthread_mutex_t lock; /* session_enter: of `bounds`, and of what is queued for them */
    bound_list bounds;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static session *table[MAX_SESSIONS];
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER; /* outside of table_lock; one session for it */
static int64_t last_handle;

static _Thread_local int64_t current; /* handle; 0: the default device's */

/* --- the table --- */

/* The default context goes when C code calls VTARuntimeShutdown; its session goes with it, found out here. */
static bool is_alive(const session *s)
{
    return s->owns || s->detached || vta_is_default_context(s->context);
}

/* What the queued transfers hold on to, for `release`: transfers from now on start a new list. */
static bound_list take_bounds(session *s)
{
    bound_list all = s->bounds;
    s->bounds = (bound_list){0};
    return all;
}

/* Gives tensors and their buffers back; staged results are copied to the host when `done`. */
static vta_status release(session *s, bound_list *all, bool done, vta_error *e)
{
    bool alive = is_alive(s);
    e->status = VTA_OK;
    for (size_t i = 0; i < all->count; i++) {
        bound *b = &all->items[i];
        if (done && b->staged && b->stored && e->status == VTA_OK &&
            vta_buffer_read(s->context, b->buffer, 0, b->host, b->bytes) != VTA_OK)
            (void)vta_context_last_error(s->context, e);
        if (alive)
            (void)vta_buffer_free(s->context, b->buffer);
        if (b->owner)
            tvm_ffi()->TVMFFIObjectDecRef(b->owner);
    }
    free(all->items);
    return e->status;
}

static void destroy(session *s)
{
    vta_error e;
    bound_list all = take_bounds(s);
    (void)release(s, &all, false, &e);
    if (s->detached)
        vta_destroy_detached(s->context);
    if (s->owns) {
        vta_context_destroy(s->context);
        vta_device_destroy(&s->device);
        free(s->memory);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void session_put(session *s)
{
    pthread_mutex_lock(&table_lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&table_lock);
    if (last)
        destroy(s);
}

static session *insert(session *s)
{
    pthread_mutex_lock(&table_lock);
    uint32_t i = 0;
    while (i < MAX_SESSIONS && table[i])
        i++;
    if (i < MAX_SESSIONS) {
        table[i] = s;
        s->handle = ++last_handle;
        s->refs = 1;
    }
    pthread_mutex_unlock(&table_lock);
    return i < MAX_SESSIONS ? s : NULL;
}

static session *find(int64_t handle)
{
    session *s = NULL;
    pthread_mutex_lock(&table_lock);
    for (uint32_t i = 0; i < MAX_SESSIONS && !s; i++)
        if (table[i] && table[i]->handle == handle && is_alive(table[i]))
            s = table[i];
    if (s)
        s->refs++;
    pthread_mutex_unlock(&table_lock);
    return s;
}

session *session_get(const ffi_row *row, int64_t handle)
{
    session *s = find(handle);
    if (!s)
        ffi_raise(row, "ValueError", "%lld is not a command queue: call command_handle or device_create for one",
                  (long long)handle);
    return s;
}

session *session_enter(const ffi_row *row, int64_t handle)
{
    session *s = session_get(row, handle);
    if (s)
        pthread_mutex_lock(&s->lock);
    return s;
}

session *session_enter_current(const ffi_row *row)
{
    session *s = session_current(row);
    if (s)
        pthread_mutex_lock(&s->lock);
    return s;
}

void session_leave(session *s)
{
    pthread_mutex_unlock(&s->lock);
    session_put(s);
}

static session *find_context(const vta_context *c)
{
    session *s = NULL;
    pthread_mutex_lock(&table_lock);
    for (uint32_t i = 0; i < MAX_SESSIONS && !s; i++)
        if (table[i] && table[i]->context == c && is_alive(table[i]))
            s = table[i];
    if (s)
        s->refs++;
    pthread_mutex_unlock(&table_lock);
    return s;
}

static session *allocate(const ffi_row *row)
{
    session *s = calloc(1, sizeof *s);
    if (!s)
        ffi_raise(row, "MemoryError", "no memory for a command queue");
    else
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

/* Puts a new session into the table; NULL: raised, and the session is gone. */
static session *admit(const ffi_row *row, session *s)
{
    if (insert(s))
        return s;
    destroy(s);
    ffi_raise(row, "RuntimeError", "there are %d command queues already: shut some down", MAX_SESSIONS);
    return NULL;
}

/* The session that wraps the run-time's default context. default_lock is held. */
static session *find_default(const ffi_row *row)
{
    vta_error e;
    vta_context *c;
    if (vta_default_context(&c, &e) != VTA_OK) {
        session_raise(row, NULL, &e);
        return NULL;
    }
    session *s = find_context(c);
    if (s)
        return s;
    s = allocate(row);
    if (s)
        s->context = c;
    s = s ? admit(row, s) : NULL;
    return s ? find(s->handle) : NULL;
}

session *session_current(const ffi_row *row)
{
    session *s = current ? find(current) : NULL;
    if (s)
        return s;
    current = 0;
    vta_make_current(NULL);
    pthread_mutex_lock(&default_lock);
    s = find_default(row);
    pthread_mutex_unlock(&default_lock);
    return s;
}

int64_t session_handle(const session *s)
{
    return s->handle;
}

vta_context *session_context(const session *s)
{
    return s->context;
}

vta_device *session_device(const session *s)
{
    return vta_context_device(s->context);
}

session *session_of_buffer(const ffi_row *row, int64_t buffer)
{
    session *s = NULL;
    pthread_mutex_lock(&table_lock);
    for (uint32_t i = 0; i < MAX_SESSIONS && !s; i++)
        if (table[i] && is_alive(table[i]) && buffer > 0 && vta_buffer_bytes(table[i]->context, (vta_buffer)buffer) > 0)
            s = table[i];
    if (s)
        s->refs++;
    pthread_mutex_unlock(&table_lock);
    if (!s)
        ffi_raise(row, "ValueError", "%lld is not a buffer: it was freed, or never allocated", (long long)buffer);
    return s;
}

/* --- devices --- */

typedef struct choice {
    bool cycle;
    vta_sim_options sim;
    vta_context_options context;
} choice;

/* The place of `name` in the list; n: it is not there. */
static size_t place_of(const char *const *names, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static int read_profile(const ffi_row *row, const char *name, vta_profile *out)
{
    static const char *const names[] = {
#define X(id, text) text,
        VTA_PROFILES(X)
#undef X
    };
    const size_t n = sizeof names / sizeof *names, at = place_of(names, n, name);
    *out = (vta_profile)(at < n ? at : 0);
    if (at < n)
        return 0;
    return ffi_raise(row, "ValueError", "there is no profile '%s': use compatible, hls, chisel or intelfocl", name);
}

static int read_left_tokens(const ffi_row *row, const char *name, vta_left *out)
{
    static const char *const names[] = {
#define X(id, text) text,
        VTA_LEFT_TOKENS(X)
#undef X
    };
    const size_t n = sizeof names / sizeof *names, at = place_of(names, n, name);
    *out = (vta_left)(at < n ? at : 0);
    return at < n ? 0 : ffi_raise(row, "ValueError", "left_tokens '%s': use warn, error or ignore", name);
}

/* The option of this name that is a number. NULL: there is none. */
static uint32_t *number_option(choice *c, const char *key)
{
    const struct {
        const char *name;
        uint32_t *value;
    } all[] = {{"seed", &c->sim.seed},
               {"max_insns", &c->context.max_insns},
               {"max_uops", &c->context.max_uops},
               {"max_kernels", &c->context.max_kernels},
               {"max_buffers", &c->context.max_buffers}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(key, all[i].name) == 0)
            return all[i].value;
    return NULL;
}

static int read_option(const ffi_row *row, const char *key, const json_t *v, choice *out)
{
    const char *text = json_string_value(v);
    uint32_t *number = number_option(out, key);
    if (strcmp(key, "simulator") == 0 && text && (strcmp(text, "fsim") == 0 || strcmp(text, "cycle") == 0)) {
        out->cycle = *text == 'c';
        return 0;
    }
    if (strcmp(key, "profile") == 0 && text)
        return read_profile(row, text, &out->sim.profile);
    if (strcmp(key, "left_tokens") == 0 && text)
        return read_left_tokens(row, text, &out->context.left_tokens);
    if (number && json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= UINT32_MAX) {
        *number = (uint32_t)json_integer_value(v);
        return 0;
    }
    return ffi_raise(row, "ValueError",
                     "option '%s': known are \"simulator\" (\"fsim\", \"cycle\"), \"profile\", \"left_tokens\" "
                     "(\"warn\", \"error\", \"ignore\"), and the numbers \"seed\", \"max_insns\", \"max_uops\", "
                     "\"max_kernels\", \"max_buffers\"",
                     key);
}

static int read_options(const ffi_row *row, const ffi_arg *a, choice *out)
{
    *out = (choice){0};
    if (!a->given)
        return 0;
    json_error_t je;
    json_t *root = json_loadb(a->bytes, a->size, JSON_REJECT_DUPLICATES, &je);
    if (!json_is_object(root)) {
        json_decref(root);
        return ffi_raise(row, "ValueError", "options_json is not a JSON object: line %d: %s", je.line, je.text);
    }
    const char *key;
    json_t *v;
    int rc = 0;
    json_object_foreach(root, key, v)
    {
        rc = rc ? rc : read_option(row, key, v, out);
    }
    json_decref(root);
    return rc;
}

static vta_status make_device(const vta_config *c, const choice *o, vta_device *out, vta_error *e)
{
    const vta_cycle_options timing = {.profile = o->sim.profile == VTA_HLS ? VTA_CYCLE_HLS : VTA_CYCLE_CHISEL};
    if (o->cycle)
        return vta_cycle_device(c, &o->sim, &timing, out, e);
    vta_sim *sim = NULL;
    vta_status st = vta_sim_create(c, &o->sim, &sim, e);
    if (st == VTA_OK)
        *out = vta_sim_device(sim);
    return st;
}

int session_create(const ffi_row *row, const ffi_arg *config, const ffi_arg *options, int64_t *out)
{
    vta_error e;
    choice o;
    vta_config c = vta_config_default();
    if (vta_config_parse("config_json", config->bytes, config->size, &c, &e) != VTA_OK)
        return session_raise(row, NULL, &e);
    if (read_options(row, options, &o) != 0)
        return -1;
    session *s = allocate(row);
    if (!s)
        return -1;
    if (make_device(&c, &o, &s->device, &e) != VTA_OK) {
        destroy(s);
        return session_raise(row, NULL, &e);
    }
    /* Of capacities out of range the context needs nothing, and says what is wrong with them. */
    size_t bytes = (vta_context_bytes(&s->device, &o.context) + 64) / 64 * 64;
    s->memory = aligned_alloc(64, bytes);
    if (!s->memory || vta_context_init(s->memory, bytes, &s->device, &o.context, &s->context, &e) != VTA_OK) {
        int rc = s->memory ? session_raise(row, NULL, &e) : ffi_raise(row, "MemoryError", "no memory for a queue");
        vta_device_destroy(&s->device);
        free(s->memory);
        destroy(s);
        return rc;
    }
    s->owns = true;
    if (!admit(row, s))
        return -1;
    *out = s->handle;
    return 0;
}

int session_make_current(const ffi_row *row, int64_t handle)
{
    session *s = session_get(row, handle);
    if (!s)
        return -1;
    current = handle;
    vta_make_current(s->context); /* for compiled code that calls VTA* functions */
    session_put(s);
    return 0;
}

/* Takes a session out of the table, and with it the default context that it wraps away from the process. */
static session *take(const ffi_arg *handle)
{
    session *s = NULL;
    pthread_mutex_lock(&default_lock);
    pthread_mutex_lock(&table_lock);
    for (uint32_t i = 0; i < MAX_SESSIONS && !s; i++) {
        if (table[i] && (!handle->given || table[i]->handle == handle->i)) {
            s = table[i];
            table[i] = NULL;
        }
    }
    pthread_mutex_unlock(&table_lock);
    if (s && !s->owns)
        s->detached = vta_detach_default(s->context);
    pthread_mutex_unlock(&default_lock);
    return s;
}

int session_shutdown(const ffi_row *row, const ffi_arg *handle)
{
    session *s = take(handle);
    if (!s && handle->given)
        return ffi_raise(row, "ValueError", "%lld is not a command queue", (long long)handle->i);
    for (; s; s = handle->given ? NULL : take(handle)) {
        if (s->handle == current) {
            current = 0;
            vta_make_current(NULL);
        }
        session_put(s); /* the last call that is inside destroys it */
    }
    return 0;
}

int session_raise(const ffi_row *row, session *s, const vta_error *e)
{
    bool value = e->status == VTA_BAD_CONFIG || e->status == VTA_BAD_TEXT || e->status == VTA_BAD_FIELD ||
                 e->status == VTA_BAD_ARGUMENT || e->status == VTA_BAD_HANDLE;
    const char *kind = value ? "ValueError" : e->status == VTA_NO_MEMORY ? "MemoryError" : "RuntimeError";
    vta_error first = *e, sticky;
    if (s && vta_context_last_error(s->context, &sticky) != VTA_OK && first.text[0] == '\0')
        first = sticky;
    return ffi_raise(row, kind, "%s", first.text[0] ? first.text : vta_status_text(e->status));
}

/* --- tensors in flight --- */

static bound *find_bound(session *s, const ffi_arg *a, const char *host, size_t bytes)
{
    const bound_list *l = &s->bounds;
    for (size_t i = l->count; a->object && i-- > 0;)
        if (l->items[i].owner == a->object && l->items[i].host == host && l->items[i].bytes == bytes)
            return &l->items[i];
    return NULL;
}

static bool make_room(bound_list *l)
{
    if (l->count < l->room)
        return true;
    size_t room = l->room ? 2 * l->room : 16;
    bound *more = realloc(l->items, room * sizeof *more);
    if (!more)
        return false;
    l->items = more;
    l->room = room;
    return true;
}

/* A view is copied; a tensor is shown to the device, or staged where the device cannot see host memory. */
static vta_status open_bound(session *s, const ffi_arg *a, bound *b)
{
    vta_status st = a->object ? vta_buffer_map(s->context, b->host, b->bytes, &b->buffer) : VTA_UNSUPPORTED;
    if (st != VTA_UNSUPPORTED)
        return st;
    (void)vta_context_last_error(s->context, NULL);
    b->staged = true;
    st = vta_buffer_alloc(s->context, b->bytes, &b->buffer);
    return st == VTA_OK ? vta_buffer_write(s->context, b->buffer, 0, b->host, b->bytes) : st;
}

static vta_buffer bind_tensor(const ffi_row *row, session *s, const ffi_arg *a, bool store)
{
    const DLTensor *t = a->tensor;
    size_t bits = (size_t)t->dtype.bits * t->dtype.lanes, count = 1;
    for (int32_t i = 0; i < t->ndim; i++)
        count *= (size_t)t->shape[i];
    bound b = {.owner = a->object, .host = (char *)t->data + t->byte_offset, .bytes = (count * bits + 7) / 8};
    bound *known = find_bound(s, a, b.host, b.bytes);
    if (known) {
        known->stored |= store;
        return known->buffer;
    }
    if (b.bytes == 0 || !make_room(&s->bounds)) {
        ffi_raise(row, b.bytes ? "MemoryError" : "ValueError", b.bytes ? "no memory" : "the tensor has no elements");
        return 0;
    }
    vta_error e = {0};
    e.status = open_bound(s, a, &b);
    if (e.status != VTA_OK) {
        (void)vta_context_last_error(s->context, &e);
        session_raise(row, NULL, &e);
        return 0;
    }
    if (b.owner)
        tvm_ffi()->TVMFFIObjectIncRef(b.owner);
    b.stored = store;
    s->bounds.items[s->bounds.count++] = b;
    return b.buffer;
}

vta_buffer session_bind(const ffi_row *row, session *s, const ffi_arg *a, bool store)
{
    if (!a->tensor) {
        if (a->i > 0 && vta_buffer_bytes(s->context, (vta_buffer)a->i) > 0)
            return (vta_buffer)a->i;
        ffi_raise(row, "ValueError", "%lld is not a buffer of this command queue", (long long)a->i);
        return 0;
    }
    return bind_tensor(row, s, a, store);
}

int session_synchronize(const ffi_row *row, session *s, uint32_t wait_cycles)
{
    pthread_mutex_lock(&s->lock);
    vta_error e = {.status = vta_synchronize(s->context, wait_cycles)}, second;
    bool done = e.status == VTA_OK;
    if (!done) {
        (void)vta_context_last_error(s->context, &e);
        vta_discard(s->context);
    }
    bound_list all = take_bounds(s);
    pthread_mutex_unlock(&s->lock);
    vta_status st = release(s, &all, done, &second); /* unlocked: the last owner of a tensor may be anyone's code */
    if (!done || st != VTA_OK)
        return session_raise(row, NULL, done ? &second : &e);
    return 0;
}
