/* functions.c: files, modules, timing and the VTA, as functions that clients call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include "link_files.h"

#include <stdlib.h>
#include <string.h>

/* Wrong arguments, said once: `usage` is what is taken. */
static int32_t takes(uint32_t n, uint32_t wanted, const char *usage, lathe_error *error)
{
    return n == wanted ? LATHE_OK
                       : rpc_fail(error, LATHE_E_ARGUMENT, "%u arguments where %u are taken: %s", n, wanted, usage);
}

static int32_t file_argument(rpc_state *s, const rpc_item *item, char path[RPC_PATH_MAX], lathe_error *error)
{
    if (item->type != LATHE_RAW_STRING)
        return rpc_fail(error, LATHE_E_ARGUMENT, "the name of a file is a string");
    return rpc_files_path(&s->files, item->bytes, item->size, path, error);
}

static int32_t only_file(rpc_state *s, const rpc_item *args, uint32_t n, char path[RPC_PATH_MAX], lathe_error *error)
{
    int32_t status = takes(n, 1, "the name of a file", error);
    return status == LATHE_OK ? file_argument(s, args, path, error) : status;
}

static void give_text(rpc_result *out, const char *text)
{
    *out = (rpc_result){.type = LATHE_STRING};
    rpc_put_bytes(&out->bytes, text, strlen(text) + 1);
    if (!out->bytes.full)
        out->bytes.size--;
}

static void give_int(rpc_result *out, int64_t v)
{
    lathe_value value = {.type = LATHE_INT};
    value.u.v_int = v;
    rpc_result_set(out, value);
}

/* --- files --- */

static int32_t upload(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX];
    (void)out;
    int32_t status = takes(n, 2, "a name and bytes", error);
    if (status == LATHE_OK)
        status = file_argument(s, &args[0], path, error);
    if (status == LATHE_OK && args[1].type != RPC_BYTE_ARRAY)
        status = rpc_fail(error, LATHE_E_ARGUMENT, "a file's content is given as bytes");
    return status == LATHE_OK ? rpc_files_write(&s->files, path, args[1].bytes, args[1].size, error) : status;
}

static int32_t give_file(rpc_state *s, const char *path, rpc_result *out, lathe_error *error)
{
    uint8_t *bytes;
    size_t size;
    int32_t status = rpc_files_read(path, s->limits.packet_bytes, &bytes, &size, error);
    if (status == LATHE_OK)
        *out = (rpc_result){.type = RPC_BYTES, .bytes = {bytes, size, size, false}};
    return status;
}

static int32_t download(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX];
    int32_t status = only_file(s, args, n, path, error);
    return status == LATHE_OK ? give_file(s, path, out, error) : status;
}

static int32_t remove_file(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX];
    (void)out;
    int32_t status = only_file(s, args, n, path, error);
    return status == LATHE_OK ? rpc_files_remove(path, error) : status;
}

static int32_t list(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char where[16];
    int32_t status = takes(n, 1, "the folder: \".\" or \"/\"", error);
    if (status == LATHE_OK)
        status = rpc_item_text(args, "the folder", where, sizeof where, error);
    if (status == LATHE_OK && strcmp(where, "") != 0 && strcmp(where, ".") != 0 && strcmp(where, "/") != 0)
        status = rpc_fail(error, LATHE_E_ARGUMENT, "a session has one folder: \".\"");
    if (status != LATHE_OK)
        return status;
    *out = (rpc_result){.type = LATHE_STRING};
    rpc_put_bytes(&out->bytes, "", 0);
    (void)rpc_put_room(&out->bytes, 1);
    status = rpc_files_list(&s->files, &out->bytes, error);
    if (status != LATHE_OK)
        rpc_buffer_free(&out->bytes);
    return status;
}

static int32_t workpath(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX];
    int32_t status = only_file(s, args, n, path, error);
    if (status == LATHE_OK)
        give_text(out, path);
    return status;
}

/* --- modules --- */

static int32_t load_module(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX], linked[RPC_PATH_MAX];
    lathe_value module = {0};
    int32_t status = only_file(s, args, n, path, error);
    if (status == LATHE_OK)
        status = rpc_link_shared(&s->files, path, linked, error);
    if (status == LATHE_OK)
        status = lathe_LoadFromFile(s->rt, linked, &module, error);
    if (status == LATHE_OK)
        rpc_result_set(out, module);
    return status;
}

static int32_t download_linked(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX], linked[RPC_PATH_MAX];
    int32_t status = only_file(s, args, n, path, error);
    if (status == LATHE_OK)
        status = rpc_link_shared(&s->files, path, linked, error);
    return status == LATHE_OK ? give_file(s, linked, out, error) : status;
}

static int32_t module_argument(rpc_state *s, const rpc_item *item, rpc_held **out, lathe_error *error)
{
    *out = rpc_handles_get(&s->handles, item->u.v_handle);
    if (item->type < LATHE_OBJECT || !*out || (*out)->value.type != LATHE_MODULE)
        return rpc_fail(error, LATHE_E_ARGUMENT, "a module is taken");
    return LATHE_OK;
}

/* *out is None where neither the module nor what was imported has the name. */
static int32_t find_function(const rpc_held *m, const char *name, lathe_value *out, lathe_error *error)
{
    int32_t status = lathe_GetFunction(&m->value, name, out, error);
    for (int i = 0; i < RPC_IMPORTS_MAX && status == LATHE_E_NAME && m->imports[i].type == LATHE_MODULE; i++)
        status = lathe_GetFunction(&m->imports[i], name, out, error);
    return status == LATHE_E_NAME ? LATHE_OK : status;
}

static int32_t get_function(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char name[512];
    rpc_held *m;
    lathe_value function = {0};
    int32_t status = takes(n, 3, "a module, a name, whether imports are searched", error);
    if (status == LATHE_OK)
        status = module_argument(s, &args[0], &m, error);
    if (status == LATHE_OK)
        status = rpc_item_text(&args[1], "the name of a function", name, sizeof name, error);
    if (status == LATHE_OK)
        status = find_function(m, name, &function, error);
    if (status == LATHE_OK)
        rpc_result_set(out, function);
    return status;
}

static int32_t import_module(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    rpc_held *m, *other;
    (void)out;
    int32_t status = takes(n, 2, "a module, and the one that it imports", error);
    if (status == LATHE_OK)
        status = module_argument(s, &args[0], &m, error);
    if (status == LATHE_OK)
        status = module_argument(s, &args[1], &other, error);
    if (status != LATHE_OK)
        return status;
    for (int i = 0; i < RPC_IMPORTS_MAX; i++) {
        if (m->imports[i].type == LATHE_MODULE)
            continue;
        m->imports[i] = lathe_retain(&other->value);
        return LATHE_OK;
    }
    return rpc_fail(error, LATHE_E_REFUSED, "a module imports %d others at most", RPC_IMPORTS_MAX);
}

static int32_t max_packet(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    (void)args;
    int32_t status = takes(n, 0, "none", error);
    give_int(out, (int64_t)s->limits.packet_bytes);
    return status;
}

static int32_t version(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    (void)s;
    (void)args;
    int32_t status = takes(n, 0, "none", error);
    give_int(out, LATHE_VM_VERSION);
    return status;
}

/* --- timing --- */

enum { TIMER_ARGUMENTS = 12 };

/* Arguments 2 to 10 are numbers. */
static int32_t timer_plan(const rpc_item *args, rpc_timer_plan *p, lathe_error *error)
{
    char preparation[64];
    for (int i = 2; i <= 10; i++)
        if (args[i].type != LATHE_INT && args[i].type != LATHE_BOOL)
            return rpc_fail(error, LATHE_E_ARGUMENT, "time_evaluator: argument %d is a whole number", i);
    *p = (rpc_timer_plan){.device = {(int32_t)args[2].u.v_int, (int32_t)args[3].u.v_int},
                          .number = args[4].u.v_int,
                          .repeat = args[5].u.v_int,
                          .min_repeat_ms = args[6].u.v_int,
                          .zero_limit = args[7].u.v_int,
                          .cooldown_ms = args[8].u.v_int,
                          .repeats_to_cooldown = args[9].u.v_int,
                          .flush_bytes = args[10].u.v_int};
    int32_t status = rpc_item_text(&args[11], "time_evaluator: what prepares a round", preparation,
                                   sizeof preparation, error);
    if (status != LATHE_OK)
        return status;
    p->flush_arguments = strcmp(preparation, "cache_flush_cpu_non_first_arg") == 0;
    if (*preparation && !p->flush_arguments)
        return rpc_fail(error, LATHE_E_UNSUPPORTED,
                        "time_evaluator: no function %s; rounds are prepared by cache_flush_cpu_non_first_arg",
                        preparation);
    return LATHE_OK;
}

static int32_t time_evaluator(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char name[512];
    rpc_timer_plan plan;
    rpc_held *m;
    lathe_value function = {0};
    const struct rpc_function *global = NULL;
    int32_t status = takes(n, TIMER_ARGUMENTS, "those of time_evaluator", error);
    if (status == LATHE_OK)
        status = rpc_item_text(&args[1], "the name of a function", name, sizeof name, error);
    if (status == LATHE_OK)
        status = timer_plan(args, &plan, error);
    if (status == LATHE_OK && args[0].type == LATHE_NONE) {
        global = rpc_function_find((const uint8_t *)name, strlen(name));
    } else if (status == LATHE_OK) {
        status = module_argument(s, &args[0], &m, error);
        if (status == LATHE_OK)
            status = find_function(m, name, &function, error);
    }
    if (status == LATHE_OK && !global && function.type != LATHE_FUNCTION)
        status = rpc_fail(error, LATHE_E_NAME, "time_evaluator: there is no function %s", name);
    *out = (rpc_result){.type = LATHE_FUNCTION};
    if (status == LATHE_OK)
        status = rpc_timer_new(&plan, global ? NULL : &function, global, &out->timer, error);
    lathe_release(&function);
    return status;
}

/* --- the VTA --- */

static int32_t vta_file(rpc_state *s, char path[RPC_PATH_MAX], lathe_error *error)
{
    static const char name[] = "vta_config.json";
    return rpc_files_path(&s->files, (const uint8_t *)name, sizeof name - 1, path, error);
}

static int32_t vta_init(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX], name[200];
    (void)out;
    int32_t status = takes(n, 1, "the name of a bit stream", error);
    if (status == LATHE_OK)
        status = rpc_item_text(args, "the bit stream", name, sizeof name, error);
    if (status == LATHE_OK)
        status = vta_file(s, path, error);
    return status == LATHE_OK ? rpc_vta_program(&s->vta, path, name, error) : status;
}

static int32_t vta_reconfigure(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char path[RPC_PATH_MAX];
    (void)out;
    int32_t status = takes(n, 1, "a configuration as JSON", error);
    if (status == LATHE_OK && args[0].type != LATHE_RAW_STRING)
        status = rpc_fail(error, LATHE_E_ARGUMENT, "a configuration is a string of JSON");
    if (status == LATHE_OK)
        status = vta_file(s, path, error);
    return status == LATHE_OK
               ? rpc_vta_configure(&s->vta, path, (const char *)args[0].bytes, args[0].size, error)
               : status;
}

static int32_t vta_status_json(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    char text[4096];
    (void)s;
    (void)args;
    int32_t status = takes(n, 0, "none", error);
    if (status == LATHE_OK)
        status = rpc_vta_counters(text, sizeof text, error);
    if (status == LATHE_OK)
        give_text(out, text);
    return status;
}

static int32_t vta_clear(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    (void)s;
    (void)args;
    (void)out;
    int32_t status = takes(n, 0, "none", error);
    return status == LATHE_OK ? rpc_vta_clear_counters(error) : status;
}

static int32_t vta_end(rpc_state *s, const rpc_item *args, uint32_t n, rpc_result *out, lathe_error *error)
{
    (void)args;
    (void)out;
    int32_t status = takes(n, 0, "none", error);
    return status == LATHE_OK ? rpc_vta_shutdown(&s->vta, error) : status;
}

/* --- the table --- */

const struct rpc_function *rpc_function_find(const uint8_t *name, size_t size)
{
    static const struct rpc_function table[] = {
#define X(text, function) {text, function},
#include "functions.def"
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].name) == size && memcmp(table[i].name, name, size) == 0)
            return &table[i];
    return NULL;
}
