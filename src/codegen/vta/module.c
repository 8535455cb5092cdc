/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a module that runs its regions on the accelerator: C with recorders over buffers of the published
 * run-time, which is where the module is loaded, and around it functions over pointers of the host. */
#include "codegen/vta/vta_code.h"
#include "codegen/vta/vta_package.h"
#include "type/vta_text.h"

enum { STATUS_LIBRARY = -14 }; /* TVMRT_E_LIBRARY: what a library did has failed */

static const char head_text[] =
    "\n/* Of libvta: the device is of this configuration, or becomes it when there is none yet; 0, else why not. */\n"
    "int vta_want_config(const char *name);\n"
    "/* Of libvta: buffers that are none of the device's are made; how many, below 0: not. Those that are left go. */\n"
    "int vta_keep_buffers(void **buffers, const size_t *bytes, int count);\n"
    "void vta_drop_buffers(void **buffers, int count);\n"
    "void VTABufferCopy(const void *from, size_t from_offset, void *to, size_t to_offset, size_t size,\n"
    "    int kind_mask);\n";

static void write_copies(writer *w, const prog_region *r, const tir_func *f, bool constants)
{
    for (uint32_t i = 0; i < f->n_inputs; i++)
        if (vta_region_is_constant(r, f, i) == constants)
            w_fmt(w, "%sVTABufferCopy(p%u, 0, b[%u], 0, %zu, 1);\n", constants ? "        " : "    ", i, i,
                  vta_code_bytes(f->params[i]));
}

/* Operands and results in the device's memory, for as long as the module is loaded and the device is the same;
 * constants go there once. */
static void write_outer(compiler *c, writer *w, const prog_region *r, const tir_func *f)
{
    w_str(w, "\n");
    vta_region_print_prototype(w, r, f);
    w_fmt(w, ";\nstatic void *%s_buffers[%u];\n", r->symbol, f->n_params);
    w_fmt(w, "#if defined(__GNUC__)\n__attribute__((destructor)) static void %s_end(void)\n{\n", r->symbol);
    w_fmt(w, "    vta_drop_buffers(%s_buffers, %u);\n}\n#endif\n", r->symbol, f->n_params);
    vta_region_print_prototype(w, r, f);
    w_fmt(w, "\n{\n    void **const b = %s_buffers;\n    static const size_t bytes[] = {", r->symbol);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "%s%zu", i ? ", " : "", vta_code_bytes(f->params[i]) + 1);
    w_fmt(w, "};\n    int status, made;\n    if (vta_want_config(\"%s\") != 0)\n", vta_text_name(c));
    w_fmt(w, "        return %d;\n    made = vta_keep_buffers(b, bytes, %u);\n", STATUS_LIBRARY, f->n_params);
    w_fmt(w, "    if (made < 0)\n        return %d;\n    if (made > 0) {\n", STATUS_LIBRARY);
    write_copies(w, r, f, true);
    w_str(w, "    }\n");
    write_copies(w, r, f, false);
    w_fmt(w, "    status = %s_jit(", r->symbol);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "%sb[%u]", i ? ", " : "", i);
    w_str(w, ");\n");
    for (uint32_t i = f->n_inputs; i < f->n_params; i++)
        w_fmt(w, "    VTABufferCopy(b[%u], 0, p%u, 0, %zu, 2);\n", i, i, vta_code_bytes(f->params[i]));
    w_fmt(w, "    return status == 0 ? 0 : %d;\n}\n", STATUS_LIBRARY);
}

bool vta_module_codegen(compiler *c, prog_source *out)
{
    writer w;
    bool any = false;
    writer_init(&w, &c->mem);
    w_str(&w, head_text);
    for (uint32_t i = 0; i < out->n_regions; i++) {
        prog_region *r = &out->regions[i];
        tir_func *f = NULL;
        if (!out->target->lower(c, r->kernel->func, r->kernel->name, &f))
            return false;
        r->declined = f == NULL;
        r->device = f;
        if (!f)
            continue;
        any = true;
        w_str(&w, "\n");
        if (!vta_code_print_jit(c, &w, f, arena_printf(&c->mem, "%s_jit", r->symbol)))
            return false;
        write_outer(c, &w, r, f);
    }
    out->suffix = "c";
    out->cflags = out->ldflags = "";
    out->text = any ? w.data : NULL;
    out->backend = PACKAGE_BACKEND_VTA;
    return true;
}
