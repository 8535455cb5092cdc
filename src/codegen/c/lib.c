/* SPDX-License-Identifier: Apache-2.0 */
/* lib0 (constants, workspace, entry) and lib1 (connection to the runtime) of a package: src/codegen/c/package has their
 * text; here is what it says of the model. */
#include "codegen/c/template.h"

static void write_workspace(const package *p, writer *w)
{
    if (p->u->group) {
        package_template(p, w, "/* Of all functions of the package. */\n"
                               "#define GLOBAL_WORKSPACE @g_get_workspace()\n\n");
        return;
    }
    w_str(w, p->pl->workspace_bytes > 0 ? "#define GLOBAL_WORKSPACE (&global_workspace)\n\n"
                                        : "#define GLOBAL_WORKSPACE NULL /* none is needed */\n\n");
    if (p->u->places && p->u->places->workspace && p->u->places->workspace->section)
        w_fmt(w, "#ifndef %s_WORKSPACE_SECTION /* in the memory %s */\n#define %s_WORKSPACE_SECTION \"%s\"\n#endif\n\n",
              p->macro, p->u->places->workspace->name, p->macro, p->u->places->workspace->section);
}

void lib0_write(const package *p, writer *w)
{
    static const template_piece pieces[] = {{"constants", constants_write}, {"workspace", write_workspace}};
    template_file(p, "lib0.c", pieces, sizeof pieces / sizeof *pieces, w);
}

/* An extent of the run. 0 is one that was forgotten: an empty tensor is asked for by a number of its own. */
static void bring_extent(const package *p, writer *w, uint32_t i)
{
    const char *name = p->inputs[i].c_name;
    w_fmt(w, "    if (inputs->%s == 0)\n        return TVMRT_E_EXTENT;\n", name);
    w_fmt(w, "    instance->inputs[%u] = inputs->%s == %s_EMPTY ? &no_elements : &inputs->%s;\n", i, name, p->macro,
          name);
}

static void bring_inside(const package *p, writer *w, const package_io *io)
{
    const char *name = package_upper(&p->c->mem, io->c_name);
    w_fmt(w, "    if (inputs->%s == NULL || workspace == NULL)\n        return TVMRT_E_NULL;\n", io->c_name);
    w_fmt(w, "    if (inputs->%s != (const void *)(workspace + %s_%s_OFFSET))\n", io->c_name, p->macro, name);
    w_fmt(w, "        memcpy(workspace + %s_%s_OFFSET, inputs->%s, %s_%s_SIZE);\n", p->macro, name, io->c_name,
          p->macro, name);
}

/* What a run of operators that C calls does in front of them. */
static void bring_some(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (package_is_inside(p, &p->inputs[i]))
            bring_inside(p, w, &p->inputs[i]);
        else if (p->inputs[i].extent)
            w_fmt(w, "    if (inputs->%s == 0)\n        return TVMRT_E_EXTENT;\n", p->inputs[i].c_name);
}

/* Every input and output, and where constants lie, into the instance. */
static void bring_all(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (package_is_inside(p, &p->inputs[i]))
            bring_inside(p, w, &p->inputs[i]);
        else if (p->inputs[i].extent)
            bring_extent(p, w, i);
        else
            w_fmt(w, "    instance->inputs[%u] = inputs->%s;\n", i, p->inputs[i].c_name);
    for (uint32_t i = 1; i < p->n_areas; i++)
        w_fmt(w, "    instance->inputs[%u] = %s_get_const_area_%u();\n", p->n_inputs + i - 1, p->prefix, i);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        w_fmt(w, "    instance->outputs[%u] = outputs->%s;\n", i, p->outputs[i].c_name);
}

void lib1_write(const package *p, writer *w)
{
    static const template_piece pieces[] = {
        {"states", states_write}, {"operands", bring_all}, {"small_operands", bring_some},
        {"small_run", calls_write}};
    template_file(p, "lib1.c", pieces, sizeof pieces / sizeof *pieces, w);
}
