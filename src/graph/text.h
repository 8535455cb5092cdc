/* SPDX-License-Identifier: Apache-2.0 */
/* Text of attributes and names, shared by printer, parser and registry. */
#ifndef LATHE_GRAPH_TEXT_H
#define LATHE_GRAPH_TEXT_H
#include "graph/graph.h"

const char *graph_attr_kind_name(attr_kind k); /* as in a schema: "ints" */
bool graph_attr_kind_parse(const char *name, attr_kind *out);

/* Reads one attribute value of the given kind. Functions are read as their name (in u.s): the caller resolves it. */
bool graph_parse_attr(compiler *c, lexer *l, const char *name, attr_kind kind, attr *out);
void graph_print_attr(writer *w, const attr *a); /* the value alone */
/* A node with the types of its operands in place of their names. */
void graph_print_signature(writer *w, const graph_node *n);
#endif
