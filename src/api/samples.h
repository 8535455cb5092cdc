/* SPDX-License-Identifier: Apache-2.0 */
/* Samples for a model's inputs, one after the other: rows of the arrays in files, or folders with a file for each
 * input. */
#ifndef LATHE_API_SAMPLES_H
#define LATHE_API_SAMPLES_H
#include "api/ask.h"
#include "driver/run.h"

typedef struct samples {
    compiler *c;
    const char *path;        /* as the user named it */
    VEC(const char *) files; /* of samples, or test_data_set_* folders */
    bool folders;
    run_tensor *loaded; /* of the file at hand, for each input: batches one behind the other */
    int64_t batches, at;
    uint32_t next;      /* file */
    int64_t counted;    /* samples so far: entries of the first axis of the first input */
    uint8_t **first;    /* the first fill of each input */
    bool varies, has_values; /* a fill differs from the first one; an element is not 0 */
    uint64_t fills;
} samples;

/* What the first axis of a file is: one of the input; or the samples or steps, where there is one more of them. */
typedef enum samples_axis { SAMPLES_WHOLE, SAMPLES_STEPS, SAMPLES_ROWS } samples_axis;
/* The file of the model's input i; NULL: there is none. */
typedef const char *samples_file(const void *from, const char *name, uint32_t i);
/* Open dimensions of the model at `path` become those of the files of its inputs, unless the user fixed them. A model
 * that cannot be read is no error here. */
bool samples_shapes_from_files(compiler *c, const char *path, samples_file *file_of, const void *from,
                               samples_axis axis, compile_options *o);

bool samples_open(compiler *c, const char *path, samples *out);
bool samples_fix_shapes(const samples *s, const char *path, compile_options *o); /* the same from the first file */
void samples_rewind(samples *s);
/* Fills m's inputs with what comes next; *out_more false: there was nothing left. false after a diagnostic. */
bool samples_next(samples *s, const run_model *m, bool *out_more);
/* false after a diagnostic: what samples_next has put into m's inputs has infinite numbers or NaN. */
bool samples_check_finite(const samples *s, const run_model *m);
/* Warns if the samples so far are all equal, or all zero. `why` says what that spoils. */
void samples_warn_of_equal(const samples *s, const char *why);
/* How many times samples_next fills the inputs, from the start; it begins there again. */
bool samples_count(samples *s, const run_model *m, uint32_t *out_count);
#endif
