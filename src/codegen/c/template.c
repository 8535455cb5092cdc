/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a package that are written by templates: texts of the source tree that travel inside the program.
 *
 *     @{word}         stands for what the package has of that name
 *     @each LIST ...  at the head of a line: the line, without that, for each item of inputs, outputs, extents,
 *                     sources or headers, whose words it may use
 *     @if WORD ...    at the head of a line: the line, where WORD holds; @unless WORD ...: where it does not */
#include "codegen/c/template.h"
#include "prog/source.h"

#include <ctype.h>
#include <string.h>

/* Of the item that a line is repeated for; the model's names are made safe for comments. */
typedef struct item {
    const package_io *io;
    bool is_output;
    const char *file;
} item;

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && strncmp(s, word, n) == 0;
}

/* The name of the model's file, of characters that mean nothing in any of the formats. */
static const char *plain(arena *a, const char *s)
{
    char *out = arena_strdup(a, s);
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '_';
    return out;
}

static const char *contract(const package *p)
{
    return strstr(p->u->target->cflags, "-ffp-contract=fast") ? "-ffp-contract=fast" : "-ffp-contract=off";
}

static const char *item_word(const package *p, const item *it, const char *s, size_t n)
{
    arena *a = &p->c->mem;
    writer w;
    if (is_word(s, n, "file"))
        return it->file;
    if (!it->io)
        return NULL;
    const char *kind = it->is_output ? "output" : "input", *c_name = it->io->c_name;
    const uint64_t bytes = p->pl->problem->values.data[it->io->value].bytes;
    const uint64_t count = bytes / dtype_bytes(it->io->type.dt);
    if (is_word(s, n, "member"))
        return c_name;
    if (is_word(s, n, "field"))
        return arena_printf(a, "%s_%s", kind, c_name);
    if (is_word(s, n, "type"))
        return dtype_c_name(it->io->type.dt);
    if (is_word(s, n, "count"))
        return arena_printf(a, "%llu", (unsigned long long)(count > 0 ? count : 1));
    if (is_word(s, n, "bound"))
        return arena_printf(a, "%s_%s_MAX", p->macro, package_upper(a, c_name));
    if (is_word(s, n, "scale"))
        return arena_printf(a, "%.9g", it->io->end ? it->io->end->scale : 1.0);
    if (is_word(s, n, "zero_point"))
        return arena_printf(a, "%lld", it->io->end ? (long long)it->io->end->zero_point : 0LL);
    if (!is_word(s, n, "label"))
        return NULL;
    writer_init(&w, a);
    w_fmt(&w, "%s: %s ", package_comment(a, it->io->name), dtype_full_name(it->io->type.dt));
    package_shape(&w, &it->io->type);
    return w.data;
}

static const char *board_word(const ecosystem_board *b, const char *s, size_t n)
{
    static const ecosystem_board none = {"", "", "", "", "", "", ""};
    b = b ? b : &none;
    const struct {
        const char *word, *text;
    } words[] = {{"board", b->name},         {"tools", b->tools},         {"board_cflags", b->cflags},
                 {"board_script", b->script}, {"board_startup", b->startup}, {"board_ldflags", b->ldflags},
                 {"emulator", b->emulator}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(s, n, words[i].word))
            return words[i].text;
    return NULL;
}

static const char *package_word(const package *p, const char *s, size_t n)
{
    arena *a = &p->c->mem;
    const struct {
        const char *word, *text;
    } words[] = {{"name", p->prefix},
                 {"NAME", p->macro},
                 {"module", p->u->module_name},
                 {"model", plain(a, p->u->model_file)},
                 {"version", LATHE_VERSION},
                 {"contract", contract(p)},
                 {"target", p->u->target->name},
                 {"target_flags", package_target_flags(p)},
                 {"port_macro", p->u->port->macro}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(s, n, words[i].word))
            return words[i].text;
    if (is_word(s, n, "workers"))
        return arena_printf(a, "%u", port_usual_workers(p->u->port, p->u->target->workers));
    if (is_word(s, n, "main_stack"))
        return arena_printf(a, "%llu", (unsigned long long)((p->stack_bytes + 7) / 8 * 8 + 4096));
    return board_word(p->u->board, s, n);
}

static bool unknown(const package *p, const char *path, const char *s, size_t n)
{
    return diag_error(&p->c->diags, DIAG_INTERNAL, src_loc_none(), "the template '%s' asks for '%.*s'", path, (int)n,
                      s);
}

/* Whether a word of a condition holds. */
static bool find_condition(const package *p, const char *s, size_t n, bool *out)
{
    const struct {
        const char *word;
        bool holds;
    } words[] = {{"no_inputs", p->n_inputs == 0},
                 {"no_outputs", p->n_outputs == 0},
                 {"incbin", package_includes_files(p)},
                 {"hosted", p->u->port->system == PORT_HOSTED},
                 {"rtos", p->u->port->system == PORT_RTOS},
                 {"bare", p->u->port->system == PORT_BARE},
                 {"port_macro", *p->u->port->macro != '\0'}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(s, n, words[i].word)) {
            *out = words[i].holds;
            return true;
        }
    return false;
}

/* From `s` to `end`, with what its words stand for. */
static bool expand(const package *p, const char *path, const item *it, const char *s, const char *end, writer *w)
{
    const char *at;
    for (; (at = strstr(s, "@{")) != NULL && at < end; s = at + 1) {
        const size_t n = strcspn(at + 2, "}");
        const char *text = it ? item_word(p, it, at + 2, n) : NULL;
        text = text ? text : package_word(p, at + 2, n);
        if (!text)
            return unknown(p, path, at + 2, n);
        w_fmt(w, "%.*s%s", (int)(at - s), s, text);
        at += 2 + n;
    }
    w_fmt(w, "%.*s", (int)(end - s), s);
    return true;
}

static bool each_io(const package *p, const char *path, const package_io *io, uint32_t n, bool extents, const char *s,
                    const char *end, writer *w)
{
    for (uint32_t i = 0; i < n; i++) {
        const item it = {.io = &io[i], .is_output = io == p->outputs};
        const bool is_extent = io[i].extent != NULL;
        if ((extents ? !is_extent : !package_is_data(&io[i])) || (extents && it.is_output))
            continue;
        if (!expand(p, path, &it, s, end, w))
            return false;
    }
    return true;
}

/* The files of a kind in the ecosystem's folder for it. */
static bool each_file(const package *p, const char *path, const artifact *files, const char *suffix, const char *s,
                      const char *end, writer *w)
{
    for (uint32_t i = 0; i < files->files.len; i++) {
        const char *file = files->files.data[i].path, *dot = strrchr(file, '.');
        const item it = {.file = file};
        const bool is_example = strncmp(file, "example", 7) == 0 || strncmp(file, "sample", 6) == 0;
        if (!dot || strcmp(dot, suffix) != 0 || is_example)
            continue;
        if (!expand(p, path, &it, s, end, w))
            return false;
    }
    return true;
}

static bool each(const package *p, const char *path, const artifact *files, const char *s, const char *end, writer *w)
{
    const size_t n = strcspn(s, " \n");
    const char *rest = s[n] == ' ' ? s + n + 1 : s + n;
    if (is_word(s, n, "inputs"))
        return each_io(p, path, p->inputs, p->n_inputs, false, rest, end, w);
    if (is_word(s, n, "extents"))
        return each_io(p, path, p->inputs, p->n_inputs, true, rest, end, w);
    if (is_word(s, n, "outputs"))
        return each_io(p, path, p->outputs, p->n_outputs, false, rest, end, w);
    if (is_word(s, n, "sources"))
        return each_file(p, path, files, ".c", rest, end, w);
    if (is_word(s, n, "headers"))
        return each_file(p, path, files, ".h", rest, end, w);
    return unknown(p, path, s, n);
}

/* One line, up to and with its end. */
static bool line(const package *p, const char *path, const artifact *files, const char *s, const char *end, writer *w)
{
    static const char repeat[] = "@each ", only[] = "@if ", without[] = "@unless ";
    bool holds, wanted = strncmp(s, only, sizeof only - 1) == 0;
    if (strncmp(s, repeat, sizeof repeat - 1) == 0)
        return each(p, path, files, s + sizeof repeat - 1, end, w);
    if (!wanted && strncmp(s, without, sizeof without - 1) != 0)
        return expand(p, path, NULL, s, end, w);
    s += (wanted ? sizeof only : sizeof without) - 1;
    const size_t n = strcspn(s, " \n");
    if (!find_condition(p, s, n, &holds))
        return unknown(p, path, s, n);
    return holds != wanted || line(p, path, files, s + n + 1, end, w);
}

bool template_write(const package *p, const char *path, const char *text, const artifact *files, writer *w)
{
    for (const char *end; *text; text = end) {
        end = text + strcspn(text, "\n");
        end += *end == '\n';
        if (!line(p, path, files, text, end, w))
            return false;
    }
    return true;
}
