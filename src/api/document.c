/* SPDX-License-Identifier: Apache-2.0 */
/* The document of --json. */
#include "api/document.h"

#include "base/json_out.h"

#include <string.h>

/* The verbs that have a document. A version changes when a key of the result goes or gets another meaning; a key that
 * is added changes nothing. */
typedef struct document {
    ask_verb verb;
    const char *first; /* the first argument; NULL: any other */
    unsigned version;
} document;

static const document documents[] = {
    {VERB_COMPILE, NULL, 1},  {VERB_RUN, NULL, 1},      {VERB_VERIFY, NULL, 1}, {VERB_BENCH, NULL, 1},
    {VERB_INSPECT, NULL, 1},  {VERB_SCHEDULE, NULL, 1}, {VERB_TUNE, NULL, 1},   {VERB_OPT, NULL, 1},
    {VERB_QUANTIZE, NULL, 1}, {VERB_TARGETS, NULL, 1},  {VERB_VTA, "run", 1},   {VERB_VTA, "trace", 1},
    {VERB_VTA, "model", 1},   {VERB_VTA, "bench", 1},   {VERB_VTA, NULL, 1},
};

static const document *document_of(const ask *x)
{
    const char *first = x->args.len > 0 ? x->args.data[0] : "";
    uint32_t i = 0;
    while (documents[i].verb != x->verb || (documents[i].first && strcmp(documents[i].first, first) != 0))
        i++;
    return &documents[i]; /* ask_takes(x, OPT_JSON): there is one */
}

static void write_schema(json_out *j, const ask *x)
{
    const document *d = document_of(x);
    json_out_object(j, "schema");
    json_out_text(j, "name", arena_printf(&x->c->mem, "lathe.%s%s%s", ask_verb_name(d->verb), d->first ? "." : "",
                                          d->first ? d->first : ""));
    json_out_uint(j, "version", d->version);
    json_out_end(j);
}

static void write_position(json_out *j, const char *key, uint32_t n)
{
    if (n > 0)
        json_out_uint(j, key, n);
    else
        json_out_null(j, key);
}

static void write_diagnostic(json_out *j, const diag *d)
{
    static const char *const levels[] = {"note", "warning", "error"};
    json_out_object(j, NULL);
    json_out_text(j, "severity", levels[d->level]);
    json_out_text(j, "code", diag_code_name(d->code));
    json_out_text_or_null(j, "file", d->loc.file && *d->loc.file ? d->loc.file : NULL);
    write_position(j, "line", d->loc.line);
    write_position(j, "column", d->loc.line > 0 ? d->loc.col : 0);
    if (d->loc.line == 0 && d->loc.node_index >= 0) {
        json_out_object(j, "node");
        json_out_int(j, "index", d->loc.node_index);
        json_out_text_or_null(j, "name", d->loc.node && *d->loc.node ? d->loc.node : NULL);
        json_out_text_or_null(j, "operator", d->loc.op);
        json_out_end(j);
    } else {
        json_out_null(j, "node");
    }
    json_out_text(j, "text", d->text);
    json_out_text_or_null(j, "hint", d->hint);
    json_out_end(j);
}

void document_write(writer *w, const ask *x)
{
    const diags *all = &x->c->diags;
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    write_schema(&j, x);
    json_out_int(&j, "status", diags_exit_status(all));
    json_out_array(&j, "diagnostics");
    for (const diag *d = all->first; d; d = d->next)
        write_diagnostic(&j, d);
    json_out_end(&j);
    json_out_uint(&j, "more_errors", all->errors > all->limit ? all->errors - all->limit : 0);
    json_out_uint(&j, "more_warnings", all->warnings > all->limit ? all->warnings - all->limit : 0);
    if (x->out.len > 0)
        json_out_written(&j, "result", x->out.data, x->out.len);
    else
        json_out_null(&j, "result");
    json_out_end(&j);
    w_str(w, "\n");
}

void document_put_out_of_memory(FILE *to, const ask *x)
{
    const document *d = document_of(x);
    fprintf(to,
            "{\"schema\": {\"name\": \"lathe.%s%s%s\", \"version\": %u}, \"status\": 3, \"diagnostics\": ["
            "{\"severity\": \"error\", \"code\": \"environment\", \"file\": null, \"line\": null, \"column\": null, "
            "\"node\": null, \"text\": \"out of memory\", \"hint\": null}], \"more_errors\": 0, \"more_warnings\": 0, "
            "\"result\": null}\n",
            ask_verb_name(d->verb), d->first ? "." : "", d->first ? d->first : "", d->version);
}
