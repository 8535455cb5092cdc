/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c of a package: the prelude, each kernel with its comment, and the wrappers that the engine calls. */
#include "codegen/c/family.h"
#include "codegen/c/package.h"
#include "prog/shape.h"
#include "tir/text.h"

#include <string.h>

/* --- comments and wrappers
 * --------------------------------------------------------------------------------------------- */

static void write_operand(const package *p, writer *w, const plan_op *op, uint32_t i)
{
    const tir_buffer *b = op->func->params[i];
    (void)p;
    w_fmt(w, "%s[", dtype_name(b->dt));
    for (uint32_t k = 0; k < b->rank; k++) {
        w_str(w, k ? ", " : "");
        tir_print_expr(w, b->shape[k]);
    }
    w_str(w, "]");
}

static void write_schedule(const package *p, writer *w, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (n > 0)
            w_fmt(w, " *   %s", package_comment(&p->c->mem, arena_strndup(&p->c->mem, text, n)));
        w_str(w, "\n");
    }
}

static void write_comment(const package *p, writer *w, uint32_t i)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    const prog_kernel *k = package_kernel(p, i);
    w_fmt(w, "/* %s: %s\n", k->name, package_comment(&p->c->mem, k->kind));
    if (*op->step->source)
        w_fmt(w, " * of %s\n", package_comment(&p->c->mem, op->step->source));
    w_str(w, " * ");
    for (uint32_t n = 0; n < op->n_args; n++) {
        w_str(w, n == 0 ? "" : n == op->n_inputs ? " -> " : ", ");
        write_operand(p, w, op, n);
    }
    w_fmt(w, "; %lld multiply-accumulates\n", (long long)op->func->macs);
    if (op->func->schedule && *op->func->schedule) {
        w_str(w, " * schedule:\n");
        write_schedule(p, w, op->func->schedule);
    }
    w_str(w, " */\n");
}

/* The kernel's arguments from an array, behind what is first and in front of what is last. */
static void write_call(const package *p, writer *w, uint32_t i, const char *name, const char *first, const char *last)
{
    const plan_op *op = &p->pl->problem->ops.data[i];
    w_fmt(w, "return %s_%s(%s", p->prefix, name, first);
    for (uint32_t k = 0; k < op->n_args + op->n_scratch; k++) {
        dtype dt = k < op->n_args ? op->func->params[k]->dt : op->scratch[k - op->n_args].buffer->dt;
        w_fmt(w, "%s(%s%s *)a[%u]", k ? ", " : "", k < op->n_inputs ? "const " : "", dtype_c_name(dt), k);
    }
    w_fmt(w, "%s);\n", last);
}

void ops_write_call(const package *p, writer *w, uint32_t i)
{
    write_call(p, w, i, package_kernel(p, i)->name, "", ", part, parts");
}

static const char *numbers_name(const package *p, const prog_kernel *k)
{
    return arena_printf(&p->c->mem, "%s_%s_numbers", p->prefix, k->name);
}

/* --- small packages: the entry calls the kernels themselves --- */

/* The function with the loops of operator i, and the numbers that it gets in front of all else. */
const char *ops_function(const package *p, uint32_t i, const char **out_numbers)
{
    const prog_kernel *k = package_kernel(p, i);
    *out_numbers = k->shape ? numbers_name(p, k) : NULL;
    return arena_printf(&p->c->mem, "%s_%s", p->prefix, k->shape ? k->shape->name : k->name);
}

static bool is_first_of_shape(const package *p, uint32_t i)
{
    const prog_shape *code = package_kernel(p, i)->shape;
    for (uint32_t k = 0; k < i; k++)
        if (package_kernel(p, k)->shape == code)
            return false;
    return true;
}

void ops_write_declarations(const package *p, writer *w)
{
    c_needs needs = {.a = &p->c->mem, .one_part = true};
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const char *numbers, *name = ops_function(p, i, &numbers);
        if (!package_is_first(p, i))
            continue;
        if (!numbers || is_first_of_shape(p, i))
            func_write_declaration(p->c, w, &needs, package_code(&p->pl->problem->ops.data[i]), name);
        if (numbers)
            w_fmt(w, "extern const int32_t %s[];\n", numbers);
    }
}

static void write_wrapper(const package *p, writer *w, uint32_t i)
{
    const prog_kernel *k = package_kernel(p, i);
    const bool small = package_is_small(p->u);
    const char *first = k->shape ? arena_printf(&p->c->mem, "%s, ", numbers_name(p, k)) : "";
    w_fmt(w, "int32_t wrapped_%s(const void *args, uint32_t part, uint32_t parts)\n{\n", k->name);
    w_str(w, small ? "    (void)part;\n    (void)parts;\n" : "");
    if (k->shape && !small) {
        w_fmt(w, "    return %s_%s_call(args, part, parts, %s);\n}\n\n", p->prefix, k->shape->name,
              numbers_name(p, k));
        return;
    }
    w_str(w, "    void *const *a = (void *const *)args;\n    ");
    if (small)
        write_call(p, w, i, k->shape ? k->shape->name : k->name, first, "");
    else
        ops_write_call(p, w, i);
    w_str(w, "}\n\n");
}

/* What a code generator has written for the kernel stands in a file of its own, or elsewhere in this one. */
static void write_declaration(writer *w, const plan_op *op, const char *symbol)
{
    w_fmt(w, "int32_t %s(", symbol);
    for (uint32_t i = 0; i < op->n_args; i++)
        w_fmt(w, "%s%s%s *", i ? ", " : "", i < op->n_inputs ? "const " : "", dtype_c_name(op->func->params[i]->dt));
    w_fmt(w, "%s);\n", op->n_scratch > 0 ? ", uint8_t *" : "");
}

bool ops_write_kernel(const package *p, c_needs *needs, writer *w, uint32_t i, const char *linkage)
{
    const char *name = arena_printf(&p->c->mem, "%s_%s", p->prefix, package_kernel(p, i)->name);
    write_comment(p, w, i);
    if (package_kernel(p, i)->symbol)
        write_declaration(w, &p->pl->problem->ops.data[i], package_kernel(p, i)->symbol);
    return func_write(p->c, w, needs, p->pl->problem->ops.data[i].func, linkage, name);
}

/* --- code that kernels share --- */

/* The loops, and what unpacks the arguments for all wrappers: that makes each of them two instructions. */
static bool write_shape(const package *p, c_needs *needs, writer *w, uint32_t i)
{
    const prog_shape *code = package_kernel(p, i)->shape;
    const char *name = arena_printf(&p->c->mem, "%s_%s", p->prefix, code->name);
    w_fmt(w, "/* %s: the code of these kernels, which differ in numbers alone:\n", code->name);
    for (uint32_t k = i; k < p->pl->problem->ops.len; k++)
        if (package_is_first(p, k) && package_kernel(p, k)->shape == code)
            w_fmt(w, " *   %s\n", package_kernel(p, k)->name);
    w_str(w, " */\n");
    needs_add_kernel(needs, "kernel/common/shared.h");
    if (!func_write(p->c, w, needs, code->loops, needs->one_part ? "LATHE_SHARED " : "static ", name))
        return false;
    if (needs->one_part) {
        w_str(w, "\n");
        return true;
    }
    w_fmt(w, "\nstatic LATHE_SHARED int32_t %s_call(const void *args, uint32_t part, uint32_t parts,\n"
             "    const int32_t *numbers)\n{\n    void *const *a = (void *const *)args;\n    ", name);
    write_call(p, w, i, code->name, "numbers, ", ", part, parts");
    w_str(w, "}\n\n");
    return true;
}

static bool write_shared_kernel(const package *p, c_needs *needs, writer *w, uint32_t i)
{
    const prog_kernel *k = package_kernel(p, i);
    if (is_first_of_shape(p, i) && !write_shape(p, needs, w, i))
        return false;
    write_comment(p, w, i);
    w_fmt(w, "%sconst int32_t %s[] = {", needs->one_part ? "" : "static ", numbers_name(p, k));
    for (uint32_t n = 0; n < prog_shape_numbers(k->shape); n++)
        w_fmt(w, "%s%s", n ? ", " : "", scalar_int(&p->c->mem, DT_I32, k->numbers[n]).s);
    w_str(w, "};\n");
    return true;
}

bool ops_write(const package *p, writer *w)
{
    const plan_problem *pp = p->pl->problem;
    const uint32_t features = p->u->target->features;
    c_needs needs = {.a = &p->c->mem, .riscv = p->u->target->vlen > 0, .family = c_family_of(p->u->target),
                     .neon = (features & TARGET_NEON) != 0, .one_part = package_is_small(p->u)};
    writer kernels;
    writer_init(&kernels, &p->c->mem);
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        if (!package_is_first(p, i))
            continue;
        if (package_kernel(p, i)->shape ? !write_shared_kernel(p, &needs, &kernels, i)
                                        : !ops_write_kernel(p, &needs, &kernels, i, needs.one_part ? "" : "static "))
            return false;
        w_str(&kernels, "\n");
    }
    package_template(p, w,
                     "/* ops.c: the operators of model \"@n\", and the wrappers through which the engine calls them.\n"
                     OUTPUT_LICENCE "#include \"@n_names.h\"\n\n#include <math.h>\n\n"
                     "#ifdef __cplusplus /* C++ has no such word */\n#define restrict __restrict\n#endif\n\n");
    needs_write(&p->c->mem, w, &needs);
    w_str(w, kernels.data ? kernels.data : "");
    w_str(w,
          "/* Arguments as the engine hands them over: the pointers of an operator's inputs, outputs, scratch. */\n\n");
    for (uint32_t i = 0; i < pp->ops.len; i++)
        if (package_is_first(p, i))
            write_wrapper(p, w, i);
    return true;
}
