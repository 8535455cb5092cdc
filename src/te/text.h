/* SPDX-License-Identifier: Apache-2.0 */
/* A computation as text, parsed back: docs/reference/schedule.md. */
#ifndef LATHE_TE_TEXT_H
#define LATHE_TE_TEXT_H
#include "te/te.h"

void te_print(writer *w, const te_graph *g);
bool te_parse(compiler *c, const char *file, const char *text, size_t len, te_graph **out);
#endif
