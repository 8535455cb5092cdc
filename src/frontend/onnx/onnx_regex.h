/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of RE2 as automata over bytes of UTF-8 that decide whether all of a string matches. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_REGEX_H
#define LATHE_FRONTEND_ONNX_ONNX_REGEX_H
#include "base/vec.h"

#define REGEX_MOST_NODES  20000u /* of the automaton with choices */
#define REGEX_MOST_STATES 4096u  /* of the one without */
#define REGEX_MOST_DEPTH  200u   /* groups in groups */
#define REGEX_MOST_REPEAT 1000   /* RE2's own limit */
#define REGEX_MOST_CODE   0x10ffff

typedef struct regex_automaton {
    uint32_t states;      /* the first one is number 0 */
    const uint32_t *next; /* [states * 256]; a zero keeps the state: it stands behind a string */
    const bool *accepts;  /* where the string ends there */
} regex_automaton;

typedef struct regex_error {
    size_t at; /* byte of the pattern */
    const char *why;
} regex_error;

/* false: *out_error says why. */
bool regex_compile(arena *a, const char *pattern, regex_automaton *out, regex_error *out_error);

/* --- between the parts: regex_parse.c makes the automaton with choices, regex_states.c the one without --- */

typedef enum regex_kind {
    REGEX_BYTES, /* one byte from first to last, to `to` */
    REGEX_SPLIT, /* to `to` and to `other` without a byte */
    REGEX_CHECK, /* to `to` where `check` holds */
    REGEX_MATCH
} regex_kind;
typedef enum regex_check {
    REGEX_TEXT_BEGIN,
    REGEX_TEXT_END,
    REGEX_LINE_BEGIN,
    REGEX_LINE_END,
    REGEX_WORD,
    REGEX_NO_WORD
} regex_check;
typedef struct regex_node {
    regex_kind kind;
    uint8_t first, last;
    regex_check check;
    uint32_t to, other;
} regex_node;
typedef VEC(regex_node) regex_nodes;

/* The next range of code points of a general category, "Lu" or all of "L"; false: there are no more. *at: first 0. */
bool regex_category(const char *name, size_t len, uint32_t *at, int32_t *out_first, int32_t *out_last);
/* The node that it begins with. */
bool regex_parse(arena *a, const char *pattern, regex_nodes *out, uint32_t *out_first, regex_error *out_error);
bool regex_determine(arena *a, const regex_nodes *nodes, uint32_t first, regex_automaton *out, regex_error *out_error);
#endif
