/* handles.c: slots. The number of a handle is made from its slot and a count of all handles so far.
 * SPDX-License-Identifier: Apache-2.0 */
#include "handles.h"

#include <stdlib.h>

enum { SLOT_BITS = 24 };
static const uint32_t none = UINT32_MAX;

void rpc_handles_init(rpc_handles *h, uint32_t most)
{
    const uint32_t room = (UINT32_C(1) << SLOT_BITS) - 1;
    *h = (rpc_handles){.most = most < room ? most : room, .free = none};
}

static bool grow(rpc_handles *h)
{
    if (h->count < h->capacity)
        return true;
    uint32_t capacity = h->capacity ? h->capacity * 2 : 64;
    rpc_slot *slots = realloc(h->slots, capacity * sizeof *slots);
    if (!slots)
        return false;
    h->slots = slots;
    h->capacity = capacity;
    return true;
}

int32_t rpc_handles_add(rpc_handles *h, const rpc_held *held, uint64_t *out, lathe_error *error)
{
    *out = 0;
    if (h->in_use >= h->most)
        return rpc_fail(error, LATHE_E_REFUSED, "%u handles are held already: free some", h->in_use);
    if (h->free == none && !grow(h))
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for another handle");
    const uint32_t i = h->free == none ? h->count++ : h->free;
    rpc_slot *s = &h->slots[i];
    if (i == h->free)
        h->free = s->next_free;
    *s = (rpc_slot){.id = ++h->serial << SLOT_BITS | (i + 1), .next_free = none, .held = *held};
    h->in_use++;
    *out = s->id;
    return LATHE_OK;
}

static rpc_slot *find(const rpc_handles *h, uint64_t id)
{
    const uint64_t i = id & ((UINT64_C(1) << SLOT_BITS) - 1);
    if (id == 0 || i == 0 || i > h->count || h->slots[i - 1].id != id)
        return NULL;
    return &h->slots[i - 1];
}

rpc_held *rpc_handles_get(const rpc_handles *h, uint64_t id)
{
    rpc_slot *s = find(h, id);
    return s ? &s->held : NULL;
}

bool rpc_handles_take(rpc_handles *h, uint64_t id, rpc_held *out)
{
    rpc_slot *s = find(h, id);
    if (!s)
        return false;
    *out = s->held;
    *s = (rpc_slot){.id = 0, .next_free = h->free};
    h->free = (uint32_t)(s - h->slots);
    h->in_use--;
    return true;
}

bool rpc_handles_take_any(rpc_handles *h, rpc_held *out)
{
    for (uint32_t i = h->count; i-- > 0; h->count = i)
        if (h->slots[i].id != 0)
            return rpc_handles_take(h, h->slots[i].id, out);
    return false;
}

void rpc_handles_free(rpc_handles *h)
{
    free(h->slots);
    *h = (rpc_handles){.free = none};
}
