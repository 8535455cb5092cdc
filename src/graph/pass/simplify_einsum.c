/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of two operands that is a product of matrices, with axes in another order at most: a transposition of each
 * operand that needs one, nn.matmul, a transposition of the result. Everything behind knows products. */
#include "graph/op/einsum.h"
#include "graph/pass/simplify.h"

/* Labels of the axes, and where each stands. */
typedef struct product {
    einsum e;
    uint32_t n_batch;
    uint8_t batch[TYPE_MAX_RANK]; /* in both operands and the result, in the result's order */
    uint8_t row, column, sum;
} product;

/* How often the operand, or with `i` beyond the operands the result, has the label. */
static uint32_t count(const einsum *e, uint32_t i, uint32_t label)
{
    const uint8_t *labels = i < e->n_operands ? e->label[i] : e->out;
    uint32_t rank = i < e->n_operands ? e->rank[i] : e->out_rank, n = 0;
    for (uint32_t k = 0; k < rank; k++)
        n += labels[k] == label;
    return n;
}

/* Extents of all operands are those of the labels: nothing is broadcast. */
static bool is_whole(const graph_node *n, const einsum *e)
{
    for (uint32_t i = 0; i < e->n_operands; i++)
        for (uint32_t k = 0; k < e->rank[i]; k++)
            if (!dim_equal(n->inputs[i]->type.shape.dims[k], e->extent[e->label[i][k]]))
                return false;
    return true;
}

/* What a label stands for, by where it occurs: in both operands and not in the result it is summed. */
typedef enum part { PART_NONE, PART_BATCH, PART_ROW, PART_COLUMN, PART_SUM, PART_OTHER, PARTS } part;

static part part_of(const einsum *e, uint32_t label)
{
    /* by first operand, second operand, result */
    static const part parts[2][2][2] = {{{PART_NONE, PART_OTHER}, {PART_OTHER, PART_COLUMN}},
                                        {{PART_OTHER, PART_ROW}, {PART_SUM, PART_BATCH}}};
    const uint32_t a = count(e, 0, label), b = count(e, 1, label), out = count(e, 2, label);
    if (a > 1 || b > 1 || out > 1)
        return PART_OTHER;
    return parts[a][b][out];
}

/* One label for rows, one for columns, one that is summed, and the others in all three. */
static bool read_product(compiler *c, const graph_node *n, product *p)
{
    uint32_t found[PARTS] = {0}, last[PARTS] = {0};
    *p = (product){0};
    if (n->n_inputs != 2 || !einsum_read(c, n, &p->e) || p->e.n_operands != 2 || !is_whole(n, &p->e))
        return false;
    for (uint32_t l = 0; l < EINSUM_LABELS; l++) {
        const part is = part_of(&p->e, l);
        found[is]++;
        last[is] = l;
    }
    if (found[PART_OTHER] > 0) /* of one operand alone and summed, or twice in one */
        return false;
    p->sum = (uint8_t)last[PART_SUM];
    p->row = (uint8_t)last[PART_ROW];
    p->column = (uint8_t)last[PART_COLUMN];
    for (uint32_t k = 0; k < p->e.out_rank; k++)
        if (p->e.out[k] != p->row && p->e.out[k] != p->column)
            p->batch[p->n_batch++] = p->e.out[k];
    return found[PART_ROW] == 1 && found[PART_COLUMN] == 1 && found[PART_SUM] == 1;
}

/* The value, whose axes have the labels `from`, with those of the batch first, then `last`. */
static graph_value *in_order(rewriter *r, const product *p, graph_value *x, const uint8_t *from, const uint8_t last[2],
                             src_loc loc)
{
    int64_t perm[TYPE_MAX_RANK] = {0};
    uint32_t rank = p->n_batch + 2;
    bool same = true;
    for (uint32_t i = 0; i < rank; i++) {
        uint8_t label = i < p->n_batch ? p->batch[i] : last[i - p->n_batch];
        perm[i] = 0;
        while (from[perm[i]] != label)
            perm[i]++;
        same &= perm[i] == (int64_t)i;
    }
    const attr a = attr_ints(r->c, "perm", rank, perm);
    return same ? x : rewrite_emit(r, "transpose", 1, &x, 1, &a, loc);
}

/* Does the operand have the batch first, and then these two? */
static bool ends_in(const product *p, uint32_t operand, uint8_t first, uint8_t second)
{
    const uint8_t *labels = p->e.label[operand];
    for (uint32_t i = 0; i < p->n_batch; i++)
        if (labels[i] != p->batch[i])
            return false;
    return labels[p->n_batch] == first && labels[p->n_batch + 1] == second;
}

graph_value *simplify_einsum(rewriter *r, graph_node *n)
{
    product p;
    if (!read_product(r->c, n, &p))
        return NULL;
    bool across = ends_in(&p, 1, p.column, p.sum);
    const uint8_t of_a[2] = {p.row, p.sum}, of_b[2] = {p.sum, p.column}, of_out[2] = {p.row, p.column};
    graph_value *in[2] = {in_order(r, &p, n->inputs[0], p.e.label[0], of_a, n->loc),
                          across ? n->inputs[1] : in_order(r, &p, n->inputs[1], p.e.label[1], of_b, n->loc)};
    const attr a = attr_int(r->c, "transpose_b", across);
    graph_value *y = in[0] && in[1] ? rewrite_emit(r, "nn.matmul", 2, in, 1, &a, n->loc) : NULL;
    if (!y)
        return NULL;
    /* from batch, row, column to the result's order */
    int64_t perm[TYPE_MAX_RANK] = {0};
    bool same = true;
    for (uint32_t i = 0, batch = 0; i < p.e.out_rank; i++) {
        uint8_t l = p.e.out[i];
        perm[i] = l == of_out[0] ? p.n_batch : l == of_out[1] ? p.n_batch + 1 : batch++;
        same &= perm[i] == (int64_t)i;
    }
    const attr order = attr_ints(r->c, "perm", p.e.out_rank, perm);
    return same ? y : rewrite_emit(r, "transpose", 1, &y, 1, &order, n->loc);
}
