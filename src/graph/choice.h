/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of operators. Some passes can compute an operator in several ways: a convolution directly or by Winograd's
 * algorithm, on planes or on blocks of channels. The estimate of the pass chooses, unless a record says which form was
 * the best when the whole network ran. How many workers share a small kernel is chosen in the same way
 * (driver/problem.c). A node is identified by its operator, the types of its operands and its attributes. */
#ifndef LATHE_GRAPH_CHOICE_H
#define LATHE_GRAPH_CHOICE_H
#include "base/ptr_map.h"
#include "graph/graph.h"

struct target;

enum { GRAPH_MOST_FORMS = 4 };

typedef struct graph_choice {
    const char *node; /* as graph_signature has it */
    const char *target;
    uint32_t threads; /* of the network that was measured */
    const char *form;
    uint32_t uses; /* nodes that got it */
} graph_choice;

/* Where a pass could choose, once for each signature. */
typedef struct graph_choice_point {
    const char *node;
    const char *forms[GRAPH_MOST_FORMS];
    uint32_t n_forms, taken; /* taken: position of the form that the nodes got */
    bool recorded; /* there is a record of as many threads, though its form cannot be taken here */
} graph_choice_point;

typedef struct graph_choices {
    arena *mem;
    interner *names;
    VEC(graph_choice) list;
    VEC(graph_choice_point) points; /* of the passes that ran, in their order */
    ptr_map point_of;               /* from a node's interned signature to its position in points */
} graph_choices;

void graph_choices_init(graph_choices *x, compiler *c);

/* "nn.conv2d(f32[1, 8, 8, 8], f32[8, 8, 3, 3]) {pads = [1, 1, 1, 1]} : f32[1, 8, 8, 8]" */
const char *graph_signature(arena *mem, const graph_node *n);
/* Which of the forms n gets on t: that of the last record for t and its number of threads, else for another number,
 * else `rule`; both are positions. choices NULL: there are no records. The point is noted. */
uint32_t graph_choose(graph_choices *choices, const graph_node *n, const struct target *t, uint32_t n_forms,
                      const char *const *forms, uint32_t rule);
/* The same for what `node` names, which lives as long as the choices. */
uint32_t graph_choose_named(graph_choices *choices, const char *node, const struct target *t, uint32_t n_forms,
                            const char *const *forms, uint32_t rule);
/* How many of the records some node got. */
uint32_t graph_choices_used(const graph_choices *x);
#endif
