/* SPDX-License-Identifier: Apache-2.0 */
/* What run, verify and bench print of a session beside its outputs. */
#ifndef LATHE_TOOLS_SHOWN_H
#define LATHE_TOOLS_SHOWN_H
#include "api/session.h"
#include "cli.h"

/* With --target vta: counters, cycles, and the timeline that is asked for. */
bool shown_vta(session *s);
void shown_cycles(writer *w, const vta_cycle_report *r);
/* On a board of an emulator: what the run took; else nothing. */
bool shown_board(const session *s);
/* run --against: the outputs of s compared with those of another way; after session_call. */
bool shown_compare(session *s);
#endif
