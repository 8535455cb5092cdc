/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing the results of a model with the expected ones. The caller decides how results are reported. */
#ifndef LATHE_API_VERIFY_H
#define LATHE_API_VERIFY_H
#include "api/session.h"
#include "base/json_out.h"

/* What was compared, and what was not. */
typedef struct verify_tally {
    uint32_t agree, unknown; /* unknown: the reference has no such value */
    uint32_t inside;         /* results that branches and loops make inside, and carry */
    uint32_t extents;        /* that kernels of their own compute */
} verify_tally;

/* Of verify_json: what is kept until the end. */
typedef struct verify_record {
    writer text;
    json_out outputs; /* into `text`: an array that is open */
    verify_tally tally;
    bool begun, has_tally;
} verify_record;

/* What is compared with, and how closely. */
typedef struct verify_judge {
    session *s;
    const struct verify_teller *teller;
    double rtol, atol;
    const char *options; /* the reference's; NULL: it has none */
    run_model oracle;    /* interpreted, or plain C */
    bool has_oracle;     /* that one, no files */
    bool from_data;      /* files of --data */
    int64_t ties;        /* elements of the output at hand that are right as the second of two steps */
    compare_result own;  /* of the output at hand: how far onnxruntime is from itself in another session, whose */
    const char *other;   /* options these are; NULL: it is not known to be */
    uint32_t *ways;      /* of many samples: how many count with each way to run onnxruntime; NULL: it is not run */
    verify_record record;
} verify_judge;

/* An output over all of them. */
typedef struct verify_total {
    compare_result worst;
    uint32_t at;    /* which sample that is */
    uint32_t wrong; /* samples with elements outside of the tolerance */
    int64_t ties;
} verify_total;

/* Tells what was found, into s->x->out, as it is found. */
typedef struct verify_teller {
    void (*way)(verify_judge *j); /* onnxruntime runs with j->options */
    /* op: what makes it, of a comparison operator by operator; else NULL */
    void (*output)(verify_judge *j, const run_tensor *got, const compare_result *r, const char *op);
    void (*list)(verify_judge *j, const list_io *l, const run_seen *got); /* a sequence of the right length; or NULL */
    void (*tally)(verify_judge *j, const verify_tally *t);
    void (*ways)(verify_judge *j); /* of many samples: which way counts how often */
    void (*total)(verify_judge *j, const run_tensor *got, const verify_total *t);
    /* What the run took on the simulated accelerator, before outputs are told; on an emulator's board, behind them. */
    bool (*device)(session *s);
    bool (*run)(const session *s);
    bool (*end)(verify_judge *j); /* nothing follows, whether the outputs are right or wrong; NULL: nothing to tell */
} verify_teller;

bool verify(ask *x, const verify_teller *teller);
/* As one object of JSON, in the end; nothing where nothing was compared. */
extern const verify_teller verify_json;
/* The next of onnxruntime's ways that samples count with, from *at = 0, and how many do; false: there are no more. */
bool verify_next_way(const verify_judge *j, uint32_t *at, const char **out_way, uint32_t *out_samples);
/* "seed 3", "test_data_set_3" */
const char *verify_sample_name(const session *s, uint32_t at);
#endif
