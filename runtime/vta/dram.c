/* dram.c: the memory of simulated devices: a map from device addresses to host memory, page by page. Between two
 * allocations lies a free page, and places are handed out round and round, so that running over an end or using what
 * was freed is noticed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct allocation {
    uint64_t phys;
    size_t bytes;
    char *host;
    bool owned;
} allocation;

struct vta_dram {
    pthread_mutex_t lock;
    uint64_t most, used; /* bytes of owned pages */
    uint64_t next;       /* where the search for a place begins */
    allocation *all;     /* by ascending address */
    size_t len, cap;
};

/* Addresses end where 32 bits do: the device's registers have no more. */
static const uint64_t address_end = (uint64_t)1 << 32;

static uint64_t page_up(uint64_t n)
{
    return (n + VTA_PAGE_BYTES - 1) / VTA_PAGE_BYTES * VTA_PAGE_BYTES;
}

vta_dram *vta_dram_create(uint64_t most_bytes)
{
    vta_dram *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    if (pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return NULL;
    }
    d->most = most_bytes;
    d->next = VTA_PAGE_BYTES;
    return d;
}

void vta_dram_destroy(vta_dram *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->len; i++)
        if (d->all[i].owned)
            free(d->all[i].host);
    pthread_mutex_destroy(&d->lock);
    free(d->all);
    free(d);
}

/* Number of allocations that begin at or below phys. */
static size_t below(const vta_dram *d, uint64_t phys)
{
    size_t lo = 0, hi = d->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (d->all[mid].phys <= phys)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A free range of `bytes` and a page within [from, to): its address, its place in the list. 0: none. */
static uint64_t find_gap(const vta_dram *d, uint64_t from, uint64_t to, uint64_t bytes, size_t *place)
{
    size_t i = below(d, from);
    uint64_t at = from;
    if (i > 0 && d->all[i - 1].phys + page_up(d->all[i - 1].bytes) + VTA_PAGE_BYTES > at)
        at = d->all[i - 1].phys + page_up(d->all[i - 1].bytes) + VTA_PAGE_BYTES;
    for (; at + bytes + VTA_PAGE_BYTES <= to; i++) {
        if (i == d->len || at + bytes + VTA_PAGE_BYTES <= d->all[i].phys) {
            *place = i;
            return at;
        }
        at = d->all[i].phys + page_up(d->all[i].bytes) + VTA_PAGE_BYTES;
    }
    return 0;
}

static bool grow(vta_dram *d)
{
    if (d->len < d->cap)
        return true;
    size_t cap = d->cap ? 2 * d->cap : 16;
    allocation *all = realloc(d->all, cap * sizeof *all);
    if (!all)
        return false;
    d->all = all;
    d->cap = cap;
    return true;
}

/* Enters host memory. The lock is held. */
static bool enter(vta_dram *d, void *host, size_t bytes, bool owned, vta_memory *out)
{
    size_t place;
    uint64_t span = page_up(bytes), phys = 0;
    if (bytes < address_end && grow(d)) {
        phys = find_gap(d, d->next, address_end, span, &place);
        if (phys == 0)
            phys = find_gap(d, VTA_PAGE_BYTES, address_end, span, &place);
    }
    if (phys == 0)
        return false;
    memmove(d->all + place + 1, d->all + place, (d->len - place) * sizeof *d->all);
    d->all[place] = (allocation){phys, bytes, host, owned};
    d->len++;
    d->next = phys + span + VTA_PAGE_BYTES;
    if (owned)
        d->used += span;
    *out = (vta_memory){host, phys, bytes};
    return true;
}

vta_status vta_dram_alloc(vta_dram *d, size_t bytes, vta_memory *out, vta_error *e)
{
    memset(out, 0, sizeof *out);
    if (bytes == 0)
        return vta_fail(e, VTA_BAD_ARGUMENT, "0 bytes of device memory asked for");
    if (bytes > d->most)
        return vta_fail(e, VTA_NO_MEMORY, "%zu bytes of device memory asked for, %llu exist", bytes,
                        (unsigned long long)d->most);
    void *host = NULL;
    if (posix_memalign(&host, VTA_PAGE_BYTES, (size_t)page_up(bytes)) != 0)
        return vta_fail(e, VTA_NO_MEMORY, "no host memory for %zu bytes of device memory", bytes);
    memset(host, 0, (size_t)page_up(bytes));
    pthread_mutex_lock(&d->lock);
    bool ok = d->used + page_up(bytes) <= d->most && enter(d, host, bytes, true, out);
    pthread_mutex_unlock(&d->lock);
    if (ok)
        return VTA_OK;
    free(host);
    return vta_fail(e, VTA_NO_MEMORY, "no %zu bytes of device memory left", bytes);
}

vta_status vta_dram_map(vta_dram *d, void *host, size_t bytes, vta_memory *out, vta_error *e)
{
    memset(out, 0, sizeof *out);
    if (!host || bytes == 0)
        return vta_fail(e, VTA_BAD_ARGUMENT, "no host memory to map");
    pthread_mutex_lock(&d->lock);
    bool ok = enter(d, host, bytes, false, out);
    pthread_mutex_unlock(&d->lock);
    return ok ? VTA_OK : vta_fail(e, VTA_NO_MEMORY, "no device addresses left for %zu bytes", bytes);
}

vta_status vta_dram_release(vta_dram *d, const vta_memory *m, vta_error *e)
{
    void *owned = NULL;
    pthread_mutex_lock(&d->lock);
    size_t i = below(d, m->phys);
    bool found = i > 0 && d->all[i - 1].phys == m->phys && d->all[i - 1].host == m->host;
    if (found) {
        allocation *a = &d->all[i - 1];
        if (a->owned) {
            owned = a->host;
            d->used -= page_up(a->bytes);
        }
        memmove(a, a + 1, (d->len - i) * sizeof *a);
        d->len--;
    }
    pthread_mutex_unlock(&d->lock);
    free(owned);
    return found ? VTA_OK
                 : vta_fail(e, VTA_BAD_HANDLE, "no device memory begins at 0x%llx: freed before, or of another device",
                            (unsigned long long)m->phys);
}

void *vta_dram_at(const vta_dram *d, uint64_t phys, size_t bytes)
{
    void *host = NULL;
    pthread_mutex_t *lock = (pthread_mutex_t *)&d->lock; /* the map itself does not change */
    pthread_mutex_lock(lock);
    size_t i = below(d, phys);
    if (i > 0) {
        const allocation *a = &d->all[i - 1];
        uint64_t offset = phys - a->phys;
        if (offset <= a->bytes && bytes <= a->bytes - offset)
            host = a->host + offset;
    }
    pthread_mutex_unlock(lock);
    return host;
}
