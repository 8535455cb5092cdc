/* SPDX-License-Identifier: Apache-2.0 */
/* rnn-products: in a recurrent operator with constant weights, the part that does not depend on the state becomes one
 * product over all steps and samples, W x + b, with the schedule of products. The steps that are left read R in blocks
 * of gates (te/op/rnn.c), which are as wide as the registers can hold sums of some samples. All W x exist at once,
 * which takes memory. So the pass is for targets with vectors only. */
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "type/target.h"

#include <string.h>

enum { MOST_ROWS = 6, MOST_VECTORS = 8, X = 0, W, R, BIAS, LENGTHS, OPERANDS = 8 };

typedef struct recurrence {
    const char *steps; /* the operator of the steps alone */
    int64_t gates, dirs, hidden, width;
    int64_t rows, block, lanes;
    bool linear; /* a GRU whose reset gate scales R h + Rb */
    const tensor_data *w, *r, *bias; /* bias NULL: there is none */
} recurrence;

static bool is_dense(const tensor_data *t, dtype dt)
{
    return t && t->dt == dt && (t->kind == TENSOR_DENSE || t->kind == TENSOR_SPLAT);
}

/* Samples side by side: the most that divide all of them. */
static int64_t rows_of(const graph_node *n)
{
    int64_t samples = 1, rows = MOST_ROWS;
    (void)dim_is_const(n->inputs[X]->type.shape.dims[graph_attr_int(n, "layout") ? 0 : 1], &samples);
    while (samples % rows != 0)
        rows--;
    return rows;
}

/* Blocks of the gates that the state multiplies, and of the GRU's candidate, which has blocks of its own. */
static int64_t blocks_of(const recurrence *x, int64_t block)
{
    return ((x->gates == 3 ? 2 : x->gates) * x->hidden + block - 1) / block;
}
static int64_t apart(const recurrence *x, int64_t block)
{
    return x->gates == 3 ? (x->hidden + block - 1) / block : 0;
}

/* Vectors of gates whose sums, with those of the rows, stay in registers; of these the fewest that leave the least of
 * the last block empty. */
static int64_t vectors_of(const target *t, const recurrence *x)
{
    int64_t most = ((int64_t)t->vector_regs - 1) / (x->rows + 1), best = 1, least = INT64_MAX; /* and one of h's */
    most = most > MOST_VECTORS ? MOST_VECTORS : most < 1 ? 1 : most;
    for (int64_t v = most; v >= (most + 1) / 2; v--) {
        const int64_t padded = (blocks_of(x, v * x->lanes) + apart(x, v * x->lanes)) * v;
        if (padded < least) {
            least = padded;
            best = v;
        }
    }
    return best;
}

static bool read(const graph_node *n, const target *t, recurrence *out)
{
    static const struct {
        const char *op, *steps;
        int64_t gates;
    } kinds[] = {{"lstm", "lstm_steps", 4}, {"gru", "gru_steps", 3}, {"rnn", "rnn_steps", 1}};
    *out = (recurrence){0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(n->op->name, kinds[i].op) == 0)
            *out = (recurrence){.steps = kinds[i].steps, .gates = kinds[i].gates};
    if (!out->steps)
        return false;
    const dtype dt = n->inputs[X]->type.dt;
    graph_value *bias = n->n_inputs > BIAS ? n->inputs[BIAS] : NULL;
    out->w = graph_constant(n->inputs[W]);
    out->r = graph_constant(n->inputs[R]);
    out->bias = bias ? graph_constant(bias) : NULL;
    if ((dt != DT_F32 && dt != DT_F64) || !is_dense(out->w, dt) || !is_dense(out->r, dt) ||
        (bias && !is_dense(out->bias, dt)))
        return false;
    out->dirs = out->r->dims[0];
    out->hidden = out->r->dims[2];
    out->width = out->w->dims[2];
    out->linear = out->gates == 3 && graph_attr_int(n, "linear_before_reset") != 0;
    out->rows = rows_of(n);
    out->lanes = t->vector_bytes / (int64_t)dtype_bytes(dt);
    out->block = out->lanes > 1 && out->hidden > 0 && out->width > 0 ? vectors_of(t, out) * out->lanes : 0;
    return out->block > 0;
}

/* Bytes of a tensor, zeros. */
static uint8_t *zeros(rewriter *r, dtype dt, uint32_t rank, const int64_t *dims)
{
    size_t bytes = dtype_bytes(dt);
    for (uint32_t i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    uint8_t *data = arena_alloc(&r->c->mem, bytes + 1, 64);
    memset(data, 0, bytes);
    return data;
}

static graph_value *constant(rewriter *r, const graph_node *n, uint32_t operand, uint32_t rank, const int64_t *dims,
                             const uint8_t *data)
{
    const tensor_data *t = tensor_dense(r->c, n->inputs[X]->type.dt, rank, dims, data);
    return rewrite_constant(r, t, n->inputs[operand]->name, n->loc);
}

static void copy(uint8_t *to, int64_t at, const tensor_data *from, int64_t i)
{
    const size_t each = dtype_bytes(from->dt);
    memcpy(to + (size_t)at * each, tensor_element(from, i), each);
}

/* [D, G*H, I] as [I, D*G*H]. */
static graph_value *weights(rewriter *r, const graph_node *n, const recurrence *x)
{
    const int64_t units = x->dirs * x->gates * x->hidden, dims[2] = {x->width, units};
    uint8_t *t = zeros(r, x->w->dt, 2, dims);
    for (int64_t u = 0; u < units; u++)
        for (int64_t i = 0; i < x->width; i++)
            copy(t, i * units + u, x->w, u * x->width + i);
    return constant(r, n, W, 2, dims, t);
}

/* [D, G*H, H] as [D, blocks, H, block]: the gates that one vector multiplies, filled up, those of the GRU's candidate
 * behind them in blocks of their own. */
static graph_value *recurrent_weights(rewriter *r, const graph_node *n, const recurrence *x)
{
    const int64_t first = x->gates == 3 ? 2 * x->hidden : x->gates * x->hidden, gh = x->gates * x->hidden;
    const int64_t direct = blocks_of(x, x->block), blocks = direct + apart(x, x->block),
                  dims[4] = {x->dirs, blocks, x->hidden, x->block};
    uint8_t *t = zeros(r, x->r->dt, 4, dims);
    for (int64_t d = 0; d < x->dirs; d++)
        for (int64_t g = 0; g < gh; g++) {
            const int64_t at = g < first ? g : g - first + direct * x->block;
            for (int64_t k = 0; k < x->hidden; k++)
                copy(t, ((d * blocks + at / x->block) * x->hidden + k) * x->block + at % x->block, x->r,
                     (d * gh + g) * x->hidden + k);
        }
    return constant(r, n, R, 4, dims, t);
}

/* Wb + Rb [D*G*H]; of a linear GRU the candidate's Wb alone. */
static graph_value *biases(rewriter *r, const graph_node *n, const recurrence *x)
{
    const int64_t gh = x->gates * x->hidden, all = x->dirs * gh;
    uint8_t *t = zeros(r, x->bias->dt, 1, &all);
    for (int64_t u = 0; u < all; u++) {
        const int64_t d = u / gh, g = u % gh;
        const double w = tensor_get_f64(x->bias, 2 * d * gh + g), rb = tensor_get_f64(x->bias, (2 * d + 1) * gh + g);
        const bool alone = x->linear && g >= 2 * x->hidden;
        dtype_store_f64(x->bias->dt, t + (size_t)u * dtype_bytes(x->bias->dt), alone ? w : w + rb);
    }
    return constant(r, n, BIAS, 1, &all, t);
}

/* Rb of a linear GRU's candidate, [D, H]. */
static graph_value *candidate_bias(rewriter *r, const graph_node *n, const recurrence *x)
{
    const int64_t gh = x->gates * x->hidden, dims[2] = {x->dirs, x->hidden};
    uint8_t *t = zeros(r, x->bias->dt, 2, dims);
    for (int64_t d = 0; d < x->dirs; d++)
        for (int64_t j = 0; j < x->hidden; j++)
            copy(t, d * x->hidden + j, x->bias, (2 * d + 1) * gh + 2 * x->hidden + j);
    return constant(r, n, BIAS, 2, dims, t);
}

/* W x + b of all steps: one product of two matrices where the number of steps can be told. */
static graph_value *products(rewriter *r, const graph_node *n, const recurrence *x)
{
    graph_value *in[2] = {n->inputs[X], weights(r, n, x)}, *y;
    const dim *d = in[0]->type.shape.dims, rows = rewrite_rows(r->c, &in[0]->type);
    if (rows && !(in[0] = rewrite_reshape(r, in[0], 2, (const dim[]){rows, d[2]}, n->loc)))
        return NULL;
    y = rewrite_emit(r, "nn.matmul", 2, in, 0, NULL, n->loc);
    if (y && x->bias) {
        graph_value *sum[2] = {y, biases(r, n, x)};
        y = rewrite_emit(r, "add", 2, sum, 0, NULL, n->loc);
    }
    const dim whole[3] = {d[0], d[1], dim_const(r->c, x->dirs * x->gates * x->hidden)};
    return y && rows ? rewrite_reshape(r, y, 3, whole, n->loc) : y;
}

/* The node of the steps: n's attributes, and its operands behind the bias. */
static graph_node *steps_of(rewriter *r, const graph_node *n, const recurrence *x)
{
    compiler *c = r->c;
    graph_value *in[OPERANDS] = {products(r, n, x), recurrent_weights(r, n, x)};
    const attr more[3] = {attr_int(c, "block", x->block), attr_int(c, "rows", x->rows), attr_int(c, "lanes", x->lanes)};
    attr *attrs = arena_array(&c->mem, attr, n->n_attrs + 3u);
    if (!in[0])
        return NULL;
    in[2] = x->linear && x->bias ? candidate_bias(r, n, x) : NULL;
    for (uint32_t i = LENGTHS; i < n->n_inputs; i++)
        in[i - 1] = n->inputs[i];
    memcpy(attrs, n->attrs, n->n_attrs * sizeof *attrs);
    memcpy(attrs + n->n_attrs, more, sizeof more);
    uint32_t n_in = n->n_inputs > BIAS ? n->n_inputs - 1 : 2;
    while (n_in > 2 && !in[n_in - 1])
        n_in--;
    graph_node *s = graph_new_node(r->f, graph_find_op(c, x->steps), n_in, in, n->n_attrs + 3u, attrs, n->n_outputs,
                                   NULL, n->loc);
    if (!graph_infer_node(c, s))
        return NULL;
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i])
            in[i]->mark++;
    rewrite_keep(r, s);
    return s;
}

static bool change(rewriter *r, graph_node *n, const target *t)
{
    recurrence x;
    if (!read(n, t, &x))
        return false;
    graph_node *s = steps_of(r, n, &x);
    r->failed |= !s;
    for (uint32_t i = 0; s && i < n->n_outputs; i++)
        r->failed |= !rewrite_replace(r, n->outputs[i], s->outputs[i]);
    return true;
}

static bool run(compiler *c, graph_func *f, const target *t)
{
    rewriter r;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !r.failed; i++) {
        rewrite_operands(f->nodes.data[i]);
        if (!change(&r, f->nodes.data[i], t))
            rewrite_keep(&r, f->nodes.data[i]);
    }
    rewrite_end(&r);
    return !r.failed;
}

bool graph_pass_rnn(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && o->target->vector_bytes > 0; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o->target);
    return ok;
}
