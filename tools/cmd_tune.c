/* SPDX-License-Identifier: Apache-2.0 */
/* lathe tune: for each kernel of a model, schedules that were measured; lathe measure: the side that measures. */
#include "api/tune.h"
#include "cli.h"

/* Faster kernels make no faster network where they leave less in caches for others. */
static const char *gain_of(const tuning *t)
{
    return t->network_seconds < 0                         ? " (other numbers)"
           : t->network_seconds >= t->network_rule_seconds ? " (no gain: the rules are as good)"
                                                           : "";
}

bool cmd_tune(ask *x)
{
    tuning t;
    const bool ok = tune_verb(x, &t);
    if (x->documents) {
        cli_say(x); /* how it went */
        writer_init(&x->out, &x->c->mem);
    }
    if (ok && x->documents)
        tune_verb_write_json(&t, &x->out);
    if (!ok || x->documents)
        return ok;
    w_fmt(&x->out, "tuned %u kernels, %u were in the file already, %u could not be measured", t.tuned, t.found,
          t.failed);
    if (t.tuned > 0)
        w_fmt(&x->out, "; %.4g ms by rule, %.4g ms tuned", 1e3 * t.rule_seconds, 1e3 * t.seconds);
    w_str(&x->out, "\n");
    if (t.network_rule_seconds > 0)
        w_fmt(&x->out, "network: %.4g ms by rule, %.4g ms tuned%s, %u form%s changed\n", 1e3 * t.network_rule_seconds,
              1e3 * t.network_seconds, gain_of(&t), t.changed, t.changed == 1 ? "" : "s");
    return true;
}

bool cmd_measure(ask *x)
{
    return (x->args.len == 0 || ask_usage_error(x, NULL, "it takes no arguments: packages come from standard input")) &&
           measure_serve(x->c);
}
