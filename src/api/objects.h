/* SPDX-License-Identifier: Apache-2.0 */
/* The structs behind the opaque types of lathe.h, and what the files of this folder share. */
#ifndef LATHE_API_OBJECTS_H
#define LATHE_API_OBJECTS_H
#include "api/ask.h"
#include "api/border.h"
#include "driver/run_module.h"

#include <pthread.h>

struct lathe_settings {
    home at;
    ask options; /* values lie in `at` */
};

typedef struct tensor_infos {
    const lathe_tensor_info *list;
    uint32_t n;
} tensor_infos;

struct lathe_model {
    home at;
    const char *path; /* or the name of bytes */
    bool is_file;
    span bytes;
    file_id id;
    tensor_infos inputs, outputs;
};

struct lathe_executable {
    home at;
    pthread_mutex_t lock; /* of a call; who has it and asks again is told */
    pthread_mutex_t ends_lock; /* of inputs and outputs, which a first run finds in a module that has no report */
    const char *place;    /* the package or module that was loaded; NULL: it was compiled here */
    artifact made;        /* of a compile; its files lie in `at` */
    bool is_module, is_built;
    int64_t workers; /* -1: those that it was compiled for */
    run_module_options options; /* of a module */
    const run_report *report;   /* NULL: a module that has none */
    run_model model;            /* when it is built */
    uint8_t **own;              /* its own room for each input: a run may have the caller's instead */
    tensor_infos inputs, outputs;
};

/* settings.c: what a call asks for, in c; of no settings: nothing but the verb. False after a diagnostic: the settings
 * are of another verb. */
bool settings_ask(compiler *c, const lathe_settings *settings, ask_verb verb, ask *out);

/* infos.c */
tensor_infos infos_of_run(compiler *c, const run_tensor *list, uint32_t n);
tensor_infos infos_of_values(compiler *c, const graph_module *m, bool is_input, graph_value *const *list,
                             uint32_t n);
const lathe_tensor_info *infos_at(const tensor_infos *t, uint32_t index);

/* executable.c: what lathe_build does, inside of a call; a call on an executable, which may be NULL. */
bool executable_build(lathe_executable *e, compiler *c);
int32_t executable_call(lathe_context *x, lathe_executable *e, border_work work, void *args);
/* The package, not built yet, in `scratch` or where it was loaded from; false after a diagnostic. */
bool executable_open_package(lathe_executable *e, compiler *c, const char *scratch, run_model *out);

/* run.c: the caller's inputs become m's, as many as it has; own: room for as many pointers, for the room that m has of
 * its own. */
bool executable_inputs(compiler *c, run_model *m, const lathe_dltensor *const *inputs, uint8_t **own);

/* model.c: the model's bytes are a file of c. */
void model_give(compiler *c, const lathe_model *m);
#endif
