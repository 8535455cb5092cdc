/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a package that are written by templates: texts of the source tree that travel inside the program.
 *
 *     @{word}         stands for what the package has of that name
 *     @each LIST ...  at the head of a line: the line, without that, for each item of inputs, outputs, extents,
 *                     sources or headers, whose words it may use
 *     @if WORD ...    at the head of a line: the line, where WORD holds; @unless WORD ...: where it does not
 *     @if WORD        alone in a line, and @unless WORD: the lines up to @else or @end; such blocks may be nested
 *
 * What no text can say is a piece: a function of C writes it where its word stands, with the end of the line. */
#include "codegen/embedded.h"
#include "codegen/c/template.h"
#include "prog/source.h"

#include "lathe_version.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define MOST_NESTED 8
#define LEAST_VLEN  128 /* of RISC-V's V: code for it runs in wider registers, too */

typedef struct template {
    const package *p;
    const char *path;      /* of the template, for messages */
    const artifact *files; /* of the library; NULL: no line is for them */
    const template_piece *pieces;
    uint32_t n_pieces;
} template;

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
                 {"license", OUTPUT_LICENCE_LINES},
                 {"port_macro", p->u->port->macro}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(s, n, words[i].word))
            return words[i].text;
    if (is_word(s, n, "group") && p->u->group)
        return arena_printf(a, "tvmgen_%s", p->u->group);
    if (is_word(s, n, "workers"))
        return arena_printf(a, "%u", port_usual_workers(p->u->port, p->u->target->workers));
    if (is_word(s, n, "vector_bytes"))
        return arena_printf(a, "%u", p->u->target->vlen / 8);
    if (is_word(s, n, "main_stack"))
        return arena_printf(a, "%llu", (unsigned long long)((p->stack_bytes + 7) / 8 * 8 + 4096));
    return board_word(p->u->board, s, n);
}

static bool unknown(const template *t, const char *s, size_t n)
{
    return diag_error(&t->p->c->diags, DIAG_INTERNAL, src_loc_none(), "the template '%s' asks for '%.*s'", t->path,
                      (int)n, s);
}

/* Whether a word of a condition holds. */
static bool find_condition(const package *p, const char *s, size_t n, bool *out)
{
    const bool handed = p->constants_form == CONSTANTS_BIN;
    const port_main main = p->u->port->main;
    const struct {
        const char *word;
        bool holds;
    } words[] = {{"no_inputs", p->n_inputs == 0},
                 {"no_outputs", p->n_outputs == 0},
                 {"incbin", package_includes_files(p)},
                 {"hosted", p->u->port->system == PORT_HOSTED},
                 {"rtos", p->u->port->system == PORT_RTOS},
                 {"bare", p->u->port->system == PORT_BARE},
                 {"port_macro", *p->u->port->macro != '\0'},
                 {"files", main == PORT_MAIN_FILES},
                 {"main_prints", main == PORT_MAIN_PRINTS},
                 {"main_freertos", main == PORT_MAIN_FREERTOS},
                 {"main_cmsis_rtos2", main == PORT_MAIN_CMSIS_RTOS2},
                 {"main_dualcore", main == PORT_MAIN_DUALCORE},
                 {"open", package_is_open(p)},
                 {"extents", package_has_extents(p)},
                 {"shapes", package_tells_shapes(p)},
                 {"states", package_has_states(p)},
                 {"function", p->u->group != NULL},
                 {"inside", package_has_inside(p)},
                 {"inside_or_states", package_has_inside(p) || package_has_states(p)},
                 {"small", package_is_small(p->u)},
                 {"has_workspace", p->pl->workspace_bytes > 0},
                 {"named_args", p->u->opt_level == 0},
                 {"wide_vectors", p->u->target->vlen > LEAST_VLEN},
                 {"separate_constants", handed},
                 {"placed_constants", handed && main != PORT_MAIN_FILES}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(s, n, words[i].word)) {
            *out = words[i].holds;
            return true;
        }
    return false;
}

static const template_piece *find_piece(const template *t, const char *s, size_t n)
{
    for (uint32_t i = 0; i < t->n_pieces; i++)
        if (is_word(s, n, t->pieces[i].word))
            return &t->pieces[i];
    return NULL;
}

/* From `s` to `end`, with what its words stand for. */
static bool expand(const template *t, const item *it, const char *s, const char *end, writer *w)
{
    const char *at;
    for (; (at = strstr(s, "@{")) != NULL && at < end; s = at + 1) {
        const size_t n = strcspn(at + 2, "}");
        const template_piece *piece = find_piece(t, at + 2, n);
        const char *text = it ? item_word(t->p, it, at + 2, n) : NULL;
        if (piece) {
            assert(s == at && at + n + 4 == end); /* alone in its line */
            piece->write(t->p, w);
            return true;
        }
        text = text ? text : package_word(t->p, at + 2, n);
        if (!text)
            return unknown(t, at + 2, n);
        w_fmt(w, "%.*s%s", (int)(at - s), s, text);
        at += 2 + n;
    }
    w_fmt(w, "%.*s", (int)(end - s), s);
    return true;
}

static bool each_io(const template *t, const package_io *io, uint32_t n, bool extents, const char *s, const char *end,
                    writer *w)
{
    for (uint32_t i = 0; i < n; i++) {
        const item it = {.io = &io[i], .is_output = io == t->p->outputs};
        const bool is_extent = io[i].extent != NULL;
        if ((extents ? !is_extent : !package_is_data(&io[i])) || (extents && it.is_output))
            continue;
        if (!expand(t, &it, s, end, w))
            return false;
    }
    return true;
}

/* The files of a kind in the ecosystem's folder for it. */
static bool each_file(const template *t, const char *suffix, const char *s, const char *end, writer *w)
{
    for (uint32_t i = 0; t->files && i < t->files->files.len; i++) {
        const char *file = t->files->files.data[i].path, *dot = strrchr(file, '.');
        const item it = {.file = file};
        const bool is_example = strncmp(file, "example", 7) == 0 || strncmp(file, "sample", 6) == 0;
        if (!dot || strcmp(dot, suffix) != 0 || is_example)
            continue;
        if (!expand(t, &it, s, end, w))
            return false;
    }
    return true;
}

static bool each(const template *t, const char *s, const char *end, writer *w)
{
    const size_t n = strcspn(s, " \n");
    const char *rest = s[n] == ' ' ? s + n + 1 : s + n;
    if (is_word(s, n, "inputs"))
        return each_io(t, t->p->inputs, t->p->n_inputs, false, rest, end, w);
    if (is_word(s, n, "extents"))
        return each_io(t, t->p->inputs, t->p->n_inputs, true, rest, end, w);
    if (is_word(s, n, "outputs"))
        return each_io(t, t->p->outputs, t->p->n_outputs, false, rest, end, w);
    if (is_word(s, n, "sources"))
        return each_file(t, ".c", rest, end, w);
    if (is_word(s, n, "headers"))
        return each_file(t, ".h", rest, end, w);
    return unknown(t, s, n);
}

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* The condition at the head of a line: whether the line, or what follows it, is wanted, and in out_rest what stands
 * behind it. */
static bool read_condition(const template *t, const char *s, bool *out_holds, const char **out_rest)
{
    static const char only[] = "@if ", without[] = "@unless ";
    const bool wanted = begins(s, only);
    s += (wanted ? sizeof only : sizeof without) - 1;
    const size_t n = strcspn(s, " \n");
    *out_rest = s + n;
    if (!find_condition(t->p, s, n, out_holds))
        return unknown(t, s, n);
    *out_holds = *out_holds == wanted;
    return true;
}

static bool is_conditional(const char *s)
{
    return begins(s, "@if ") || begins(s, "@unless ");
}

/* Whether nothing stands behind the condition at the head of the line. */
static bool is_alone(const char *s)
{
    const char *word = strchr(s, ' ') + 1;
    return word[strcspn(word, " \n")] == '\n';
}

/* One line, up to and with its end. */
static bool line(const template *t, const char *s, const char *end, writer *w)
{
    static const char repeat[] = "@each ";
    const char *rest;
    bool holds;
    if (begins(s, repeat))
        return each(t, s + sizeof repeat - 1, end, w);
    if (!is_conditional(s))
        return expand(t, NULL, s, end, w);
    return read_condition(t, s, &holds, &rest) && (!holds || line(t, rest + 1, end, w));
}

typedef struct block {
    bool around, holds; /* what is around it is written; what is read now is */
} block;

/* A line that begins, turns or ends a block: true, and in out_ok whether its condition is known. */
static bool read_block(const template *t, const char *s, block *blocks, uint32_t *n, bool *out_ok)
{
    block *b = *n > 0 ? &blocks[*n - 1] : NULL;
    const char *rest;
    bool holds;
    *out_ok = true;
    if (begins(s, "@end\n")) {
        assert(b);
        --*n;
    } else if (begins(s, "@else\n")) {
        assert(b);
        b->holds = b->around && !b->holds;
    } else {
        if (!is_conditional(s) || !is_alone(s))
            return false;
        assert(*n < MOST_NESTED);
        *out_ok = read_condition(t, s, &holds, &rest);
        const bool around = !b || b->holds;
        blocks[(*n)++] = (block){around, around && *out_ok && holds};
    }
    return true;
}

static bool write_all(const template *t, const char *text, writer *w)
{
    block blocks[MOST_NESTED];
    uint32_t n = 0;
    for (const char *end; *text; text = end) {
        bool ok;
        end = text + strcspn(text, "\n");
        end += *end == '\n';
        if (!read_block(t, text, blocks, &n, &ok))
            ok = (n > 0 && !blocks[n - 1].holds) || line(t, text, end, w);
        if (!ok)
            return false;
    }
    assert(n == 0);
    return true;
}

bool template_write(const package *p, const char *path, const char *text, const artifact *files, writer *w)
{
    return write_all(&(template){.p = p, .path = path, .files = files}, text, w);
}

void template_file(const package *p, const char *file, const template_piece *pieces, uint32_t n, writer *w)
{
    const struct embedded_file *f = embedded_find(arena_printf(&p->c->mem, "src/codegen/c/package/%s.in", file));
    assert(f);
    write_all(&(template){.p = p, .path = f->name, .pieces = pieces, .n_pieces = n}, (const char *)f->data, w);
}
