/* SPDX-License-Identifier: Apache-2.0 */
/* lathe schedule: what the kernels of a model compute, and how their loops run. */
#include "api/schedule.h"
#include "base/file.h"
#include "cli.h"

#include <string.h>

bool cmd_schedule(ask *x)
{
    compile_options o;
    writer w;
    if (x->args.len < 1 || x->args.len > 2)
        return ask_usage_error(x, "for example: lathe schedule model.onnx",
                               "lathe schedule takes a model, and the name of one kernel after it");
    const char *name = x->args.len > 1 ? x->args.data[1] : NULL;
    writer_init(&w, &x->c->mem);
    return ask_compile_options(x, true, &o) && ask_is_file(x, OPT_OUT) &&
           schedule_print(x, x->args.data[0], &o, name, &w) && cli_put_text(x, &w);
}
