/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of packages for processors with little memory (TVMRT_SMALL): a word for each argument of an operator stands in
 * the place of the maps of tensors and operators, which remain for programs that ask for them. Where there are few
 * arguments, the code that looks them up is larger than what it saves, and a model of a few hundred instructions would
 * spend half of them there: then C calls the operators one by one. */
#include "abi/package.h"
#include "codegen/c/package.h"

#define OFFSET_BITS 24
#define MOST_AREAS  127u
#define CALLED_OPS  6u  /* that are called one by one, at most, */
#define CALLED_ARGS 24u /* with so many arguments in all */
enum { AREA_CONSTANTS, AREA_WORKSPACE, AREA_INPUTS };

static uint32_t count_inputs(const codegen_unit *u)
{
    return u->func->n_inputs + (u->places ? u->places->n_areas - 1 : 0); /* constants in other memories are as inputs */
}

static bool fits_offset(uint64_t offset)
{
    return offset < 1u << OFFSET_BITS;
}

bool package_is_small(const codegen_unit *u)
{
    const plan *pl = u->plan;
    const plan_problem *pp = pl->problem;
    if (!u->target->small || u->target->workers > 1 || u->opt_level == 0 || pp->steps.len > 1 || pp->ops.len == 0 ||
        AREA_INPUTS + count_inputs(u) + u->func->results.len > MOST_AREAS || !fits_offset(pl->constant_bytes) ||
        !fits_offset(pl->workspace_bytes))
        return false;
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        if (pl->tasks[i].parts != 1)
            return false;
        for (uint32_t k = 0; k < pp->ops.data[i].n_args; k++) {
            const uint32_t arg = pp->ops.data[i].args[k];
            const plan_value *v = &pp->values.data[arg];
            if (v->storage == STORE_DEVICE || v->bytes == 0 || /* it may have no address */
                !fits_offset(pl->places[arg].offset))
                return false;
        }
    }
    return true;
}

static uint32_t small_most_args(const package *p)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *op = &p->pl->problem->ops.data[i];
        most = op->n_args + op->n_scratch > most ? op->n_args + op->n_scratch : most;
    }
    return most;
}

static bool is_called(const package *p)
{
    const plan_problem *pp = p->pl->problem;
    uint32_t args = 0;
    for (uint32_t i = 0; i < pp->ops.len; i++)
        args += pp->ops.data[i].n_args + pp->ops.data[i].n_scratch;
    return pp->ops.len <= CALLED_OPS && args <= CALLED_ARGS && p->n_areas <= 1;
}

static uint64_t word_of(const package *p, uint32_t value)
{
    const plan_value *x = &p->pl->problem->values.data[value];
    const uint32_t inputs = count_inputs(p->u);
    uint64_t at = p->pl->places[value].offset, area = AREA_WORKSPACE;
    switch (x->storage) {
    case STORE_INPUT: area = AREA_INPUTS + x->index; break;
    case STORE_OUTPUT: area = AREA_INPUTS + inputs + x->index; break;
    case STORE_WORKSPACE:
    case STORE_STATE:
    case STORE_DEVICE: break;
    case STORE_CONSTANT: {
        const uint32_t in = package_area(p, at);
        area = in > 0 ? AREA_INPUTS + p->n_inputs + in - 1 : (uint64_t)AREA_CONSTANTS;
        at -= in > 0 ? p->areas[in].begin : 0;
        break;
    }
    }
    return area << OFFSET_BITS | at;
}

static uint64_t arg_word(const package *p, uint32_t op, uint32_t k)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    return k < o->n_args ? word_of(p, o->args[k])
                         : (uint64_t)AREA_WORKSPACE << OFFSET_BITS | p->pl->tasks[op].scratch_offset[k - o->n_args];
}

static void write_args(const package *p, writer *w, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    const uint32_t n = op->n_args + op->n_scratch;
    w_str(w, "   ");
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t word = arg_word(p, i, k) | (k + 1 == n ? 1u << 31 : 0u);
        w_fmt(w, " 0x%08llXu,", (unsigned long long)word);
    }
    w_fmt(w, " /* %s */\n", package_kernel(p, i)->name);
}

/* In the order in which they run; whether it is that of the operators' numbers. */
static bool write_order(const package *p, writer *w)
{
    const plan *pl = p->pl;
    uint32_t next = 0;
    bool same = true;
    w_str(w, "static const uint16_t g_small_op_ids[] = {");
    for (uint32_t l = 0; l < pl->n_layers; l++)
        for (uint32_t i = 0; i < pl->layer_len[l]; i++) {
            same &= pl->layers[l][i] == next;
            w_fmt(w, "%s%u", next++ ? ", " : "", pl->layers[l][i]);
        }
    w_str(w, "};\n");
    return same;
}

/* --- operators that are called one by one --- */

/* args[k] of the operator; if it is the caller's, and none before has asked, whether it is there. */
static void write_arg(const package *p, writer *w, uint32_t op, uint32_t k, uint64_t *asked)
{
    const uint64_t word = arg_word(p, op, k), area = word >> OFFSET_BITS, at = word & ((1u << OFFSET_BITS) - 1);
    const uint32_t inputs = count_inputs(p->u);
    const char *plus = at ? arena_printf(&p->c->mem, " + %lluu", (unsigned long long)at) : "";
    if (area < AREA_INPUTS) {
        w_fmt(w, "    args[%u] = (void *)((uintptr_t)instance->context.%s%s);\n", k,
              area == AREA_CONSTANTS ? "const_workspace" : "workspace", plus);
        return;
    }
    const bool in = area - AREA_INPUTS < inputs;
    const char *from = arena_printf(&p->c->mem, "instance->%s[%u]", in ? "inputs" : "outputs",
                                    (uint32_t)area - AREA_INPUTS - (in ? 0 : inputs));
    if (area >= 64 || !(*asked >> area & 1))
        w_fmt(w, "    if (%s == NULL)\n        return tvmrt_small_call(&instance->context, NULL, args, %u);\n", from,
              op);
    *asked |= area < 64 ? (uint64_t)1 << area : 0;
    w_fmt(w, "    args[%u] = (void *)((uintptr_t)%s%s);\n", k, from, plus);
}

void small_write_run(const package *p, writer *w)
{
    const plan *pl = p->pl;
    const uint32_t last = pl->problem->ops.len;
    uint64_t asked = 0;
    uint32_t done = 0;
    if (!is_called(p)) {
        w_str(w, "    return tvmrt_small_run(&instance->context, model_get_small(), args);\n");
        return;
    }
    for (uint32_t l = 0; l < pl->n_layers; l++)
        for (uint32_t i = 0; i < pl->layer_len[l]; i++) {
            const uint32_t op = pl->layers[l][i];
            for (uint32_t k = 0; k < pl->problem->ops.data[op].n_args + pl->problem->ops.data[op].n_scratch; k++)
                write_arg(p, w, op, k, &asked);
            const char *name = package_kernel(p, op)->name;
            if (++done == last)
                w_fmt(w, "    return tvmrt_small_call(&instance->context, wrapped_%s, args, %u);\n", name, op);
            else
                w_fmt(w, "    status = tvmrt_small_call(&instance->context, wrapped_%s, args, %u);\n"
                         "    if (status != TVMRT_OK)\n        return status;\n", name, op);
        }
}

void small_write_args(const package *p, writer *w)
{
    w_fmt(w, "    void *args[%u]; /* of one operator */\n", small_most_args(p));
    if (is_called(p) && p->pl->problem->ops.len > 1)
        w_str(w, "    int32_t status;\n");
}

/* The tables of tvmrt_small_run; what stands for them in g_small. */
static const char *write_words(const package *p, writer *w)
{
    const plan *pl = p->pl;
    writer order;
    if (is_called(p))
        return "NULL, NULL, NULL};\n\n"; /* nobody looks there */
    writer_init(&order, &p->c->mem);
    const bool same = write_order(p, &order);
    w_str(w, "/* Arguments: area << 24 | offset in it. Areas: constants, workspace, inputs, outputs; "
             "bit 31: an operator's last one. */\nstatic const uint32_t g_small_args[] = {\n");
    for (uint32_t l = 0; l < pl->n_layers; l++)
        for (uint32_t i = 0; i < pl->layer_len[l]; i++)
            write_args(p, w, pl->layers[l][i]);
    w_str(w, "};\n");
    if (!same) {
        w_str(w, order.data);
        w_str(w, "static const tvmrt_op_func_t g_small_funcs[] = {\n");
        for (uint32_t l = 0; l < pl->n_layers; l++)
            for (uint32_t i = 0; i < pl->layer_len[l]; i++)
                w_fmt(w, "    wrapped_%s,\n", package_kernel(p, pl->layers[l][i])->name);
        w_str(w, "};\n");
    }
    return same ? "g_cpu_func_table, g_small_args, NULL};\n\n" : "g_small_funcs, g_small_args, g_small_op_ids};\n\n";
}

void small_write_tables(const package *p, writer *w)
{
    w_str(w, "#if TVMRT_SMALL\n");
    const char *words = write_words(p, w);
    package_template(p, w, "static const char g_small_name[] = \"@n\";\n"
                           "static const tvmrt_model_desc_t g_small_model = {\n");
    w_fmt(w, "    %uu, g_small_name, %u, %u, 0, %u, NULL, NULL, NULL, NULL,\n", PACKAGE_ABI_VERSION, count_inputs(p->u),
          p->n_outputs, p->pl->problem->ops.len);
    package_template(p, w, "    @M_CONST_SIZE, @M_CONST_ALIGN, @M_WORKSPACE_SIZE, @M_WORKSPACE_ALIGN,\n};\n"
                           "static const tvmrt_small_t g_small = {&g_small_model, ");
    w_str(w, words);
    w_str(w, "const tvmrt_small_t *model_get_small(void)\n{\n    return &g_small;\n}\n#endif\n\n");
}
