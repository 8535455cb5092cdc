/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a model for running. A package folder is built. A model file is compiled first, for this machine. Dynamic
 * dimensions come from the data that is given. */
#include "api/session.h"

#include "api/samples.h"
#include "driver/profile.h"

#include "api/remote.h"
#include "driver/format.h"
#include "driver/run_module.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "driver/format.h"

const char *session_data_file(const session *s, const char *kind, uint32_t i)
{
    const char *path = arena_printf(&s->x->c->mem, "%s/%s_%u.pb", s->data, kind, i);
    return file_exists(path) ? path : NULL;
}

const char *session_data_set(const session *s, uint32_t sample)
{
    return arena_printf(&s->x->c->mem, "%s/test_data_set_%u", s->data_sets, sample);
}

/* What --input says of that name; NULL: nothing. */
static const char *given_file(const session *s, const char *name)
{
    const ask_strings *given = &s->x->values[OPT_INPUT];
    size_t n = strlen(name);
    for (uint32_t k = given->len; k-- > 0;)
        if (strncmp(given->data[k], name, n) == 0 && given->data[k][n] == '=')
            return given->data[k] + n + 1;
    return NULL;
}

/* The file for input i of the model; NULL: none is given. */
static const char *input_file(const session *s, const char *name, uint32_t i)
{
    const char *given = given_file(s, name);
    return given ? given : s->data ? session_data_file(s, "input", i) : NULL;
}

/* The file for a tensor that is taken. *out_list: that of the sequence or optional that it is an element of; NULL: the
 * file is the tensor's own. */
static const char *tensor_file(session *s, uint32_t i, const list_io **out_list, uint32_t *out_element)
{
    const run_from from = run_input_from(&s->model, i);
    const char *own = given_file(s, s->model.inputs[i].name);
    *out_list = own && !(from.list && strcmp(from.list->name, s->model.inputs[i].name) == 0) ? NULL : from.list;
    *out_element = from.element;
    return own ? own : input_file(s, from.list ? from.list->name : s->model.inputs[i].name, from.place);
}

/* The elements in a file, which stay for the next one. */
static const tensor_list *read_list(session *s, const char *file, const list_io *l)
{
    if (s->list && strcmp(s->list_file, file) == 0)
        return s->list;
    s->list = NULL;
    tensor_list *all = arena_new(&s->x->c->mem, tensor_list);
    if (!tensor_file_list(s->x->c, file, l, all) || !run_list_fits(s->x->c, file, l, all))
        return NULL;
    s->list_file = file;
    return s->list = all;
}

/* Lists without elements have no tensor whose file is read. */
static bool check_empty_lists(session *s)
{
    for (uint32_t i = 0; i < s->model.n_lists; i++) {
        const list_io *l = &s->model.lists[i];
        const char *file = l->is_input && l->n_parts == 0 ? input_file(s, l->name, l->place) : NULL;
        if (file && !read_list(s, file, l))
            return false;
    }
    return true;
}

/* --- dynamic dimensions
 * ------------------------------------------------------------------------------------------------ */

static const char *file_of(const void *s, const char *name, uint32_t i)
{
    return input_file(s, name, i);
}

static bool shapes_from_data(session *s)
{
    if (s->rows)
        return samples_fix_shapes(s->rows, s->path, &s->options);
    return !(ask_has(s->x, OPT_INPUT) || s->data) ||
           samples_shapes_from_files(s->x->c, s->path, file_of, s, s->steps > 0 ? SAMPLES_STEPS : SAMPLES_WHOLE,
                                     &s->options);
}

/* --- opening
 * ------------------------------------------------------------------------------------------------------------- */

/* A package or a module is compiled already: options of the compiler would be without effect. */
static bool check_late_options(const session *s, const char *kind)
{
    ask_option o = ask_find_early(s->x, 0);
    if (o == OPT_TARGET && s->options.board) /* where it runs */
        o = ask_find_early(s->x, OPT_TARGET + 1);
    return o == OPT_COUNT || ask_usage_error(s->x, "give it to 'lathe compile', or name the ONNX file instead",
                                             "'%s' is a %s and already compiled: --%s has no effect", s->path, kind,
                                             ask_option_name(o));
}

static bool above_limit(const session *s, const run_extent *x, int64_t value)
{
    return ask_usage_error(s->x, arena_printf(&s->x->c->mem, "compile the model with a larger limit: --dim '%s<=%lld'",
                                              x->name, (long long)value),
                           "--dim %s=%lld: the limit of this %s is %lld", x->name, (long long)value,
                           s->model.module ? "module" : "package", (long long)x->most);
}

/* --dim of a package: the extents of this run. */
static bool state_extents(session *s)
{
    for (uint32_t i = 0; i < s->options.n_dims; i++) {
        const dim_binding *d = &s->options.dims[i];
        const char *names = "";
        bool known = false;
        for (uint32_t k = 0; k < s->model.n_extents; k++) {
            run_extent *x = &s->model.extents[k];
            names = arena_printf(&s->x->c->mem, "%s%s%s", names, k ? ", " : "", x->name);
            if (strcmp(x->name, d->name) != 0)
                continue;
            known = true;
            x->value = d->dims[0];
            if (d->is_bound)
                return ask_usage_error(s->x, arena_printf(&s->x->c->mem, "give --dim %s=N", x->name),
                                       "--dim: '<=' is for 'lathe compile'; here %s needs one number", x->name);
            if (x->most >= 0 && d->dims[0] > x->most)
                return above_limit(s, x, d->dims[0]);
        }
        const char *hint = s->model.n_extents ? arena_printf(&s->x->c->mem, "open extents are: %s", names)
                                              : "give it to 'lathe compile', or name the ONNX file instead";
        if (!known)
            return ask_usage_error(s->x, hint, "'%s' is a %s and already compiled, and has no open extent '%s'",
                                   s->path, s->model.module ? "module" : "package", d->name);
    }
    return true;
}

/* Options that steer only the machine of modules. */
static bool check_module_options(const session *s)
{
    static const struct {
        ask_option option;
        const char *name;
    } only[] = {{OPT_META, "meta"}, {OPT_NO_JIT, "no-jit"}, {OPT_KEEP_SOURCES, "keep-sources"}, {OPT_TRACE, "trace"}};
    bool object;
    if (!format_is_object(s->x->c, s->path, &object))
        return false;
    const bool module = compile_makes(&s->options, BACKEND_MODULE) || object;
    if (module && ask_has(s->x, OPT_PER_NODE))
        return ask_usage_error(s->x, "name the ONNX file, without --emit", "--per-node is for packages");
    if (module && ask_has(s->x, OPT_KEEP))
        return ask_usage_error(s->x, "lathe compile --emit module -o FILE writes it",
                               "--keep is for packages, not for modules");
    if (module && ask_has(s->x, OPT_EMULATOR))
        return ask_usage_error(s->x, "use only one of them",
                               "--emulator runs packages, and a module runs in this program");
    if (module && !s->remote && target_cross_cc(s->options.target))
        return ask_usage_error(s->x, "lathe compile makes a module for it, and --remote runs it there",
                               "--target: a module for %s cannot run on this machine",
                               s->options.target->name);
    if (!compile_makes(&s->options, BACKEND_C) && !module)
        return ask_usage_error(s->x, "use --emit c or --emit module", "--emit %s makes nothing that can be run",
                               compile_emit_name(&s->options));
    for (size_t i = 0; i < sizeof only / sizeof *only && !module; i++)
        if (ask_has(s->x, only[i].option))
            return ask_usage_error(s->x, "name a module, or add --emit module", "--%s is for modules", only[i].name);
    return true;
}

static bool open_module(session *s, const char *path)
{
    long workers;
    if (s->remote)
        return run_open_remote(s->x->c, path, &s->where, &s->model);
    if (!ask_workers(s->x, &workers))
        return false;
    const run_module_options o = {.workers = workers < 0 ? 0 : workers == 0 ? 1 : (uint32_t)workers,
                                  .no_jit = ask_has(s->x, OPT_NO_JIT),
                                  .trace = ask_has(s->x, OPT_TRACE),
                                  .keep_sources = ask_get(s->x, OPT_KEEP_SOURCES, NULL),
                                  .meta = ask_get(s->x, OPT_META, NULL)};
    return run_open_module(s->x->c, path, &o, &s->model);
}

bool session_open_interpreter(session *s, run_model *out)
{
    if (!run_open_interpreter(s->x->c, s->result.prog, out))
        return false;
    out->lists = s->result.graph ? s->result.graph->lists.data : NULL;
    out->n_lists = s->result.graph ? s->result.graph->lists.len : 0;
    if (s->result.graph)
        run_mark_texts(out, s->result.graph);
    out->shows_values = s->options.show_values;
    return true;
}

/* No option asks for what only a package has. */
static bool may_be_module(const session *s)
{
    static const ask_option packages[] = {OPT_EMIT, OPT_INTERPRET, OPT_KEEP, OPT_PER_NODE, OPT_EMULATOR};
    bool may = s->x->verb == VERB_RUN || s->x->verb == VERB_VERIFY;
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        may &= !ask_has(s->x, packages[i]);
    return may && !s->remote && !s->is_computation && !s->options.board && !target_cross_cc(s->options.target);
}

/* A package plans the memory of every value. Where only a run knows how large one is, a module runs instead. */
static bool compile(session *s)
{
    diags *d = &s->x->c->diags;
    const diags_mark before = diags_get_mark(d);
    const compile_result none = s->result;
    if (pipeline_compile(s->x->c, s->path, &s->options, &s->result))
        return true;
    bool unbounded = may_be_module(s);
    for (const diag *x = before.last ? before.last->next : d->first; x; x = x->next)
        unbounded &= x->level != DIAG_ERROR || x->code == DIAG_UNBOUNDED;
    if (!unbounded)
        return false;
    diags_reset(d, before);
    s->result = none;
    compile_set_emit(&s->options, EMIT_MODULE);
    diag_note(d, DIAG_DATA, src_loc_none(),
              "only a run knows how large some values are: a module runs, not a package (--emit module)");
    return pipeline_compile(s->x->c, s->path, &s->options, &s->result);
}

/* The folder of a package. */
static bool open_folder(session *s)
{
    compiler *c = s->x->c;
    if (s->remote)
        return ask_usage_error(s->x, "name the ONNX file, or a module",
                               "'%s' is a package; a remote device runs modules", s->path);
    s->package = s->path;
    return format_folder(c, s->options.verb, s->path) && check_late_options(s, "package") &&
           run_open_package(c, s->path, s->options.board, &s->model) && state_extents(s);
}

/* What has been compiled, as a package or a module that runs. */
static bool open_artifact(session *s, const char *keep)
{
    compiler *c = s->x->c;
    if (s->result.artifact.is_file) {
        const artifact_file *f = &s->result.artifact.files.data[0];
        const char *file = path_join(&c->mem, s->scratch, "module.so");
        return compiler_write_file(c, file, f->data, f->len) && open_module(s, file);
    }
    s->package = keep ? keep : path_join(&c->mem, s->scratch, "package");
    return artifact_write(c, &s->result.artifact, s->package, keep != NULL) &&
           run_open_package(c, s->package, s->options.board, &s->model);
}

static bool open_model(session *s)
{
    compiler *c = s->x->c;
    if (file_is_dir(s->path))
        return open_folder(s);
    bool object;
    if (!format_is_object(c, s->path, &object))
        return false;
    if (object)
        return check_late_options(s, "module") && open_module(s, s->path) && state_extents(s);
    if (!pipeline_is_computation(c, s->path, &s->options, &s->is_computation))
        return false;
    if (s->is_computation && reference_title(s->x))
        return ask_usage_error(s->x, "lathe verify --against interpreter, or lathe run --against interpreter or c",
                               "%s cannot run a computation", reference_title(s->x));
    if (s->is_computation && s->options.device)
        return session_open_vta(s);
    if (!s->is_computation && !shapes_from_data(s))
        return false;
    const char *keep = ask_get(s->x, OPT_KEEP, NULL);
    if (ask_has(s->x, OPT_INTERPRET))
        compile_set_emit(&s->options, EMIT_PROG);
    if ((keep && !artifact_check_place(c, keep, s->path)) || !compile(s))
        return false;
    return ask_has(s->x, OPT_INTERPRET) ? session_open_interpreter(s, &s->model) : open_artifact(s, keep);
}

/* --- inputs
 * -------------------------------------------------------------------------------------------------------------- */

static bool check_names(session *s)
{
    const ask_strings *given = &s->x->values[OPT_INPUT];
    for (uint32_t k = 0; k < given->len; k++) {
        bool known = false, again = false;
        const char *names = "";
        for (uint32_t i = 0; i < s->model.n_inputs; i++) {
            const char *name = s->model.inputs[i].name;
            size_t n = strlen(name) + 1;
            bool here = strncmp(given->data[k], name, n - 1) == 0 && given->data[k][n - 1] == '=';
            for (uint32_t j = 0; here && j < k; j++)
                again |= strncmp(given->data[j], given->data[k], n) == 0;
            known |= here;
            names = arena_printf(&s->x->c->mem, "%s%s'%s'", names, i ? ", " : "", name);
        }
        for (uint32_t i = 0; i < s->model.n_lists && !known; i++) {
            const char *name = s->model.lists[i].name;
            known = s->model.lists[i].is_input && strncmp(given->data[k], name, strlen(name)) == 0 &&
                    given->data[k][strlen(name)] == '=';
        }
        if (!known) {
            nearest near = nearest_to(given->data[k], strcspn(given->data[k], "="));
            for (uint32_t i = 0; i < s->model.n_inputs; i++)
                nearest_offer(&near, s->model.inputs[i].name);
            const char *question = nearest_question(&near, "", &s->x->c->mem);
            const char *inputs = arena_printf(&s->x->c->mem, "the model's inputs: %s", *names ? names : "none");
            if (s->model.n_inputs > 0 && !strchr(given->data[k], '='))
                return ask_usage_error(s->x, arena_printf(&s->x->c->mem, "for example --input %s=%.200s; %s",
                                                          s->model.inputs[0].name, given->data[k], inputs),
                                       "--input: '%.200s' has no NAME=", given->data[k]);
            return ask_usage_error(s->x, arena_printf(&s->x->c->mem, "%s%s", question, inputs),
                                   "--input: the model has no input '%.*s'", (int)strcspn(given->data[k], "="),
                                   given->data[k]);
        }
        if (again)
            return ask_usage_error(s->x, "give each input once", "--input: '%.200s' is given a second time",
                                   given->data[k]);
    }
    return true;
}

/* A shape that a function takes, as integers of 64 bits in a file. */
static bool read_extents(session *s, const run_tensor *t, const char *file)
{
    int64_t dims[TYPE_MAX_RANK];
    run_tensor list = {.name = t->name, .dt = DT_I64, .rank = 1, .dims = {t->rank}, .count = t->rank,
                       .bytes = t->rank * sizeof *dims, .data = (uint8_t *)dims};
    if (!tensor_file_read(s->x->c, file, &list))
        return false;
    for (uint32_t k = 0; k < t->rank; k++)
        if (t->most[k] >= 0 && dims[k] != t->most[k])
            return diag_error(&s->x->c->diags, DIAG_DATA, src_loc_none(), "'%s' has extent %lld at axis %u; input "
                              "'%s' takes %lld", file, (long long)dims[k], k, t->name, (long long)t->most[k]);
    return !t->open || run_bind(s->x->c, &s->model, t, t->rank, dims);
}

/* The extents of this run, from the files that say their shape. */
static bool sizes_from_files(session *s)
{
    for (uint32_t i = 0; i < s->model.n_inputs; i++) {
        const run_tensor *t = &s->model.inputs[i];
        const list_io *list = NULL;
        uint32_t element = 0;
        const char *file = t->open || t->is_shape ? tensor_file(s, i, &list, &element) : NULL;
        const tensor_list *all = file && list ? read_list(s, file, list) : NULL;
        int64_t dims[TYPE_MAX_RANK];
        uint32_t rank;
        dtype dt;
        if (file && list) {
            if (!all || (tensor_file_element_shape(all, element, &rank, dims) &&
                         !run_bind(s->x->c, &s->model, t, rank, dims)))
                return false;
            continue;
        }
        if (file && t->is_shape && !read_extents(s, t, file))
            return false;
        if (file && !t->is_shape && tensor_file_peek(s->x->c, file, t->name, &dt, &rank, dims)) {
            const uint32_t front = s->steps > 0 && rank == t->rank + 1; /* the steps */
            if (!run_bind(s->x->c, &s->model, t, rank - front, dims + front))
                return false;
        }
    }
    return run_size_inputs(s->x->c, &s->model);
}

static bool no_data(const session *s, uint32_t i, const char *name)
{
    compiler *c = s->x->c;
    const char *below = path_join(&c->mem, s->data, "test_data_set_0");
    diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has no input_%u.pb for input '%s'", s->data, i, name);
    if (file_is_dir(below))
        diag_hint(&c->diags, "it holds data sets: --data %s", below);
    else
        diag_hint(&c->diags, "such a folder has input_0.pb, input_1.pb, ... in the order of the model's inputs; "
                             "--input NAME=FILE gives one input");
    return false;
}

enum { MOST_ROUNDS = 4 };

/* The greatest random integer of each input, -1: of all that it can be. Those that steer branches and loops get more
 * than a bit, so that loops are run several times; they are single numbers. */
static const int64_t *random_integers(const session *s)
{
    compiler *c = s->x->c;
    const prog_func *f = s->result.prog ? prog_find(s->result.prog, "main") : NULL;
    int64_t *most = arena_array(&c->mem, int64_t, s->model.n_inputs + 1u);
    bool *steers = arena_array(&c->mem, bool, f ? f->n_inputs + 1u : 1);
    if (f)
        prog_find_steering(c, f, steers);
    for (uint32_t i = 0; i < s->model.n_inputs; i++) {
        const run_tensor *t = &s->model.inputs[i];
        const bool steering = f && i < f->n_inputs && steers[i] && t->count == 1 && t->dt != DT_BOOL;
        most[i] = s->is_computation ? -1 : steering ? MOST_ROUNDS : tensor_file_random_most(t->dt);
    }
    return most;
}

/* The numbers of a quantised model's input span what is quantised of it: normal ones stay near 0. */
static void random_numbers(const session *s, run_tensor *t, uint64_t *state, int64_t most)
{
    for (uint32_t i = 0; i < s->result.n_spans; i++)
        if (strcmp(s->result.spans[i].name, t->name) == 0 && dtype_is_float(t->dt)) {
            tensor_file_uniform(t, state, s->result.spans[i].least, s->result.spans[i].most);
            return;
        }
    tensor_file_random(t, state, most);
}

/* Extents of a shape that nobody has stated are 1, as those of other inputs; here they are the input. */
static void note_shape(const session *s, const run_tensor *t)
{
    for (uint32_t k = 0; t->open && k < t->rank; k++)
        for (uint32_t i = 0; i < s->model.n_extents; i++)
            if (s->stated[i] < 0 && t->most[k] < 0 &&
                strcmp(s->model.extents[i].name, dim_symbol_name(t->open[k])) == 0) {
                diag_note(&s->x->c->diags, DIAG_DATA, src_loc_none(),
                          "the shape %s is %s; --dim %s=N or --input %s=FILE gives another one", t->name,
                          tensor_file_dims(&s->x->c->mem, t->rank, t->dims), s->model.extents[i].name, t->name);
                return;
            }
}

/* Says which inputs are random, `names`, and how to set the first one. */
static void note_random(const session *s, const char *names, const char *first, long seed)
{
    arena *a = &s->x->c->mem;
    const bool several = strchr(names, ',') != NULL;
    diag_note(&s->x->c->diags, DIAG_DATA, src_loc_none(), "%s %s random (seed%s %ld%s); set %s with --input %s=FILE",
              several ? arena_printf(a, "inputs %s", names) : arena_printf(a, "input %s", names),
              several ? "are" : "is", s->samples > 1 ? "s" : "", seed,
              s->samples > 1 ? arena_printf(a, " to %ld", seed + (long)s->samples - 1) : "", several ? "them" : "it",
              first);
}

/* The numbers of input t from a file: of this sample, or of one element of a list. */
static bool fill_from_file(session *s, const char *file, uint32_t sample, const list_io *list, uint32_t element,
                           run_tensor *t)
{
    if (!list)
        return tensor_file_read_step(s->x->c, file, sample, s->steps, t);
    const tensor_list *all = read_list(s, file, list);
    return all && tensor_file_read_element(s->x->c, file, all, element, t);
}

bool session_fill(session *s, uint32_t sample)
{
    long seed;
    bool more;
    if (!ask_number(s->x, OPT_SEED, 0, 2147483647, 0, &seed) || (sample == 0 && !check_names(s)))
        return false;
    for (uint32_t i = 0; i < s->model.n_extents; i++)
        s->model.extents[i].value = s->stated[i];
    if (s->rows)
        return samples_next(s->rows, &s->model, &more);
    if (!check_empty_lists(s) || !sizes_from_files(s))
        return false;
    const char *random = NULL, *first = NULL;
    uint64_t state = (uint64_t)seed + sample;
    const int64_t *most = random_integers(s);
    for (uint32_t i = 0; i < s->model.n_inputs; i++) {
        run_tensor *t = &s->model.inputs[i];
        const list_io *list = NULL;
        uint32_t element = 0;
        const char *file = tensor_file(s, i, &list, &element);
        if (t->is_shape && !file && sample == 0)
            note_shape(s, t);
        if (t->is_shape)
            continue;
        if (file) {
            if (!fill_from_file(s, file, sample, list, element, t))
                return false;
            continue;
        }
        if (s->data)
            return no_data(s, run_input_from(&s->model, i).place, t->name);
        random = arena_printf(&s->x->c->mem, "%s%s%s", random ? random : "", random ? ", " : "", t->name);
        first = first ? first : t->name;
        random_numbers(s, t, &state, most[i]);
    }
    if (random && sample == 0)
        note_random(s, random, first, seed);
    return true;
}

/* Before the package is built: what is wrong with an input is said at once. */
static bool fill(session *s)
{
    s->stated = arena_array(&s->x->c->mem, int64_t, s->model.n_extents + 1u);
    for (uint32_t i = 0; i < s->model.n_extents; i++)
        s->stated[i] = s->model.extents[i].value;
    if (s->rows && !samples_count(s->rows, &s->model, &s->samples))
        return false;
    if (s->rows)
        samples_warn_of_equal(s->rows, "the comparison says little");
    return session_fill(s, 0);
}

/* --seeds, --steps, or data sets in folders of one: how many samples there are. */
static bool count_samples(session *s)
{
    long seeds, steps;
    s->samples = 1;
    if (!ask_number(s->x, OPT_SEEDS, 1, 100000, 1, &seeds) || !ask_number(s->x, OPT_STEPS, 1, 100000, 1, &steps))
        return false;
    if (ask_has(s->x, OPT_STEPS) && (ask_has(s->x, OPT_SEEDS) || s->data))
        return ask_usage_error(s->x, "give the sequence with --input NAME=FILE, or --seed for random inputs",
                               "--steps and --%s cannot be combined", s->data ? "data" : "seeds");
    s->steps = ask_has(s->x, OPT_STEPS) ? (uint32_t)steps : 0;
    seeds = s->steps ? steps : seeds;
    if (s->data && (ask_has(s->x, OPT_SEEDS) || ask_has(s->x, OPT_SEED)))
        return ask_usage_error(s->x, "use only one of them", "--%s is for random inputs, and --data gives them",
                               ask_has(s->x, OPT_SEEDS) ? "seeds" : "seed");
    s->samples = (uint32_t)seeds;
    const char *first = s->data ? path_join(&s->x->c->mem, s->data, "test_data_set_0") : NULL;
    if (s->x->verb != VERB_VERIFY || !first || session_data_file(s, "input", 0) || !file_is_dir(first))
        return true;
    s->data_sets = s->data;
    s->data = first;
    while (file_is_dir(session_data_set(s, s->samples)))
        s->samples++;
    return true;
}

static bool check_emulator(const session *s)
{
    const ask *x = s->x;
    const char *command = ask_get(x, OPT_EMULATOR, NULL);
    if (s->steps > 1 && (command || s->options.board))
        return ask_usage_error(x, "leave --steps out, or run the model on this machine",
                               "--steps: an emulator starts anew for each run, so states would not go on");
    if (!command)
        return true;
    if (command[strspn(command, " \t")] == '\0')
        return ask_usage_error(x, "for example --emulator qemu-aarch64", "--emulator: no command");
    if (ask_has(x, OPT_INTERPRET))
        return ask_usage_error(x, "use only one of them", "--interpret needs no --emulator: it runs here");
    return ask_has(x, OPT_TARGET) || file_is_dir(s->path) ||
           ask_usage_error(x, "for example --target aarch64",
                           "--emulator needs --target, the target of the package");
}

/* What runs elsewhere is a module, for the vectors of that machine. */
static bool check_remote(session *s)
{
    if (!s->remote && (ask_has(s->x, OPT_KEY) || ask_has(s->x, OPT_TOKEN_FILE)))
        return ask_usage_error(s->x, "for example --remote 127.0.0.1:9090",
                               "--key and --token-file are for a remote device");
    if (!s->remote)
        return true;
    compile_set_emit(&s->options, EMIT_MODULE);
    if (!ask_has(s->x, OPT_TARGET))
        s->options.target = target_find("my_device");
    return remote_options(s->x, &s->where);
}

/* bench --profile: the package is built with hooks. */
static bool prepare_profile(session *s, long workers)
{
    if (!ask_has(s->x, OPT_OPERATORS))
        return true;
    if (!s->package)
        return ask_usage_error(s->x, "name the model or its package, without --emit", "--profile is for packages");
    const long own = (long)s->model.report->workers;
    return profile_prepare(s->x->c, s->scratch, (uint32_t)(workers < 0 ? own : workers), &s->model);
}

/* verify: --data names a file of samples, as those of quantize are. */
static bool open_rows(session *s)
{
    const char *path = s->data;
    if (ask_has(s->x, OPT_INPUT) || ask_has(s->x, OPT_SEEDS) || ask_has(s->x, OPT_SEED))
        return ask_usage_error(s->x, "use only one of them", "--data and --%s both give the "
                                                             "inputs", ask_has(s->x, OPT_INPUT)   ? "input"
                                               : ask_has(s->x, OPT_SEEDS) ? "seeds"
                                                                          : "seed");
    if (!ask_has(s->x, OPT_AGAINST))
        return ask_usage_error(s->x,
                               "give " REFERENCE_ALL ", or a folder with output_N.pb",
                               "--data: '%s' has only inputs, and no outputs to compare with", path);
    s->rows = arena_new(&s->x->c->mem, samples);
    s->data = NULL;
    return samples_open(s->x->c, path, s->rows);
}

/* --data names no folder: only verify takes a file. */
static bool open_data_file(session *s)
{
    diags *d = &s->x->c->diags;
    if (!file_exists(s->data)) {
        diag_error(d, DIAG_IO, src_loc_none(), "--data: there is no folder '%s'", s->data);
        if (strchr(s->data, '='))
            diag_hint(d, "--data takes a folder or a file, without a name; --input NAME=FILE gives one input");
        return false;
    }
    if (s->x->verb == VERB_VERIFY)
        return open_rows(s);
    diag_error(d, DIAG_IO, src_loc_none(), "--data: '%s' is a file, and 'lathe %s' takes a test_data_set_* folder",
               s->data, ask_verb_name(s->x->verb));
    diag_hint(d, "--input NAME=FILE gives one sample");
    return false;
}

/* Nodes are compared with onnxruntime's in the graph as it stands, with the values that the model has. */
static bool read_level(session *s)
{
    s->options.show_values = ask_has(s->x, OPT_PER_NODE);
    if (s->options.show_values && !ask_has(s->x, OPT_LEVEL) && reference_is(s->x, "onnxruntime"))
        s->options.opt_level = 0;
    return ask_check_level(s->x, s->options.opt_level);
}

bool session_open(ask *x, session *s)
{
    long workers;
    *s = (session){.x = x};
    s->path = ask_model(x);
    s->data = ask_get(x, OPT_DATA, NULL);
    s->remote = remote_asked(x);
    if (!s->path || !ask_compile_options(x, true, &s->options) || !check_remote(s))
        return false;
    if (!read_level(s))
        return false;
    if (s->data && !file_is_dir(s->data) && !open_data_file(s))
        return false;
    if (!ask_workers(x, &workers) || !count_samples(s))
        return false;
    if (!check_emulator(s) || !check_module_options(s) || !session_check_vta(s))
        return false;
    s->scratch = process_temp_dir(x->c);
    bool ok = s->scratch && open_model(s);
    s->model.shows_values = s->options.show_values;
    if (!s->options.board)
        s->model.emulator = ask_get(x, OPT_EMULATOR, NULL);
    return ok && fill(s) && prepare_profile(s, workers) && run_build(x->c, s->scratch, workers, &s->model);
}

bool session_call(session *s)
{
    return compiler_progress(s->x->c, "running", 0, 0) && run_call_seen(s->x->c, &s->model);
}

/* Room for output i of all samples; false after a diagnostic. */
static bool new_stack(session *s, uint32_t i, run_tensor *out)
{
    const run_tensor *t = &s->model.outputs[i];
    int64_t dims[TYPE_MAX_RANK + 1] = {s->samples};
    if (t->rank == TYPE_MAX_RANK)
        return diag_error(&s->x->c->diags, DIAG_DATA, src_loc_none(), "output '%s' has %u dimensions: its steps cannot "
                          "be stacked", t->name, t->rank);
    memcpy(dims + 1, t->dims, t->rank * sizeof *dims);
    *out = (run_tensor){.name = t->name, .dt = t->dt, .rank = t->rank + 1};
    run_set_dims(out, dims);
    out->most_bytes = out->bytes;
    out->data = arena_try_alloc(&s->x->c->mem, out->bytes + 1, 64);
    return out->data || diag_error(&s->x->c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                                   "no memory for the %zu bytes of '%s'", out->bytes, t->name);
}

bool session_call_all(session *s)
{
    run_tensor *all = arena_array(&s->x->c->mem, run_tensor, s->model.n_outputs + 1u);
    if (s->steps == 0)
        return session_call(s);
    if (s->model.n_lists > 0)
        return ask_usage_error(s->x, "run it once for each step", "--steps: the model has a sequence or an optional "
                                                                  "among its inputs or outputs");
    for (uint32_t k = 0; k < s->samples; k++) {
        if ((k > 0 && !session_fill(s, k)) || !session_call(s))
            return false;
        for (uint32_t i = 0; i < s->model.n_outputs; i++) {
            const run_tensor *t = &s->model.outputs[i];
            if (k == 0 && !new_stack(s, i, &all[i]))
                return false;
            if (memcmp(all[i].dims + 1, t->dims, t->rank * sizeof *t->dims) != 0)
                return diag_error(&s->x->c->diags, DIAG_DATA, src_loc_none(),
                                  "output '%s' has another shape in step %u: its steps cannot be stacked", t->name, k);
            memcpy(all[i].data + (size_t)k * t->bytes, t->data, t->bytes);
        }
    }
    s->model.outputs = all;
    return true;
}

bool session_interpret(session *s, run_model *out)
{
    if (!session_open_interpreter(s, out))
        return false;
    for (uint32_t i = 0; i < s->model.n_inputs; i++)
        out->in[i] = s->model.inputs[i].data;
    for (uint32_t i = 0; i < s->model.n_extents; i++)
        out->extents[i].value = s->model.extents[i].value;
    return run_call_seen(s->x->c, out);
}

void session_close(session *s)
{
    run_unload(&s->model);
    if (s->scratch)
        compiler_remove_temp_dir(s->x->c, s->scratch);
}
