/* vmrun.c: runs a module as a script says, and prints what comes of it: the C API of the virtual machine as text.
 * SPDX-License-Identifier: Apache-2.0
 *     vmrun [--workers N] [--trace N] [--no-jit] MODULE < SCRIPT
 *     vmrun --truncate MODULE        the file cut off at every length
 *     vmrun --damage MODULE          the file with each byte of its ELF header and tables changed
 * Commands, one a line:
 *     init TYPE ID ALLOCATOR...      load the executable and initialise it (again: another machine)
 *     call FUNCTION ARGUMENT...      and print the result
 *     set FUNCTION ARGUMENT..., invoke FUNCTION, get FUNCTION INDEX..., outputs FUNCTION INDEX...
 *     kernel NAME ARGUMENT...        a function of the library; prints its tensors afterwards
 *     sample [METADATA]              main on inputs that are made up, which are printed, too; METADATA is JSON
 *     device                         registers ext_dev: handles that are no addresses, bytes counted
 *     anew, old                      from now on it knows nothing of memory that is kept, or all of it
 *     counts                         and prints what it has counted; devices: those that the module wants
 *     arity FUNCTION, param FUNCTION I, name FUNCTION I, source, repeat N COMMAND
 * Arguments: 5, 1.5, "text", none, float32[2,3]{1,2,...} (one value: all are that). */
#include "lathe_vm.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGS = 64, MOST_RANK = 8 };

struct session {
    lathe_runtime *rt;
    lathe_value library, machine;
    struct counts {
        uint64_t held, to, from, within;
        bool lost; /* what is asked for is memory of a device that was made anew */
    } counts;
};

/* A parsed argument and the memory behind it. */
struct given {
    lathe_value value;
    lathe_dltensor tensor;
    int64_t dims[MOST_RANK];
    char *text;
    void *data;
};

static const struct {
    const char *name;
    lathe_dtype type;
} types[] = {{"int8", {0, 8, 1}},   {"int16", {0, 16, 1}},  {"int32", {0, 32, 1}},   {"int64", {0, 64, 1}},
             {"uint8", {1, 8, 1}},  {"uint16", {1, 16, 1}}, {"uint32", {1, 32, 1}},  {"uint64", {1, 64, 1}},
             {"bool", {6, 8, 1}},   {"float32", {2, 32, 1}}, {"float64", {2, 64, 1}}, {"float16", {2, 16, 1}}};
enum { TYPES = sizeof types / sizeof *types };

static const char *status_name(int32_t status)
{
    switch (status) {
#define ROW(name, value, text)                                        \
    case name: return #name;
        LATHE_STATUSES(ROW)
#undef ROW
    default: return "?";
    }
}

static void put_error(int32_t status, const lathe_error *e)
{
    printf("%s%s: %s\n", status_name(status), e->code == status ? "" : " (the error has another code)", e->message);
}

/* --- numbers in tensors --- */

static void store(void *at, lathe_dtype t, double v)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
    } u;
    switch (t.code == 2 ? t.bits + 1 : t.bits) {
    case 8: u.i8 = (int8_t)v; memcpy(at, &u.i8, 1); break;
    case 16: u.i16 = (int16_t)v; memcpy(at, &u.i16, 2); break;
    case 32: u.i32 = (int32_t)v; memcpy(at, &u.i32, 4); break;
    case 33: u.f32 = (float)v; memcpy(at, &u.f32, 4); break;
    case 65: memcpy(at, &v, 8); break;
    default: u.i64 = (int64_t)v; memcpy(at, &u.i64, 8); break;
    }
}

static void put_element(const char *at, lathe_dtype t)
{
    uint64_t bits = 0;
    float f;
    double d;
    memcpy(&bits, at, t.bits / 8u);
    memcpy(&f, at, t.bits == 32 ? 4 : 0);
    memcpy(&d, at, t.bits == 64 ? 8 : 0);
    if (t.code == 2 && t.bits == 32)
        printf(" %.7g", (double)f);
    else if (t.code == 2 && t.bits == 64)
        printf(" %.15g", d);
    else if (t.code == 0)
        printf(" %" PRId64, (int64_t)(bits << (64 - t.bits)) >> (64 - t.bits));
    else
        printf(" %" PRIu64, bits);
}

static void put_tensor(const lathe_dltensor *t)
{
    int64_t count = 1;
    const char *name = "?";
    for (size_t i = 0; i < TYPES; i++)
        if (memcmp(&types[i].type, &t->dtype, sizeof t->dtype) == 0)
            name = types[i].name;
    printf("%s[", name);
    for (int32_t i = 0; i < t->ndim; i++) {
        printf("%s%" PRId64, i ? "," : "", t->shape[i]);
        count *= t->shape[i];
    }
    printf("]");
    if (t->device.type != LATHE_CPU)
        printf(" on %d:%d", t->device.type, t->device.id);
    printf(" {");
    for (int64_t i = 0; i < count && i < 16; i++)
        put_element((const char *)t->data + t->byte_offset + i * t->dtype.bits / 8, t->dtype);
    printf("%s }", count > 16 ? " ..." : "");
}

static void put_value(const lathe_value *v)
{
    lathe_value element;
    switch (v->type) {
    case LATHE_NONE: printf("none"); break;
    case LATHE_INT: printf("%" PRId64, v->u.v_int); break;
    case LATHE_BOOL: printf("%s", v->u.v_int ? "true" : "false"); break;
    case LATHE_FLOAT: printf("%g", v->u.v_float); break;
    case LATHE_DTYPE: printf("dtype %d %d %d", v->u.v_dtype.code, v->u.v_dtype.bits, v->u.v_dtype.lanes); break;
    case LATHE_SMALL_STRING: printf("\"%.*s\"", (int)v->small_length, v->u.v_bytes); break;
    case LATHE_DLTENSOR:
    case LATHE_TENSOR: put_tensor(lathe_tensor_of(v)); break;
    case LATHE_FUNCTION: printf("function"); break;
    case LATHE_SHAPE: {
        /* The layout of tvm-ffi: data and size behind the header. */
        const struct { char head[24]; const int64_t *data; size_t size; } *s = (const void *)v->u.v_object;
        printf("shape");
        for (size_t i = 0; i < s->size; i++)
            printf(" %" PRId64, s->data[i]);
        break;
    }
    case LATHE_STRING: {
        const struct { char head[24]; const char *data; size_t size; } *s = (const void *)v->u.v_object;
        printf("\"%s\"", s->data);
        break;
    }
    case LATHE_ARRAY:
        printf("(");
        for (size_t i = 0; i < lathe_array_size(v); i++) {
            (void)lathe_array_get(v, i, &element, NULL);
            printf("%s", i ? ", " : "");
            put_value(&element);
        }
        printf(")");
        break;
    default: printf("type %d", v->type); break;
    }
}

/* --- arguments --- */

static bool parse_tensor(const char *s, struct given *g)
{
    size_t type = 0;
    int64_t count = 1, filled = 0;
    char *at;
    for (; type < TYPES; type++)
        if (strncmp(s, types[type].name, strlen(types[type].name)) == 0 && s[strlen(types[type].name)] == '[')
            break;
    if (type == TYPES)
        return false;
    g->tensor = (lathe_dltensor){.device = {LATHE_CPU, 0}, .dtype = types[type].type, .shape = g->dims};
    for (s += strlen(types[type].name) + 1; *s != ']' && g->tensor.ndim < MOST_RANK; s = at + (*at == ',')) {
        g->dims[g->tensor.ndim] = strtoll(s, &at, 10);
        count *= g->dims[g->tensor.ndim++];
    }
    size_t each = g->tensor.dtype.bits / 8u, bytes = count > 0 ? (size_t)count * each : 0;
    g->data = aligned_alloc(64, (bytes + 64) / 64 * 64);
    for (s += 2; *s != '}' && *s && filled < count; s = at + (*at == ','))
        store((char *)g->data + (size_t)filled++ * each, g->tensor.dtype, strtod(s, &at));
    for (; filled > 0 && filled < count; filled++)
        memcpy((char *)g->data + (size_t)filled * each, g->data, each);
    g->tensor.data = g->data;
    g->value = (lathe_value){.type = LATHE_DLTENSOR, .u.v_tensor = &g->tensor};
    return true;
}

static lathe_runtime *maker; /* of values that own their memory */

static bool parse_argument(char *s, struct given *g);

static bool parse_shape(const char *s, struct given *g)
{
    char *at;
    size_t n = 0;
    for (; *s != ']' && n < MOST_RANK; s = at + (*at == ','))
        g->dims[n++] = strtoll(s, &at, 10);
    return lathe_shape_new(n ? g->dims : NULL, n, &g->value, NULL) == LATHE_OK;
}

/* A tensor that owns its memory, on the CPU; with "zero:" its numbers do not count. */
static bool parse_owned(const char *s, bool zero, struct given *g)
{
    if (!parse_tensor(s, g))
        return false;
    const lathe_dltensor *t = &g->tensor;
    return lathe_tensor_new(maker, t->device, t->dtype, t->shape, t->ndim, zero ? NULL : t->data, &g->value, NULL) ==
           LATHE_OK;
}

static bool parse_tuple(char *s, struct given *g)
{
    struct given parts[MOST_ARGS]; /* a borrowed tensor lies in one */
    lathe_value elements[MOST_ARGS];
    lathe_error e = {0};
    size_t n = 0;
    s[strlen(s) - 1] = 0;
    for (char *word = strtok(s, "|"); word && n < MOST_ARGS; word = strtok(NULL, "|"), n++) {
        if (!parse_argument(word, &parts[n]))
            return false;
        elements[n] = parts[n].value;
        if (elements[n].type != LATHE_DLTENSOR)
            free(parts[n].data);
    }
    *g = (struct given){0};
    if (lathe_array_new(elements, n, &g->value, &e) != LATHE_OK)
        put_error(e.code, &e);
    for (size_t i = 0; i < n; i++) {
        if (elements[i].type == LATHE_DLTENSOR)
            free(lathe_tensor_of(&elements[i])->data);
        lathe_release(&elements[i]);
    }
    return true;
}

static bool parse_argument(char *s, struct given *g)
{
    char *end;
    *g = (struct given){0};
    if (strcmp(s, "none") == 0)
        return true;
    if (strncmp(s, "shape[", 6) == 0)
        return parse_shape(s + 6, g);
    if (strncmp(s, "own:", 4) == 0 || strncmp(s, "zero:", 5) == 0)
        return parse_owned(strchr(s, ':') + 1, *s == 'z', g);
    if (*s == '(')
        return parse_tuple(s + 1, g);
    if (s[0] == '"') {
        s[strlen(s) - 1] = 0;
        g->value = (lathe_value){.type = LATHE_RAW_STRING, .u.v_string = s + 1};
        return true;
    }
    g->value = (lathe_value){.type = LATHE_INT, .u.v_int = strtoll(s, &end, 0)};
    if (*end == 0)
        return true;
    g->value = (lathe_value){.type = LATHE_FLOAT, .u.v_float = strtod(s, &end)};
    return *end == 0 || parse_tensor(s, g);
}

static char *next_word(char **line)
{
    char *s = *line + strspn(*line, " \t\n"), *end;
    if (*s == 0)
        return NULL;
    end = *s == '"' ? strchr(s + 1, '"') : NULL;
    end = end ? end + 1 : s + strcspn(s, " \t\n");
    *line = *end ? end + 1 : end;
    *end = 0;
    return s;
}

static int parse_arguments(char *line, struct given *g, lathe_value *values)
{
    int n = 0;
    for (char *word; n < MOST_ARGS && (word = next_word(&line)); n++) {
        if (!parse_argument(word, &g[n])) {
            fprintf(stderr, "vmrun: not an argument: %s\n", word);
            exit(2);
        }
        values[n] = g[n].value;
    }
    return n;
}

/* --- a device --- */

/* Nobody can follow a handle; kernels of tests know how to. */
static void *flip(const void *p)
{
    return (void *)((uintptr_t)p ^ UINT64_C(0x5a5a000000000000));
}

static int32_t device_alloc(void *user, int32_t id, size_t bytes, size_t align, void **out)
{
    (void)id;
    *out = flip(aligned_alloc(align, bytes));
    ((struct counts *)user)->held++;
    return LATHE_OK;
}

static void device_free(void *user, int32_t id, void *p)
{
    (void)id;
    ((struct counts *)user)->held--;
    free(flip(p));
}

static int32_t device_copy(void *user, const void *from, size_t from_offset, lathe_device from_device, void *to,
                           size_t to_offset, lathe_device to_device, size_t bytes)
{
    struct counts *c = user;
    const bool out_of = from_device.type == LATHE_EXT_DEV, into = to_device.type == LATHE_EXT_DEV;
    if (out_of && into)
        c->within += bytes;
    else if (into)
        c->to += bytes;
    else
        c->from += bytes;
    from = out_of ? flip(from) : from;
    to = into ? flip(to) : to;
    memcpy((char *)to + to_offset, (const char *)from + from_offset, bytes);
    return LATHE_OK;
}

/* Until "anew" is said: what was there then is the device's no more. */
static int32_t device_alive(void *user, int32_t id, const void *p)
{
    struct counts *c = user;
    (void)id;
    if (c->lost)
        free(flip(p));
    c->held -= c->lost;
    return !c->lost;
}

static void add_device(struct session *s)
{
    const lathe_device_api row = {"ext_dev", LATHE_EXT_DEV, &s->counts, device_alloc, device_free, device_copy, NULL,
                                  device_alive};
    lathe_error e = {0};
    int32_t status = lathe_device_register(s->rt, &row, &e);
    if (status != LATHE_OK)
        put_error(status, &e);
}

static void put_devices(const struct session *s)
{
    int32_t wanted[4];
    const int32_t n = lathe_module_devices(&s->library, wanted, 4);
    printf("%d devices:", n);
    for (int32_t i = 0; i < n && i < 4; i++)
        printf(" %d", wanted[i]);
    printf("\n");
}

/* --- commands --- */

/* Calls a function of `module`: the first word of what `line` has, or `method` with all of it. */
static void call(const lathe_value *module, const char *method, char *line, bool put_arguments)
{
    static struct given given[MOST_ARGS];
    lathe_value values[MOST_ARGS], function = {0}, result = {0};
    lathe_error e = {0};
    const char *name = method ? method : next_word(&line);
    int n = 0;
    if (method && strncmp(method, "vm_", 3) != 0) { /* the function's name is its first argument */
        given[0] = (struct given){.text = NULL};
        values[n++] = (lathe_value){.type = LATHE_RAW_STRING, .u.v_string = next_word(&line)};
    }
    n += parse_arguments(line, given + n, values + n);
    int32_t status = lathe_GetFunction(module, name, &function, &e);
    if (status == LATHE_OK)
        status = lathe_call(&function, values, n, &result, &e);
    if (status != LATHE_OK) {
        put_error(status, &e);
    } else if (put_arguments) {
        for (int i = 0; i < n; i++) {
            put_value(&values[i]);
            printf("\n");
        }
    } else {
        put_value(&result);
        printf("\n");
    }
    lathe_release(&result);
    lathe_release(&function);
    for (int i = 0; i < n; i++) {
        lathe_release(&given[i].value);
        free(given[i].data);
        given[i] = (struct given){0};
    }
}

static void init(struct session *s, char *line)
{
    lathe_value load = {0};
    lathe_error e = {0};
    lathe_release(&s->machine);
    int32_t status = lathe_GetFunction(&s->library, "vm_load_executable", &load, &e);
    if (status == LATHE_OK)
        status = lathe_call(&load, NULL, 0, &s->machine, &e);
    lathe_release(&load);
    if (status != LATHE_OK)
        put_error(status, &e);
    else
        call(&s->machine, "vm_initialization", line, false);
}

static void describe(const struct session *s, const char *command, char *line)
{
    const char *function = next_word(&line), *name = "";
    int32_t arity = 0, rank = 0;
    int64_t dims[MOST_RANK];
    lathe_dtype t;
    lathe_error e = {0};
    int32_t status;
    if (strcmp(command, "arity") == 0) {
        status = lathe_function_arity(&s->machine, function, &arity, &e);
        if (status == LATHE_OK)
            printf("%d\n", arity);
    } else {
        char *i = next_word(&line);
        int32_t type = 0;
        status = lathe_function_parameter(&s->machine, function, i ? atoi(i) : 0, &name, &t, &rank, dims, MOST_RANK,
                                          &e);
        if (status == LATHE_OK)
            status = lathe_function_parameter_type(&s->machine, function, i ? atoi(i) : 0, &type, &e);
        if (status == LATHE_OK) {
            printf("%s: %s%d %d %d, rank %d:", name, type == LATHE_SHAPE ? "shape, " : "", t.code, t.bits, t.lanes,
                   rank);
            for (int32_t k = 0; k < rank && k < MOST_RANK; k++)
                printf(" %" PRId64, dims[k]);
            printf("\n");
        }
    }
    if (status != LATHE_OK)
        put_error(status, &e);
}

static void put_text(const lathe_value *v)
{
    char text[2000], cut[12];
    const size_t n = lathe_describe(v, text, sizeof text);
    if (lathe_describe(v, cut, sizeof cut) != n || strncmp(cut, text, sizeof cut - 1) != 0)
        printf("cut, it is another text: ");
    printf("%s%s\n", text, n < sizeof text ? "" : "...");
}

static void sample(const struct session *s, const char *metadata)
{
    enum { MOST = 12 };
    static char path[] = "/tmp/vmrun-XXXXXX";
    lathe_value inputs[MOST], result = {0};
    lathe_error e = {0};
    int32_t n = 0;
    int file = *metadata ? mkstemp(path) : -1;
    if (file >= 0 && write(file, metadata, strlen(metadata)) < 0)
        exit(3);
    int32_t status = lathe_sample_inputs(s->rt, &s->machine, file >= 0 ? path : NULL, inputs, MOST, &n, &e);
    for (int32_t i = 0; i < n; i++)
        put_text(&inputs[i]);
    if (status == LATHE_OK)
        status = lathe_call_named(&s->machine, "main", inputs, n, &result, &e);
    if (status == LATHE_OK)
        put_text(&result);
    else if (strncmp(e.message, path, strlen(path)) == 0)
        memmove(e.message, e.message + strlen(path) + 2, strlen(e.message + strlen(path) + 2) + 1); /* ": " */
    if (status != LATHE_OK)
        put_error(status, &e);
    for (int32_t i = 0; i < n; i++)
        lathe_release(&inputs[i]);
    lathe_release(&result);
    if (file >= 0) {
        (void)close(file);
        (void)remove(path);
        memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    }
}

static void run(struct session *s, char *line)
{
    static const char *const methods[][2] = {{"set", "set_input"},
                                             {"invoke", "invoke_stateful"},
                                             {"get", "get_output"},
                                             {"outputs", "get_output_arity"},
                                             {"name", "get_function_param_name"},
                                             {"params", "get_function_arity"}};
    const char *command = next_word(&line);
    if (!command || *command == '#')
        return;
    if (strcmp(command, "repeat") == 0) {
        char *count = next_word(&line), *copy = malloc(strlen(line) + 1);
        for (int n = count ? atoi(count) : 0; n > 0; n--)
            run(s, strcpy(copy, line));
        free(copy);
        return;
    }
    if (strcmp(command, "init") == 0) {
        init(s, line);
    } else if (strcmp(command, "call") == 0) {
        call(&s->machine, NULL, line, false);
    } else if (strcmp(command, "kernel") == 0) {
        call(&s->library, NULL, line, true);
    } else if (strcmp(command, "source") == 0) {
        const char *source = lathe_source(&s->library), *of_machine = lathe_source(&s->machine);
        printf("%zu bytes%s\n", source ? strlen(source) : 0, source == of_machine ? "" : ", not the machine's");
    } else if (strcmp(command, "device") == 0) {
        add_device(s);
    } else if (strcmp(command, "anew") == 0 || strcmp(command, "old") == 0) {
        s->counts.lost = *command == 'a';
    } else if (strcmp(command, "devices") == 0) {
        put_devices(s);
    } else if (strcmp(command, "counts") == 0) {
        const struct counts *c = &s->counts;
        printf("%" PRIu64 " held, %" PRIu64 " bytes to the device, %" PRIu64 " from it, %" PRIu64 " within\n", c->held,
               c->to, c->from, c->within);
    } else if (strcmp(command, "sample") == 0) {
        sample(s, line + strspn(line, " \t\n"));
    } else if (strcmp(command, "arity") == 0 || strcmp(command, "param") == 0) {
        describe(s, command, line);
    } else {
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
            if (strcmp(command, methods[i][0]) == 0)
                call(&s->machine, methods[i][1], line, false);
    }
}

/* --- the file at every length --- */

static int truncate_file(lathe_runtime *rt, const char *path)
{
    FILE *f = fopen(path, "rb");
    char *whole = malloc(1 << 20);
    size_t size = f ? fread(whole, 1, 1 << 20, f) : 0, accepted = 0;
    if (f)
        (void)fclose(f);
    for (size_t n = 0; n < size; n++) {
        char *cut = malloc(n + 1); /* exact: a read beyond the end is seen by the sanitizer */
        lathe_value v;
        lathe_error e = {0};
        memcpy(cut, whole, n);
        int32_t status = lathe_LoadFromBytes(rt, "cut", cut, n, &v, &e);
        accepted += status == LATHE_OK;
        if (status != LATHE_OK && (status != e.code || strlen(e.message) < 8))
            printf("length %zu: a poor error: %s\n", n, e.message);
        lathe_release(&v);
        free(cut);
    }
    printf("%zu bytes: %zu lengths accepted\n", size, accepted);
    free(whole);
    return 0;
}

/* --- the file with each byte of its headers changed --- */

struct damage {
    lathe_runtime *rt;
    char *bytes, path[4096];
    size_t size, tried, accepted, given; /* given: to the system's loader */
};

static uint64_t number(const struct damage *d, size_t at, size_t n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | (uint8_t)d->bytes[at + n];
    return v;
}

static void load_damaged(struct damage *d)
{
    lathe_value v;
    lathe_error e = {0};
    FILE *f = fopen(d->path, "wb");
    if (!f || fwrite(d->bytes, 1, d->size, f) != d->size || fclose(f) != 0)
        abort();
    int32_t status = lathe_LoadFromFile(d->rt, d->path, &v, &e);
    void *there = dlopen(d->path, RTLD_NOW | RTLD_NOLOAD);
    d->tried++;
    d->accepted += status == LATHE_OK;
    d->given += there != NULL;
    if (there)
        (void)dlclose(there);
    if (status != LATHE_OK && (status != e.code || strlen(e.message) < 8))
        printf("a poor error: %s\n", e.message);
    lathe_release(&v);
    (void)remove(d->path); /* another file of that name is another library */
}

static void change_each(struct damage *d, size_t from, size_t n)
{
    static const uint8_t masks[] = {1, 0x80, 0xff};
    for (size_t at = from; at < from + n && at < d->size; at++)
        for (size_t i = 0; i < sizeof masks; i++) {
            d->bytes[at] = (char)(d->bytes[at] ^ masks[i]);
            load_damaged(d);
            d->bytes[at] = (char)(d->bytes[at] ^ masks[i]);
        }
}

/* The header of the ELF file, its table of sections, and that of segments, unless the system's loader maps the file by
 * it. */
static int damage_file(lathe_runtime *rt, const char *path)
{
    struct damage d = {.rt = rt, .bytes = malloc(1 << 20)};
    FILE *f = fopen(path, "rb");
    d.size = f ? fread(d.bytes, 1, 1 << 20, f) : 0;
    if (f)
        (void)fclose(f);
    (void)snprintf(d.path, sizeof d.path, "%s.damaged.so", path);
    const size_t sections = number(&d, 40, 8), n = number(&d, 58, 2) * number(&d, 60, 2);
    change_each(&d, 0, 64);
    change_each(&d, sections, n);
    if (d.given == 0)
        change_each(&d, number(&d, 32, 8), number(&d, 54, 2) * number(&d, 56, 2));
    printf("%zu changes: %zu accepted, %zu given to the system's loader\n", d.tried, d.accepted, d.given);
    free(d.bytes);
    return 0;
}

int main(int argc, char **argv)
{
    struct session s = {0};
    lathe_options options = {.size = sizeof options, .workers = 2};
    lathe_error e = {0};
    int (*with_file)(lathe_runtime *rt, const char *path) = NULL;
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--truncate") == 0)
            with_file = truncate_file;
        else if (strcmp(argv[i], "--damage") == 0)
            with_file = damage_file;
        else if (strcmp(argv[i], "--no-jit") == 0)
            options.no_jit = 1;
        else if (strcmp(argv[i], "--workers") == 0 && i + 1 < argc)
            options.workers = (uint32_t)atoi(argv[++i]);
        else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc)
            options.trace = atoi(argv[++i]);
    }
    if (i != argc - 1) {
        fprintf(stderr, "usage: vmrun [--workers N] [--trace N] [--no-jit] [--truncate | --damage] MODULE < SCRIPT\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int32_t status = lathe_runtime_create(&options, &s.rt, &e);
    maker = s.rt;
    if (status == LATHE_OK && with_file) {
        (void)with_file(s.rt, argv[i]);
    } else if (status == LATHE_OK) {
        status = lathe_LoadFromFile(s.rt, argv[i], &s.library, &e);
        if (status == LATHE_OK)
            for (char line[4096]; fgets(line, sizeof line, stdin);)
                run(&s, line);
    }
    if (status != LATHE_OK)
        put_error(status, &e);
    lathe_release(&s.machine);
    lathe_release(&s.library);
    lathe_runtime_destroy(s.rt);
    return 0;
}
