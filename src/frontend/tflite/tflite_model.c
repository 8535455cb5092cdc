/* SPDX-License-Identifier: Apache-2.0 */
/* A model to a module: inputs, the walk over the operators, results. An operator that fails leaves poison in its
 * results, so that those behind it are passed over and every fault is told once; operators that are not read are
 * listed all at once. */
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <string.h>

#define MOST_DEPTH 16u        /* of graphs in graphs */
#define MOST_INNER 1000000u   /* tensors, operators and blocks of constants in them */
#define BLOCK 64u             /* bytes */
#define MOST_UNPACKED (1u << 28) /* bytes of sparse constants */

static bool wrong_model(const tflite_importer *im, const char *what)
{
    return diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im), "%s", what);
}

static bool check_model(tflite_importer *im)
{
    const tfl_model *m = im->model;
    if (m->version != 3)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, tflite_loc(im), "schema version %" PRId64
                          " is not supported; version 3 is", m->version);
    if (m->subgraphs.len == 0)
        return wrong_model(im, "the model has no graph");
    im->graph = m->subgraphs.data[0];
    if (!tflite_choose_graph(im))
        return false;
    if (im->graph->operators.len > TFLITE_MAX_OPERATORS)
        return wrong_model(im, "the model has too many operators");
    return im->graph->outputs.len > 0 || wrong_model(im, "the model has no outputs");
}

/* --- inputs --- */

/* The numbers that --bind gives an input; NULL: none. */
static const char *bound_numbers(const tflite_importer *im, const char *name)
{
    for (uint32_t i = 0; im->o && i < im->o->n_binds; i++)
        if (strcmp(im->o->binds[i].input, name) == 0)
            return im->o->binds[i].numbers;
    return NULL;
}

static tflite_tensor *end_of(tflite_importer *im, flat_numbers list, uint32_t i, const char *what)
{
    const int32_t k = flat_i32(list, i);
    if (k >= 0 && (uint32_t)k < im->n_tensors)
        return &im->tensors[k];
    (void)diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im), "%s %u is tensor %d, which is not there", what, i, k);
    return NULL;
}

static bool check_type(const tflite_importer *im, const tflite_tensor *t)
{
    return (t->type.kind == TYPE_TENSOR && dtype_usable(t->type.dt) && !t->is_complex) ||
           diag_error(&im->c->diags, DIAG_UNSUPPORTED, tflite_loc(im), "'%s': its element type (%" PRId64
                      ") is not supported yet", t->name, t->t->type);
}

/* What a caller has to know of a quantised input or result. */
static void note_end(tflite_importer *im, const tflite_tensor *t, const char *name, bool is_input)
{
    tflite_scale s;
    if (dtype_is_int(t->type.dt) && tflite_find_scale(t, &s))
        vec_push(&im->c->mem, &im->module->ends, ((model_end){name, is_input, (double)s.scale, s.zero}));
}

static bool add_input(tflite_importer *im, tflite_tensor *t)
{
    const char *numbers = bound_numbers(im, t->name);
    if (t->is_made)
        return diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im), "'%s' is an input twice", t->name);
    if (!check_type(im, t))
        return false;
    t->is_made = true;
    if (t->data || numbers) { /* a constant that is listed as an input is one */
        if (!t->data && !shape_is_static(t->type.shape))
            return diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im),
                              "--bind: '%s' has open extents; give them with --shape", t->name);
        return t->data || tensor_from_numbers(im->c, &t->type, t->name, numbers, &t->data);
    }
    t->plain = graph_add_param(im->f, t->name, t->type);
    note_end(im, t, t->plain->name, true);
    return true;
}

static bool add_inputs(tflite_importer *im)
{
    bool ok = true;
    for (uint32_t i = 0; i < im->graph->inputs.len; i++) {
        tflite_tensor *t = end_of(im, im->graph->inputs, i, "input");
        ok = t && add_input(im, t) && ok;
    }
    for (uint32_t i = 0; im->o && i < im->o->n_binds; i++) {
        bool found = false;
        for (uint32_t k = 0; ok && k < im->graph->inputs.len; k++)
            found |= strcmp(im->tensors[flat_i32(im->graph->inputs, k)].name, im->o->binds[i].input) == 0;
        if (ok && !found)
            ok = diag_error(&im->c->diags, DIAG_USAGE, tflite_loc(im), "--bind: the model has no input '%s'",
                            im->o->binds[i].input);
    }
    return ok;
}

/* --- operators that are not read --- */

static const char *name_of_code(tflite_importer *im, const tfl_operator_code *code, int64_t number)
{
    const char *name = tflite_ops_name(number);
    if (number == TFLITE_CUSTOM_CODE)
        return arena_printf(&im->c->mem, "CUSTOM %.*s", (int)(code->custom_code.len < 60 ? code->custom_code.len : 60),
                            (const char *)code->custom_code.data);
    return name ? name : arena_printf(&im->c->mem, "operator %" PRId64, number);
}

/* types: of what is asked for; NULL: the operator is missing as a whole. */
static bool note_missing(tflite_node *n, const char *name, int64_t version, const char *type_name)
{
    tflite_importer *im = n->im;
    const char *text = intern(im->c->names, arena_printf(&im->c->mem, "%s-%" PRId64 "%s%s", name, version,
                                                         type_name ? " of " : "", type_name ? type_name : ""));
    uint32_t at = im->missing.len;
    if (!ptr_map_get(&im->missing_at, text, &at)) {
        vec_push(&im->c->mem, &im->missing, ((tflite_missing){text, 0, NULL}));
        ptr_map_set(&im->missing_at, text, at);
    }
    tflite_missing *m = &im->missing.data[at];
    if (m->count++ < 4)
        m->nodes = arena_printf(&im->c->mem, "%s%s#%d", m->nodes ? m->nodes : "", m->nodes ? ", " : "",
                                n->loc.node_index);
    n->failed = true;
    return false;
}

static bool report_missing(tflite_importer *im, diags_mark before)
{
    writer w;
    bool flex = false;
    if (im->missing.len == 0)
        return true;
    diags_reset(&im->c->diags, before); /* the rest follows from these, or shows when they are settled */
    writer_init(&w, &im->c->mem);
    for (uint32_t i = 0; i < im->missing.len; i++) {
        const tflite_missing *m = &im->missing.data[i];
        w_fmt(&w, "%s%s (%u operator%s: %s%s)", i ? "; " : "", m->text, m->count, m->count > 1 ? "s" : "", m->nodes,
              m->count > 4 ? ", ..." : "");
        flex |= strncmp(m->text, "CUSTOM Flex", 11) == 0;
    }
    diag_error(&im->c->diags, DIAG_UNSUPPORTED, tflite_loc(im), "operators that are not supported yet: %s", w.data);
    diag_hint(&im->c->diags, "docs/reference/tflite.md lists what is supported%s",
              flex ? "; operators that begin with Flex are TensorFlow's own: convert the model without SELECT_TF_OPS"
                   : "");
    return false;
}

/* --- one operator --- */

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *s = list; *s; s += strcspn(s, " "), s += *s == ' ')
        if (strncmp(s, word, n) == 0 && (s[n] == ' ' || s[n] == '\0'))
            return true;
    return false;
}

/* Of a variable: READ_VARIABLE and its like take one, and what hands operands on to other graphs. */
static bool is_handle(const tflite_tensor *t)
{
    return t->variable && !t->t->is_variable;
}

static bool has_complex(const tflite_node *n)
{
    bool found = false;
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const tflite_tensor *t = tflite_operand(n, i < n->n_in ? i : TFLITE_RESULT + i - n->n_in);
        found |= t && t->is_complex;
    }
    return found;
}

/* What decides on the type: the first operand that is no axis. */
static bool check_row(tflite_node *n, const char *name, int64_t version)
{
    const tflite_tensor *x = tflite_operand(n, strncmp(n->row->operands, "axis", 4) == 0);
    const char *type_name = !x || x->type.dt == DT_NONE ? "another type"
                            : dtype_name(x->is_complex ? DT_C64 : x->type.dt);
    if (version > n->row->version)
        return note_missing(n, name, version, NULL);
    if (!has_word(n->row->types, "c64") && has_complex(n))
        return note_missing(n, name, version, "c64");
    if (strcmp(n->row->types, "none") == 0 || (x && is_handle(x) && has_word(n->row->target, "handles")))
        return true;
    if (has_word(n->row->types, "any") ? x && dtype_usable(x->type.dt) : has_word(n->row->types, type_name))
        return true;
    return note_missing(n, name, version, type_name);
}

/* Indices of operands and results are in the model; results are not made yet, and operands are. */
static bool check_tensors(tflite_node *n)
{
    tflite_importer *im = n->im;
    const tfl_operator *op = n->op;
    for (uint32_t i = 0; i < op->inputs.len; i++) {
        const int32_t k = flat_i32(op->inputs, i);
        if (k < -1 || (k >= 0 && (uint32_t)k >= im->n_tensors))
            return tflite_fail(n, DIAG_FORMAT, "operand %u is tensor %d, which is not there", i, k);
        n->n_in = k >= 0 ? i + 1 : n->n_in;
    }
    for (uint32_t i = 0; i < op->outputs.len; i++) {
        const int32_t k = flat_i32(op->outputs, i);
        if (k < 0 || (uint32_t)k >= im->n_tensors)
            return tflite_fail(n, DIAG_FORMAT, "result %u is tensor %d, which is not there", i, k);
        if (im->tensors[k].is_made || im->tensors[k].data)
            return tflite_fail(n, DIAG_FORMAT, "'%s' is made twice, or is an input or a constant", im->tensors[k].name);
        im->tensors[k].is_made = true;
    }
    n->n_out = op->outputs.len;
    return true;
}

/* A constant without elements: its buffer is as empty as that of what an operator makes. */
static bool is_empty_constant(compiler *c, tflite_tensor *t)
{
    static const char none[8];
    int64_t dims[TYPE_MAX_RANK];
    if (t->poison || shape_count(t->type.shape) != 0 || !dtype_usable(t->type.dt) || !shape_get(t->type.shape, dims))
        return false;
    t->data = tensor_dense(c, t->type.dt, (uint32_t)t->type.shape.rank, dims, none);
    return true;
}

/* false: an operand is poisoned, or nobody has made it. */
static bool check_order(tflite_node *n)
{
    bool ok = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
        tflite_tensor *t = tflite_operand(n, i);
        if (!t || t->data || t->plain || t->image)
            continue;
        if (is_handle(t) && strcmp(n->row->types, "none") != 0 && !has_word(n->row->target, "handles"))
            return tflite_fail(n, DIAG_FORMAT, "'%s' is the handle of a variable, and no tensor", t->name);
        if (is_handle(t))
            continue;
        if (tflite_is_state(n->im, t)) {
            (void)tflite_read_state(n->im, t);
            continue;
        }
        if (!t->poison && t->t->is_variable)
            return note_missing(n, "variable tensors", 1, NULL);
        if (is_empty_constant(n->c, t))
            continue;
        if (!t->poison)
            return tflite_fail(n, DIAG_FORMAT, "'%s' is read before anything makes it, and is not a constant", t->name);
        ok = false;
    }
    return ok;
}

/* The row's table of options: the operator's, or one with the defaults. */
static bool read_options(tflite_node *n)
{
    if (n->row->code == TFLITE_CUSTOM_CODE)
        return tflite_read_custom(n);
    if (n->row->options == 0)
        return true;
    if (n->op->builtin_options_type == n->row->options && n->op->builtin_options) {
        n->options = n->op->builtin_options;
        return true;
    }
    if (n->op->builtin_options_type != 0 && n->op->builtin_options_type != n->row->options)
        return tflite_fail(n, DIAG_FORMAT, "its options are those of another operator");
    n->options = flat_default_options(n->c, n->row->options);
    return true;
}

static bool run_import(tflite_node *n)
{
    const tfl_model *m = n->im->model;
    if ((uint64_t)n->op->opcode_index >= m->operator_codes.len)
        return tflite_fail(n, DIAG_FORMAT, "its operator code %" PRId64 " is not in the model", n->op->opcode_index);
    const tfl_operator_code *code = m->operator_codes.data[n->op->opcode_index];
    const int64_t number = code->builtin_code > code->deprecated_builtin_code ? code->builtin_code
                                                                              : code->deprecated_builtin_code;
    const char *name = name_of_code(n->im, code, number);
    n->loc.op = name;
    if (!check_tensors(n))
        return false;
    n->row = tflite_ops_find(number, code->custom_code);
    if (!n->row)
        return note_missing(n, name, code->version, NULL);
    return check_row(n, name, code->version) && check_order(n) && tflite_check_operands(n) && read_options(n) &&
           n->row->import(n) && !n->failed;
}

static void import_operator(tflite_importer *im, uint32_t i)
{
    const tfl_operator *op = im->graph->operators.data[i];
    tflite_node n = {.im = im, .c = im->c, .f = im->f, .op = op, .first = im->f->nodes.len, .loc = tflite_loc(im)};
    n.loc.node_index = (int32_t)i;
    n.loc.node = "";
    const int32_t k = op->outputs.len ? flat_i32(op->outputs, 0) : -1;
    if (k >= 0 && (uint32_t)k < im->n_tensors)
        n.loc.node = im->tensors[k].name;
    const bool ok = run_import(&n);
    for (uint32_t r = 0; r < op->outputs.len; r++) {
        const int32_t at = flat_i32(op->outputs, r);
        if (at < 0 || (uint32_t)at >= im->n_tensors)
            continue;
        tflite_tensor *t = &im->tensors[at];
        t->poison = !ok || !(t->plain || t->image || t->variable);
        if (ok && t->poison)
            (void)diag_error(&im->c->diags, DIAG_UNSUPPORTED, n.loc, "its result %u is not supported yet", r);
    }
}

/* The list of what is missing, which a copy of the importer went on with. */
static void take_missing(tflite_importer *im, const tflite_importer *inner)
{
    im->missing.data = inner->missing.data;
    im->missing.len = inner->missing.len;
    im->missing.cap = inner->missing.cap;
    im->missing_at = inner->missing_at;
}

static bool import_once(tflite_importer *im, const tfl_subgraph *g)
{
    tflite_importer inner = *im;
    inner.graph = g;
    inner.once = true;
    if (g->inputs.len > 0 || g->operators.len > TFLITE_MAX_OPERATORS)
        return wrong_model(im, "CALL_ONCE calls a graph with inputs, or with too many operators");
    if (!tflite_read_tensors(&inner))
        return false;
    for (uint32_t i = 0; i < g->operators.len; i++)
        import_operator(&inner, i);
    take_missing(im, &inner);
    return true;
}

/* What a graph costs each time that it becomes a part of another: a file may name one graph very often. */
static uint64_t work_of(const tflite_importer *im, const tfl_subgraph *g)
{
    uint64_t sum = (uint64_t)g->tensors.len + g->operators.len + 1;
    for (uint32_t i = 0; i < g->tensors.len; i++) {
        const int64_t at = g->tensors.data[i]->buffer;
        if ((uint64_t)at < im->model->buffers.len)
            sum += im->model->buffers.data[at]->data.len / BLOCK;
    }
    return sum;
}

/* Names of its tensors follow that of the operator: they may be those of other graphs, too. */
static bool take_operands(tflite_node *n, tflite_importer *inner, const tflite_given *in)
{
    for (uint32_t i = 0; i < inner->n_tensors; i++)
        inner->tensors[i].name = intern(n->c->names, arena_printf(&n->c->mem, "%.60s/%.60s", n->loc.node,
                                                                  inner->tensors[i].name));
    for (uint32_t i = 0; i < inner->graph->inputs.len; i++) {
        tflite_tensor *t = end_of(inner, inner->graph->inputs, i, "input");
        const tflite_given *x = &in[i];
        if (!t || t->is_made || t->type.dt != x->type.dt)
            return !t ? false : tflite_fail(n, DIAG_FORMAT, "operand %u does not fit the graph that it names", i);
        t->is_made = true;
        t->type = x->type;
        t->plain = x->plain;
        t->image = x->image;
        t->data = x->data;
        t->variable = x->variable;
    }
    return true;
}

static bool import_inner(tflite_node *n, const tfl_subgraph *g, tflite_region *r, uint32_t n_in,
                         const tflite_given *in, uint32_t n_out, graph_value **out)
{
    tflite_importer *im = n->im, inner = *im;
    const uint64_t work = work_of(im, g);
    inner.graph = g;
    inner.depth++;
    inner.f = r ? r->f : im->f;
    inner.region = r ? r : im->region;
    if (g->inputs.len != n_in || g->outputs.len != n_out)
        return tflite_fail(n, DIAG_FORMAT, "its graph has %u inputs and %u outputs, and it has %u operands and "
                           "%u results", g->inputs.len, g->outputs.len, n_in, n_out);
    if (inner.depth > MOST_DEPTH || work > *im->room)
        return tflite_fail(n, DIAG_UNSUPPORTED, "graphs that stand in graphs are too deep, or too large");
    *im->room -= work;
    if (!tflite_read_tensors(&inner) || !take_operands(n, &inner, in))
        return false;
    for (uint32_t i = 0; i < g->operators.len; i++)
        import_operator(&inner, i);
    take_missing(im, &inner);
    for (uint32_t i = 0; i < g->outputs.len && !n->failed; i++) {
        tflite_tensor *t = end_of(&inner, g->outputs, i, "output");
        const bool handed_on = t && is_handle(t) && has_word(n->row->target, "carried");
        graph_value *v = handed_on ? &im->nothing : t ? tflite_plain(&inner, t, n->loc) : NULL;
        if (!v)
            return !t || t->poison ? false : tflite_fail(n, DIAG_FORMAT, "nothing makes output %u of its graph", i);
        out[i] = v;
    }
    return !n->failed;
}

/* --- results --- */

/* A result has the tensor's name. An input, a constant and what is another result too is copied. */
static bool add_result(tflite_importer *im, tflite_tensor *t, uint32_t i)
{
    uint32_t suffix = 0, times = 0;
    graph_value *v = tflite_plain(im, t, tflite_loc(im));
    if (!v)
        return t->poison || diag_error(&im->c->diags, DIAG_FORMAT, tflite_loc(im),
                                       "nothing makes the model's output '%s'", t->name);
    if (!v->def || graph_constant(v) || ptr_map_get(&im->results, v, &times)) {
        const graph_op *copy = graph_find_op(im->c, "copy");
        graph_node *n = graph_add_node(im->f, copy, 1, &v, 0, NULL, 1, &t->name, tflite_loc(im));
        v = graph_infer_node(im->c, n) ? n->outputs[0] : NULL;
    } else if (v->name != t->name) {
        const bool taken = ptr_map_get(im->f->names, t->name, &suffix);
        v->name = taken ? graph_new_name(im->f, t->name) : t->name;
        ptr_map_set(im->f->names, v->name, 1);
    }
    if (!v)
        return false;
    graph_add_result(im->f, v);
    ptr_map_set(&im->results, v, 1);
    note_end(im, t, v->name, false);
    tflite_note_labels(im, i, t, v->name);
    return true;
}

static bool add_results(tflite_importer *im)
{
    bool ok = true;
    for (uint32_t i = 0; i < im->graph->outputs.len; i++) {
        tflite_tensor *t = end_of(im, im->graph->outputs, i, "output");
        ok = t && check_type(im, t) && add_result(im, t, i) && ok;
    }
    return ok;
}

/* Values are named after tensors: a result's name is kept for it. */
static void mark_results(tflite_importer *im)
{
    for (uint32_t i = 0; i < im->graph->outputs.len; i++) {
        const int32_t k = flat_i32(im->graph->outputs, i);
        if (k >= 0 && (uint32_t)k < im->n_tensors)
            im->tensors[k].is_result = true;
    }
}

/* Whoever looks at it by mistake finds a number, with as many dimensions behind it as a shape can have. */
static void make_nothing(tflite_importer *im)
{
    dim *ones = arena_array(&im->c->mem, dim, TYPE_MAX_RANK);
    for (uint32_t i = 0; i < TYPE_MAX_RANK; i++)
        ones[i] = dim_const(im->c, 1);
    im->nothing = (graph_value){.name = "", .type = {.kind = TYPE_TENSOR, .dt = DT_F32, .shape = {.dims = ones}}};
}

bool tflite_import(compiler *c, span bytes, const char *path, const frontend_options *o, graph_module **out)
{
    tflite_variables variables = {0};
    uint64_t room = MOST_INNER, unpacked = MOST_UNPACKED;
    tflite_importer im = {.c = c, .o = o, .path = path, .bytes = bytes, .variables = &variables,
                          .import_once = import_once, .import_inner = import_inner, .room = &room,
                          .unpacked = &unpacked};
    const uint32_t errors = c->diags.errors;
    *out = NULL;
    make_nothing(&im);
    ptr_map_init(&im.missing_at, &c->mem);
    ptr_map_init(&im.results, &c->mem);
    ptr_map_init(&variables.by_name, &c->mem);
    ptr_map_init(&variables.by_tensor, &c->mem);
    if (!flat_read_model(c, path, bytes, &im.model) || !check_model(&im) || !tflite_read_tensors(&im) ||
        !tflite_name_ends(&im) || !tflite_fix_shapes(&im))
        return false;
    im.module = graph_module_new(c);
    im.module->n_operators = im.graph->operators.len;
    im.f = graph_func_new(im.module, "main");
    variables.main = im.f;
    tflite_tell_about(&im);
    tflite_read_metadata(&im);
    if (!add_inputs(&im))
        return false;
    if (o && o->inputs_only) {
        *out = im.module;
        return true;
    }
    mark_results(&im);
    const diags_mark mark = diags_get_mark(&c->diags);
    for (uint32_t i = 0; i < im.graph->operators.len; i++)
        import_operator(&im, i);
    const bool ok = add_results(&im) && tflite_end_states(&im);
    if (!report_missing(&im, mark) || !ok || c->diags.errors != errors)
        return false;
    for (uint32_t i = 0; i < im.module->funcs.len; i++)
        graph_drop_constants(im.module->funcs.data[i]);
    *out = im.module;
    return true;
}
