/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a module that runs its regions on the accelerator: C with recorders over buffers of the published
 * run-time, which is where the module is loaded, and around it functions over such buffers: the module has operands
 * and results in the device's memory (docs/reference/module.md); only constants come from the host's, once. */
#include "abi/package.h"
#include "codegen/embedded.h"
#include "target/vta/code/vta_package.h"
#include "target/vta/vta_text.h"

/* The region's own buffers, for its constants, as long as the module is loaded and the device is the same. */
static void write_buffers(writer *w, const prog_region *r, const tir_func *f, uint32_t n)
{
    w_fmt(w, "static void *%s_buffers[%u];\n", r->symbol, n);
    w_fmt(w, "#if defined(__GNUC__)\n__attribute__((destructor)) static void %s_end(void)\n{\n", r->symbol);
    w_fmt(w, "    vta_drop_buffers(%s_buffers, %u);\n}\n#endif\n", r->symbol, n);
    w_fmt(w, "static int %s_constants(void *const *from)\n{\n    static const size_t bytes[] = {", r->symbol);
    for (uint32_t i = 0, k = 0; i < f->n_inputs; i++)
        if (vta_region_is_constant(r, f, i))
            w_fmt(w, "%s%zu", k++ ? ", " : "", vta_code_bytes(f->params[i]) + 1);
    w_fmt(w, "};\n    const int made = vta_keep_buffers(%s_buffers, bytes, %u);\n    if (made > 0) {\n", r->symbol, n);
    for (uint32_t i = 0, k = 0; i < f->n_inputs; i++)
        if (vta_region_is_constant(r, f, i)) {
            w_fmt(w, "        VTABufferCopy(from[%u], 0, %s_buffers[%u], 0, %zu, 1);\n", k, r->symbol, k,
                  vta_code_bytes(f->params[i]));
            k++;
        }
    w_str(w, "    }\n    return made;\n}\n");
}

/* Operands and results are handles; constants go to the device once. */
static void write_outer(writer *w, const prog_region *r, const tir_func *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_inputs; i++)
        n += vta_region_is_constant(r, f, i);
    w_str(w, "\n");
    vta_region_print_prototype(w, r, f);
    w_str(w, ";\n");
    if (n > 0)
        write_buffers(w, r, f, n);
    vta_region_print_prototype(w, r, f);
    w_str(w, "\n{\n");
    if (n > 0) {
        const char *gap = "";
        w_str(w, "    void *const from[] = {");
        for (uint32_t i = 0; i < f->n_inputs; i++)
            if (vta_region_is_constant(r, f, i)) {
                w_fmt(w, "%s(void *)(uintptr_t)p%u", gap, i);
                gap = ", ";
            }
        w_fmt(w, "};\n    if (%s_constants(from) < 0)\n        return %d;\n", r->symbol, PACKAGE_STATUS_LIBRARY);
    }
    w_fmt(w, "    return %s_jit(", r->symbol);
    for (uint32_t i = 0, k = 0; i < f->n_params; i++)
        if (vta_region_is_constant(r, f, i))
            w_fmt(w, "%s%s_buffers[%u]", i ? ", " : "", r->symbol, k++);
        else
            w_fmt(w, "%s(void *)(uintptr_t)p%u", i ? ", " : "", i);
    w_fmt(w, ") == 0 ? 0 : %d;\n}\n", PACKAGE_STATUS_LIBRARY);
}

/* The device is of the configuration that the regions are for, before the module has memory of it. */
static void write_ready(compiler *c, writer *w, const char *name)
{
    w_fmt(w, "\nint32_t %s(void);\nint32_t %s(void)\n{\n    return vta_want_config(\"%s\") == 0 ? 0 : %d;\n}\n", name,
          name, vta_text_name(c), PACKAGE_STATUS_LIBRARY);
}

bool vta_module_codegen(compiler *c, prog_source *out)
{
    writer w;
    bool any = false;
    writer_init(&w, &c->mem);
    w_str(&w, embedded_text("src/target/vta/code/text/module.c.in"));
    for (uint32_t i = 0; i < out->n_regions; i++) {
        prog_region *r = &out->regions[i];
        if (!vta_region_lower(c, out, r, NULL))
            return false;
        if (r->declined)
            continue;
        any = true;
        w_str(&w, "\n");
        if (!vta_code_print_jit(c, &w, r->device, arena_printf(&c->mem, "%s_jit", r->symbol), false))
            return false;
        write_outer(&w, r, r->device);
    }
    if (any) {
        out->ready = arena_printf(&c->mem, "%s_ready", out->regions[0].symbol);
        write_ready(c, &w, out->ready);
    }
    out->suffix = "c";
    out->cflags = out->ldflags = "";
    out->text = any ? w.data : NULL;
    out->backend = PACKAGE_BACKEND_VTA;
    return true;
}
