/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: options of a verb by name and text, from the table that the program has. */
#include "api/objects.h"

#include <stdlib.h>
#include <string.h>

/* --- new --- */

typedef struct new_args {
    const char *verb;
    lathe_settings *made;
} new_args;

static bool find_verb(lathe_context *x, home *h, void *args)
{
    static const ask_verb known[] = {VERB_COMPILE, VERB_RUN, VERB_INSPECT, VERB_VERIFY,
                                     VERB_QUANTIZE, VERB_TUNE};
    new_args *a = args;
    (void)x;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(ask_verb_name(known[i]), a->verb) == 0) {
            a->made->options.verb = known[i];
            return true;
        }
    diag_error(&h->c.diags, DIAG_USAGE, src_loc_none(), "the verb '%.100s' has no settings", a->verb);
    diag_hint(&h->c.diags, "compile, run, inspect, verify, quantize and tune have settings");
    return false;
}

int32_t lathe_settings_new(lathe_context *x, const char *verb, lathe_settings **out)
{
    *out = NULL;
    if (!verb)
        return border_refuse_missing(x, "verb");
    new_args a = {verb, calloc(1, sizeof *a.made)};
    if (!a.made)
        return LATHE_BAD_ENVIRONMENT;
    border_init_home(&a.made->at);
    const int32_t outcome = border_call(x, &a.made->at, find_verb, &a);
    if (outcome == LATHE_DONE)
        *out = a.made;
    else
        lathe_settings_free(a.made);
    return outcome;
}

void lathe_settings_free(lathe_settings *s)
{
    if (!s)
        return;
    border_free_home(&s->at);
    free(s);
}

/* --- set --- */

typedef struct set_args {
    lathe_settings *settings;
    const char *name, *value;
} set_args;

static bool set(lathe_context *x, home *h, void *args)
{
    const set_args *a = args;
    ask *q = &a->settings->options;
    (void)x;
    q->c = &h->c;
    const ask_option o = ask_find(q, a->name, strlen(a->name));
    if (o == OPT_COUNT)
        return ask_unknown(q, a->name);
    const ask_row *row = ask_row_of(o);
    if (row->verbs & OPTION_PROGRAM)
        return ask_usage_error(q, "the library returns what the program prints or writes", "'%s' is an option of the "
                               "program alone", row->name);
    const bool empty = !a->value || !*a->value;
    if (row->value && !a->value)
        return ask_usage_error(q, NULL, "'%s' needs a value: %s", row->name, row->value);
    if (!row->value && !empty)
        return ask_usage_error(q, NULL, "'%s' is a switch and takes no value", row->name);
    ask_add(q, o, arena_strdup(&h->c.mem, empty ? "" : a->value));
    return true;
}

int32_t lathe_set(lathe_context *x, lathe_settings *settings, const char *name, const char *value)
{
    set_args a = {settings, name, value};
    if (!settings)
        return border_refuse_missing(x, "settings object");
    if (!name)
        return border_refuse_missing(x, "option");
    return border_call(x, &settings->at, set, &a);
}

bool settings_ask(compiler *c, const lathe_settings *settings, ask_verb verb, ask *out)
{
    *out = settings ? settings->options : (ask){.verb = verb};
    out->c = c;
    writer_init(&out->out, &c->mem);
    return out->verb == verb ||
           diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "these settings were made for '%s', not for '%s'",
                      ask_verb_name(out->verb), ask_verb_name(verb));
}
