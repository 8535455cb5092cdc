/* SPDX-License-Identifier: Apache-2.0 */
/* Computations of files: cut into sections, lowered, made into programs. */
#include "driver/computation.h"

#include "driver/tune_log.h"
#include "te/lower.h"
#include "te/text.h"
#include "tir/pass.h"
#include "tir/verify.h"
#include "tir/walk.h"
#include "type/target.h"

#include <ctype.h>
#include <string.h>

/* --- sections --- */

static size_t line_len(span s, size_t at)
{
    const uint8_t *end = memchr(s.data + at, '\n', s.len - at);
    return end ? (size_t)(end - s.data) - at + 1 : s.len - at;
}

static bool has_first_word(span s, size_t at, const char *word)
{
    size_t n = strlen(word);
    return s.len - at > n && memcmp(s.data + at, word, n) == 0 && s.data[at + n] == ' ';
}

static bool begins_computation(span s, size_t at)
{
    return has_first_word(s, at, "placeholder") || has_first_word(s, at, "compute") ||
           has_first_word(s, at, "extern") || has_first_word(s, at, "symbol");
}

/* A part of a text, with as many lines before it as it has there, so that messages tell the right one. */
static span in_place(compiler *c, span s, size_t from, size_t to)
{
    size_t lines = 0;
    for (size_t i = 0; i < from; i++)
        lines += s.data[i] == '\n';
    uint8_t *out = arena_alloc(&c->mem, lines + (to - from) + 1, 1);
    memset(out, '\n', lines);
    memcpy(out + lines, s.data + from, to - from);
    return (span){out, lines + (to - from)};
}

/* The word of a remark: "// fused_add" gives fused_add. */
static const char *remark(compiler *c, span s, size_t at, size_t end)
{
    while (at < end && (s.data[at] == ' ' || s.data[at] == '/'))
        at++;
    size_t n = at;
    while (n < end && (isalnum(s.data[n]) || s.data[n] == '_'))
        n++;
    return n > at ? arena_strndup(&c->mem, (const char *)s.data + at, n - at) : NULL;
}

/* The mark before a schedule, and in it the target, which may be left out. */
static bool is_mark(compiler *c, span s, size_t at, size_t n, const char **out_target)
{
    static const char mark[] = "--- schedule", to[] = "--- schedule for ";
    const char *line = (const char *)s.data + at;
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        n--;
    *out_target = NULL;
    if (n == sizeof mark - 1 && memcmp(line, mark, n) == 0)
        return true;
    if (n < sizeof to || memcmp(line, to, sizeof to - 1) != 0)
        return false;
    *out_target = arena_strndup(&c->mem, line + sizeof to - 1, n - (sizeof to - 1));
    return true;
}

/* It ends where the next computation begins behind its schedule, with the remarks before that. A schedule stands behind
 * a line "--- schedule", as `vta conv2d` prints it. */
computation computation_take(compiler *c, const char *file, span s, size_t *at)
{
    computation x = {.file = file, .schedule_file = file};
    size_t from = *at, behind = 0, end = from, i = from; /* behind: the schedule; end: its own */
    for (size_t n; i < s.len; i += n) {
        n = line_len(s, i);
        bool is_remark = n > 2 && s.data[i] == '/' && s.data[i + 1] == '/';
        if (behind && begins_computation(s, i))
            break;
        if (!behind && is_remark && !x.name)
            x.name = remark(c, s, i, i + n);
        if (!behind && is_mark(c, s, i, n, &x.target)) {
            x.text = in_place(c, s, from, i);
            behind = i + n;
        }
        if (!behind || !(is_remark || s.data[i] == '\n'))
            end = i + n;
    }
    if (behind)
        x.schedule = in_place(c, s, behind, end);
    else
        x.text = in_place(c, s, from, end);
    *at = i < s.len ? end : s.len;
    return x;
}

bool computation_read(compiler *c, const char *file, span s, const char *schedule_file, computation *out)
{
    size_t at = 0;
    *out = computation_take(c, file, s, &at);
    if (at < s.len) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' holds several computations, but only one can be "
                   "used here", file);
        diag_hint(&c->diags, "put the one that you mean into a file of its own; only 'lathe opt' takes several");
        return false;
    }
    if (!schedule_file)
        return true;
    if (out->schedule.data)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s holds a schedule, and --schedule gives another",
                          file);
    out->schedule_file = schedule_file;
    return compiler_read_file(c, schedule_file, &out->schedule);
}

bool computation_refuses_schedules(compiler *c, const char *file)
{
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--schedules is for models, and '%s' is a computation", file);
    diag_hint(&c->diags, "--schedule FILE takes the schedule of one computation");
    return false;
}

static te_record_text record_text(const char *file, span s)
{
    return (te_record_text){file, (const char *)s.data, s.len};
}

bool computation_read_records(compiler *c, const char *file, te_records *out)
{
    span s;
    const uint32_t before = out->list.len;
    if (!compiler_read_file(c, file, &s))
        return false;
    if (tune_log_is(s))
        return tune_log_read(c, file, s, out);
    for (size_t at = 0; at < s.len;) {
        computation x = computation_take(c, file, s, &at);
        if (x.target && !target_lookup(c, x.target)) {
            diag_error(&c->diags, DIAG_FORMAT, src_loc_none(),
                       "'%s' has a schedule for '%s', which is not a target", file,
                       x.target);
            diag_hint(&c->diags, "targets are: %s", target_names(c));
            return false;
        }
        if (x.schedule.data &&
            !te_records_add(c, out, record_text(file, x.text), record_text(file, x.schedule), x.target, 0))
            return false;
    }
    if (out->list.len > before)
        return true;
    diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "'%s' holds no schedules of kernels", file);
    diag_hint(&c->diags, "'lathe tune MODEL -o FILE' and 'lathe schedule MODEL' make such files");
    return false;
}

/* --- loops --- */

bool computation_lower(compiler *c, const computation *t, bool plain, const char *name, tir_func **out)
{
    te_graph *g;
    te_sched *s;
    const char *schedule = plain || !t->schedule.data ? "" : (const char *)t->schedule.data;
    const size_t n = plain ? 0 : t->schedule.len;
    if (!te_parse(c, t->file, (const char *)t->text.data, t->text.len, &g) ||
        !te_sched_parse(g, t->schedule_file, schedule, n, &s) || !te_lower(g, s, name, out) || !tir_verify(c, *out))
        return false;
    (*out)->schedule = NULL; /* the reader has it in a file */
    return true;
}

bool computation_passes(compiler *c, tir_func *f, const char *passes)
{
    tir_module m = {.c = c};
    vec_push(&c->mem, &m.funcs, f);
    return tir_run_passes(c, &m, passes, false, NULL);
}

bool computation_has_numbers(compiler *c, const tir_func *f)
{
    if (f->n_symbols == 0)
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, f->loc, "the extent %s is known only when the computation runs",
               f->symbols[0]);
    diag_hint(&c->diags, "write a number in its place; 'lathe opt' lowers it as it is");
    return false;
}

/* --- a program --- */

static type type_of(compiler *c, const tir_buffer *b)
{
    int64_t dims[TYPE_MAX_RANK] = {0};
    for (uint32_t i = 0; i < b->rank && i < TYPE_MAX_RANK; i++)
        (void)tir_is_int(b->shape[i], &dims[i]);
    return type_static(c, b->dt, b->rank, dims);
}

static bool has_ranks(compiler *c, const tir_func *f)
{
    for (uint32_t i = 0; i < f->n_params; i++)
        if (f->params[i]->rank > TYPE_MAX_RANK)
            return diag_error(&c->diags, DIAG_UNSUPPORTED, f->loc, "'%s' has %u dimensions; a tensor has at most %u",
                              f->params[i]->name, f->params[i]->rank, TYPE_MAX_RANK);
    return true;
}

static void find_scratchpad(void *ctx, tir_stmt *s)
{
    if (s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_CUSTOM)
        *(const tir_buffer **)ctx = s->buffer;
}

/* The loops of a schedule that this machine can run. */
static bool has_memory(compiler *c, const tir_func *f)
{
    const tir_buffer *b = NULL;
    tir_visit_stmt(f->body, find_scratchpad, NULL, &b);
    if (!b)
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, f->loc, "the schedule places '%s' in %s, a memory of an accelerator",
               b->name, b->scope_name);
    diag_hint(&c->diags, "--target vta runs it there; --interpret and -O0 leave the schedule out");
    return false;
}

/* A step for each kernel, all on the operands of the first one; each has results of its own. */
static void add_main(prog_module *m)
{
    compiler *c = m->c;
    const tir_func *first = m->kernels.data[0]->plain;
    prog_func *main = arena_new(&c->mem, prog_func);
    uint32_t *in = arena_array(&c->mem, uint32_t, first->n_inputs + 1u);
    *main = (prog_func){.name = "main", .n_inputs = first->n_inputs};
    for (uint32_t i = 0; i < first->n_inputs; i++)
        in[i] = prog_add_value(m, main, (prog_value){.name = intern(c->names, first->params[i]->name),
                                                     .type = type_of(c, first->params[i]),
                                                     .space = SPACE_INPUT,
                                                     .index = i,
                                                     .base = PROG_NONE});
    for (uint32_t n = 0; n < m->kernels.len; n++) {
        prog_kernel *k = m->kernels.data[n];
        const tir_func *f = k->plain;
        prog_step s = {.kind = STEP_KERNEL, .kernel = k, .source = "", .loc = f->loc, .n_in = f->n_inputs};
        s.args = arena_array(&c->mem, uint32_t, f->n_params + 1u);
        memcpy(s.args, in, f->n_inputs * sizeof *in);
        s.n_args = f->n_params;
        for (uint32_t i = f->n_inputs; i < f->n_params; i++) {
            const char *own = f->params[i]->name, *name = n ? arena_printf(&c->mem, "%s_%u", own, n) : own;
            name = intern(c->names, name);
            s.args[i] = prog_add_value(m, main, (prog_value){.name = name,
                                                             .type = type_of(c, f->params[i]),
                                                             .space = SPACE_OUTPUT,
                                                             .index = main->results.len,
                                                             .base = PROG_NONE});
            vec_push(&c->mem, &main->results, ((prog_result){name, s.args[i], PROG_NONE}));
        }
        vec_push(&c->mem, &main->steps, s);
    }
    vec_push(&c->mem, &m->funcs, main);
}

bool computation_kernel(compiler *c, const computation *t, const struct target *runs, prog_kernel *k)
{
    if (!computation_lower(c, t, true, k->name, &k->plain) || !computation_has_numbers(c, k->plain) ||
        !has_ranks(c, k->plain))
        return false;
    if (!t->schedule.data)
        return true;
    if (!computation_lower(c, t, false, k->name, &k->loops) || !has_memory(c, k->loops))
        return false;
    k->loops->target = runs;
    return computation_passes(c, k->loops, NULL);
}

bool computation_together(compiler *c, uint32_t n, prog_kernel *const *kernels, prog_module **out)
{
    prog_module *m = *out = prog_module_new(c);
    for (uint32_t i = 0; i < n; i++)
        vec_push(&c->mem, &m->kernels, kernels[i]);
    add_main(m);
    return prog_verify(c, m);
}

bool computation_program(compiler *c, const computation *t, const struct target *runs, prog_module **out)
{
    prog_kernel *k = arena_new(&c->mem, prog_kernel);
    const char *name = intern(c->names, t->name ? t->name : "computation");
    *k = (prog_kernel){.name = name, .kind = name, .target = runs};
    return computation_kernel(c, t, runs, k) && computation_together(c, 1, &k, out);
}
