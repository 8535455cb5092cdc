/* SPDX-License-Identifier: Apache-2.0 */
/* main.c of a package (src/codegen/c/package/main.c.in): a program that runs the model once. On systems with files it
 * reads and writes raw ones; the others use a fixed pattern and print. The port's row says which one a package has.
 * Here is what it says of the model: tables of inputs, outputs and extents, and what it hands over. */
#include "codegen/c/template.h"

#include <string.h>

static void io_rows(const package *p, writer *w, const char *kind, const package_io *io, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (package_is_data(&io[i]))
            w_fmt(w,
                  "static union {\n    double align;\n    unsigned char bytes[%s_%s_SIZE > 0 ? %s_%s_SIZE : 1];\n} "
                  "%s_%u;\n",
                  p->macro, package_upper(&p->c->mem, io[i].c_name), p->macro,
                  package_upper(&p->c->mem, io[i].c_name), kind, i);
    w_fmt(w, "static %sstruct tensor %ss[] = {\n", package_is_open(p) ? "" : "const ", kind);
    for (uint32_t i = 0; i < n; i++) {
        if (!package_is_data(&io[i]))
            continue;
        const char *shown = text_line(arena_strdup(&p->c->mem, io[i].name));
        w_str(w, "    {");
        w_quoted(w, io[i].name, strlen(io[i].name));
        w_str(w, ", ");
        w_quoted(w, shown, strlen(shown));
        w_fmt(w, ", \"%s\", \"", dtype_full_name(io[i].type.dt));
        package_shape(w, &io[i].type);
        w_fmt(w, "\", %s_%u.bytes, %s_%s_SIZE},\n", kind, i, p->macro, package_upper(&p->c->mem, io[i].c_name));
    }
    w_str(w, "    {NULL, NULL, NULL, NULL, NULL, 0},\n};\n\n");
}

static void write_tensors(const package *p, writer *w)
{
    io_rows(p, w, "input", p->inputs, p->n_inputs);
    io_rows(p, w, "output", p->outputs, p->n_outputs);
}

/* --- extents that are known when it runs --- */

/* Arithmetic of extents that C has no operator for. */
static const struct {
    dim_kind kind;
    const char *name, *result;
} functions[] = {
    {DIM_FLOORDIV, "floordiv", "b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0))"},
    {DIM_MOD, "mod", "b == 0 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0)"},
    {DIM_MIN, "min", "a < b ? a : b"},
    {DIM_MAX, "max", "a > b ? a : b"},
};

static const char *function_of(dim_kind kind)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].kind == kind)
            return functions[i].name;
    return "";
}

static bool calls(dim d, dim_kind kind)
{
    const dim *parts = NULL;
    const uint32_t n = dim_operands(d, &parts);
    bool found = dim_get_kind(d) == kind;
    for (uint32_t i = 0; i < n; i++)
        found |= calls(parts[i], kind);
    return found;
}

/* Those that sizes of inputs need: compilers warn of others. */
static void write_functions(const package *p, writer *w)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        bool needed = false;
        for (uint32_t i = 0; i < p->n_inputs; i++)
            for (int32_t a = 0; package_is_data(&p->inputs[i]) && a < p->inputs[i].type.shape.rank; a++)
                needed |= calls(p->inputs[i].type.shape.dims[a], functions[k].kind);
        if (needed)
            w_fmt(w, "static int64_t %s(int64_t a, int64_t b)\n{\n    return %s;\n}\n\n", functions[k].name,
                  functions[k].result);
    }
}

static void extent_expr(const package *p, writer *w, dim d)
{
    const dim *parts = NULL;
    uint32_t n = dim_operands(d, &parts);
    int64_t v;
    dim_kind kind = dim_get_kind(d);
    if (dim_is_const(d, &v)) {
        w_fmt(w, "%lld", (long long)v);
    } else if (n == 0) {
        w_fmt(w, "extents[%u].value", package_extent(p, d));
    } else {
        bool sum = kind == DIM_ADD || kind == DIM_MUL;
        w_fmt(w, "%s(", sum ? "" : function_of(kind));
        for (uint32_t i = 0; i < n; i++) {
            w_str(w, i == 0 ? "" : kind == DIM_ADD ? " + " : kind == DIM_MUL ? " * " : ", ");
            extent_expr(p, w, parts[i]);
        }
        w_str(w, ")");
    }
}

/* Sizes of the inputs, once the extents are set. */
static void write_input_sizes(const package *p, writer *w)
{
    write_functions(p, w);
    w_str(w, "static void size_inputs(void)\n{\n");
    for (uint32_t i = 0, at = 0; i < p->n_inputs; i++) {
        const shape *s = &p->inputs[i].type.shape;
        if (!package_is_data(&p->inputs[i]))
            continue;
        w_fmt(w, "    inputs[%u].bytes = (size_t)(%u", at++, (unsigned)dtype_bytes(p->inputs[i].type.dt));
        for (int32_t k = 0; k < s->rank; k++) {
            w_str(w, " * ");
            extent_expr(p, w, s->dims[k]);
        }
        w_str(w, ");\n");
    }
    w_str(w, "}\n\n");
}

/* What the run says of its outputs. */
static void write_output_sizes(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].shape_of != PROG_NONE)
            w_fmt(w, "static char shape_%u[%d];\n", p->outputs[i].shape_of,
                  3 + 22 * p->outputs[p->outputs[i].shape_of].type.shape.rank);
    w_fmt(w, "static void size_outputs(const struct %s_outputs *out)\n{\n", p->prefix);
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        const package_io *io = &p->outputs[i];
        if (io->shape_of == PROG_NONE)
            continue;
        w_fmt(w, "    outputs[%u].bytes = shape_bytes(out->%s, %d, element_bytes(outputs[%u].dtype), shape_%u);\n"
                 "    outputs[%u].shape = shape_%u;\n",
              io->shape_of, io->c_name, p->outputs[io->shape_of].type.shape.rank, io->shape_of, io->shape_of,
              io->shape_of, io->shape_of);
    }
    w_str(w, package_tells_shapes(p) ? "}\n\n" : "    (void)out;\n}\n\n");
}

static void write_extents(const package *p, writer *w)
{
    w_str(w, "static struct extent {\n    const char *name;\n    int64_t most, value;\n} extents[] = {\n");
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const package_io *io = &p->inputs[i];
        const char *macro = package_upper(&p->c->mem, io->c_name);
        if (!io->extent)
            continue;
        w_str(w, "    {");
        w_quoted(w, io->name, strlen(io->name));
        w_fmt(w, ", %s_%s_MAX, %s_%s_MAX},\n", p->macro, macro, p->macro, macro);
    }
    w_str(w, "    {NULL, 0, 0},\n};\n\n");
}

static void write_op_extents(const package *p, writer *w)
{
    w_str(w, "/* Of each operator, extents that the data decides. */\nstatic const char *const op_extents[] = {\n");
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const char *text = package_op_extents(p, i);
        w_str(w, "    ");
        w_quoted(w, text, strlen(text));
        w_str(w, ",\n");
    }
    w_str(w, "    \"\",\n};\n\n");
}

/* --- the run --- */

static void set_input(const package *p, writer *w, uint32_t i)
{
    if (p->inputs[i].extent)
        w_fmt(w, "    in.%s = extents[%u].value == 0 ? %s_EMPTY : extents[%u].value;\n", p->inputs[i].c_name,
              package_extent(p, p->inputs[i].extent), p->macro, package_extent(p, p->inputs[i].extent));
    else
        w_fmt(w, "    in.%s = (const void *)input_%u.bytes;\n", p->inputs[i].c_name, i);
}

static void set_operands(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->n_inputs; i++)
        set_input(p, w, i);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (package_is_data(&p->outputs[i]))
            w_fmt(w, "    out.%s = (void *)output_%u.bytes;\n", p->outputs[i].c_name, i);
    w_str(w, p->n_inputs ? "" : "    in.none = NULL;\n");
    w_str(w, p->n_outputs ? "" : "    out.none = NULL;\n");
}

void main_write(const package *p, writer *w)
{
    static const template_piece pieces[] = {{"tensors", write_tensors},
                                            {"extents", write_extents},
                                            {"input_sizes", write_input_sizes},
                                            {"output_sizes", write_output_sizes},
                                            {"operator_extents", write_op_extents},
                                            {"operands", set_operands}};
    template_file(p, "main.c", pieces, sizeof pieces / sizeof *pieces, w);
}
