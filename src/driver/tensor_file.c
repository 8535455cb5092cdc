/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files: NumPy's .npy and .npz, ONNX's .pb, raw bytes; and random numbers. */
#include "driver/run.h"
#include "driver/tensor_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/npz.h"
#include "frontend/onnx/onnx.h"

typedef tensor_content content;

const char *tensor_file_name(arena *a, const char *name)
{
    char *out = arena_strdup(a, name);
    for (char *s = out; *s; s++)
        if (!((unsigned char)*s < 128 && isalnum((unsigned char)*s)) && !strchr("_.-", *s))
            *s = '_';
    return out;
}

static const struct {
    dtype dt;
    const char *descr;
} descrs[] = {
    {DT_F32, "<f4"}, {DT_F64, "<f8"},  {DT_F16, "<f2"},  {DT_I8, "|i1"},  {DT_I16, "<i2"},
    {DT_I32, "<i4"}, {DT_I64, "<i8"},  {DT_U16, "<u2"},  {DT_U32, "<u4"}, {DT_U64, "<u8"}, {DT_BOOL, "|b1"},
    {DT_BF16, "<V2"}, {DT_U8, "|V1"},  {DT_U8, "|u1"}, /* the last one of a type is written */
};

static bool fail(compiler *c, const char *path, const char *why)
{
    return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s': %s", path, why);
}

/* --- .npy
 * ------------------------------------------------------------------------------------------------------------- */

static const char *after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? at + strlen(key) : NULL;
}

static bool parse_descr(const char *text, dtype *out)
{
    const char *at = after(text, "'descr':");
    at = at ? strchr(at, '\'') : NULL;
    for (size_t i = 0; at && i < sizeof descrs / sizeof *descrs; i++)
        if (strncmp(at + 1, descrs[i].descr, 3) == 0 ||
            (at[1] == '|' && descrs[i].descr[0] == '<' && strncmp(at + 2, descrs[i].descr + 1, 2) == 0)) {
            *out = descrs[i].dt;
            return true;
        }
    return false;
}

static bool parse_shape(const char *text, content *out)
{
    const char *at = after(text, "'shape':");
    at = at ? strchr(at, '(') : NULL;
    if (!at)
        return false;
    for (at++; *at && *at != ')';) {
        char *end;
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        if (out->rank == TYPE_MAX_RANK)
            return false;
        out->dims[out->rank++] = strtoll(at, &end, 10);
        at = end;
    }
    return *at == ')';
}

static bool parse_npy(compiler *c, const char *path, span s, content *out)
{
    if (s.len < 12 || memcmp(s.data, "\x93NUMPY", 6) != 0)
        return fail(c, path, "this is not a .npy file");
    size_t head = s.data[6] >= 2 ? 12 : 10, len = s.data[8] | (size_t)s.data[9] << 8;
    if (s.data[6] >= 2)
        len |= (size_t)s.data[10] << 16 | (size_t)s.data[11] << 24;
    if (len > s.len - head)
        return fail(c, path, "the .npy file is cut off");
    const char *text = arena_strndup(&c->mem, (const char *)s.data + head, len);
    const char *order = after(text, "'fortran_order':");
    const char *descr = after(text, "'descr':");
    descr = descr ? strchr(descr, '\'') : NULL;
    bool wide = false;
    int64_t bytes = 0;
    if (descr && descr[1] == '|' && descr[2] == 'O')
        return fail(c, path, "an array of Python objects; of strings, save x.astype(str)");
    const bool text_kind = descr && tensor_text_descr(descr + 1, &wide, &bytes);
    if ((!text_kind && !parse_descr(text, &out->dt)) || !parse_shape(text, out))
        return fail(c, path, "this kind of .npy header is not supported");
    if (order && strstr(order, "True") && strstr(order, "True") < strchr(order, ',') && out->rank > 1)
        return fail(c, path, "the array is in Fortran order; save np.ascontiguousarray(x)");
    out->data = s.data + head + len;
    out->len = s.len - head - len;
    return !text_kind || tensor_text_take(c, path, wide, bytes, out);
}

/* The array of that name, else the first one. */
static bool parse_npz(compiler *c, const char *path, span s, const char *name, content *out)
{
    npz_file f;
    if (!npz_read(c, path, s, &f))
        return false;
    const npz_array *x = name ? npz_find(&f, name) : NULL;
    return parse_npy(c, path, x ? x->bytes : f.arrays.data[0].bytes, out);
}

/* --- reading
 * ------------------------------------------------------------------------------------------------------------ */

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcmp(s + n - k, suffix) == 0;
}

static bool take_data(compiler *c, const char *path, const tensor_data *t, content *out)
{
    out->dt = t->dt;
    out->rank = t->rank;
    memcpy(out->dims, t->dims, t->rank * sizeof *out->dims);
    out->data = tensor_plain_bytes(&c->mem, t);
    out->len = tensor_size(t);
    return out->data || diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %zu bytes of '%s'",
                                   out->len, path);
}

static bool parse_pb(compiler *c, const char *path, span s, content *out)
{
    const char *name;
    const tensor_data *t;
    return onnx_read_tensor(c, s, path, &name, &out->is_text, &t) && take_data(c, path, t, out);
}

static bool parse_any(compiler *c, const char *path, const char *name, content *out)
{
    span s;
    *out = (content){0};
    if (!compiler_read_file(c, path, &s))
        return false;
    if (has_suffix(path, ".npy"))
        return parse_npy(c, path, s, out);
    if (has_suffix(path, ".npz"))
        return parse_npz(c, path, s, name, out);
    if (has_suffix(path, ".pb"))
        return parse_pb(c, path, s, out);
    *out = (content){.raw = true, .data = s.data, .len = s.len};
    return true;
}

bool tensor_file_names(compiler *c, const char *path, const npz_file **out)
{
    span s;
    npz_file *f = arena_new(&c->mem, npz_file);
    *out = has_suffix(path, ".npz") ? f : NULL;
    return !*out || (compiler_read_file(c, path, &s) && npz_read(c, path, s, f));
}

bool tensor_file_peek(compiler *c, const char *path, const char *name, dtype *out_dt, uint32_t *out_rank,
                      int64_t *out_dims)
{
    content x;
    if (!parse_any(c, path, name, &x) || x.raw)
        return false;
    *out_dt = x.dt;
    *out_rank = x.rank;
    memcpy(out_dims, x.dims, sizeof x.dims);
    return true;
}

/* Of strings, whatever their bytes are. */
static const char *describe_text(compiler *c, uint32_t rank, const int64_t *dims)
{
    return arena_printf(&c->mem, "strings %s", tensor_file_dims(&c->mem, rank - 1, dims));
}

static const char *describe(compiler *c, dtype dt, uint32_t rank, const int64_t *dims)
{
    char *text = arena_printf(&c->mem, "%s[", dtype_name(dt));
    for (uint32_t i = 0; i < rank; i++)
        text = arena_printf(&c->mem, "%s%s%lld", text, i ? ", " : "", (long long)dims[i]);
    return arena_printf(&c->mem, "%s]", text);
}

static bool agrees(const content *x, const run_tensor *t)
{
    bool same = x->rank == t->rank && (x->dt == t->dt || (x->dt == DT_U16 && t->dt == DT_BF16));
    for (uint32_t i = 0; same && i < t->rank; i++)
        same = x->dims[i] == t->dims[i];
    return same;
}

/* The part of x that is one of `steps`: what it holds has one more axis in front, or is raw bytes of all steps. */
static void take_step(content *x, const run_tensor *t, uint32_t step, uint32_t steps)
{
    const bool raw = x->raw && steps > 1 && t->bytes > 0 && x->len / steps == t->bytes && x->len % steps == 0;
    if (!raw && (x->raw || x->rank != t->rank + 1 || x->dims[0] != (int64_t)steps || x->len < t->bytes * steps))
        return;
    x->data += (size_t)step * t->bytes;
    x->len = raw ? t->bytes : x->len - (size_t)step * t->bytes;
    if (!raw)
        memmove(x->dims, x->dims + 1, --x->rank * sizeof *x->dims);
}

/* Whether some rows of the array are one value of the tensor. */
static bool holds_samples(const content *x, const run_tensor *t)
{
    return x->rank == t->rank && t->rank > 0 && x->dims[0] > t->dims[0] &&
           memcmp(x->dims + 1, t->dims + 1, (t->rank - 1) * sizeof *t->dims) == 0;
}

/* Whether a cast keeps every integer: none wraps. */
static bool holds_all(dtype want, dtype have)
{
    if (!dtype_is_int(have))
        return have == DT_BOOL;
    const uint32_t signs = dtype_is_signed(want), minus = dtype_is_signed(have);
    return minus <= signs && dtype_bits(have) - minus <= dtype_bits(want) - signs;
}

/* A cast to a narrower integer would wrap, and one of a float would cut digits off: then the hint says otherwise. */
void tensor_file_hint_at_type(compiler *c, dtype have, dtype want)
{
    const char *name = dtype_full_name(want), *raw = "if it is quantized, in NumPy";
    const long long least = dtype_min_int(want), most = dtype_max_int(want);
    if (!dtype_is_int(want) || holds_all(want, have))
        diag_hint(&c->diags, "in NumPy: x.astype('%s')", name);
    else if (dtype_bits(want) > 16 && dtype_is_float(have))
        diag_hint(&c->diags, "if its numbers are whole, in NumPy: x.astype('%s')", name);
    else if (dtype_bits(want) > 16)
        diag_hint(&c->diags, "if no number is outside of %lld to %lld, in NumPy: x.astype('%s')", least, most, name);
    else {
        if (dtype_is_byte(have) && dtype_is_byte(want))
            raw = arena_printf(&c->mem,
                               "if these are raw bytes, in NumPy: (x.astype('int16') %c 128).astype('%s'); if they are "
                               "values to quantize", want == DT_I8 ? '-' : '+', name);
        diag_hint(&c->diags,
                  "%s: np.clip(np.round(x / scale) + zero_point, %lld, %lld).astype('%s'); "
                  "inspect --json says scale and zero_point", raw, least, most, name);
    }
}

/* The next extent from k on that is not 1. */
static uint32_t skip_ones(uint32_t rank, const int64_t *dims, uint32_t k)
{
    while (k < rank && dims[k] == 1)
        k++;
    return k;
}

/* Whether a reshape moves no element to a wrong place: the shapes differ in extents of 1, or one has a single axis. */
static bool keeps_order(uint32_t rank, const int64_t *dims, uint32_t want_rank, const int64_t *want)
{
    uint32_t i = skip_ones(rank, dims, 0), k = skip_ones(want_rank, want, 0);
    if (skip_ones(rank, dims, i + 1) >= rank || skip_ones(want_rank, want, k + 1) >= want_rank)
        return true;
    while (i < rank && k < want_rank && dims[i] == want[k]) {
        i = skip_ones(rank, dims, i + 1);
        k = skip_ones(want_rank, want, k + 1);
    }
    return i >= rank && k >= want_rank;
}

/* "0, 2, 3, 1": the axes in the order of the tensor; NULL: its extents are others. */
static const char *order_of(arena *a, uint32_t rank, const int64_t *dims, const int64_t *want)
{
    const char *text = "";
    uint32_t taken = 0;
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t i = 0;
        while (i < rank && (dims[i] != want[k] || (taken >> i & 1)))
            i++;
        if (i >= rank)
            return NULL;
        taken |= 1u << i;
        text = arena_printf(a, "%s%s%u", text, k ? ", " : "", i);
    }
    return text;
}

bool tensor_file_hint_at_order(compiler *c, uint32_t rank, const int64_t *dims, uint32_t want_rank, const int64_t *want)
{
    int64_t count = 0, most = 0;
    if (rank > TYPE_MAX_RANK || !tensor_count(rank, dims, &count) || !tensor_count(want_rank, want, &most) ||
        count != most)
        return false;
    const bool same = keeps_order(rank, dims, want_rank, want);
    const char *order = same || rank != want_rank ? NULL : order_of(&c->mem, rank, dims, want);
    if (same)
        diag_hint(&c->diags, "in NumPy: x.reshape(%s)", tensor_file_dims(&c->mem, want_rank, want));
    else if (order)
        diag_hint(&c->diags, "if its axes are in another order, in NumPy: x.transpose(%s)", order);
    return same || order;
}

/* How NumPy makes an array that fits. */
static void hint_at_array(compiler *c, const content *x, const run_tensor *t)
{
    if (t->is_text)
        diag_hint(&c->diags, "in NumPy: x.astype(str)");
    else if (x->dt != t->dt)
        tensor_file_hint_at_type(c, x->dt, t->dt);
    else if (tensor_file_hint_at_order(c, x->rank, x->dims, t->rank, t->dims))
        return;
    else if (holds_samples(x, t))
        diag_hint(&c->diags, "it holds several samples, and a run takes one; in NumPy: x[0:%lld]",
                  (long long)t->dims[0]);
    else if (x->rank == t->rank + 1 && memcmp(x->dims + 1, t->dims, t->rank * sizeof *t->dims) == 0)
        diag_hint(&c->diags,
                  "it holds %lld samples, and a run takes one; in NumPy: x[0], or --steps %lld for all as a sequence",
                  (long long)x->dims[0], (long long)x->dims[0]);
    else
        diag_hint(&c->diags, "give an array of that shape");
}

bool tensor_file_read(compiler *c, const char *path, run_tensor *t)
{
    return tensor_file_read_step(c, path, 0, 0, t);
}

/* What was found in a file, as the tensor. */
static bool fill(compiler *c, const char *path, content x, run_tensor *t)
{
    const char *want = t->is_text ? describe_text(c, t->rank, t->dims) : describe(c, t->dt, t->rank, t->dims);
    if (x.is_text && (!t->is_text || !agrees(&x, t)))
        return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' holds %s; '%s' is %s", path,
                          describe_text(c, x.rank, x.dims), t->name, want);
    if (!x.raw && !agrees(&x, t)) {
        diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' holds %s; '%s' is %s", path,
                   describe(c, x.dt, x.rank, x.dims), t->name, want);
        hint_at_array(c, &x, t);
        return false;
    }
    if (x.len < t->bytes || (x.raw && x.len != t->bytes)) {
        diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has %zu bytes; '%s', %s, needs %zu", path, x.len,
                   t->name, want, t->bytes);
        diag_hint(&c->diags, "%s",
                  x.raw ? "a file of raw bytes has the elements of one tensor and nothing else; a .npy file says its "
                          "type and shape itself"
                        : "the file was cut");
        return false;
    }
    memcpy(t->data, x.data, t->bytes);
    t->filled = true;
    return true;
}

/* Of how many steps the file is, where it is a sequence; 0: it is none. */
static int64_t steps_in(const content *x, const run_tensor *t)
{
    if (x->raw)
        return t->bytes > 0 && x->len % t->bytes == 0 ? (int64_t)(x->len / t->bytes) : 0;
    const bool same = x->rank == t->rank + 1 && memcmp(x->dims + 1, t->dims, t->rank * sizeof *t->dims) == 0;
    return same && x->dt == t->dt ? x->dims[0] : 0;
}

static bool other_steps(compiler *c, const char *path, const run_tensor *t, int64_t there, uint32_t steps)
{
    diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' holds %lld steps of '%s', and --steps says %u", path,
               (long long)there, t->name, steps);
    diag_hint(&c->diags, "give --steps %lld, or a file of %u steps", (long long)there, steps);
    return false;
}

bool tensor_file_read_step(compiler *c, const char *path, uint32_t step, uint32_t steps, run_tensor *t)
{
    content x;
    if (!parse_any(c, path, t->name, &x) || (x.is_text && t->is_text && !tensor_text_fit(c, path, t, &x)))
        return false;
    const int64_t there = steps > 0 ? steps_in(&x, t) : 0;
    if (there > 1 && there != steps)
        return other_steps(c, path, t, there, steps);
    if (steps > 0)
        take_step(&x, t, step, steps);
    return fill(c, path, x, t);
}

/* --- sequences and optionals --- */

static bool list_of_pb(compiler *c, const char *path, span s, const list_io *l, tensor_list *out)
{
    onnx_values v;
    if (!(l->is_map ? onnx_read_map(c, s, path, &v) : onnx_read_values(c, s, path, l->is_sequence, l->is_optional, &v)))
        return false;
    out->none = v.none;
    out->n = v.n;
    out->items = arena_array(&c->mem, content, v.n + 1u);
    for (uint32_t i = 0; i < v.n; i++) {
        if (!take_data(c, path, v.items[i], &out->items[i]))
            return false;
        out->items[i].is_text = v.is_text && v.is_text[i];
    }
    return true;
}

bool tensor_file_list(compiler *c, const char *path, const list_io *l, tensor_list *out)
{
    span s;
    npz_file f;
    *out = (tensor_list){0};
    if (!compiler_read_file(c, path, &s))
        return false;
    if (l->is_map && !has_suffix(path, ".npz") && !has_suffix(path, ".pb"))
        return fail(c, path, "a map is a .npz file with the array of its keys, and behind it that of its values, or a "
                             ".pb file");
    if (has_suffix(path, ".pb"))
        return list_of_pb(c, path, s, l, out);
    if (!has_suffix(path, ".npz")) {
        out->n = 1;
        out->items = arena_array(&c->mem, content, 1);
        return !l->is_sequence ? parse_any(c, path, l->name, out->items)
                               : fail(c, path, "a sequence is a .npz file with its elements in order, or a .pb file");
    }
    if (!npz_read(c, path, s, &f))
        return false;
    out->n = f.arrays.len;
    out->items = arena_array(&c->mem, content, out->n + 1u);
    for (uint32_t i = 0; i < out->n; i++)
        if (!parse_npy(c, path, f.arrays.data[i].bytes, &out->items[i]))
            return false;
    return true;
}

bool tensor_file_read_element(compiler *c, const char *path, const tensor_list *l, uint32_t k, run_tensor *t)
{
    content x = l->items[k];
    return (!x.is_text || !t->is_text || tensor_text_fit(c, path, t, &x)) && fill(c, path, x, t);
}

bool tensor_file_element_is_text(const tensor_list *l, uint32_t k)
{
    return l->items[k].is_text;
}

bool tensor_file_element_shape(const tensor_list *l, uint32_t k, uint32_t *out_rank, int64_t *out_dims)
{
    const content *x = &l->items[k];
    *out_rank = x->rank;
    memcpy(out_dims, x->dims, sizeof x->dims);
    return !x->raw;
}

/* --- writing
 * ------------------------------------------------------------------------------------------------------------ */

bool tensor_file_write_npy(compiler *c, const char *path, const run_tensor *t)
{
    writer w;
    writer_init(&w, &c->mem);
    const char *descr = "|u1";
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++)
        descr = descrs[i].dt == t->dt ? descrs[i].descr : descr;
    const uint32_t rank = t->rank - t->is_text;
    if (t->is_text)
        descr = arena_printf(&c->mem, "|S%lld", (long long)t->dims[rank]);
    w_fmt(&w, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < rank; i++)
        w_fmt(&w, "%lld%s", (long long)t->dims[i], rank == 1 || i + 1 < rank ? ", " : "");
    w_str(&w, "), }");
    while ((w.len + 11) % 64 != 0)
        w_str(&w, " ");
    w_str(&w, "\n");
    uint8_t *all = arena_try_alloc(&c->mem, 10 + w.len + t->bytes, 1);
    if (!all)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for '%s'", path);
    memcpy(all, "\x93NUMPY\x01", 8); /* the version's second byte is the string's end */
    all[8] = (uint8_t)(w.len & 255);
    all[9] = (uint8_t)(w.len >> 8);
    memcpy(all + 10, w.data, w.len);
    memcpy(all + 10 + w.len, t->data, t->bytes);
    return compiler_write_file(c, path, all, 10 + w.len + t->bytes);
}

/* --- random
 * ------------------------------------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return ((double)(next(state) >> 11) + 0.5) / 9007199254740992.0;
}

/* From -2^15 to 2^15 - 1, or all that fewer bits hold. */
static int64_t wide_integer(dtype dt, uint64_t bits)
{
    const uint32_t wanted = dt == DT_BOOL ? 1 : dtype_bits(dt) < 16 ? dtype_bits(dt) : 16;
    const int64_t v = (int64_t)(bits >> (64 - wanted));
    return dtype_is_signed(dt) ? v - ((int64_t)1 << (wanted - 1)) : v;
}

int64_t tensor_file_random_most(dtype dt)
{
    const bool is_data = dtype_is_int(dt) && (dtype_bits(dt) == 8 || dtype_bits(dt) == 16) && dt != DT_BOOL;
    return is_data ? -1 : 1;
}

void tensor_file_random(run_tensor *t, uint64_t *state, int64_t most)
{
    size_t size = dtype_bytes(t->dt);
    if (t->is_text) {
        tensor_text_random(t, state, next);
        return;
    }
    for (int64_t i = 0; i < t->count; i++) {
        uint8_t *at = t->data + (size_t)i * size;
        if (dtype_is_float(t->dt)) {
            double r = sqrt(-2.0 * log(uniform(state)));
            dtype_store_f64(t->dt, at, r * cos(6.283185307179586 * uniform(state)));
        } else {
            uint64_t bits = next(state);
            dtype_store_i64(t->dt, at,
                            most < 0    ? wide_integer(t->dt, bits)
                            : most == 1 ? (int64_t)(bits >> 63)
                                        : (int64_t)(bits % (uint64_t)(most + 1)));
        }
    }
    t->filled = true;
}

void tensor_file_uniform(run_tensor *t, uint64_t *state, double from, double to)
{
    for (int64_t i = 0; i < t->count; i++)
        dtype_store_f64(t->dt, t->data + (size_t)i * dtype_bytes(t->dt), from + (to - from) * uniform(state));
    t->filled = true;
}

const char *tensor_file_dims(arena *a, uint32_t rank, const int64_t *dims)
{
    const char *all = "[";
    for (uint32_t i = 0; i < rank; i++)
        all = arena_printf(a, "%s%s%lld", all, i ? ", " : "", (long long)dims[i]);
    return arena_printf(a, "%s]", all);
}
