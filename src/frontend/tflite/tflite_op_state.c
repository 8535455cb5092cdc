/* SPDX-License-Identifier: Apache-2.0 */
/* States of a model: variable tensors, which operators read and write as if they were constants, and resource
 * variables, which VAR_HANDLE names, READ_VARIABLE reads and ASSIGN_VARIABLE writes. Each becomes a state of main: a
 * parameter that holds what the call before left, and a result that is the next one. CALL_ONCE says what resource
 * variables begin with; without it they begin as TensorFlow Lite Micro fills them, with the zero point of i8, else with
 * zeros. Order is that of the operators: whoever reads behind a write gets what was written. */
#include "frontend/tflite/tflite_compose.h"

#include <string.h>

#define MOST_STATE ((int64_t)1 << 28) /* numbers */

/* --- variables --- */

/* TensorFlow Lite Micro fills a variable of i8 with its zero point, and others with zeros. NULL: zeros. */
static const tensor_data *filled(tflite_importer *im, const tflite_tensor *t)
{
    tflite_scale s;
    int64_t dims[TYPE_MAX_RANK];
    if (t->type.dt != DT_I8 || !tflite_find_scale(t, &s) || s.zero == 0 || !shape_get(t->type.shape, dims))
        return NULL;
    const int8_t zero = (int8_t)s.zero;
    return tensor_splat(im->c, DT_I8, (uint32_t)t->type.shape.rank, dims, &zero);
}

static tflite_variable *new_variable(tflite_importer *im, const char *name)
{
    tflite_variable *v = arena_new(&im->c->mem, tflite_variable);
    *v = (tflite_variable){.name = name};
    vec_push(&im->c->mem, &im->variables->list, v);
    return v;
}

tflite_variable *tflite_own_state(tflite_node *n, const char *name, dtype dt, uint32_t rank, const int64_t *dims,
                                  int64_t first)
{
    uint8_t element[8];
    int64_t count = 1;
    bool fits = true;
    for (uint32_t i = 0; i < rank; i++)
        fits = fits && i64_mul(count, dims[i], &count) && count <= MOST_STATE;
    if (!fits)
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "its memory is too large");
    if (n->im->once || n->im->region)
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "a memory inside of CALL_ONCE, IF or WHILE is not supported yet");
    if (n->failed)
        return NULL;
    dtype_store_i64(dt, element, first);
    tflite_variable *v = new_variable(n->im, arena_printf(&n->c->mem, "%s_%s", n->loc.node, name));
    v->initial = first ? tensor_splat(n->c, dt, rank, dims, element) : NULL;
    v->now = v->param = graph_add_param(n->f, v->name, type_static(n->c, dt, rank, dims));
    return v;
}

graph_value *tflite_state_value(tflite_node *n, const tflite_variable *v)
{
    return v ? v->now : &n->im->nothing;
}

void tflite_set_state(tflite_node *n, tflite_variable *var, graph_value *v)
{
    const graph_value *runs = n->im->variables->runs;
    if (n->failed || !var)
        return;
    if (n->im->region)
        (void)tflite_enter_state(n->im, n->im->region, var, v->type);
    const bool may_stay = runs && var->now && type_equal(&v->type, &var->now->type);
    if (runs && !may_stay)
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "behind a CIRCULAR_BUFFER that ends some runs a variable must be read "
                          "before it is written");
    var->now = may_stay ? compose_chosen(n, n->im->variables->runs, v, var->now) : v;
}

/* What it holds at this operator: what was written in this run, else what the run before left. Its type is that of what
 * it begins with, else t's. */
static graph_value *value_of(tflite_importer *im, tflite_variable *v, const tflite_tensor *t)
{
    if (!v->now && !v->initial)
        v->initial = filled(im, t);
    return tflite_enter_state(im, im->region, v, t->type);
}

graph_value *tflite_enter_state(tflite_importer *im, tflite_region *r, tflite_variable *v, type first)
{
    if (v->now && v->region == r)
        return v->now;
    if (!r) {
        const tensor_data *t = v->initial;
        const type own = t ? type_static(im->c, t->dt, t->rank, t->dims) : first;
        return v->now = v->param = graph_add_param(im->variables->main, v->name, own);
    }
    graph_value *before = tflite_enter_state(im, r->outer, v, first);
    graph_value *param = graph_add_param(r->f, v->name, before->type);
    vec_push(&im->c->mem, &r->states, ((tflite_crossing){v, before, param, param}));
    v->region = r;
    return v->now = param;
}

void tflite_leave_region(tflite_region *r)
{
    for (uint32_t i = 0; i < r->states.len; i++) {
        tflite_crossing *x = &r->states.data[i];
        x->after = x->variable->now;
        x->variable->now = x->before;
        x->variable->region = r->outer;
    }
}

bool tflite_is_state(const tflite_importer *im, const tflite_tensor *t)
{
    return t->t->is_variable && t->type.kind == TYPE_TENSOR && dtype_usable(t->type.dt) &&
           shape_is_static(t->type.shape) && im->f != NULL;
}

/* A graph may stand in several places, with the same variables. */
static tflite_variable *variable_of(tflite_importer *im, const tflite_tensor *t)
{
    uint32_t at = im->variables->list.len;
    if (ptr_map_get(&im->variables->by_tensor, t->t, &at))
        return im->variables->list.data[at];
    ptr_map_set(&im->variables->by_tensor, t->t, at);
    return new_variable(im, t->name);
}

graph_value *tflite_read_state(tflite_importer *im, tflite_tensor *t)
{
    if (!t->variable)
        t->variable = variable_of(im, t);
    return t->plain = value_of(im, t->variable, t);
}

bool tflite_write_state(tflite_node *n, uint32_t i, graph_value *v)
{
    tflite_tensor *t = n->failed ? NULL : tflite_operand(n, i);
    if (!t)
        return false;
    if (!tflite_is_state(n->im, t) || !t->variable)
        return tflite_fail(n, DIAG_FORMAT, "operand %u ('%s') must be a variable tensor", i, t->name);
    if (!type_equal(&v->type, &t->type))
        return tflite_fail(n, DIAG_TYPE, "the operator writes another type into the variable '%s'", t->name);
    tflite_set_state(n, t->variable, v);
    t->plain = t->variable->now;
    t->image = NULL;
    return !n->failed;
}

/* States whose value is read and written become results behind those of the model. */
bool tflite_end_states(tflite_importer *im)
{
    for (uint32_t i = 0; i < im->variables->list.len; i++) {
        const tflite_variable *v = im->variables->list.data[i];
        if (!v->param)
            continue;
        if (!type_equal(&v->now->type, &v->param->type) || !shape_is_static(v->param->type.shape))
            return diag_error(&im->c->diags, DIAG_TYPE, tflite_loc(im),
                              "the variable '%s' is read with another type or shape than it is written with", v->name);
        graph_add_result(im->f, v->now);
        graph_add_state(im->f, (graph_state){v->param->index, im->f->results.len - 1, v->initial});
    }
    return true;
}

/* --- resource variables --- */

/* Two handles of one name are one variable, in all graphs of the model. */
bool tflite_op_var_handle(tflite_node *n)
{
    const tfl_var_handle_options *o = n->options;
    tflite_importer *im = n->im;
    tflite_tensor *t = tflite_operand(n, TFLITE_RESULT);
    const char *key = intern(n->c->names, arena_printf(&n->c->mem, "%.*s/%.*s", (int)o->container.len,
                                                       (const char *)o->container.data, (int)o->shared_name.len,
                                                       (const char *)o->shared_name.data));
    uint32_t at = im->variables->list.len;
    if (!ptr_map_get(&im->variables->by_name, key, &at)) {
        const char *name = intern_n(n->c->names, (const char *)o->shared_name.data, o->shared_name.len);
        ptr_map_set(&im->variables->by_name, key, at);
        (void)new_variable(im, *name ? name : "variable");
    }
    t->variable = im->variables->list.data[at];
    return true;
}

static tflite_variable *handle_of(tflite_node *n)
{
    const tflite_tensor *t = tflite_operand(n, 0);
    if (t->variable && !t->t->is_variable)
        return t->variable;
    (void)tflite_fail(n, DIAG_FORMAT, "operand 0 ('%s') is not the handle of a variable", t->name);
    return NULL;
}

bool tflite_op_read_variable(tflite_node *n)
{
    tflite_variable *v = handle_of(n);
    const tflite_tensor *t = tflite_operand(n, TFLITE_RESULT);
    if (!v)
        return false;
    if (n->im->once)
        return tflite_fail(n, DIAG_UNSUPPORTED, "reading a variable in CALL_ONCE is not supported yet");
    if (t->type.kind != TYPE_TENSOR || !dtype_usable(t->type.dt))
        return tflite_fail(n, DIAG_UNSUPPORTED, "the element type of the variable is not supported yet");
    return tflite_result(n, 0, value_of(n->im, v, t));
}

bool tflite_op_assign_variable(tflite_node *n)
{
    tflite_variable *v = handle_of(n);
    tflite_tensor *t = tflite_operand(n, 1);
    if (!v)
        return false;
    if (n->im->once && !t->data)
        return tflite_fail(n, DIAG_UNSUPPORTED, "variables whose first value is computed are not supported yet");
    if (n->im->once && v->now)
        return tflite_fail(n, DIAG_UNSUPPORTED, "the variable is used before CALL_ONCE gives it a value");
    if (n->im->once)
        v->initial = t->data;
    else
        tflite_set_state(n, v, tflite_in(n, 1));
    return !n->failed;
}

/* An operator of a framework, as the graph that it stands for. */
bool tflite_op_composite(tflite_node *n)
{
    const tfl_composite_options *o = n->op->builtin_options_2_type == 21 ? n->op->builtin_options_2 : NULL;
    if (!o)
        return tflite_fail(n, DIAG_FORMAT, "its options are missing");
    graph_value **out = arena_array(&n->c->mem, graph_value *, n->n_out);
    const tfl_subgraph *g = tflite_graph_at(n, o->decomposition_subgraph_index);
    const tflite_given *in = tflite_given_of(n, 0);
    if (n->failed || !n->im->import_inner(n, g, NULL, n->n_in, in, n->n_out, out))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        (void)tflite_result(n, i, out[i]);
    return !n->failed;
}

/* Its graph runs in the first call only: what it assigns is what variables begin with. */
bool tflite_op_call_once(tflite_node *n)
{
    const tfl_call_once_options *o = n->options;
    if (n->im->once || n->im->region)
        return tflite_fail(n, DIAG_UNSUPPORTED, "CALL_ONCE inside of CALL_ONCE, IF or WHILE is not supported yet");
    const tfl_subgraph *g = tflite_graph_at(n, o->init_subgraph_index);
    const uint32_t errors = n->c->diags.errors;
    const bool ok = g && n->im->import_once(n->im, g);
    n->failed |= !ok || n->c->diags.errors != errors;
    return !n->failed;
}

/* --- CIRCULAR_BUFFER --- */

/* Every how many runs the operators behind are run: where the model does not say, the kernel knows two models. */
static bool read_cycles(tflite_node *n, int64_t slots, int64_t *out)
{
    *out = 0;
    if (tflite_custom_has(n, "cycles_max") && !tflite_custom_int(n, "cycles_max", 0, INT16_MAX, out))
        return false;
    if (*out == 0)
        *out = slots == 5 || slots == 13 || slots == 25 ? 1 : 2;
    return true;
}

/* The kernel ends the run here but in every `cycles`th one. Here the operators behind are run, and change no state. */
static void end_run(tflite_node *n, int64_t cycles)
{
    if (cycles < 2)
        return;
    tflite_variable *left = tflite_own_state(n, "cycles", DT_I32, 0, NULL, cycles);
    graph_value *now = compose_by(n, "add", tflite_state_value(n, left), -1);
    graph_value *is_over = compose_by(n, "equal", now, 0);
    graph_value **runs = &n->im->variables->runs;
    tflite_set_state(n, left, compose_chosen(n, is_over, compose_number(n, DT_I32, cycles), now));
    *runs = *runs ? tflite_binary(n, "logical_and", *runs, is_over) : is_over;
}

/* The last frames, [1, slots, width, channels], the oldest first. */
bool tflite_op_circular_buffer(tflite_node *n)
{
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    graph_value *x = tflite_in(n, 0);
    int64_t dims[TYPE_MAX_RANK] = {0}, extent = 0, cycles;
    tflite_scale s = {.zero = 0};
    if (n->failed || x->type.shape.rank != 4 || y->type.shape.rank != 4 || !shape_get(y->type.shape, dims))
        return tflite_fail(n, DIAG_TYPE, "its data and its result must be [1, frames, width, channels]");
    for (uint32_t i = 0; i < 4; i++)
        if (!tflite_extent(n, x, i, &extent) || dims[i] < 1 || extent != (i == 1 ? 1 : dims[i]))
            return tflite_fail(n, DIAG_TYPE, "its data must be one frame of its result");
    if (dims[0] != 1 || !read_cycles(n, dims[1], &cycles))
        return tflite_fail(n, DIAG_UNSUPPORTED, "a batch of several is not supported");
    (void)tflite_find_scale(y, &s);
    tflite_variable *kept = tflite_own_state(n, "frames", DT_I8, 4, dims, s.zero);
    graph_value *old = compose_slice(n, tflite_state_value(n, kept), 1, 1, dims[1]);
    graph_value *all = dims[1] > 1 ? compose_joined(n, old, x, 1) : tflite_unary(n, "copy", x);
    tflite_set_state(n, kept, all);
    end_run(n, cycles);
    return tflite_result(n, 0, all);
}
