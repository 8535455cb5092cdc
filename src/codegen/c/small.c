/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of packages for processors with little memory (TVMRT_SMALL): a word for each argument of an operator stands in
 * the place of the maps of tensors and operators, which remain for programs that ask for them. */
#include "abi/package.h"
#include "codegen/c/package.h"

#define OFFSET_BITS 24
#define MOST_AREAS  127u
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

uint32_t small_most_args(const package *p)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *op = &p->pl->problem->ops.data[i];
        most = op->n_args + op->n_scratch > most ? op->n_args + op->n_scratch : most;
    }
    return most;
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

static void write_args(const package *p, writer *w, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    const uint32_t n = op->n_args + op->n_scratch;
    w_str(w, "   ");
    for (uint32_t k = 0; k < n; k++) {
        uint64_t word = k < op->n_args
                            ? word_of(p, op->args[k])
                            : (uint64_t)AREA_WORKSPACE << OFFSET_BITS | p->pl->tasks[i].scratch_offset[k - op->n_args];
        word |= k + 1 == n ? 1u << 31 : 0u;
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

void small_write_tables(const package *p, writer *w)
{
    const plan *pl = p->pl;
    writer order;
    writer_init(&order, &p->c->mem);
    const bool same = write_order(p, &order);
    w_str(w, "#if TVMRT_SMALL\n/* Arguments: area << 24 | offset in it. Areas: constants, workspace, inputs, outputs; "
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
    package_template(p, w, "static const char g_small_name[] = \"@n\";\n"
                           "static const tvmrt_model_desc_t g_small_model = {\n");
    w_fmt(w, "    %uu, g_small_name, %u, %u, 0, %u, NULL, NULL, NULL, NULL,\n", PACKAGE_ABI_VERSION, count_inputs(p->u),
          p->n_outputs, pl->problem->ops.len);
    package_template(p, w, "    @M_CONST_SIZE, @M_CONST_ALIGN, @M_WORKSPACE_SIZE, @M_WORKSPACE_ALIGN,\n};\n"
                           "static const tvmrt_small_t g_small = {&g_small_model, ");
    w_str(w, same ? "g_cpu_func_table, g_small_args, NULL};\n\n"
                  : "g_small_funcs, g_small_args, g_small_op_ids};\n\n");
    w_str(w, "const tvmrt_small_t *model_get_small(void)\n{\n    return &g_small;\n}\n#endif\n\n");
}
