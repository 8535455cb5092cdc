/* SPDX-License-Identifier: Apache-2.0 */
/* What every front end gets beside the bytes of a model: the extents and constants that the user gives, and what the
 * module is wanted for. A front end is a folder here and a row of driver/format.def. */
#ifndef LATHE_FRONTEND_FRONTEND_H
#define LATHE_FRONTEND_FRONTEND_H
#include "base/file.h"
#include "graph/graph.h"

typedef struct frontend_dim_fix {
    const char *name; /* symbol name (rank 1), or input name */
    bool is_input;
    bool is_bound; /* the symbol stays one, of at most that extent */
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
} frontend_dim_fix;

/* The way out where the shape that is given has another extent than the model. */
#define FRONTEND_FIXED_AXIS "the model fixes this axis: leave --shape out, or export the model with an open dimension"
/* An error: the model has no open dimension of that name. `names`: those that it has, "" when it has none. False. */
bool frontend_no_dimension(compiler *c, src_loc at, const char *name, const char *names);

typedef struct frontend_bind {
    const char *input, *numbers; /* tensor_from_numbers */
} frontend_bind;

#define FRONTEND_STRING_BYTES 64 /* of a string of an input, where nothing is said */

typedef struct frontend_options {
    const frontend_dim_fix *fixes;
    uint32_t n_fixes;
    const char *signature; /* of a model that has several; NULL: its main graph */
    const frontend_bind *binds; /* inputs that are constants */
    uint32_t n_binds;
    int64_t string_bytes; /* the most bytes of a string of an input; 0: FRONTEND_STRING_BYTES */
    bool keeps_floats; /* no arithmetic on floating-point constants while reading: the graph as it stands */
    bool inputs_only;  /* the module is its inputs, of any rank, and nothing else */
    bool keeps_unread; /* to look at the model: a node that cannot be read becomes one of graph_op_unknown or
                        * graph_op_unread, and there is no error of it */
    bool like_litert;  /* models of TensorFlow Lite: the numbers of LiteRT's reference kernels, not of the micro ones */
    bool fixed_shapes; /* for kernels: open extents of inputs, and an If that is decided at run time, are errors */
} frontend_options;

/* Bytes of a model to a module. bytes must stay for the whole compile: constants point into them. path: for messages
 * and files beside the model, which must lie under its folder. o may be NULL: nothing is given. */
typedef bool (*frontend_import_fn)(compiler *c, span bytes, const char *path, const frontend_options *o,
                                   graph_module **out);
#endif
