/* SPDX-License-Identifier: Apache-2.0 */
/* Constant tensors: immutable values with a static shape. The bytes are either dense (row-major, little-endian, any
 * alignment, often inside the model file in memory) or a splat (one element that stands for all; never materialised
 * unless somebody asks). */
#ifndef LATHE_TYPE_TENSOR_H
#define LATHE_TYPE_TENSOR_H
#include "type/type.h"

typedef enum tensor_kind { TENSOR_DENSE, TENSOR_SPLAT } tensor_kind;

typedef struct tensor_data {
    tensor_kind kind;
    dtype dt;
    uint32_t rank;
    const int64_t *dims;
    int64_t count;       /* elements */
    const uint8_t *data; /* dense: count elements, unaligned; splat: one element. Borrowed for the whole compile */
    const char *file;    /* dense, inside a mapped file: its name; else NULL */
    uint64_t offset;     /* then the offset in that file */
    bool nibbles;        /* the model has these numbers in 4 bits */
} tensor_data;

/* The makers want dims >= 0 whose product tensor_count can say: what comes from a file is asked first. */
bool tensor_count(uint32_t rank, const int64_t *dims, int64_t *out); /* false: negative, or above INT64_MAX */
const tensor_data *tensor_dense(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *take_data);
/* The same of numbers that the model has in 4 bits. */
const tensor_data *tensor_nibbles(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *take_data);
const tensor_data *tensor_splat(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *element);
const tensor_data *tensor_scalar_f64(compiler *c, dtype dt, double v); /* rank 0 */
const tensor_data *tensor_scalar_i64(compiler *c, dtype dt, int64_t v);
const tensor_data *tensor_from_i64s(compiler *c, uint32_t n, const int64_t *v); /* i64[n] */
/* "16000" everywhere, or "1,0.5,2", one number for each element of the static type t; `name` for messages. */
bool tensor_from_numbers(compiler *c, const type *t, const char *name, const char *text, const tensor_data **out);
/* The same values, of which there must be as many. */
const tensor_data *tensor_reshape(compiler *c, const tensor_data *t, uint32_t rank, const int64_t *dims);
const uint8_t *tensor_element(const tensor_data *t, int64_t i); /* address of element i, unaligned */
double tensor_get_f64(const tensor_data *t, int64_t i);
int64_t tensor_get_i64(const tensor_data *t, int64_t i);
/* The least and the greatest of integers. False: there are none. */
bool tensor_range(const tensor_data *t, int64_t *out_least, int64_t *out_most);
/* All bytes, contiguous and aligned to 64; splats are filled. NULL when the memory is refused. */
const uint8_t *tensor_bytes(arena *a, const tensor_data *t);
/* The same where alignment does not matter: dense bytes stay where they are. Not NULL for want of elements. */
const uint8_t *tensor_plain_bytes(arena *a, const tensor_data *t);
size_t tensor_size(const tensor_data *t);                      /* bytes when dense */
bool tensor_equal(const tensor_data *a, const tensor_data *b); /* same type and bytes; a splat equals its dense form */
uint64_t tensor_hash(const tensor_data *t);
type tensor_type(compiler *c, const tensor_data *t);
/* "splat 0.5", "dense [1, 2, 3]" (numbers in row-major order; hex floats never), "file \"w.bin\" 128" (mapped ranges of
 * more than 64 elements), "hex \"...\"" (other constants of more than 64 elements, and those with values that no number
 * gives back, such as NaN with a payload; "splat hex \"...\"" likewise). Parsed back by tensor_parse given
 * the type; `file` maps relative to the folder of the text. */
void tensor_print(writer *w, const tensor_data *t);
bool tensor_parse(compiler *c, lexer *l, const type *t, const tensor_data **out);
#endif
