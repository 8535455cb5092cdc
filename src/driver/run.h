/* SPDX-License-Identifier: Apache-2.0 */
/* Running what was compiled: a package is built into a shared library and loaded, or its loops are interpreted; inputs
 * come from files or random numbers; outputs go to .npy files or are compared. */
#ifndef LATHE_DRIVER_RUN_H
#define LATHE_DRIVER_RUN_H
#include "abi/package.h"
#include "driver/board.h"
#include "driver/pipeline.h"

typedef struct run_tensor {
    const char *name;
    dtype dt;
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK]; /* of this run; before one, the most that they can be */
    int64_t count;
    size_t bytes;
    int64_t most[TYPE_MAX_RANK]; /* of each dimension; -1: nothing bounds it */
    const dim *open;             /* rank dimensions, some of which each run decides; NULL: all are constant */
    size_t most_bytes; /* room in data */
    uint8_t *data;     /* aligned to 64 */
    bool filled;
    bool is_text;      /* strings: u8, the bytes along the last axis, zeros behind them */
    bool is_quantized;           /* value = scale * (number - zero_point) */
    double scale;
    int64_t zero_point;
    bool is_shape;               /* a module's function takes extents there: `dims` is all that it is */
} run_tensor;

/* An extent of the inputs that each run states. */
typedef struct run_extent {
    const char *name;
    int64_t most, value; /* most -1: no bound; value -1: not stated yet */
} run_extent;

/* As the struct of inputs of a package has it. */
static inline int64_t run_extent_stated(const run_extent *x)
{
    return x->value == 0 ? (int64_t)PACKAGE_EMPTY : x->value;
}

/* Which input or output of the model a tensor is, and which of its elements where that is a sequence or an optional. */
typedef struct run_from {
    const list_io *list; /* NULL: it is the tensor */
    uint32_t place, element;
} run_from;

/* What a list among the outputs was in a run. */
typedef struct run_seen {
    bool present; /* false: an optional without its element */
    uint32_t count;
} run_seen;

struct tensor_list;
typedef struct run_model run_model;
struct run_model {
    run_tensor *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    const list_io *lists; /* sequences and optionals among them */
    uint32_t n_lists;
    bool shows_values; /* outputs are values of all operators, too: run_see leaves them as they are */
    run_tensor *raw; /* run_see: what the function gives, while `outputs` are elements; NULL: it is these */
    uint32_t n_raw;
    run_from *out_from; /* then of each output */
    run_seen *seen;     /* then of each list */
    run_extent *extents;
    uint32_t n_extents;
    void **in, **out; /* the package's structs: one pointer a tensor, in order; then extents, or shapes of outputs */
    int32_t (*call)(void *inputs, void *outputs);
    void *library;
    const prog_module *prog;         /* interpreted: no library */
    void **states;                   /* interpreted: memory of the model's states */
    int32_t (*reset)(void);          /* of a package with states; NULL: it has none */
    void *module;                    /* a module: no library; these are run_module.c's, or run_remote.c's */
    bool (*call_module)(compiler *c, run_model *m);
    bool (*reset_module)(compiler *c, run_model *m); /* NULL: that has no states */
    void (*close_module)(run_model *m);
    /* Mean seconds of calls with the inputs of the last one, where they run; NULL: who calls takes the time. */
    bool (*time_module)(compiler *c, run_model *m, long calls, double *out_seconds);
    void *device;                    /* on an accelerator: no library; this is the caller's */
    bool (*call_device)(compiler *c, run_model *m);
    bool (*next_log)(void *record);  /* of a package; NULL: built without a log */
    const char *(*status_text)(int32_t status); /* of a package */
    const char *dir;                 /* of a package; NULL: interpreted */
    const char *emulator;            /* the command that runs the package; NULL: it is loaded here */
    const struct board *board;       /* the machine that this emulator has; NULL: it runs programs of Linux */
    const char *uncounted;           /* why the board does not count instructions; NULL: it does */
    const char *scratch;             /* run_build's */
    const char *constants;           /* the file that the package is given in an emulator, there; NULL: it holds them */
    const struct run_report *report; /* of a package; NULL: interpreted */
    const char *profile_flags;       /* profile.h: what run_build adds; NULL: nothing */
    uint32_t n_profiled;             /* workers whose times are kept */
};

/* process.c: a program that is run to its end, without a shell. */
typedef struct process_task {
    const char *const *argv;
    const char *dir;         /* it runs there, and what it says goes into a file there */
    const char *what;        /* names the activity */
    const char *hint;        /* when there is no such program */
    const char *whole_log;   /* how to see all that it has to say */
    const char *name, *path; /* what begins with `name` in its messages is known to the user as `path` */
} process_task;
/* false after a diagnostic that shows the first error in what it said. */
bool process_run(compiler *c, const process_task *t);
/* The same of what may fail: false only when it cannot be tried. */
bool process_try(compiler *c, const process_task *t, bool *out_worked);
/* Arguments, and words between spaces as more of them. */
typedef struct process_words {
    const char **data;
    uint32_t len, cap;
} process_words;
void process_add_words(compiler *c, process_words *a, const char *words);
/* A child that is spoken to by its standard input and output; one at a time. `dir` is where its temporary files go. */
typedef struct process {
    compiler *c;
    int pid, fd;
    uint32_t limit; /* seconds; 0: none */
} process;
/* Exit status of what could not be started, and of what a signal ended. */
enum { PROCESS_NOT_FOUND = 127, PROCESS_SIGNAL = 128 };
bool process_start(compiler *c, const char *const *argv, const char *dir, process *out);
bool process_say(const process *p, const char *line); /* false: it has ended */
bool process_send(const process *p, const void *data, size_t len); /* bytes; as above */
/* One line without its newline, cut to size; false at the end, with what there was of a line. */
bool process_hear(const process *p, char *line, size_t size);
/* What it hears and says waits no longer than that; errno is then EAGAIN. */
void process_limit(process *p, uint32_t seconds);
int process_stop(process *p);              /* ends one that does not answer; as process_end */
int process_end(process *p);               /* its exit status */
const char *process_temp_dir(compiler *c); /* NULL after a diagnostic; compiler_remove_temp_dir removes it */
const char *process_python(void);          /* LATHE_PYTHON or python3 */

/* report.c: what report.json says of a package; false after a diagnostic when it is not what the compiler writes. */
typedef struct run_operator {
    const char *kernel, *kind, *source; /* source: the model's nodes; "" when they have no names */
    const char *extents; /* those that its data decides, with their bounds; NULL: none */
    const char *on;      /* another target that runs it; NULL: that of the report */
    const char *schedule; /* FILE:LINE of one that was given; NULL: the rules chose it */
    int64_t layer, tasks;
    int64_t macs, bytes; /* multiply-adds; of operands and results */
} run_operator;
/* What a code generator has written: C, or CUDA. */
typedef struct run_source {
    const char *file, *cflags, *ldflags;
} run_source;

typedef struct run_report {
    const char *module, *target, *cflags, *port;
    int64_t workers, workspace_bytes, lower_bound_bytes, constant_bytes;
    run_tensor *inputs, *outputs; /* without data */
    list_io *lists;
    uint32_t n_lists;
    run_extent *extents;
    run_operator *operators;
    run_source *sources;
    uint32_t n_sources;
    bool hands_over; /* the program hands its constants over */
    uint32_t n_inputs, n_outputs, n_extents, n_operators;
    const char *text; /* all of the file */
} run_report;
bool run_read_report(compiler *c, const char *dir, run_report *out);
/* The same of its text; `path` is for messages. */
bool run_parse_report(compiler *c, const char *path, const char *text, size_t len, run_report *out);
/* Inputs and outputs of these names are strings. */
void run_mark_texts(run_model *m, const graph_module *g);
void run_take_report(const run_report *r, run_model *out); /* inputs, outputs and extents */

/* run.c: a model is opened, so that its inputs are known, and then, where it is a package, built: that takes long.
 * workers: -1: those that the package was compiled for. */
/* b: the board that it runs on; NULL: this machine. */
bool run_open_package(compiler *c, const char *dir, const board *b, run_model *out);
/* The program has a function main. */
bool run_open_interpreter(compiler *c, const prog_module *m, run_model *out);
bool run_build(compiler *c, const char *scratch, int64_t workers, run_model *m);
/* The extents are what these dimensions of an input make them; an error where it contradicts another one or a
 * bound. */
bool run_bind(compiler *c, run_model *m, const run_tensor *input, uint32_t rank, const int64_t *dims);
/* Extents that nothing stated are at their bounds; inputs get their dimensions: false after a diagnostic
 * where one is above its bound, as in a report that was changed. */
bool run_size_inputs(compiler *c, run_model *m);
bool run_call(compiler *c, run_model *m); /* false after a diagnostic with the status */

/* lists.c: the same, and then `outputs` are the elements of sequences and optionals, as many as this run gave;
 * run_unsee makes them the function's again. */
bool run_call_seen(compiler *c, run_model *m);
bool run_see(compiler *c, run_model *m);
void run_unsee(run_model *m);
run_from run_input_from(const run_model *m, uint32_t i);
run_from run_output_from(const run_model *m, uint32_t i); /* of what run_see shows */
/* Whether a file has as many elements as an input has; false after a diagnostic. */
bool run_list_fits(compiler *c, const char *path, const list_io *l, const struct tensor_list *have);
const char *run_list_text(arena *a, const list_io *l, bool present, uint32_t count); /* "3 elements", "none" */
/* States begin anew, as in the first run; nothing without states. */
bool run_reset(compiler *c, run_model *m);
void run_close(run_model *m);
/* The same of what will never run again in this process: threads end, and the library goes. */
void run_unload(run_model *m);
void run_set_dims(run_tensor *t, const int64_t *dims); /* of this run */
run_tensor *run_find_input(const run_model *m, const char *name);

/* tensor_file.c: .npy, .npz (the array with the tensor's name, else the first one), .pb (TensorProto), anything else
 * raw. Shape and dtype must agree. Strings are padded with zeros to the tensor's width; longer ones are an error. */
bool tensor_file_read(compiler *c, const char *path, run_tensor *t);
/* The same of one step of a sequence: the file has one more axis in front, or one step for all. */
bool tensor_file_read_step(compiler *c, const char *path, uint32_t step, uint32_t steps, run_tensor *t);
/* Only dtype and shape of the tensor of that name, which may be NULL; false without a diagnostic when the file has none
 * (raw). Strings are u8, with their bytes as the last axis. */
bool tensor_file_peek(compiler *c, const char *path, const char *name, dtype *out_dt, uint32_t *out_rank,
                      int64_t *out_dims);
/* What a file has for a sequence or an optional: SequenceProto and OptionalProto in .pb, the arrays of a .npz in their
 * order, and one array of a .npy for an optional. */
typedef struct tensor_list {
    bool none; /* an optional without its element */
    uint32_t n;
    struct tensor_content *items; /* tensor_text.h */
} tensor_list;
bool tensor_file_list(compiler *c, const char *path, const list_io *l, tensor_list *out);
bool tensor_file_read_element(compiler *c, const char *path, const tensor_list *l, uint32_t k, run_tensor *t);
/* Its shape; false: it has none (raw). */
bool tensor_file_element_is_text(const tensor_list *l, uint32_t k);
bool tensor_file_element_shape(const tensor_list *l, uint32_t k, uint32_t *out_rank, int64_t *out_dims);
/* The arrays of a .npz file; NULL: it is another one. false after a diagnostic. */
struct npz_file;
bool tensor_file_names(compiler *c, const char *path, const struct npz_file **out);
bool tensor_file_write_npy(compiler *c, const char *path, const run_tensor *t);
const char *tensor_file_dims(arena *a, uint32_t rank, const int64_t *dims); /* "[2, 3]" */
/* How NumPy makes numbers of the type that is wanted. */
void tensor_file_hint_at_type(compiler *c, dtype have, dtype want);
/* How NumPy makes an array of as many elements fit; false: there is no such way, and nothing is said. */
bool tensor_file_hint_at_order(compiler *c, uint32_t rank, const int64_t *dims, uint32_t want_rank,
                               const int64_t *want);
const char *tensor_file_name(arena *a, const char *name); /* characters outside A-Za-z0-9_.- as _ */
/* Floats normal, integers from 0 to most; most < 0: up to 16 bits of any sign, all of 8 and 16 bits. */
void tensor_file_random(run_tensor *t, uint64_t *state, int64_t most);
/* The most for an input of which only the type is known. 8 and 16 bits are data: quantised numbers, pictures, sounds.
 * No operator takes an index of them; what may be an index is 0 or 1. */
int64_t tensor_file_random_most(dtype dt);
void tensor_file_uniform(run_tensor *t, uint64_t *state, double from, double to); /* floats */

/* compare.c */
typedef struct compare_result {
    double max_abs, max_rel, max_ulp;
    double rms;       /* of what is expected: rounding errors of sums are relative to this, not to each element */
    int64_t wrong;    /* elements outside of the tolerance */
    int64_t first;    /* index of the first of them; -1: none */
    double got, want; /* there */
} compare_result;
#define COMPARE_RTOL 1e-3
#define COMPARE_ATOL 1e-5
/* Right is what is at most atol + rtol * |want| away. atol < 0: COMPARE_ATOL, of floats at least rtol / 10 of the root
 * mean square of what is expected. */
compare_result compare_tensors(const run_tensor *got, const uint8_t *want, double rtol, double atol);
#endif
