/* SPDX-License-Identifier: Apache-2.0 */
/* The automaton without choices: its states are sets of nodes of the one with choices, as they are before what needs
 * no byte is followed, and what stands before them (the beginning, a letter of a word, the end of a line), which the
 * checks \b and ^ ask for. States that cannot be told apart are made one. */
#include "frontend/onnx/onnx_regex.h"

#include <string.h>

typedef enum around { AROUND_EDGE, AROUND_WORD, AROUND_LINE, AROUND_OTHER } around; /* the byte before or behind */

typedef struct state {
    const uint32_t *set;
    uint32_t n;
    around before;
} state;

/* Numbers by a hash of what they stand for; as many places as twice the most that there can be. */
enum { MOST_PLACES = 16384 };
_Static_assert(MOST_PLACES >= 2 * REGEX_MOST_STATES + 1024, "room for all states, and those of the last step");

typedef struct hashed {
    uint32_t at[MOST_PLACES]; /* number + 1; 0: free */
} hashed;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

#define MOST_WORK 100000000u /* about a second */

typedef struct builder {
    arena *a;
    const regex_nodes *nodes;
    VEC(state) states;
    hashed *by_set;
    uint32_t *seen; /* by node: the walk that it was reached in */
    uint32_t walk;
    uint32_t *stack, *reached;
    uint32_t n_reached;
    bool matches;
    bool asks; /* the pattern has checks */
    uint64_t work; /* nodes that were looked at */
} builder;

static around around_of(uint32_t byte)
{
    const bool letter = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || byte == '_';
    return letter ? AROUND_WORD : byte == '\n' ? AROUND_LINE : AROUND_OTHER;
}

static bool holds(regex_check check, around before, around behind)
{
    switch (check) {
    case REGEX_TEXT_BEGIN: return before == AROUND_EDGE;
    case REGEX_TEXT_END: return behind == AROUND_EDGE;
    case REGEX_LINE_BEGIN: return before == AROUND_EDGE || before == AROUND_LINE;
    case REGEX_LINE_END: return behind == AROUND_EDGE || behind == AROUND_LINE;
    case REGEX_WORD: return (before == AROUND_WORD) != (behind == AROUND_WORD);
    case REGEX_NO_WORD: return (before == AROUND_WORD) == (behind == AROUND_WORD);
    }
    return false;
}

/* The nodes of bytes that the state reaches without a byte, where that follows. */
static void follow(builder *b, const state *s, around behind)
{
    uint32_t top = 0;
    b->walk++;
    b->n_reached = 0;
    b->matches = false;
    for (uint32_t i = 0; i < s->n; i++) {
        b->stack[top++] = s->set[i];
        while (top > 0) {
            const uint32_t at = b->stack[--top];
            const regex_node *n = &b->nodes->data[at];
            b->work++;
            if (b->seen[at] == b->walk)
                continue;
            b->seen[at] = b->walk;
            b->matches |= n->kind == REGEX_MATCH;
            if (n->kind == REGEX_BYTES)
                b->reached[b->n_reached++] = at;
            if (n->kind == REGEX_SPLIT) {
                b->stack[top++] = n->to;
                b->stack[top++] = n->other;
            }
            if (n->kind == REGEX_CHECK && holds(n->check, s->before, behind))
                b->stack[top++] = n->to;
        }
    }
}

static uint32_t find_state(builder *b, const uint32_t *set, uint32_t n, around before)
{
    before = n == 0 ? AROUND_OTHER : before; /* nothing leads on from there */
    uint64_t h = mix(before, n);
    for (uint32_t i = 0; i < n; i++)
        h = mix(h, set[i]);
    for (;; h++) {
        uint32_t *at = &b->by_set->at[h % MOST_PLACES];
        const state *s = *at ? &b->states.data[*at - 1] : NULL;
        if (s && s->n == n && s->before == before && memcmp(s->set, set, n * sizeof *set) == 0)
            return *at - 1;
        if (s)
            continue;
        const uint32_t *own = arena_copy(b->a, set, (n + 1) * sizeof *set, _Alignof(uint32_t));
        vec_push(b->a, &b->states, ((state){own, n, before}));
        return (*at = b->states.len) - 1;
    }
}

/* Where the reached nodes lead by that byte, in order, each once. */
static uint32_t step(builder *b, uint32_t byte, uint32_t *set)
{
    uint32_t n = 0;
    b->walk++;
    b->work += b->n_reached;
    for (uint32_t i = 0; i < b->n_reached; i++) {
        const regex_node *node = &b->nodes->data[b->reached[i]];
        if (byte < node->first || byte > node->last || b->seen[node->to] == b->walk)
            continue;
        b->seen[node->to] = b->walk;
        uint32_t k = n++;
        for (; k > 0 && set[k - 1] > node->to; k--)
            set[k] = set[k - 1];
        set[k] = node->to;
    }
    return n;
}

/* Bytes that every node treats alike: the first of each kind stands for all. */
static void group_bytes(const builder *b, uint8_t *first_of)
{
    bool begins[257] = {false};
    begins[1] = begins['\n'] = begins['\n' + 1] = true;
    static const uint8_t words[] = {'0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1};
    for (size_t i = 0; i < sizeof words; i++)
        begins[words[i]] = true;
    for (uint32_t i = 0; i < b->nodes->len; i++)
        if (b->nodes->data[i].kind == REGEX_BYTES) {
            begins[b->nodes->data[i].first] = true;
            begins[b->nodes->data[i].last + 1] = true;
        }
    for (uint32_t i = 1, first = 1; i < 256; i++) {
        first = begins[i] ? i : first;
        first_of[i] = (uint8_t)first;
    }
}

typedef VEC(uint32_t) numbers;

/* --- states that cannot be told apart --- */

/* Whether both are of one group, and lead to the same groups by each kind of byte. */
static bool alike(const regex_automaton *m, const uint32_t *group, const uint8_t *first_of, uint32_t a, uint32_t b)
{
    bool same = group[a] == group[b];
    for (uint32_t k = 1; same && k < 256; k++)
        same = first_of[k] < k || group[m->next[a * 256u + k]] == group[m->next[b * 256u + k]];
    return same;
}

/* The group that state i goes to: one that began with a state like it, or a new one. */
static uint32_t place(const regex_automaton *m, const uint32_t *group, const uint8_t *first_of, uint32_t i,
                      uint32_t *first, uint32_t *groups, hashed *places)
{
    uint64_t h = group[i];
    for (uint32_t k = 1; k < 256; k++)
        h = first_of[k] < k ? h : mix(h, group[m->next[i * 256u + k]]);
    for (;; h++) {
        uint32_t *at = &places->at[h % MOST_PLACES];
        if (*at && alike(m, group, first_of, first[*at - 1], i))
            return *at - 1;
        if (*at)
            continue;
        first[(*groups)++] = i;
        return (*at = *groups) - 1;
    }
}

/* Splits groups until all states of one lead to the same ones. */
static void merge(builder *b, const uint8_t *first_of, regex_automaton *m)
{
    arena *a = b->a;
    const uint32_t n = m->states;
    uint32_t *group = arena_array(a, uint32_t, n), *split = arena_array(a, uint32_t, n), groups = 0, last;
    uint32_t *first = arena_array(a, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        group[i] = m->accepts[i] != m->accepts[0];
    do {
        last = groups;
        groups = 0;
        memset(b->by_set, 0, sizeof *b->by_set);
        for (uint32_t i = 0; i < n; i++)
            split[i] = place(m, group, first_of, i, first, &groups, b->by_set);
        memcpy(group, split, n * sizeof *group);
    } while (groups != last);
    uint32_t *next = arena_array(a, uint32_t, groups * 256u);
    bool *accepts = arena_array(a, bool, groups);
    for (uint32_t k = 0; k < groups; k++) {
        accepts[k] = m->accepts[first[k]];
        next[k * 256u] = k;
        for (uint32_t byte = 1; byte < 256; byte++)
            next[k * 256u + byte] = group[m->next[first[k] * 256u + byte]];
    }
    *m = (regex_automaton){groups, next, accepts};
}

/* Where state i leads, by each byte; whether a string may end there. */
static void lead_on(builder *b, uint32_t i, const uint8_t *first_of, uint32_t *set, numbers *next, numbers *accepts)
{
    const state s = b->states.data[i];
    around followed = AROUND_EDGE;
    follow(b, &s, AROUND_EDGE);
    vec_push(b->a, accepts, b->matches);
    vec_push(b->a, next, i);
    for (uint32_t byte = 1; byte < 256; byte++) {
        const around kind = around_of(byte);
        if (first_of[byte] < byte) {
            vec_push(b->a, next, next->data[i * 256u + first_of[byte]]);
            continue;
        }
        if (followed != kind)
            follow(b, &s, kind);
        followed = kind;
        const uint32_t n = step(b, byte, set);
        vec_push(b->a, next, find_state(b, set, n, b->asks ? kind : AROUND_OTHER));
    }
}

bool regex_determine(arena *a, const regex_nodes *nodes, uint32_t first, regex_automaton *out, regex_error *out_error)
{
    builder b = {.a = a, .nodes = nodes, .seen = arena_array(a, uint32_t, nodes->len), .by_set = arena_new(a, hashed),
                 .stack = arena_array(a, uint32_t, 2u * nodes->len + 2u),
                 .reached = arena_array(a, uint32_t, nodes->len)};
    uint32_t *set = arena_array(a, uint32_t, nodes->len + 1u);
    uint8_t first_of[256] = {0};
    numbers next = {0}, accepts = {0};
    for (uint32_t i = 0; i < nodes->len; i++)
        b.asks |= nodes->data[i].kind == REGEX_CHECK;
    group_bytes(&b, first_of);
    set[0] = first;
    (void)find_state(&b, set, 1, b.asks ? AROUND_EDGE : AROUND_OTHER);
    for (uint32_t i = 0; i < b.states.len; i++) {
        lead_on(&b, i, first_of, set, &next, &accepts);
        if (b.states.len > REGEX_MOST_STATES || b.work > MOST_WORK) {
            *out_error = (regex_error){0, "the pattern needs too many states"};
            return false;
        }
    }
    bool *ends = arena_array(a, bool, b.states.len);
    for (uint32_t i = 0; i < b.states.len; i++)
        ends[i] = accepts.data[i] != 0;
    *out = (regex_automaton){b.states.len, next.data, ends};
    merge(&b, first_of, out);
    return true;
}

bool regex_compile(arena *a, const char *pattern, regex_automaton *out, regex_error *out_error)
{
    regex_nodes nodes = {0};
    uint32_t first = 0;
    return regex_parse(a, pattern, &nodes, &first, out_error) && regex_determine(a, &nodes, first, out, out_error);
}
