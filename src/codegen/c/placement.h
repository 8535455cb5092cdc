/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and workspace in the memories of a board: what is used most for each of its bytes comes into the fastest. */
#ifndef LATHE_CODEGEN_C_PLACEMENT_H
#define LATHE_CODEGEN_C_PLACEMENT_H
#include "base/json_out.h"
#include "codegen/backend.h"

/* A description: lines "NAME ram|rom SIZE SECTION COST"; # starts a comment. False after a diagnostic. */
bool placement_parse(compiler *c, const char *file, const char *text, size_t len, placement *out);
/* Places everything, and gives the plan's constants their new offsets, area by area. False after a diagnostic that says
 * what is missing. */
bool placement_choose(compiler *c, placement *out, struct plan *pl);
/* The memories and what they hold, as a list of the object that is open; p NULL: none. */
void placement_json(json_out *j, const placement *p);
#endif
