/* SPDX-License-Identifier: Apache-2.0 */
/* --against c: runs a model a second time, as plain C, to compare with. */
#include "api/session.h"

#include <string.h>

#include "base/file.h"

/* A quantised model computes in integers from -O1 on. */
static int plain_level(const session *s)
{
    return s->result.quantised && s->options.opt_level > 0 ? 1 : 0;
}

bool session_run_as_c(session *s, run_model *out)
{
    compiler *c = s->x->c;
    compile_options o = s->options;
    compile_result r;
    const char *dir = path_join(&c->mem, s->scratch, "against"), *package = path_join(&c->mem, dir, "package");
    o.device = NULL;
    o.schedule = NULL;
    compile_set_emit(&o, EMIT_C);
    o.opt_level = plain_level(s);
    o.workers = 1;
    o.offload = NULL;
    o.unscheduled = true;
    o.port = port_default();
    o.board = NULL;
    o.memories = NULL;
    o.integers |= o.target && o.target->integers; /* what the target says by itself is said of the reference */
    o.target = s->is_computation ? o.target : target_find("generic");
    if (!pipeline_compile(c, s->path, &o, &r) || !file_make_dirs(&c->diags, dir) ||
        !artifact_write(c, &r.artifact, package, false) || !run_open_package(c, package, NULL, out))
        return false;
    for (uint32_t i = 0; i < s->model.n_inputs; i++)
        out->in[i] = s->model.inputs[i].data;
    for (uint32_t i = 0; i < s->model.n_extents; i++)
        out->extents[i].value = s->model.extents[i].value;
    return run_build(c, dir, 1, out) && run_call_seen(c, out);
}
