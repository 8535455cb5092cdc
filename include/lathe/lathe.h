/* SPDX-License-Identifier: Apache-2.0 */
/* lathe.h: the compiler as a library (docs/how-to/c-api.md).
 *
 *     lathe_context *context = lathe_context_new();
 *     lathe_model *model;
 *     lathe_executable *net;
 *     if (lathe_read(context, "digits.onnx", &model) == LATHE_DONE &&
 *         lathe_compile(context, model, NULL, &net) == LATHE_DONE &&
 *         lathe_run(context, net, inputs, 1, outputs, 1) == LATHE_DONE)
 *         ...
 *
 * Errors. A function that can fail returns an enum lathe_outcome, the number that the program `lathe` would exit with.
 * The context has the diagnostics of the last call: what is wrong, where, and what to do. On failure outputs are NULL,
 * and nothing is left behind: no temporary file, no half-written output, no child process. An object that is NULL, as
 * after a call that failed, makes the next call fail with LATHE_BAD_USAGE; so does a path or name that is NULL.
 *
 * Threads. There is no global state. Use contexts, settings and executables in one thread at a time, and as many of
 * them side by side as you like. A model does not change after lathe_read, so threads may share it. Two threads that
 * run the same executable, each with its own context, take turns.
 *
 * ABI. Types are opaque, or they are structs that begin with their size: a new version adds members at the end, and a
 * caller that knows fewer sees a larger size than its own. Functions are only added, and numbers keep their meaning.
 * What breaks this changes the SONAME. Text is UTF-8 and ends with a zero. */
#ifndef LATHE_LATHE_H
#define LATHE_LATHE_H

#include "lathe_tensor.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *lathe_version(void);

enum lathe_outcome {
    LATHE_DONE = 0,
    LATHE_BAD_INPUT = 1,       /* the model, the data or the comparison is at fault */
    LATHE_BAD_USAGE = 2,       /* an option, or the way a function is called */
    LATHE_BAD_ENVIRONMENT = 3, /* no C compiler, no memory, no space; or a fault of Lathe */
    LATHE_CANCELLED = 4        /* the progress function asked for it */
};

/* --- contexts: who is told what happens --- */

typedef struct lathe_context lathe_context;

enum lathe_severity { LATHE_NOTE = 0, LATHE_WARNING = 1, LATHE_ERROR = 2 };

typedef struct lathe_diagnostic {
    uint32_t size;
    int32_t severity;  /* enum lathe_severity */
    const char *code;  /* a word such as "unsupported"; the list is in docs/reference/cli.md */
    const char *where; /* "model.onnx: node 3 'conv1' (Conv)"; NULL: nowhere in particular */
    const char *text;  /* one sentence */
    const char *hint;  /* what to do about it; NULL: nothing is known */
} lathe_diagnostic;

/* NULL: no memory. */
lathe_context *lathe_context_new(void);
void lathe_context_free(lathe_context *context); /* may be NULL */

/* Gets every diagnostic at the end of the call that found it. `d` is valid until fn returns. */
typedef void (*lathe_diagnostic_fn)(void *user, const lathe_diagnostic *d);
void lathe_on_diagnostic(lathe_context *context, lathe_diagnostic_fn fn, void *user);

/* Gets the name of the current stage, and is asked often whether to go on: a result other than 0 ends the work, and the
 * call returns LATHE_CANCELLED. share: the part of this stage that is done, from 0 to 1; below 0: unknown. Both
 * functions run in the thread that made the call. They may use neither the context nor the executable that the call
 * works on: such a call fails with LATHE_BAD_USAGE. On the context it leaves no diagnostic, because those of the
 * running call are still being collected. They must not free objects that the call works on. */
typedef int (*lathe_progress_fn)(void *user, const char *stage, double share);
void lathe_on_progress(lathe_context *context, lathe_progress_fn fn, void *user);

/* The diagnostics of the last call; they are valid until the next one. NULL: there are no more. */
const lathe_diagnostic *lathe_diagnostic_at(const lathe_context *context, uint32_t index);

/* --- settings: the options of the program, by name and text ---
 * `lathe compile --help` lists those of the verb "compile", and so on. Options that print, or that name output files,
 * are not settings. */

typedef struct lathe_settings lathe_settings;

/* verb: "compile", "run" (for lathe_load), "inspect", "verify", "quantize" or "tune". */
int32_t lathe_settings_new(lathe_context *context, const char *verb, lathe_settings **out);
/* ("target", "cortex-m4"), ("dim", "batch=4"); a switch takes NULL or "". The value is copied. */
int32_t lathe_set(lathe_context *context, lathe_settings *settings, const char *name, const char *value);
void lathe_settings_free(lathe_settings *settings); /* may be NULL */

/* --- models --- */

typedef struct lathe_model lathe_model;

int32_t lathe_read(lathe_context *context, const char *path, lathe_model **out);
/* The bytes are copied. name: for messages, and the folder in which the model's external data is; NULL: "model". */
int32_t lathe_read_bytes(lathe_context *context, const void *bytes, size_t size, const char *name, lathe_model **out);
void lathe_model_free(lathe_model *model); /* may be NULL */

typedef struct lathe_tensor_info {
    uint32_t size;
    lathe_dtype dtype;
    const char *name;
    int32_t ndim;
    const int64_t *shape;       /* ndim; -1: open, each run has its own */
    const int64_t *most;        /* the largest that it can be; -1: no bound */
    const char *const *symbols; /* of an open dimension its name or expression, else NULL */
    uint32_t string_bytes; /* strings: the bytes of each, along the last axis, with zeros behind them; 0: numbers */
} lathe_tensor_info;

/* NULL: there are no more. Valid as long as the model. */
const lathe_tensor_info *lathe_model_input(const lathe_model *model, uint32_t index);
const lathe_tensor_info *lathe_model_output(const lathe_model *model, uint32_t index);

/* --- executables: compiled models --- */

typedef struct lathe_executable lathe_executable;

/* settings: of "compile"; NULL: the defaults. Without a target the model is compiled for this machine. */
int32_t lathe_compile(lathe_context *context, const lathe_model *model, const lathe_settings *settings,
                      lathe_executable **out);
/* A package's folder or a module's file, as lathe_save or the program wrote it. settings: of "run"; may be NULL.
 * Running it runs its code: load what you trust. */
int32_t lathe_load(lathe_context *context, const char *path, const lathe_settings *settings, lathe_executable **out);
/* Writes the package's folder, or the module's file: the whole of it or nothing. */
int32_t lathe_save(lathe_context *context, lathe_executable *executable, const char *path);
void lathe_executable_free(lathe_executable *executable); /* may be NULL */

/* "package" or "module". */
const char *lathe_executable_kind(const lathe_executable *executable);
/* NULL: there are no more. Valid as long as the executable. */
const lathe_tensor_info *lathe_executable_input(const lathe_executable *executable, uint32_t index);
const lathe_tensor_info *lathe_executable_output(const lathe_executable *executable, uint32_t index);
/* What the compile has made, as JSON (docs/reference/report.md); "" when a loaded module has none. */
const char *lathe_report(const lathe_executable *executable);

/* Builds a package with the machine's C compiler ($CC, else cc) and loads it. lathe_run does so at the first call. Call
 * this function if you want to know earlier whether it works. */
int32_t lathe_build(lathe_context *context, lathe_executable *executable);

/* Runs the model once. inputs: in the order of lathe_executable_input, in memory of the CPU, with any strides.
 * outputs[i] becomes a tensor that owns its memory: outputs[i]->deleter(outputs[i]) frees it, and it may outlive the
 * executable. */
int32_t lathe_run(lathe_context *context, lathe_executable *executable, const lathe_dltensor *const *inputs,
                  uint32_t n_inputs, lathe_managed_tensor **outputs, uint32_t n_outputs);

/* States begin anew, as in the first run. A model has states where the setting "state" of the compile, or the model
 * itself, says so: memory that keeps its value from run to run. Without states this does nothing. */
int32_t lathe_reset(lathe_context *context, lathe_executable *executable);

/* Where the time of a run goes: the result of `lathe bench --profile --json`. The JSON belongs to the context until
 * its next call. The package is built once more, with a clock around each operator. inputs: as for lathe_run; NULL:
 * random numbers, and open dimensions at their limits. rounds: of a quarter of a second each; 0: ten. A module fails
 * with LATHE_BAD_USAGE. */
int32_t lathe_profile(lathe_context *context, lathe_executable *executable, const lathe_dltensor *const *inputs,
                      uint32_t n_inputs, uint32_t rounds, const char **out_json);

/* --- what else the program does; the result is text, mostly JSON; the context keeps it until its next call --- */

/* The operators, the memory plan and the work of a model, as lathe_report has them, without writing any code. A model
 * with open dimensions for which the settings give no value is described as it is (docs/reference/report.md). */
int32_t lathe_inspect(lathe_context *context, const lathe_model *model, const lathe_settings *settings,
                      const char **out_json);
/* What a kernel computes and how its loops run, as `lathe schedule` prints it, for the option "schedules" of a compile.
 * settings: of "compile", as for lathe_compile. name: of a kernel, or of a node of the model; NULL: all kernels. */
int32_t lathe_schedule(lathe_context *context, const lathe_model *model, const lathe_settings *settings,
                       const char *name, const char **out_text);
/* Compares what the model gives with stored outputs ("data"), or with another way to run it ("against"). The JSON is
 * the result that `lathe verify --json` prints. It is also there when LATHE_BAD_INPUT says that outputs are wrong, and
 * NULL when nothing was compared. */
int32_t lathe_verify(lathe_context *context, const lathe_model *model, const lathe_settings *settings,
                     const char **out_json);
/* Quantizes a float model to 8 bits with samples ("data", "calibrate"), and writes it to path. The JSON is the result
 * that `lathe quantize --json` prints: what the model loses. */
int32_t lathe_quantize(lathe_context *context, const lathe_model *model, const char *path,
                       const lathe_settings *settings, const char **out_json);
/* Measures schedules for the model's kernels, and keeps the best ones in the file at path, for the option "schedules"
 * of a compile. The program that measures is `lathe`, which must be on the PATH, or the one that the option "measure"
 * names. */
int32_t lathe_tune(lathe_context *context, const lathe_model *model, const char *path, const lathe_settings *settings,
                   const char **out_json);

#ifdef __cplusplus
}
#endif
#endif
