/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's records, written and read. */
#include "driver/tune_log.h"

#include <jansson.h>
#include <string.h>

#include "base/json_out.h"
#include "type/target.h"

void tune_log_line(writer *w, const tune_record *r)
{
    json_out j = json_out_begin(w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    json_out_text(&j, "kernel", r->kernel);
    json_out_text(&j, "target", r->target);
    json_out_text(&j, "compiler", r->built_by);
    json_out_uint(&j, "threads", r->threads);
    json_out_uint(&j, "measured", r->measured);
    json_out_real(&j, "seconds", r->seconds);
    json_out_real(&j, "rule_seconds", r->rule_seconds);
    json_out_text(&j, "computation", r->computation);
    json_out_text(&j, "schedule", r->schedule);
    json_out_end(&j);
    w_str(w, "\n");
}

bool tune_log_is(span text)
{
    return text.len > 0 && text.data[0] == '{';
}

/* A text of the record, on the lines behind those of the file that stand before it. */
static te_record_text at_line(compiler *c, const char *file, uint32_t line, const char *text)
{
    size_t n = strlen(text);
    char *out = arena_alloc(&c->mem, line + n, 1);
    memset(out, '\n', line - 1u);
    memcpy(out + line - 1u, text, n + 1u);
    return (te_record_text){file, out, line - 1u + n};
}

static bool broken(compiler *c, const char *file, uint32_t line, const char *why)
{
    const src_loc at = {.file = file, .line = line, .col = 1, .node_index = -1};
    diag_error(&c->diags, DIAG_FORMAT, at, "this is no record of the tuner's: %s", why);
    diag_hint(&c->diags, "'lathe tune' writes one a line, and begins each file of them with one");
    return false;
}

static bool read_record(compiler *c, const char *file, uint32_t line, const json_t *o, te_records *out)
{
    const char *computation = json_string_value(json_object_get(o, "computation"));
    const char *schedule = json_string_value(json_object_get(o, "schedule"));
    const char *runs = json_string_value(json_object_get(o, "target"));
    const json_t *seconds = json_object_get(o, "seconds");
    if (!computation || !schedule || !runs || !json_is_number(seconds))
        return broken(c, file, line, "a field is missing");
    if (!target_lookup(c, runs))
        return broken(c, file, line, arena_printf(&c->mem, "'%.100s' is no target", runs));
    return te_records_add(c, out, at_line(c, file, line, computation), at_line(c, file, line, schedule),
                          arena_strdup(&c->mem, runs), json_number_value(seconds));
}

bool tune_log_read(compiler *c, const char *file, span text, te_records *out)
{
    uint32_t line = 1;
    for (size_t at = 0; at < text.len; line++) {
        const char *begin = (const char *)text.data + at, *end = memchr(begin, '\n', text.len - at);
        const size_t n = end ? (size_t)(end - begin) : text.len - at;
        at += n + 1;
        if (n == 0)
            continue;
        json_error_t why;
        json_t *o = json_loadb(begin, n, 0, &why);
        bool ok = o ? read_record(c, file, line, o, out) : broken(c, file, line, why.text);
        json_decref(o);
        if (!ok)
            return false;
    }
    return true;
}
