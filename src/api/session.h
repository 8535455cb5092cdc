/* SPDX-License-Identifier: Apache-2.0 */
/* What run, verify and bench share: a model opened for running, its inputs filled, its scratch folder. */
#ifndef LATHE_API_SESSION_H
#define LATHE_API_SESSION_H
#include "api/ask.h"
#include "base/json_out.h"
#include "driver/run.h"
#include "driver/run_remote.h"
#include "driver/vta/run_vta.h"

typedef struct session {
    ask *x;
    const char *path;    /* the model as the user named it */
    const char *package; /* folder of the package, when there is one */
    const char *scratch; /* removed by session_close */
    const char *data;    /* --data; of the sample at hand, where that has several data sets */
    const char *data_sets; /* the folder of these; NULL: there is one, or none */
    struct samples *rows;  /* --data is a file of samples: the inputs, without outputs; NULL: it is none */
    uint32_t samples;      /* that are run, one after the other */
    uint32_t steps;        /* these are as many steps of a sequence (--steps); 0: each begins with new states */
    const char *list_file;   /* of a sequence whose elements were read last */
    const tensor_list *list; /* these; NULL: none yet */
    int64_t *stated;       /* extents that the user said, -1 the others */
    const char *sample_dir;  /* where the reference has files of the sample at hand; NULL: scratch */
    const char *sample_list; /* the folders of several, that it runs, a line each; NULL: it runs the one at hand */
    uint32_t oracle;     /* which of onnxruntime's ways to run the model is compared with */
    bool refused;        /* one of them it could not run the model in */
    bool remote; /* the model runs elsewhere */
    run_remote_options where;
    compile_options options;
    compile_result result;
    run_model model;
    bool is_computation;     /* the file is one, no model */
    run_vta_options device;  /* with --target vta */
    run_vta_report ran;
} session;

/* Ready to be called; false after a diagnostic; session_close is due either way. */
bool session_open(ask *x, session *s);
bool session_call(session *s); /* once; false after a diagnostic */
/* The same, and the other samples: the outputs of all, stacked, become those of the model. */
bool session_call_all(session *s);
bool session_fill(session *s, uint32_t sample); /* the inputs of that sample; session_open has those of the first */
const char *session_data_set(const session *s, uint32_t sample);
void session_close(session *s);
const char *session_data_file(const session *s, const char *kind, uint32_t i); /* DIR/input_0.pb; NULL: not there */

bool session_open_interpreter(session *s, run_model *out); /* of the program of s */
/* The interpreter on the program of s and the inputs of s, after session_call. */
bool session_interpret(session *s, run_model *out);

/* against.c: the same as C of one worker without any schedule, Winograd's form, or other targets. */
bool session_run_as_c(session *s, run_model *out);

/* session_vta.c: --target vta. What its options ask for, before anything is opened; the computation on a simulated
 * device. */
bool session_check_vta(session *s);
bool session_open_vta(session *s);
/* --profile, --bus-bits and --latency of the cycle model. */
bool ask_cycle_model(const ask *x, vta_cycle_options *out);

/* measured_json.c: what the run took on an emulator's board and on the simulated accelerator, as members of the open
 * object; false after a diagnostic. */
bool session_write_measured(json_out *j, const session *s);

/* Another runtime on the same inputs, as a Python child: see reference.c. reference_check: what can be said of
 * --against and --model before a model is opened. */
bool reference_check(const ask *x);
/* What --against names; REFERENCE_EXACT is onnxruntime, too, whose sums of 8-bit products do not saturate then. */
bool reference_is(const ask *x, const char *name);
#define REFERENCE_EXACT "onnxruntime-exact"
/* Where --against is missing. */
#define REFERENCE_ALL "--against onnxruntime (tflm or litert for .tflite files), interpreter or c"
const char *reference_title(const ask *x); /* of a runtime that a child runs; NULL: another kind of reference */
/* mode: "once"; "nodes": the same for every result of s->model that the model knows by that name; "bench": it runs when
 * told to, and answers with its time. */
bool reference_start(session *s, const char *mode, long threads, process *out);
bool reference_keep_inputs(session *s); /* where the child finds those of the sample at hand */
uint32_t reference_oracles(const session *s); /* ways to run it that s->oracle numbers, where outputs are compared */
const char *reference_options(const session *s); /* those of mode "once", in words */
/* The options that bench runs it with, in words; NULL: its defaults, in which a model without quantised values does not
 * differ. */
const char *reference_bench_options(const session *s);
const char *reference_output(const session *s, uint32_t i); /* .npy that mode "once" wrote */
/* The same where what lies half-way between two steps of a quantised output is rounded the other way; NULL: the
 * rounding leaves no choice. */
const char *reference_other(const session *s, uint32_t i);
/* What onnxruntime makes of output i in session number `which` of those that it has for quantised models, which runs
 * if it did not yet: a .npy; "" of the one that is compared with, or that does not run the model; NULL: there are no
 * more. */
const char *reference_own(session *s, uint32_t which, uint32_t i, const char **out_options);
bool reference_has_ties(const session *s); /* there is one in some way that was run */
#endif
