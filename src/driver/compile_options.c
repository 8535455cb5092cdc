/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a compile, as they are when nothing is asked for, and what --emit means. */
#include "driver/pipeline.h"

void compile_options_init(compile_options *o)
{
    *o = (compile_options){
        .verb = "compile", .stop = STOP_NEVER, .module_name = "default", .host = "x86_64", .opt_level = 3};
    o->port = port_default();
}

static const struct {
    const char *name;
    backend artifact;
    compile_stop stop;
} emits[] = {
#define X(id, name, artifact, stop) {name, artifact, stop},
    COMPILE_EMITS(X)
#undef X
};

void compile_set_emit(compile_options *o, compile_emit e)
{
    o->artifact = emits[e].artifact;
    o->stop = emits[e].stop;
}

const char *compile_emit_name(const compile_options *o)
{
    uint32_t i = 0;
    while (emits[i].stop != o->stop || (o->stop == STOP_NEVER && emits[i].artifact != o->artifact))
        i++;
    return emits[i].name;
}
