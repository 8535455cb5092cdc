/* SPDX-License-Identifier: Apache-2.0 */
/* Groups items of a report by what is said about them. */
#include "driver/groups.h"

#include <string.h>

#define MOST_NAMES 8u /* of items of one group */

void groups_begin(groups *g, compiler *c)
{
    *g = (groups){.c = c};
    ptr_map_init(&g->by_key, &c->mem);
}

void groups_add(groups *g, uint32_t item, const char *key, const char *name)
{
    uint32_t at = g->all.len;
    key = intern(g->c->names, key);
    if (!ptr_map_get(&g->by_key, key, &at)) {
        ptr_map_set(&g->by_key, key, at);
        vec_push(&g->c->mem, &g->all, (group){.first = item});
        writer_init(&g->all.data[at].names, &g->c->mem);
    }
    group *own = &g->all.data[at];
    if (own->n++ < MOST_NAMES)
        w_fmt(&own->names, "%s%s", own->n > 1 ? ", " : "", groups_short_names(&g->c->mem, name));
}

void groups_write_names(writer *w, const group *g)
{
    w_str(w, text_line(g->names.data));
    if (g->n > MOST_NAMES)
        w_fmt(w, " and %u more", g->n - MOST_NAMES);
}

static bool is_among(const char *names, size_t len, const char *name, size_t n)
{
    for (size_t at = 0; at + n <= len; at++)
        if (memcmp(names + at, name, n) == 0 && (at == 0 || names[at - 1] == ' ') &&
            (at + n == len || names[at + n] == ','))
            return true;
    return false;
}

const char *groups_short_names(arena *a, const char *names)
{
    writer w;
    writer_init(&w, a);
    for (const char *at = names; *at;) {
        const char *next = strstr(at, ", ");
        const size_t n = next ? (size_t)(next - at) : strlen(at), cut = strcspn(at, ";");
        const size_t kept = cut < n ? cut : n;
        if (!w.len || !is_among(w.data, w.len, at, kept))
            w_fmt(&w, "%s%.*s", w.len ? ", " : "", (int)kept, at);
        at += n + (next ? 2 : 0);
    }
    return w.len ? w.data : "";
}
