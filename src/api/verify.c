/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing. Outputs are compared with stored ones, with onnxruntime's or with the interpreter's, and the greatest
 * errors are reported. Or the results of all operators are compared, up to the first wrong one. */
#include "api/verify.h"

#include "base/file.h"
#include "driver/format.h"
#include "graph/pass.h"

#include <math.h>
#include <string.h>

static bool same_shape(const run_tensor *a, uint32_t rank, const int64_t *dims)
{
    return a->rank == rank && (rank == 0 || memcmp(a->dims, dims, rank * sizeof *dims) == 0);
}

/* The bytes that output i is to be; NULL after a diagnostic, which begins with `what`. */
static const uint8_t *expected(verify_judge *j, uint32_t i, const char *file, const char *what)
{
    compiler *c = j->s->x->c;
    const run_tensor *got = &j->s->model.outputs[i];
    run_tensor want = *got;
    if (j->has_oracle) {
        const run_tensor *from = &j->oracle.outputs[i];
        if (same_shape(got, from->rank, from->dims))
            return from->data;
        (void)diag_error(&c->diags, DIAG_MISMATCH, src_loc_none(), "%s '%s': its shape is %s, %s is expected", what,
                         got->name, tensor_file_dims(&c->mem, got->rank, got->dims),
                         tensor_file_dims(&c->mem, from->rank, from->dims));
        return NULL;
    }
    want.data = arena_try_alloc(&c->mem, want.bytes + 1, 64);
    if (!want.data)
        (void)diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for output '%s'", got->name);
    const run_from from = run_output_from(&j->s->model, i);
    tensor_list all;
    if (!want.data || !(from.list && j->from_data ? tensor_file_list(c, file, from.list, &all) &&
                                                        tensor_file_read_element(c, file, &all, from.element, &want)
                                                  : tensor_file_read(c, file, &want)))
        return NULL;
    return want.data;
}

/* Operators of a model in integers that compute in floats, by their remarks: the first, and how many. */
static const codegen_remark *in_floats(const session *s, uint32_t *out_n)
{
    const codegen_remark *first = NULL;
    *out_n = 0;
    for (uint32_t i = 0; s->result.integers && i < s->result.n_remarks; i++)
        if (strcmp(s->result.remarks[i].pass, "use-integers") == 0) {
            first = first ? first : &s->result.remarks[i];
            ++*out_n;
        }
    return first;
}

/* The options of this command that say what is compiled and run on one sample. */
static const char *options_again(const verify_judge *j, uint32_t at)
{
    static const ask_option others[] = {OPT_AGAINST, OPT_SEEDS, OPT_SEED, OPT_STEPS, OPT_DATA, OPT_JSON,
                                        OPT_PER_NODE, OPT_KEEP, OPT_RTOL, OPT_ATOL, OPT_MODEL};
    const session *s = j->s;
    const ask *x = s->x;
    writer w;
    writer_init(&w, &x->c->mem);
    if (s->data_sets)
        w_fmt(&w, " --data %s", text_in_shell(w.a, path_join(w.a, s->data_sets, verify_sample_name(s, at))));
    else if (s->data && !s->rows)
        w_fmt(&w, " --data %s", text_in_shell(w.a, s->data));
    else if (!s->rows && !s->steps && (ask_has(x, OPT_SEEDS) || ask_has(x, OPT_SEED)))
        w_fmt(&w, " --%s", verify_sample_name(s, at));
    if (s->options.requant == REQUANT_LITERT && !ask_has(x, OPT_REQUANT))
        w_str(&w, " --requant litert");
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        bool other = false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other |= others[i] == o;
        for (uint32_t i = 0; !other && i < x->values[o].len; i++) {
            const char *value = x->values[o].data[i];
            w_fmt(&w, " --%s%s%s", ask_option_name((ask_option)o), *value ? " " : "",
                  *value ? text_in_shell(w.a, value) : "");
        }
    }
    return w.data;
}

static void hint_at_frames(const session *s)
{
    const compile_result *r = &s->result;
    if ((r->frames || r->ends_early) && reference_is(s->x, "tflm"))
        diag_hint(&s->x->c->diags, "%s%s%s",
                  r->frames ? "until SignalFramer and SignalStacker say with their second result that their frames are "
                              "valid, TensorFlow Lite Micro leaves those frames undefined, and so is what is computed "
                              "of them"
                            : "",
                  r->frames && r->ends_early ? "; " : "",
                  r->ends_early ? "at a CIRCULAR_BUFFER that waits for more data (cycles_max), TensorFlow Lite Micro "
                                  "ends the run, and computes no results behind it"
                                : "");
}

/* What TensorFlow Lite's runtimes compute with is what --against sets, or the model itself. */
static void hint_at_rounding(const session *s)
{
    const ask *x = s->x;
    const bool exact = s->options.requant == REQUANT_EXACT || s->options.requant == REQUANT_TFLITE;
    const bool litert = reference_is(x, "litert"), micro = reference_is(x, "tflm");
    if (s->result.quantised && ask_has(x, OPT_REQUANT) &&
        ((litert && s->options.requant != REQUANT_LITERT) || (micro && !exact)))
        diag_hint(&x->c->diags, "--requant %s rounds otherwise than %s; leave it out%s", ask_get(x, OPT_REQUANT, ""),
                  reference_title(x), litert ? ", and it is --requant litert" : "");
}

/* at: which sample has that result. */
static bool mismatch(const verify_judge *j, const run_tensor *got, const compare_result *r, const char *what,
                     uint32_t at)
{
    diags *d = &j->s->x->c->diags;
    uint32_t n;
    const codegen_remark *in_float = in_floats(j->s, &n);
    diag_error(d, DIAG_MISMATCH, src_loc_none(),
               "%s '%s': %lld of %lld elements are outside of the tolerance; element %lld is %.9g, %.9g is expected",
               what, got->name, (long long)r->wrong, (long long)got->count, (long long)r->first, r->got, r->want);
    if (j->s->result.half_up && reference_is(j->s->x, "onnxruntime"))
        diag_hint(d, "the model rounds halves up, and onnxruntime rounds them to even, so results may differ by one; "
                     "--against interpreter rounds as the model does");
    else if (reference_is(j->s->x, "onnxruntime") && in_float)
        diag_hint(d, "%u operator%s of this model compute%s in floats (%s '%s' is the first). The last bit of a float "
                     "depends on the order of a sum, and may decide which 8-bit number it is rounded to; then later "
                     "layers differ too. --per-node compares every result without optimizations",
                  n, n == 1 ? "" : "s", n == 1 ? "s" : "", in_float->op,
                  *in_float->node ? in_float->node : in_float->value);
    else if (reference_is(j->s->x, "onnxruntime") && reference_has_ties(j->s))
        diag_hint(d, "onnxruntime computes these integers in floats, so it may round a number half-way between two "
                     "integers to the other one, and then later layers differ too; --against interpreter compares with "
                     "the definitions of the operators");
    if (j->s->result.integers && j->s->options.requant != REQUANT_EXACT && reference_is(j->s->x, "onnxruntime"))
        diag_hint(d, "--requant %s does not round as onnxruntime does (%s), so results may differ by one, and by more "
                     "after later layers; --against interpreter rounds in the same way",
                  ask_get(j->s->x, OPT_REQUANT, ""),
                  j->s->options.requant == REQUANT_FAST ? "once, in integers" : "twice, as TensorFlow Lite Micro");
    if (j->s->result.dynamic && !j->has_oracle)
        diag_hint(d, "the model computes scales when it runs, so the last bit of a float can change how numbers are "
                     "rounded, also in later layers; --per-node shows where the values begin to differ");
    hint_at_frames(j->s);
    hint_at_rounding(j->s);
    const bool as_asked = j->s->result.half_up || j->s->options.requant != REQUANT_EXACT;
    if (j->other && !as_asked && j->own.max_abs >= r->max_abs)
        diag_hint(d, "two of onnxruntime's settings differ from each other as much, so neither result is the exact "
                     "one; --against interpreter compares with the definitions of the operators");
    else if (d->last && !d->last->hint && !ask_has(j->s->x, OPT_PER_NODE) && format_frontend_of(j->s->x->c, j->s->path))
        diag_hint(d, "the first operator that differs: lathe verify %s --against %s --per-node%s",
                  text_in_shell(&j->s->x->c->mem, j->s->path),
                  reference_is(j->s->x, "onnxruntime") ? "onnxruntime" : "interpreter", options_again(j, at));
    return false;
}

/* --- sequences and optionals --- */

static bool no_output(const session *s, uint32_t i)
{
    diag_error(&s->x->c->diags, DIAG_DATA, src_loc_none(), "'%s' has no output_%u.pb", s->data, i);
    diag_hint(&s->x->c->diags, "to compare with another program, give " REFERENCE_ALL);
    return false;
}

static bool other_count(verify_judge *j, const list_io *l, const run_seen *got, bool present, uint32_t count)
{
    arena *a = &j->s->x->c->mem;
    return diag_error(&j->s->x->c->diags, DIAG_MISMATCH, src_loc_none(), "output '%s' is %s, %s is expected", l->name,
                      run_list_text(a, l, got->present, got->count), run_list_text(a, l, present, count));
}

/* How many elements the outputs have, before these are compared. */
static bool judge_lists(verify_judge *j)
{
    session *s = j->s;
    for (uint32_t i = 0; i < s->model.n_lists; i++) {
        const list_io *l = &s->model.lists[i];
        const run_seen *got = l->is_input || !s->model.seen ? NULL : &s->model.seen[i];
        const char *file = got && j->from_data ? session_data_file(s, "output", l->place) : NULL;
        tensor_list all;
        if (got && j->has_oracle && (j->oracle.seen[i].present != got->present ||
                                     j->oracle.seen[i].count != got->count))
            return other_count(j, l, got, j->oracle.seen[i].present, j->oracle.seen[i].count);
        if (got && j->from_data && !file)
            return no_output(s, l->place);
        if (file && !tensor_file_list(s->x->c, file, l, &all))
            return false;
        if (file && (all.none == got->present || all.n != got->count))
            return other_count(j, l, got, !all.none, all.n);
        if (got && j->teller->list)
            j->teller->list(j, l, got);
    }
    return true;
}

/* --- outputs --- */

/* What is half-way between two steps of a quantised output, as nearly as onnxruntime's sums in floats can tell, may be
 * either: what is expected there, and differs from `want`, is what was got. Counts such elements. */
static bool allow_ties(verify_judge *j, uint32_t i, const uint8_t **want)
{
    compiler *c = j->s->x->c;
    const run_tensor *got = &j->s->model.outputs[i];
    const char *file = j->has_oracle ? NULL : reference_other(j->s, i);
    const size_t size = dtype_bytes(got->dt);
    j->ties = 0;
    if (!file)
        return true;
    const uint8_t *other = expected(j, i, file, "output");
    uint8_t *either = other ? arena_try_alloc(&c->mem, got->bytes + 1, 64) : NULL;
    if (!either)
        return other && diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for output '%s'", got->name);
    memcpy(either, *want, got->bytes);
    for (size_t at = 0; at < got->bytes; at += size) {
        if (memcmp(got->data + at, *want + at, size) == 0 || memcmp(got->data + at, other + at, size) != 0)
            continue;
        memcpy(either + at, other + at, size);
        j->ties++;
    }
    *want = either;
    return true;
}

/* Output i against that file; false after a diagnostic where the two cannot be compared. */
static bool compare_output(verify_judge *j, uint32_t i, const char *file, bool from_data, compare_result *out)
{
    const uint8_t *want = expected(j, i, file, "output");
    if (!want || (!from_data && !allow_ties(j, i, &want)))
        return false;
    const bool exact = j->s->model.outputs[i].is_text;
    *out = compare_tensors(&j->s->model.outputs[i], want, exact ? 0 : j->rtol, exact ? 0 : j->atol);
    return true;
}

/* Where a quantised model is wrong: how far onnxruntime's sessions are from each other, the two that differ most. */
static bool compare_sessions(verify_judge *j, uint32_t i)
{
    session *s = j->s;
    run_tensor now = s->model.outputs[i];
    const char *path, *options;
    j->other = NULL;
    if (j->has_oracle || s->options.show_values || !(s->result.integers || s->result.quantised || s->result.dynamic))
        return true;
    now.data = (uint8_t *)expected(j, i, reference_output(s, i), "output");
    for (uint32_t k = 0; now.data && (path = reference_own(s, k, i, &options)); k++) {
        const uint8_t *own = *path ? expected(j, i, path, "output") : NULL;
        if (!own && *path)
            return false;
        const compare_result r = own ? compare_tensors(&now, own, j->rtol, j->atol) : (compare_result){0};
        if (r.wrong > 0 && (!j->other || r.max_abs > j->own.max_abs)) {
            j->own = r;
            j->other = options;
        }
    }
    return now.data != NULL;
}

static bool judge_output(verify_judge *j, uint32_t i, const char *file, bool from_data)
{
    const run_tensor *got = &j->s->model.outputs[i];
    compare_result r;
    j->other = NULL;
    if (!compare_output(j, i, file, from_data, &r) || (r.wrong && !from_data && !compare_sessions(j, i)))
        return false;
    j->teller->output(j, got, &r, NULL);
    return r.wrong == 0 || mismatch(j, got, &r, "output", 0);
}

static bool judge_outputs(verify_judge *j, bool from_data)
{
    session *s = j->s;
    bool ok = true;
    if (j->options)
        j->teller->way(j);
    if (!judge_lists(j))
        return false;
    for (uint32_t i = 0; i < s->model.n_outputs; i++) {
        const uint32_t place = run_output_from(&s->model, i).place;
        const char *file = from_data ? session_data_file(s, "output", place) : reference_output(s, i);
        if (!file)
            return no_output(s, place);
        ok &= judge_output(j, i, file, from_data);
    }
    return ok;
}

/* --- node by node --- */

/* Whether the reference has the value: of the same type, and, from the interpreter, always. Passes may keep a name for
 * a value of another shape; without them, a run's extents that differ are a fault. */
static bool has_value(const verify_judge *j, uint32_t i, bool *out_other_shape)
{
    const run_tensor *got = &j->s->model.outputs[i];
    int64_t dims[TYPE_MAX_RANK];
    uint32_t rank;
    dtype dt;
    const char *file = reference_output(j->s, i);
    *out_other_shape = false;
    if (j->has_oracle)
        return true;
    if (!file_exists(file) || !tensor_file_peek(j->s->x->c, file, NULL, &dt, &rank, dims) || dt != got->dt)
        return false;
    *out_other_shape = !same_shape(got, rank, dims);
    return !*out_other_shape || (j->s->options.opt_level == 0 && got->open && rank == got->rank);
}

/* The output that is value v of the program, whole; PROG_NONE: none is. */
static uint32_t output_of(const prog_func *f, uint32_t v)
{
    uint64_t start;
    const prog_value *root = &f->values.data[prog_root(f, v, &start)];
    bool whole = start == 0 && prog_bytes(root) == prog_bytes(&f->values.data[v]);
    return root->space == SPACE_OUTPUT && whole ? root->index : PROG_NONE;
}

/* "operator fused_nn_relu (node relu1): its result" */
static const char *name_step(compiler *c, const prog_step *s)
{
    const char *name = s->kernel ? s->kernel->name : prog_step_text(s->kind);
    const char *nodes = strchr(s->source, ',') ? "nodes" : "node";
    return *s->source ? arena_printf(&c->mem, "%s (%s %s)", name, nodes, s->source) : name;
}

static void count_inside(const prog_block *b, verify_tally *t)
{
    for (uint32_t i = 0; i < b->len; i++) {
        const prog_step *s = &b->data[i];
        t->inside += s->kernel ? s->n_args - s->n_in : 0;
        for (uint32_t k = 0; k < s->n_blocks; k++)
            count_inside(&s->blocks[k], t);
    }
}

/* Result `at`, which that step makes; false after a diagnostic. */
static bool judge_result(verify_judge *j, const prog_step *step, uint32_t at, verify_tally *t)
{
    session *s = j->s;
    const run_tensor *got = &s->model.outputs[at];
    const char *op = name_step(s->x->c, step);
    const char *first = arena_printf(&s->x->c->mem, "operator %s is the first wrong one (right results before it: %u): "
                                                    "result",
                                     op, t->agree);
    bool other_shape;
    if (!has_value(j, at, &other_shape)) {
        t->unknown++;
        return true;
    }
    if (other_shape)
        return diag_error(&s->x->c->diags, DIAG_MISMATCH, src_loc_none(),
                          "%s '%s': its shape, %s, is not the expected one",
                          first, got->name, tensor_file_dims(&s->x->c->mem, got->rank, got->dims));
    const uint8_t *want = expected(j, at, reference_output(s, at), first);
    if (!want)
        return false;
    compare_result r = compare_tensors(got, want, j->rtol, j->atol);
    j->teller->output(j, got, &r, op);
    t->agree += r.wrong == 0;
    return r.wrong == 0 || mismatch(j, got, &r, first, 0);
}

static bool judge_step(verify_judge *j, const prog_func *f, const prog_step *step, verify_tally *t)
{
    bool makes = step->kind != STEP_VIEW && step->kind != STEP_JOIN;
    for (uint32_t k = step->n_in; makes && k < step->n_args; k++) {
        uint32_t at = output_of(f, step->args[k]);
        if (at == PROG_NONE && f->values.data[step->args[k]].extent)
            t->extents++;
        else if (at == PROG_NONE)
            t->inside++;
        else if (at < j->s->model.n_outputs && !judge_result(j, step, at, t))
            return false;
    }
    for (uint32_t k = 0; k < step->n_blocks; k++)
        count_inside(&step->blocks[k], t);
    return true;
}

static bool judge_nodes(verify_judge *j)
{
    session *s = j->s;
    const prog_func *f = prog_find(s->result.prog, "main");
    verify_tally t = {0};
    for (uint32_t i = 0; i < f->steps.len; i++)
        if (!judge_step(j, f, &f->steps.data[i], &t))
            return false;
    j->teller->tally(j, &t);
    return t.agree > 0 ||
           diag_error(&s->x->c->diags, DIAG_DATA, src_loc_none(), "no result of an operator can be compared");
}

/* --- the verb --- */

static bool run_oracle(verify_judge *j, uint32_t which)
{
    process p;
    j->s->oracle = which;
    j->options = NULL;
    if (!reference_start(j->s, j->s->options.show_values ? "nodes" : "once", 1, &p))
        return false;
    process_end(&p);
    j->options = reference_options(j->s);
    return true;
}

/* Elements of all outputs: how many are not what the reference says, and how many are as the second of two steps. */
typedef struct agreement {
    int64_t wrong, ties; /* wrong -1: there is no way to compare */
    bool far;            /* some is farther off than the last digits of a float, within the tolerance as it is */
} agreement;

#define LAST_DIGITS 256 /* ULPs: a float softmax of equal numbers */

static const agreement incomparable = {.wrong = -1};

/* Nothing is said about it. */
static agreement count_wrong(verify_judge *j)
{
    diags *d = &j->s->x->c->diags;
    diags_mark mark = diags_get_mark(d);
    agreement a = {0};
    for (uint32_t i = 0; i < j->s->model.n_outputs && a.wrong >= 0; i++) {
        compare_result r;
        a.wrong = compare_output(j, i, reference_output(j->s, i), false, &r) ? a.wrong + r.wrong : -1;
        a.ties += j->ties;
        a.far |= a.wrong >= 0 && r.max_ulp > LAST_DIGITS;
    }
    diags_reset(d, mark);
    return a;
}

static bool is_nearer(agreement a, agreement b)
{
    if (a.wrong < 0 || b.wrong < 0)
        return a.wrong >= 0;
    return a.wrong != b.wrong ? a.wrong < b.wrong : a.ties != b.ties ? a.ties < b.ties : a.far < b.far;
}

static bool agrees(agreement a)
{
    return a.wrong == 0 && a.ties == 0 && !a.far;
}

/* A model in integers is right when it agrees with one of onnxruntime's ways to run it, best without ties; where it
 * agrees with none, that one counts that is nearest. Not every model runs in all of them: the error of the first is
 * told where none does. */
static bool run_reference(verify_judge *j)
{
    diags *d = &j->s->x->c->diags;
    const diags_mark before = diags_get_mark(d);
    bool found = run_oracle(j, 0);
    if (!found && !j->s->refused)
        return false; /* there is no onnxruntime */
    const uint32_t count = reference_oracles(j->s);
    agreement least = found && count > 1 ? count_wrong(j) : incomparable;
    uint32_t best = 0;
    for (uint32_t i = 1; i < count && !agrees(least); i++) {
        const diags_mark mark = diags_get_mark(d);
        const bool runs = run_oracle(j, i);
        const agreement now = runs ? count_wrong(j) : incomparable;
        diags_reset(d, mark);
        if (!runs || (found && !is_nearer(now, least)))
            continue;
        found = true;
        least = now;
        best = i;
    }
    if (!found)
        return false;
    diags_reset(d, before);
    return (best == j->s->oracle && j->options) || run_oracle(j, best);
}

/* --- many samples --- */

typedef struct sample {
    const char *dir;
    run_tensor *outputs;
    agreement least;
    uint32_t oracle; /* the one it agrees with best */
} sample;

const char *verify_sample_name(const session *s, uint32_t at)
{
    long seed = 0;
    (void)ask_number(s->x, OPT_SEED, 0, 2147483647, 0, &seed);
    if (s->steps)
        return arena_printf(&s->x->c->mem, "step %u", at);
    if (s->rows)
        return arena_printf(&s->x->c->mem, "sample %u", at);
    return s->data_sets ? arena_printf(&s->x->c->mem, "test_data_set_%u", at)
                        : arena_printf(&s->x->c->mem, "seed %ld", seed + (long)at);
}

static bool count_sample(verify_judge *j, uint32_t at, verify_total *totals)
{
    session *s = j->s;
    if (j->has_oracle || j->from_data) {
        const verify_teller *teller = j->teller;
        verify_teller silent = *teller;
        silent.list = NULL;
        j->teller = &silent;
        const bool same = judge_lists(j);
        j->teller = teller;
        if (!same)
            return false;
    }
    for (uint32_t i = 0; i < s->model.n_outputs; i++) {
        const uint32_t place = run_output_from(&s->model, i).place;
        const char *file = j->has_oracle ? NULL
                           : j->options ? reference_output(s, i)
                                        : session_data_file(s, "output", place);
        verify_total *t = &totals[i];
        compare_result r;
        if (!j->has_oracle && !file)
            return no_output(s, place);
        if (!compare_output(j, i, file, !j->has_oracle && !j->options, &r))
            return false;
        t->wrong += r.wrong > 0;
        t->ties += j->ties;
        const bool more = (r.wrong > 0) != (t->worst.wrong > 0) ? r.wrong > 0 : r.max_abs > t->worst.max_abs;
        if (at > 0 && !more)
            continue;
        t->worst = r;
        t->at = at;
    }
    return true;
}

bool verify_next_way(const verify_judge *j, uint32_t *at, const char **out_way, uint32_t *out_samples)
{
    session *s = j->s;
    const uint32_t count = j->ways ? reference_oracles(s) : 0, now = s->oracle;
    while (*at < count && j->ways[*at] == 0)
        ++*at;
    if (*at >= count)
        return false;
    s->oracle = *at;
    *out_way = reference_options(s);
    *out_samples = j->ways[*at];
    s->oracle = now;
    ++*at;
    return true;
}

/* One of onnxruntime's ways, for all samples that agree with none before. */
static bool run_oracle_on(verify_judge *j, uint32_t which, sample *samples, bool first)
{
    session *s = j->s;
    compiler *c = s->x->c;
    const char *list = "";
    for (uint32_t k = 0; k < s->samples; k++)
        if (first || s->steps || !agrees(samples[k].least)) /* a step needs those before it */
            list = arena_printf(&c->mem, "%s%s\n", list, samples[k].dir);
    if (!*list)
        return true;
    s->sample_list = list;
    const bool runs = run_oracle(j, which);
    s->sample_list = NULL;
    for (uint32_t k = 0; runs && k < s->samples; k++) {
        sample *x = &samples[k];
        if (!strstr(list, arena_printf(&c->mem, "%s\n", x->dir)))
            continue;
        s->sample_dir = x->dir;
        s->model.outputs = x->outputs;
        const agreement now = count_wrong(j);
        if (!is_nearer(now, x->least))
            continue;
        x->least = now;
        x->oracle = which;
    }
    return runs;
}

static bool run_references(verify_judge *j, sample *samples, verify_total *totals)
{
    session *s = j->s;
    diags *d = &s->x->c->diags;
    const diags_mark before = diags_get_mark(d);
    bool found = run_oracle_on(j, 0, samples, true);
    if (!found && !s->refused)
        return false;
    const uint32_t count = reference_oracles(s);
    for (uint32_t i = 1; i < count; i++) {
        const diags_mark mark = diags_get_mark(d);
        found |= run_oracle_on(j, i, samples, false);
        diags_reset(d, mark);
    }
    if (!found)
        return false;
    diags_reset(d, before);
    j->ways = arena_array(&s->x->c->mem, uint32_t, count);
    memset(j->ways, 0, count * sizeof *j->ways);
    for (uint32_t k = 0; k < s->samples; k++) {
        s->oracle = samples[k].oracle;
        j->ways[s->oracle]++;
        j->options = reference_options(s);
        s->sample_dir = samples[k].dir;
        s->model.outputs = samples[k].outputs;
        if (!count_sample(j, k, totals))
            return false;
    }
    return true;
}

/* What the sample's run gave, and a folder with its inputs for onnxruntime. */
static bool keep_sample(session *s, uint32_t at, sample *out)
{
    compiler *c = s->x->c;
    *out = (sample){.least = incomparable};
    out->dir = arena_printf(&c->mem, "%s/sample_%u", s->scratch, at);
    out->outputs = arena_array(&c->mem, run_tensor, s->model.n_outputs + 1u);
    for (uint32_t i = 0; i < s->model.n_outputs; i++) {
        run_tensor *t = &out->outputs[i];
        *t = s->model.outputs[i];
        t->data = arena_try_alloc(&c->mem, t->bytes + 1, 64);
        if (!t->data)
            return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for output '%s'", t->name);
        memcpy(t->data, s->model.outputs[i].data, t->bytes);
    }
    s->sample_dir = out->dir;
    return file_make_dirs(&c->diags, out->dir) && reference_keep_inputs(s);
}

static bool run_oracle_model(verify_judge *j, bool first)
{
    session *s = j->s;
    if (first)
        return reference_is(s->x, "c") ? session_run_as_c(s, &j->oracle) : session_interpret(s, &j->oracle);
    for (uint32_t i = 0; i < s->model.n_inputs; i++)
        j->oracle.in[i] = s->model.inputs[i].data;
    for (uint32_t i = 0; i < s->model.n_extents; i++)
        j->oracle.extents[i].value = s->model.extents[i].value;
    return (s->steps || run_reset(s->x->c, &j->oracle)) && run_call_seen(s->x->c, &j->oracle);
}

/* The model is built; it runs on one sample after the other, and so does what it is compared with. */
static bool judge_samples(verify_judge *j, bool against)
{
    session *s = j->s;
    compiler *c = s->x->c;
    verify_total *totals = NULL;
    sample *samples = arena_array(&c->mem, sample, s->samples);
    uint32_t n_outputs = 0;
    for (uint32_t k = 0; k < s->samples; k++) {
        s->data = s->data_sets ? session_data_set(s, k) : s->data;
        if ((k > 0 && !(session_fill(s, k) && (s->steps || run_reset(c, &s->model)))) || !session_call(s))
            return false;
        if (k == 0) { /* elements of sequences count, too */
            n_outputs = s->model.n_outputs;
            totals = arena_array(&c->mem, verify_total, n_outputs + 1u);
            memset(totals, 0, n_outputs * sizeof *totals);
        }
        if (s->model.n_outputs != n_outputs)
            return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(), "%s gives sequences of another length than "
                              "the first; compare it alone", verify_sample_name(s, k));
        if (against && !j->has_oracle ? !keep_sample(s, k, &samples[k])
                                      : (j->has_oracle && !run_oracle_model(j, k == 0)) || !count_sample(j, k, totals))
            return false;
    }
    if (against && !j->has_oracle && !run_references(j, samples, totals))
        return false;
    bool ok = true;
    j->teller->ways(j);
    for (uint32_t i = 0; i < s->model.n_outputs; i++) {
        const verify_total *t = &totals[i];
        j->teller->total(j, &s->model.outputs[i], t);
        const char *what = arena_printf(&c->mem, "%u of %u %s are wrong; %s, output", t->wrong, s->samples,
                                        s->steps ? "steps" : "samples", verify_sample_name(s, t->at));
        ok &= t->wrong == 0 || mismatch(j, &s->model.outputs[i], &t->worst, what, t->at);
    }
    return ok;
}

static bool check_options(const ask *x)
{
    bool against = ask_has(x, OPT_AGAINST);
    if (x->args.len > 1 && !ask_model(x))
        return false;
    if (!against && !ask_has(x, OPT_DATA))
        return ask_usage_error(x, "give --data DIR, or " REFERENCE_ALL, "nothing to compare with");
    if ((!against || reference_is(x, "c")) && ask_has(x, OPT_PER_NODE))
        return ask_usage_error(x, "give --against onnxruntime or interpreter",
                               "--per-node: %s has no results of single operators", against ? "C" : "--data");
    if (ask_has(x, OPT_SEEDS) && ask_has(x, OPT_PER_NODE))
        return ask_usage_error(x, "give --seed N, with the seed whose result is wrong",
                               "--per-node runs one sample, --seeds many");
    if (ask_has(x, OPT_STEPS) && ask_has(x, OPT_PER_NODE))
        return ask_usage_error(x, "leave --steps out: --per-node compares the first step",
                               "--per-node runs one sample, --steps several");
    if (ask_has(x, OPT_SEEDS) && !against)
        return ask_usage_error(x, "give " REFERENCE_ALL,
                               "--seeds has nothing to compare with");
    if (reference_is(x, "c") && ask_has(x, OPT_EMULATOR))
        return ask_usage_error(x, "give --against onnxruntime (tflm or litert for .tflite files) or interpreter",
                               "--against c builds for this machine, and $CC is for another one");
    return !(reference_is(x, "interpreter") && ask_has(x, OPT_INTERPRET)) ||
           ask_usage_error(x, "leave --interpret out", "the interpreter would be compared with itself");
}

static bool tell_end(verify_judge *j)
{
    return !j->teller->end || j->teller->end(j);
}

/* The one sample: what it is compared with, and all results or those of each node. */
static bool judge_sample(verify_judge *j, bool against)
{
    session *s = j->s;
    if (!session_call(s))
        return false;
    if (against && !(j->has_oracle ? run_oracle_model(j, true) : run_reference(j)))
        return false;
    return j->teller->device(s) && (s->options.show_values ? judge_nodes(j) : judge_outputs(j, !against));
}

bool verify(ask *x, const verify_teller *teller)
{
    session s = {.x = x};
    bool against = ask_has(x, OPT_AGAINST);
    verify_judge j = {.s = &s, .teller = teller, .from_data = !against};
    if (!reference_check(x) || !ask_real(x, OPT_RTOL, COMPARE_RTOL, &j.rtol) ||
        !ask_real(x, OPT_ATOL, -1, &j.atol) || !check_options(x))
        return false;
    j.has_oracle = against && !reference_title(x);
    bool ok = session_open(x, &s);
    if (ok && s.samples > 1 && s.options.show_values)
        ok = ask_usage_error(x, "give one of them", "--per-node runs one sample, and --data has %u", s.samples);
    ok = ok && (s.samples > 1 ? judge_samples(&j, against) : judge_sample(&j, against)) && teller->run(&s);
    ok = tell_end(&j) && ok;
    run_unload(&j.oracle);
    session_close(&s);
    return ok;
}
