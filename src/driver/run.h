/* SPDX-License-Identifier: Apache-2.0 */
/* Running what was compiled: a package is built into a shared library and loaded, or its loops are interpreted; inputs
 * come from files or random numbers; outputs go to .npy files or are compared. */
#ifndef LATHE_DRIVER_RUN_H
#define LATHE_DRIVER_RUN_H
#include "driver/pipeline.h"

typedef struct run_tensor {
    const char *name;
    dtype dt;
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
    int64_t count;
    size_t bytes;
    uint8_t *data; /* aligned to 64 */
    bool filled;
} run_tensor;

typedef struct run_model {
    run_tensor *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    void **in, **out; /* the package's structs: one pointer a tensor, in order */
    int32_t (*call)(void *inputs, void *outputs);
    void *library;
    const compile_result *result; /* interpreted: no library */
} run_model;

/* process.c: runs argv (no shell) with its output in a file below `dir`; false after a diagnostic that shows the first
 * line of what it said. `what` names the activity. A program that is not there is DIAG_ENVIRONMENT with `hint`. */
bool process_run(compiler *c, const char *const *argv, const char *dir, const char *what, const char *hint);
/* A child with pipes to its standard input and output. */
typedef struct process {
    int pid;
    int to, from;
} process;
bool process_start(compiler *c, const char *const *argv, process *out);
bool process_say(process *p, const char *line);
bool process_hear(process *p, char *line, size_t size); /* one line without its newline; false at the end */
int process_end(process *p);
char *process_temp_dir(compiler *c); /* NULL after a diagnostic; the caller removes it */
const char *process_python(void);    /* LATHE_PYTHON or python3 */

/* run.c */
bool run_open_package(compiler *c, const char *dir, const char *scratch, int64_t workers, run_model *out);
bool run_open_interpreter(compiler *c, const compile_result *r, run_model *out);
bool run_call(compiler *c, run_model *m); /* false after a diagnostic with the status */
void run_close(run_model *m);
run_tensor *run_find_input(const run_model *m, const char *name);

/* tensor_file.c: .npy, .npz with one stored array, .pb (TensorProto), anything else raw. Shape and dtype must agree. */
bool tensor_file_read(compiler *c, const char *path, run_tensor *t);
/* Only dtype and shape of a file; false without a diagnostic when it has none (raw). */
bool tensor_file_peek(compiler *c, const char *path, dtype *out_dt, uint32_t *out_rank, int64_t *out_dims);
bool tensor_file_write_npy(compiler *c, const char *path, const run_tensor *t);
const char *tensor_file_name(arena *a, const char *name); /* characters outside A-Za-z0-9_.- as _ */
void tensor_file_random(run_tensor *t, uint64_t *state);

/* compare.c */
typedef struct compare_result {
    double max_abs, max_rel, max_ulp;
    int64_t wrong;    /* elements outside of the tolerance */
    int64_t first;    /* index of the first of them; -1: none */
    double got, want; /* there */
} compare_result;
compare_result compare_tensors(const run_tensor *got, const uint8_t *want, double rtol, double atol);
#endif
