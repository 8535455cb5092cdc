/* executable.c: reads a Relax VM executable: functions, constants, code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "executable.h"

#include "error.h"
#include "stored.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMS = 65535, MOST_REGISTERS = 1 << 22, FUNCTION_BYTES = 52 };

static int32_t damaged(lathe_error *error, const char *what)
{
    return vm_fail(error, LATHE_E_FORMAT, "the executable is damaged: %s", what);
}

/* A name with a zero behind it, which the executable keeps. */
static int32_t read_name(vm_reader *r, vm_executable *x, char **out, lathe_error *error)
{
    vm_bytes text = vm_read_text(r);
    if (!r->ok || !vm_text_plain(text))
        return damaged(error, r->ok ? "a name holds a zero" : "it ends in its functions");
    if ((x->name_count & (x->name_count - 1)) == 0) { /* the capacity is a power of two */
        size_t capacity = x->name_count ? x->name_count * 2 : 1;
        char **names = realloc(x->names, capacity * sizeof *names);
        if (!names)
            return vm_no_memory(error, capacity * sizeof *names);
        x->names = names;
    }
    *out = vm_text_copy(text);
    if (!*out)
        return vm_no_memory(error, text.size);
    x->names[x->name_count++] = *out;
    return LATHE_OK;
}

static int32_t read_params(vm_reader *r, vm_executable *x, vm_func *f, lathe_error *error)
{
    uint64_t n = vm_read_count(r, 8);
    if (!r->ok)
        return damaged(error, "it ends in its functions");
    if (f->kind == MODULE_FUNC_VM && n != 0 && n != f->params)
        return vm_fail(error, LATHE_E_FORMAT, "function %s has %u parameters and %" PRIu64 " names for them", f->name,
                       f->params, n);
    if (n == 0)
        return LATHE_OK;
    f->param_names = calloc((size_t)n, sizeof *f->param_names);
    if (!f->param_names)
        return vm_no_memory(error, (size_t)n * sizeof *f->param_names);
    for (uint64_t i = 0; i < n; i++) {
        int32_t status = read_name(r, x, &f->param_names[i], error);
        if (status != LATHE_OK)
            return status;
    }
    return LATHE_OK;
}

static int32_t check_vm_function(vm_func *f, int64_t start, int64_t end, int64_t params, int64_t registers,
                                 lathe_error *error)
{
    if (params < 0 || params > MOST_PARAMS)
        return vm_fail(error, LATHE_E_FORMAT, "function %s has %" PRId64 " parameters; 0 to %d are possible", f->name,
                       params, MOST_PARAMS);
    if (registers < params || registers > MOST_REGISTERS)
        return vm_fail(error, LATHE_E_FORMAT, "function %s has %" PRId64 " registers; %" PRId64 " to %d are possible",
                       f->name, registers, params, MOST_REGISTERS);
    if (start < 0 || end <= start || end > UINT32_MAX)
        return vm_fail(error, LATHE_E_FORMAT, "function %s has instructions %" PRId64 " to %" PRId64, f->name, start,
                       end);
    f->start = (uint32_t)start;
    f->end = (uint32_t)end;
    f->params = (uint32_t)params;
    f->registers = (uint32_t)registers;
    return LATHE_OK;
}

static int32_t read_function(vm_reader *r, vm_executable *x, vm_func *f, lathe_error *error)
{
    int32_t kind = vm_read_i32(r);
    int32_t status = read_name(r, x, &f->name, error);
    if (status != LATHE_OK)
        return status;
    int64_t start = vm_read_i64(r), end = vm_read_i64(r), params = vm_read_i64(r), registers = vm_read_i64(r);
    if (kind < MODULE_FUNC_PACKED || kind > MODULE_FUNC_VMTIR)
        return vm_fail(error, LATHE_E_FORMAT, "function %s is of kind %d, which is not known", f->name, kind);
    f->kind = (enum module_function_kind)kind;
    if (r->ok && f->kind == MODULE_FUNC_VM)
        status = check_vm_function(f, start, end, params, registers, error);
    return status == LATHE_OK ? read_params(r, x, f, error) : status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Functions are called by name from outside. */
static int32_t check_names(const vm_executable *x, lathe_error *error)
{
    int32_t status = LATHE_OK;
    char **names = malloc(((size_t)x->function_count + 1) * sizeof *names);
    if (!names)
        return vm_no_memory(error, x->function_count * sizeof *names);
    for (uint32_t i = 0; i < x->function_count; i++)
        names[i] = x->functions[i].name;
    qsort(names, x->function_count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < x->function_count && status == LATHE_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = vm_fail(error, LATHE_E_FORMAT, "there are two functions %s", names[i]);
    free(names);
    return status;
}

static int32_t read_functions(vm_reader *r, vm_executable *x, lathe_error *error)
{
    uint64_t n = vm_read_count(r, FUNCTION_BYTES);
    if (!r->ok || n > INT32_MAX)
        return damaged(error, "it ends in its functions");
    x->functions = calloc(n ? (size_t)n : 1, sizeof *x->functions);
    if (!x->functions)
        return vm_no_memory(error, (size_t)n * sizeof *x->functions);
    for (; x->function_count < n;) {
        int32_t status = read_function(r, x, &x->functions[x->function_count++], error);
        if (status != LATHE_OK)
            return status;
    }
    return check_names(x, error);
}

/* V2: (constant, memory scope) pairs; only the memory that every device has is known here. */
static int32_t read_scopes(vm_reader *r, lathe_error *error)
{
    uint64_t n = vm_read_count(r, 16);
    for (uint64_t i = 0; i < n && r->ok; i++) {
        int64_t constant = vm_read_i64(r);
        vm_bytes scope = vm_read_text(r);
        if (r->ok && scope.size != 0 && !vm_text_is(scope, "global"))
            return vm_fail(error, LATHE_E_UNSUPPORTED, "constant %" PRId64 " is for the memory scope %.*s; only global "
                           "is supported", constant, vm_text_shown(scope), (const char *)scope.data);
    }
    return r->ok ? LATHE_OK : damaged(error, "it ends in its memory scopes");
}

/* x->dims has room for the dimensions of all constants. */
static void keep_dims(vm_executable *x, size_t *used, vm_constant *c, const int64_t *dims, size_t n)
{
    c->u.shaped.dims = x->dims + *used;
    c->u.shaped.rank = n;
    if (dims && n > 0)
        memcpy(x->dims + *used, dims, n * sizeof *dims);
    *used += n;
}

static void read_shape(vm_reader *r, vm_executable *x, size_t *used, vm_constant *c)
{
    uint64_t n = vm_read_count(r, 8);
    vm_read_words(r, x->dims + *used, (size_t)n);
    keep_dims(x, used, c, NULL, (size_t)n);
}

static int32_t read_tensor(vm_reader *r, vm_executable *x, size_t *used, uint32_t i, lathe_error *error)
{
    vm_constant *c = &x->constants[i];
    vm_stored t;
    int32_t status = vm_stored_read(r, &t, error);
    if (status != LATHE_OK)
        return vm_at(error, status, "constant %u", i);
    keep_dims(x, used, c, t.dims, t.rank);
    c->u.shaped.dtype = t.dtype;
    c->u.shaped.data = t.data;
    return LATHE_OK;
}

static int32_t read_constant(vm_reader *r, vm_executable *x, size_t *used, uint32_t i, lathe_error *error)
{
    vm_constant *c = &x->constants[i];
    int32_t tag = vm_read_i32(r), status = LATHE_OK;
    c->tag = (enum module_constant_tag)tag;
    switch (tag) {
    case MODULE_CONST_INT: c->u.v_int = vm_read_i64(r); break;
    case MODULE_CONST_FLOAT: c->u.v_float = vm_read_f64(r); break;
    case MODULE_CONST_DTYPE: c->u.v_dtype = vm_read_dtype(r); break;
    case MODULE_CONST_STRING: c->u.text = vm_read_text(r); break;
    case MODULE_CONST_SHAPE: read_shape(r, x, used, c); break;
    case MODULE_CONST_TENSOR: status = read_tensor(r, x, used, i, error); break;
    default:
        return r->ok ? vm_fail(error, LATHE_E_UNSUPPORTED, "constant %u has the tag %d, which is not known", i, tag)
                     : damaged(error, "it ends in its constants");
    }
    if (status == LATHE_OK && !r->ok)
        return damaged(error, "it ends in its constants");
    return status;
}

/* The dimensions of all constants: an upper bound from a first look at what is left of the bytes would be the whole
 * file, so the constants are walked twice: once to count. */
static size_t count_dims(vm_reader r, uint64_t n)
{
    size_t dims = 0;
    for (uint64_t i = 0; i < n && r.ok; i++) {
        int32_t tag = vm_read_i32(&r);
        uint64_t rank = 0;
        if (tag == MODULE_CONST_SHAPE) {
            rank = vm_read_count(&r, 8);
            (void)vm_read_bytes(&r, rank * 8);
        } else if (tag == MODULE_CONST_TENSOR) {
            (void)vm_read_bytes(&r, 24);
            rank = vm_read_u32(&r);
            (void)vm_read_dtype(&r);
            if (rank > VM_STORED_RANK)
                break;
            (void)vm_read_bytes(&r, rank * 8);
            (void)vm_read_bytes(&r, vm_read_u64(&r));
        } else if (tag == MODULE_CONST_STRING) {
            (void)vm_read_text(&r);
        } else {
            (void)vm_read_bytes(&r, tag == MODULE_CONST_DTYPE ? 4 : 8);
        }
        dims += (size_t)rank;
    }
    return dims;
}

static int32_t read_constants(vm_reader *r, vm_executable *x, lathe_error *error)
{
    uint64_t n = vm_read_count(r, 8);
    size_t dims = count_dims(*r, n), used = 0;
    if (!r->ok || n > INT32_MAX)
        return damaged(error, "it ends in its constants");
    x->constants = calloc(n ? (size_t)n : 1, sizeof *x->constants);
    x->dims = calloc(dims + 1, sizeof *x->dims);
    if (!x->constants || !x->dims)
        return vm_no_memory(error, (size_t)n * sizeof *x->constants + dims * sizeof *x->dims);
    for (; x->constant_count < n; x->constant_count++) {
        int32_t status = read_constant(r, x, &used, x->constant_count, error);
        if (status != LATHE_OK)
            return status;
    }
    return LATHE_OK;
}

static int32_t read_code(vm_reader *r, vm_executable *x, lathe_error *error)
{
    uint64_t n = vm_read_count(r, 8);
    vm_reader offsets = *r;
    (void)vm_read_bytes(r, n * 8);
    uint64_t words = vm_read_count(r, 8);
    if (!r->ok || n > INT32_MAX)
        return damaged(error, "it ends in its instructions");
    x->code = calloc(n ? (size_t)n : 1, sizeof *x->code);
    x->words = calloc(words ? (size_t)words : 1, sizeof *x->words);
    if (!x->code || !x->words)
        return vm_no_memory(error, (size_t)(n + words) * 8);
    x->word_count = (size_t)words;
    vm_read_words(r, x->words, x->word_count);
    for (; x->instructions < n; x->instructions++) {
        int64_t at = vm_read_i64(&offsets);
        if (at < 0 || (uint64_t)at >= words)
            return vm_fail(error, LATHE_E_FORMAT, "instruction %u begins at word %" PRId64 " of %zu", x->instructions,
                           at, x->word_count);
        x->code[x->instructions] = x->words + at;
    }
    if (vm_reader_left(r) != 0)
        return damaged(error, "bytes follow its instructions");
    return LATHE_OK;
}

static int32_t read_head(vm_reader *r, bool *scopes, lathe_error *error)
{
    uint64_t magic = vm_read_u64(r);
    vm_bytes version = vm_read_text(r);
    *scopes = magic == MODULE_MAGIC_V2;
    if (!r->ok)
        return damaged(error, "it ends in its head");
    if (magic != MODULE_MAGIC_V1 && magic != MODULE_MAGIC_V2)
        return vm_fail(error, LATHE_E_FORMAT, "not a Relax VM executable: it begins with 0x%016" PRIx64, magic);
    if (!vm_text_is(version, MODULE_VERSION))
        return vm_fail(error, LATHE_E_UNSUPPORTED, "an executable of version %.*s; " MODULE_VERSION " is supported",
                       vm_text_shown(version), (const char *)version.data);
    return LATHE_OK;
}

int32_t vm_executable_read(vm_bytes bytes, vm_executable *out, lathe_error *error)
{
    vm_reader r = vm_reader_of(bytes);
    bool scopes;
    *out = (vm_executable){0};
    int32_t status = read_head(&r, &scopes, error);
    if (status == LATHE_OK)
        status = read_functions(&r, out, error);
    if (status == LATHE_OK && scopes)
        status = read_scopes(&r, error);
    if (status == LATHE_OK)
        status = read_constants(&r, out, error);
    if (status == LATHE_OK)
        status = read_code(&r, out, error);
    if (status == LATHE_OK)
        status = vm_executable_verify(out, error);
    if (status != LATHE_OK)
        vm_executable_free(out);
    return status;
}

void vm_executable_free(vm_executable *x)
{
    for (uint32_t i = 0; i < x->function_count; i++)
        free(x->functions[i].param_names);
    for (size_t i = 0; i < x->name_count; i++)
        free(x->names[i]);
    free(x->names);
    free(x->functions);
    free(x->constants);
    free((void *)x->code);
    free(x->words);
    free(x->dims);
    *x = (vm_executable){0};
}

const vm_func *vm_executable_find(const vm_executable *x, const char *name)
{
    for (uint32_t i = 0; i < x->function_count; i++)
        if (strcmp(x->functions[i].name, name) == 0)
            return &x->functions[i];
    return NULL;
}
