/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a compile, and the options that steer it. */
#ifndef LATHE_DRIVER_PIPELINE_H
#define LATHE_DRIVER_PIPELINE_H
#include "codegen/backend.h"
#include "graph/graph.h"
#include "te/records.h"

typedef struct dim_binding {
    const char *name; /* symbol (--dim) or input (--shape) */
    bool is_bound; /* the symbol is at most that */
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
} dim_binding;

/* An input that is a constant: --bind. */
typedef struct input_binding {
    const char *name, *numbers;
} input_binding;

enum { COMPILE_MAX_WIDTHS = 8 };

/* The stage behind which a compile ends, in their order. */
typedef enum compile_stop { STOP_GRAPH, STOP_PROG, STOP_SCHEDULE, STOP_LOOPS, STOP_NEVER } compile_stop;

/* X(id, "--emit NAME", the artifact that it is on the way to, stop) */
#define COMPILE_EMITS(X)                                   \
    X(EMIT_C, "c", BACKEND_C, STOP_NEVER)                  \
    X(EMIT_MODULE, "module", BACKEND_MODULE, STOP_NEVER)   \
    X(EMIT_GRAPH, "graph", BACKEND_C, STOP_GRAPH)          \
    X(EMIT_PROG, "prog", BACKEND_C, STOP_PROG)             \
    X(EMIT_SCHEDULE, "schedule", BACKEND_C, STOP_SCHEDULE) \
    X(EMIT_LOOPS, "tir", BACKEND_C, STOP_LOOPS)
typedef enum compile_emit {
#define X(id, name, artifact, stop) id,
    COMPILE_EMITS(X)
#undef X
} compile_emit;

typedef struct compile_options {
    const char *verb; /* of the command line, for messages about files that it does not take */
    backend artifact;
    compile_stop stop;
    const char *module_name;
    const package_port *port; /* what a package runs on */
    const ecosystem *as;      /* what a package is laid out for; NULL: see codegen_unit */
    const ecosystem_board *example_board; /* of --example; else NULL */
    const char *host; /* of a module's file */
    bool with_interpreter; /* a module holds its loops as text, too */
    uint32_t widths[COMPILE_MAX_WIDTHS], n_widths; /* bytes of vectors that it is for; none: all of the target's */
    const struct target *target; /* NULL: default */
    int opt_level;
    bool no_winograd, no_split_data; /* see pass_options */
    const struct offload *offload; /* who takes parts of the model, graph/pass/offload.h; NULL: nobody */
    bool integers;    /* quantised values that round to the nearest even, too; see pass_options */
    bool input_in_workspace; /* inputs of a package lie in its workspace; plan_problem_of */
    bool quantised_ends, float_ends; /* see pass_options */
    int trees;        /* graph_trees of graph/pass.h */
    int requant;      /* graph_requant of graph/pass.h */
    bool names_requant; /* the option was given */
    bool short_names; /* see codegen_unit */
    bool shares_kernels, shares_shapes; /* the first: the second stands before what the target's row says */
    enum constants_form constants_form;
    uint32_t workers;
    uint32_t plan_effort; /* plan_problem.effort */
    uint64_t ram;         /* bytes of workspace and tables that the package may take; 0: no limit */
    bool least_ram;       /* it takes as few of them as can be; both by streaming rows, driver/stream.h */
    const dim_binding *dims, *shapes, *bounds; /* bounds: of extents that data decides */
    const input_binding *binds;
    uint32_t n_dims, n_shapes, n_bounds, n_binds;
    int64_t string_bytes;      /* of a string of an input; 0: the front end's default */
    const char *signature;     /* of a model that has several; NULL: its main graph */
    const char *const *signatures; /* all that are given; more than one: each is a function of the package */
    uint32_t n_signatures;
    const char *const *states; /* "OUT=IN" */
    uint32_t n_states;
    bool print_after_all, verify;
    bool unscheduled; /* kernels are their plain loops, without any schedule */
    bool page;        /* a page will be made of the result (driver/html.h): the model is described as it was read */
    bool proof;       /* the report tells hashes, too, which take a while for large models */
    bool show_values; /* what every kernel makes is a result, too */
    const placement *memories; /* of the board that the package is for; NULL: not described */
    const struct board *board; /* the emulator's machine that the package is run on; NULL: this one */
    const struct target *device; /* of a computation: the accelerator that runs it; NULL: a processor */
    const char *const *schedules; /* files with schedules that stand before what the rules choose */
    uint32_t n_schedules;
    const char *schedule; /* file with the schedule of a computation; NULL: that behind it, or none */
    writer *dump;
} compile_options;

/* Of an input of floats, what the first quantize of it can say. */
typedef struct input_span {
    const char *name;
    double least, most;
} input_span;

/* How an input or an output is quantized: its numbers, or those that the model makes of its floats. */
typedef struct number_end {
    model_end end;
    dtype dt; /* of the numbers; DT_NONE: that of the end itself */
    uint32_t found; /* how many were found before it */
} number_end;

/* A state that an option made: names of the model, and its type. */
typedef struct state_pair {
    const char *out, *in;
    type of;
} state_pair;

typedef struct compile_result {
    const state_pair *states; /* of --state */
    uint32_t n_states;
    bool quantised; /* some operator of the model quantises or dequantises */
    const struct html_model *model; /* as it was read, for a page; NULL: not asked for, or a computation */
    const char *model_sha256; /* of its file; NULL: not asked for, or a computation */
    bool half_up;   /* some operator rounds halves up */
    bool dynamic;   /* some operator quantises by a scale that is computed as the model runs */
    bool rounds;     /* as it was read: some operator dequantises, or rounds as --requant says */
    bool ends_early; /* as it was read: TensorFlow Lite Micro ends a run at a CIRCULAR_BUFFER that waits for data */
    bool frames;     /* as it was read: some operator gives frames that count only once it says that they are valid */
    bool float_ends; /* as it was read: some input or output is of floats */
    bool integers;  /* it computes with quantised numbers */
    uint32_t n_nodes, n_quantised; /* of the model's file, of text without constants; those that compute in float
                                    * between quantised values */
    const input_span *spans;
    uint32_t n_spans;
    const number_end *scales; /* of the model as it was read, by ends; one without a single scale has none */
    uint32_t n_scales;
    const codegen_remark *remarks; /* of passes on the graph */
    uint32_t n_remarks;
    graph_module *graph;
    prog_module *prog;
    codegen_unit unit; /* the first one */
    const codegen_unit *units; /* one for each target */
    uint32_t n_units;
    te_records *records; /* the schedules of the files that were named; one table for all targets of a module */
    struct plan plan;
    struct stream_bounds *bounds; /* of its memory, where rows can be streamed; NULL: they cannot */
    struct artifact artifact;
} compile_result;

void compile_options_init(compile_options *o);
void compile_set_emit(compile_options *o, compile_emit e);
const char *compile_emit_name(const compile_options *o); /* as --emit has it */
/* Whether the artifact is made, and is that one. */
static inline bool compile_makes(const compile_options *o, backend b)
{
    return o->stop == STOP_NEVER && o->artifact == b;
}
/* compiler_init, built-in operator rows, the evaluate hook. */
void compiler_setup_under(compiler *c, const arena *parent);
void compiler_setup(compiler *c);

/* Model (of a front end, or graph text: driver/format.h) to graph. */
bool pipeline_load(compiler *c, const char *path, const compile_options *o, graph_module **out);
/* The same, but all that counts is the parameters of @main: what the model's inputs are. */
bool pipeline_load_inputs(compiler *c, const char *path, const compile_options *o, graph_module **out);
/* The same for a picture: what cannot be read of the model is no error (graph_op_unread). No pass takes such a
 * graph. */
bool pipeline_load_to_look(compiler *c, const char *path, const compile_options *o, graph_module **out);
/* The same without the artifact. */
bool pipeline_plan(compiler *c, const char *path, const compile_options *o, compile_result *out);
bool pipeline_compile(compiler *c, const char *path, const compile_options *o, compile_result *out);
/* The artifact of a program that was made elsewhere; kernels that have no loops yet get plain ones. */
bool pipeline_emit(compiler *c, prog_module *m, const compile_options *o, compile_result *out);
/* Whether the file is a computation (driver/computation.h): it has no graph. False after a diagnostic. */
bool pipeline_is_computation(compiler *c, const char *path, const compile_options *o, bool *out);
/* Writes the artifact as the folder `dir`, all or not at all. An existing folder is replaced only when all that it
 * holds is on its manifest; never the current folder, one of an input of this run, or one that holds such a folder.
 * `lasting`: it is on the disk on return. */
bool artifact_write(compiler *c, const artifact *a, const char *dir, bool lasting);
/* Whether it would be, before a long compile of `model`. */
bool artifact_check_place(compiler *c, const char *dir, const char *model);
#endif
