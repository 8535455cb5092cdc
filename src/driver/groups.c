/* SPDX-License-Identifier: Apache-2.0 */
/* Groups items of a report by what is said about them. */
#include "driver/groups.h"

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
        w_fmt(&own->names, "%s%s", own->n > 1 ? ", " : "", name);
}

void groups_write_names(writer *w, const group *g)
{
    w_str(w, text_line(g->names.data));
    if (g->n > MOST_NAMES)
        w_fmt(w, " and %u more", g->n - MOST_NAMES);
}
