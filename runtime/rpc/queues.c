/* queues.c: the tracker's places and requests. A key has a heap of each: the first is the next that is served.
 * SPDX-License-Identifier: Apache-2.0 */
#include "queues.h"

#include <stdlib.h>
#include <string.h>

typedef struct heap {
    rpc_entry **list;
    size_t n, room;
} heap;

struct rpc_key {
    heap places, requests;
    uint32_t holders; /* connections that offer under it, and who is at work with it */
    char name[];
};

/* --- heaps --- */

static bool is_before(const rpc_entry *a, const rpc_entry *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->number < b->number;
}

static void put_at(heap *h, size_t at, rpc_entry *e)
{
    h->list[at] = e;
    e->at = at;
}

static void rise(heap *h, rpc_entry *e)
{
    size_t at = e->at;
    for (; at > 0 && is_before(e, h->list[(at - 1) / 2]); at = (at - 1) / 2)
        put_at(h, at, h->list[(at - 1) / 2]);
    put_at(h, at, e);
}

static void sink(heap *h, rpc_entry *e)
{
    size_t at = e->at;
    for (;;) {
        size_t next = 2 * at + 1;
        if (next + 1 < h->n && is_before(h->list[next + 1], h->list[next]))
            next++;
        if (next >= h->n || !is_before(h->list[next], e))
            break;
        put_at(h, at, h->list[next]);
        at = next;
    }
    put_at(h, at, e);
}

static bool heap_add(heap *h, rpc_entry *e)
{
    if (h->n == h->room) {
        size_t room = h->room ? 2 * h->room : 4;
        rpc_entry **list = realloc(h->list, room * sizeof *list);
        if (!list)
            return false;
        h->list = list;
        h->room = room;
    }
    put_at(h, h->n++, e);
    rise(h, e);
    return true;
}

static void heap_remove(heap *h, const rpc_entry *e)
{
    rpc_entry *last = h->list[--h->n];
    if (last == e)
        return;
    put_at(h, e->at, last);
    rise(h, last);
    sink(h, last);
}

/* --- keys --- */

bool rpc_queues_init(rpc_queues *q, uint32_t most)
{
    *q = (rpc_queues){.index = json_object(), .most = most};
    return q->index != NULL;
}

/* After all owners have left. */
void rpc_queues_free(rpc_queues *q)
{
    json_decref(q->index);
    q->index = NULL;
}

const char *rpc_queues_name(const rpc_key *k)
{
    return k->name;
}

static rpc_key *key_of(json_t *v)
{
    return (rpc_key *)(intptr_t)json_integer_value(v);
}

static rpc_key *find_key(rpc_queues *q, const char *name, size_t size)
{
    rpc_key *k = calloc(1, sizeof *k + size + 1);
    if (!k)
        return NULL;
    memcpy(k->name, name, size);
    json_t *known = json_object_get(q->index, k->name);
    if (known) {
        free(k);
        return key_of(known);
    }
    if (json_object_set_new(q->index, k->name, json_integer((json_int_t)(intptr_t)k)) == 0)
        return k;
    free(k);
    return NULL;
}

static void drop_unused(rpc_queues *q, rpc_key *k)
{
    if (k->holders > 0 || k->places.n > 0 || k->requests.n > 0)
        return;
    (void)json_object_del(q->index, k->name);
    free(k->places.list);
    free(k->requests.list);
    free(k);
}

void rpc_queues_release(rpc_queues *q, rpc_key *k)
{
    k->holders--;
    drop_unused(q, k);
}

/* --- entries --- */

static heap *heap_of(const rpc_entry *e)
{
    return e->request ? &e->key->requests : &e->key->places;
}

static void link_entry(rpc_owner *o, rpc_entry *e)
{
    e->owner = o;
    e->before = o->last;
    *(o->last ? &o->last->next : &o->first) = e;
    o->last = e;
}

static void unlink_entry(rpc_owner *o, const rpc_entry *e)
{
    *(e->before ? &e->before->next : &o->first) = e->next;
    *(e->next ? &e->next->before : &o->last) = e->before;
}

rpc_key *rpc_queues_add(rpc_queues *q, rpc_owner *owner, const char *name, size_t size, bool request, json_t *value,
                        int64_t priority)
{
    rpc_entry *e = q->entries < q->most ? calloc(1, sizeof *e) : NULL;
    rpc_key *k = e ? find_key(q, name, size) : NULL;
    if (e)
        *e = (rpc_entry){.key = k, .request = request, .value = value, .priority = priority, .number = q->numbers++};
    if (!k || !heap_add(heap_of(e), e)) {
        if (k)
            drop_unused(q, k);
        free(e);
        json_decref(value);
        return NULL;
    }
    link_entry(owner, e);
    q->entries++;
    k->holders++;
    if (!request && owner->offers != k) {
        k->holders++;
        if (owner->offers)
            rpc_queues_release(q, owner->offers);
        owner->offers = k;
    }
    return k;
}

bool rpc_queues_pair(const rpc_key *k, rpc_entry **out_place, rpc_entry **out_request)
{
    const bool both = k->places.n > 0 && k->requests.n > 0;
    *out_place = both ? k->places.list[0] : NULL;
    *out_request = both ? k->requests.list[0] : NULL;
    return both;
}

void rpc_queues_drop(rpc_queues *q, rpc_entry *e)
{
    heap_remove(heap_of(e), e);
    unlink_entry(e->owner, e);
    drop_unused(q, e->key);
    json_decref(e->value);
    free(e);
    q->entries--;
}

void rpc_queues_leave(rpc_queues *q, rpc_owner *owner)
{
    while (owner->first)
        rpc_queues_drop(q, owner->first);
    if (owner->offers)
        rpc_queues_release(q, owner->offers);
    owner->offers = NULL;
}

json_t *rpc_queues_tell(const rpc_queues *q)
{
    json_t *all = json_object(), *v;
    const char *name;
    json_object_foreach(q->index, name, v)
    {
        const rpc_key *k = key_of(v);
        (void)json_object_set_new(all, name, json_pack("{s: i, s: i}", "free", (int)k->places.n, "pending",
                                                       (int)k->requests.n));
    }
    return all;
}
