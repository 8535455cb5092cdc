/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: reading the equation, and the type relation (ONNX Einsum, numpy.einsum). */
#include "graph/op/einsum.h"

#include <string.h>

#define ELLIPSIS 255u

static int letter(char ch)
{
    return ch >= 'a' && ch <= 'z' ? ch - 'a' : ch >= 'A' && ch <= 'Z' ? ch - 'A' + 26 : -1;
}

/* One term: letters and at most one ellipsis, as labels (ELLIPSIS unexpanded). Returns the position behind it. */
static const char *read_term(const char *s, uint8_t *labels, uint32_t *n)
{
    *n = 0;
    for (; *s && *s != ',' && *s != '-'; s++) {
        if (*s == ' ')
            continue;
        if (*n == TYPE_MAX_RANK)
            return NULL;
        if (strncmp(s, "...", 3) == 0) {
            labels[(*n)++] = ELLIPSIS;
            s += 2;
        } else if (letter(*s) >= 0) {
            labels[(*n)++] = (uint8_t)letter(*s);
        } else {
            return NULL;
        }
    }
    return s;
}

/* Replaces the ellipsis by `width` labels counted from the right; false when the rank does not fit. */
static bool expand(uint8_t *labels, uint32_t *n, uint32_t width)
{
    uint8_t r[TYPE_MAX_RANK];
    uint32_t len = 0;
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t copies = labels[i] == ELLIPSIS ? width : 1;
        for (uint32_t k = 0; k < copies; k++) {
            if (len == TYPE_MAX_RANK)
                return false;
            r[len++] = labels[i] == ELLIPSIS ? (uint8_t)(52 + width - 1 - k) : labels[i];
        }
    }
    memcpy(labels, r, len);
    *n = len;
    return true;
}

static bool bind_extents(compiler *c, const graph_node *n, einsum *e, uint32_t op)
{
    const type *t = infer_in(n, op);
    for (uint32_t i = 0; i < e->rank[op]; i++) {
        dim *x = &e->extent[e->label[op][i]];
        const shape here = {1, t->shape.dims + i}, so_far = {1, x};
        shape both = here;
        if (*x && !shape_broadcast(c, so_far, here, &both))
            return infer_error(c, n, "operand %u: extents %lld and %lld under one label", op,
                               (long long)dim_bound(*x), (long long)dim_bound(here.dims[0]));
        *x = both.dims[0];
    }
    return true;
}

/* Without "->": ellipsis first, then letters that occur exactly once, in alphabetical order (a..z after A..Z). */
static void implicit_output(einsum *e, uint32_t width)
{
    uint32_t count[EINSUM_LABELS] = {0};
    for (uint32_t i = 0; i < e->n_operands; i++)
        for (uint32_t k = 0; k < e->rank[i]; k++)
            count[e->label[i][k]]++;
    for (uint32_t k = 0; k < width; k++)
        e->out[e->out_rank++] = (uint8_t)(52 + width - 1 - k);
    for (uint32_t k = 0; k < 52; k++) {
        uint32_t l = k < 26 ? k + 26 : k - 26;
        if (count[l] == 1 && e->out_rank < TYPE_MAX_RANK)
            e->out[e->out_rank++] = (uint8_t)l;
    }
}

bool einsum_read(compiler *c, const graph_node *n, einsum *out)
{
    const char *eq = graph_attr_string(n, "equation"), *s = eq;
    uint32_t width = 0;
    *out = (einsum){.n_operands = n->n_inputs};
    if (n->n_inputs > EINSUM_OPERANDS)
        return infer_error(c, n, "%u operands; at most %u are supported", n->n_inputs, EINSUM_OPERANDS);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        s = read_term(s, out->label[i], &out->rank[i]);
        if (!s || (*s == ',') != (i + 1 < n->n_inputs))
            return infer_error(c, n, "cannot read equation '%s' for %u operands", eq, n->n_inputs);
        bool dots = memchr(out->label[i], (int)ELLIPSIS, out->rank[i]) != NULL;
        int32_t rank = infer_in(n, i)->shape.rank, w = rank - ((int32_t)out->rank[i] - dots);
        if (w < 0 || (!dots && w != 0))
            return infer_error(c, n, "operand %u has rank %d; equation '%s'", i, rank, eq);
        if (dots && (uint32_t)w > width)
            width = (uint32_t)w;
        if (!expand(out->label[i], &out->rank[i], (uint32_t)w) || !bind_extents(c, n, out, i))
            return false;
        s += *s == ',';
    }
    if (*s != '-') {
        implicit_output(out, width);
        return true;
    }
    if (s[1] != '>' || !(s = read_term(s + 2, out->out, &out->out_rank)) || *s ||
        !expand(out->out, &out->out_rank, width))
        return infer_error(c, n, "cannot read the output of equation '%s'", eq);
    for (uint32_t i = 0; i < out->out_rank; i++)
        if (!out->extent[out->out[i]])
            return infer_error(c, n, "an output label of '%s' is in no operand", eq);
    return true;
}

/* Axes of one letter are equal, or 1. */
static void ask_for_letters(compiler *c, const graph_node *n, const einsum *e)
{
    for (uint32_t i = 0; i < e->n_operands; i++)
        for (uint32_t k = 0; k < e->rank[i]; k++)
            (void)infer_extents(c, infer_in(n, i)->shape.dims[k], EXTENTS_STRETCHED, e->extent[e->label[i][k]],
                                "axes of one letter");
}

bool infer_einsum(compiler *c, const graph_node *n, type *out)
{
    einsum e;
    dim d[TYPE_MAX_RANK];
    if (!einsum_read(c, n, &e))
        return false;
    ask_for_letters(c, n, &e);
    for (uint32_t i = 0; i < e.out_rank; i++)
        d[i] = e.extent[e.out[i]];
    out[0] = type_tensor(infer_in(n, 0)->dt, shape_make(c, e.out_rank, d));
    return true;
}
