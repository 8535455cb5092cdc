/* kernel.c: micro-op kernels: remembering them, and keeping their micro-ops where the device can run them.
 *
 * Two levels: (call site, recorder, mode, closure bytes) names a kernel without recording it again; equal contents,
 * whatever the site, are one kernel, whose micro-ops lie once in the log and once in micro-op memory. The log is only
 * appended to until its stream has run, so what a queued LOAD UOP refers to never moves; a kernel evicted from micro-op
 * memory and needed again is loaded from the same place. SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

/* --- memory of kernels -------------------------------------------------------------------------------------------- */

/* FNV-1a. */
static uint32_t hash_bytes(uint32_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 16777619u;
    return hash;
}

static uint32_t hash_name(const vta_kernel_name *n)
{
    uint32_t hash = hash_bytes(hash_bytes(2166136261u, &n->site, sizeof n->site), &n->record, sizeof n->record);
    return hash_bytes((hash ^ (uint32_t)n->mode) * 16777619u, n->closure, n->bytes);
}

/* The entry of an open table for a hash: the first from there on that is empty or that `same` accepts. */
static uint32_t *probe(const vta_kernels *k, uint32_t *table, uint32_t hash,
                       bool (*same)(const vta_kernels *, uint32_t, const void *), const void *wanted)
{
    uint32_t at = hash & (k->slots - 1);
    while (table[at] != 0 && !same(k, table[at] - 1, wanted))
        at = (at + 1) & (k->slots - 1);
    return &table[at];
}

typedef struct wanted_site {
    const vta_kernel_name *name;
    uint32_t hash;
} wanted_site;

static bool same_site(const vta_kernels *k, uint32_t index, const void *wanted)
{
    const vta_site *s = &k->sites[index];
    const wanted_site *w = (const wanted_site *)wanted;
    const vta_kernel_name *n = w->name;
    return s->hash == w->hash && s->site == n->site && s->record == n->record && s->mode == (uint32_t)n->mode &&
           s->bytes == n->bytes && (n->bytes == 0 || memcmp(k->pool + s->words, n->closure, n->bytes) == 0);
}

typedef struct wanted_kernel {
    const vta_kernel_head *head;
    const uint32_t *uops;
    uint32_t hash;
} wanted_kernel;

static bool same_kernel(const vta_kernels *k, uint32_t index, const void *wanted)
{
    const vta_kernel *x = &k->kernels[index];
    const wanted_kernel *w = (const wanted_kernel *)wanted;
    return x->hash == w->hash && memcmp(&x->head, w->head, sizeof x->head) == 0 &&
           memcmp(k->pool + x->uops, w->uops, (size_t)x->head.n_uops * VTA_UOP_BYTES) == 0;
}

vta_kernel *vta_kernel_find(vta_context *c, const vta_kernel_name *name)
{
    vta_kernels *k = &c->kernels;
    wanted_site w = {name, hash_name(name)};
    uint32_t found = *probe(k, k->by_site, w.hash, same_site, &w);
    return found ? &k->kernels[k->sites[found - 1].kernel] : NULL;
}

static uint32_t words_of(size_t bytes)
{
    return (uint32_t)((bytes + 3) / 4);
}

/* Forgets all kernels when there is no room for one more. What is queued keeps its micro-ops: they lie in the log. */
static void make_room(vta_kernels *k, uint64_t words)
{
    if (k->n_kernels < k->most && k->n_sites < k->most && k->n_pool + words <= k->max_pool)
        return;
    k->n_kernels = k->n_sites = k->n_pool = 0;
    memset(k->by_content, 0, k->slots * sizeof *k->by_content);
    memset(k->by_site, 0, k->slots * sizeof *k->by_site);
}

static uint32_t put_in_pool(vta_kernels *k, const void *data, size_t bytes)
{
    uint32_t at = k->n_pool;
    if (bytes > 0)
        memcpy(k->pool + at, data, bytes);
    k->n_pool += words_of(bytes);
    return at;
}

static uint32_t remember_content(vta_kernels *k, const vta_kernel_head *head, const uint32_t *uops)
{
    size_t bytes = (size_t)head->n_uops * VTA_UOP_BYTES;
    uint32_t hash = hash_bytes(hash_bytes(2166136261u, head, sizeof *head), uops, bytes);
    wanted_kernel w = {head, uops, hash};
    uint32_t *entry = probe(k, k->by_content, hash, same_kernel, &w);
    if (*entry == 0) {
        k->kernels[k->n_kernels] = (vta_kernel){.head = *head, .hash = hash, .uops = put_in_pool(k, uops, bytes)};
        *entry = ++k->n_kernels;
    }
    return *entry - 1;
}

vta_status vta_kernel_remember(vta_context *c, const vta_kernel_head *head, const uint32_t *uops,
                               const vta_kernel_name *name, vta_kernel **out, vta_error *e)
{
    vta_kernels *k = &c->kernels;
    uint64_t words = head->n_uops + (name->site ? (uint64_t)name->bytes / 4 + 1 : 0);
    *out = NULL;
    if (words > k->max_pool)
        return vta_fail(e, VTA_NO_MEMORY,
                        "a kernel of %u micro-ops with a closure of %zu bytes needs %llu words; the "
                        "context has %u: raise max_uops",
                        head->n_uops, name->bytes, (unsigned long long)words, k->max_pool);
    make_room(k, words);
    uint32_t kernel = remember_content(k, head, uops);
    *out = &k->kernels[kernel];
    if (!name->site)
        return VTA_OK;
    wanted_site w = {name, hash_name(name)};
    uint32_t *entry = probe(k, k->by_site, w.hash, same_site, &w);
    if (*entry == 0) { /* else another thread recorded it meanwhile */
        k->sites[k->n_sites] = (vta_site){
            name->site,           name->record, head->mode, w.hash, kernel, put_in_pool(k, name->closure, name->bytes),
            (uint32_t)name->bytes};
        *entry = ++k->n_sites;
    }
    return VTA_OK;
}

/* --- where micro-ops lie ------------------------------------------------------------------------------------------ */

static bool is_resident(const vta_context *c, const vta_kernel *k)
{
    const vta_kernels *all = &c->kernels;
    return k->placed >= all->sram_start && all->sram_next <= k->placed + c->geometry->depth[VTA_MEM_UOP];
}

/* Puts the kernel's micro-ops into the log, unless this stream has them there. */
static void append_to_log(vta_context *c, vta_kernel *k)
{
    vta_kernels *all = &c->kernels;
    if (k->logged >= all->log_start)
        return;
    memcpy(all->log + vta_kernel_logged(c), all->pool + k->uops, (size_t)k->head.n_uops * VTA_UOP_BYTES);
    k->logged = all->log_next;
    all->log_next += k->head.n_uops;
}

/* Queues a LOAD UOP. The oldest kernels of the ring make room; at its end a kernel that does not fit starts anew. */
static vta_status load_uops(vta_context *c, vta_kernel *k, vta_error *e)
{
    vta_kernels *all = &c->kernels;
    uint32_t depth = c->geometry->depth[VTA_MEM_UOP], n = k->head.n_uops;
    append_to_log(c, k);
    if (all->sram_next % depth + n > depth)
        all->sram_next = (all->sram_next + depth - 1) / depth * depth;
    vta_fields f = {0};
    f.opcode = VTA_LOAD;
    f.memory_type = VTA_MEM_UOP;
    f.sram_base = (int64_t)(all->sram_next % depth);
    f.dram_base = (int64_t)(all->memory.phys / VTA_UOP_BYTES + (k->logged - all->log_start));
    f.y_size = 1;
    f.x_size = f.x_stride = n;
    vta_status s = vta_queue_append(c, &f, e);
    if (s == VTA_OK) {
        k->placed = all->sram_next;
        all->sram_next += n;
    }
    return s;
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

/* The hardware's two loops for a kernel: one loop is the outer of a GEMM and the inner of an ALU instruction. */
static void set_loops(const vta_kernel_head *h, vta_loop *outer, vta_loop *inner)
{
    *outer = *inner = (vta_loop){1, 0, 0, 0};
    if (h->n_loops == 2 || (h->n_loops == 1 && h->mode == VTA_MODE_GEMM))
        *outer = h->loops[0];
    if (h->n_loops == 2)
        *inner = h->loops[1];
    else if (h->n_loops == 1 && h->mode == VTA_MODE_ALU)
        *inner = h->loops[0];
}

/* More iterations than the field holds: an outer loop that moves no index may run in parts. */
static vta_status check_iterations(vta_loop *outer, vta_loop *inner, vta_error *e)
{
    if (inner->extent > VTA_MOST_ITERATIONS && outer->extent == 1) {
        vta_loop swapped = *outer;
        *outer = *inner;
        *inner = swapped;
    }
    const vta_loop *wrong = inner->extent > VTA_MOST_ITERATIONS ? inner : NULL;
    if (outer->extent > VTA_MOST_ITERATIONS && (outer->dst || outer->src || outer->wgt))
        wrong = outer;
    return wrong ? vta_fail(e, VTA_BAD_FIELD, "a loop of %u iterations; a hardware loop has at most %d", wrong->extent,
                            VTA_MOST_ITERATIONS)
                 : VTA_OK;
}

static void fill(vta_fields *f, const vta_kernel *k, uint32_t begin, const vta_loop *outer, const vta_loop *inner)
{
    const vta_kernel_head *h = &k->head;
    bool gemm = h->mode == VTA_MODE_GEMM;
    memset(f, 0, sizeof *f);
    f->opcode = gemm ? VTA_GEMM : VTA_ALU;
    f->reset_reg = h->reset_out;
    f->uop_bgn = begin;
    f->uop_end = (int64_t)begin + h->n_uops;
    f->iter_out = outer->extent;
    f->iter_in = inner->extent;
    f->dst_factor_out = outer->dst;
    f->dst_factor_in = inner->dst;
    f->src_factor_out = outer->src;
    f->src_factor_in = inner->src;
    f->wgt_factor_out = gemm ? outer->wgt : 0;
    f->wgt_factor_in = gemm ? inner->wgt : 0;
    f->alu_opcode = gemm ? 0 : h->alu_opcode;
    f->use_imm = gemm ? 0 : h->use_imm;
    f->imm = gemm ? 0 : h->imm;
}

/* Room in queue and log for `parts` instructions of the kernel and the load of its micro-ops. */
static vta_status make_way(vta_context *c, const vta_kernel *k, uint32_t parts, vta_error *e)
{
    vta_kernels *all = &c->kernels;
    vta_status s = vta_queue_room(c, parts + 1, e);
    if (s != VTA_OK || is_resident(c, k) || k->logged >= all->log_start)
        return s;
    if (k->head.n_uops > all->max_log)
        return vta_fail(e, VTA_NO_MEMORY, "a kernel of %u micro-ops; the log holds %u: raise max_uops", k->head.n_uops,
                        all->max_log);
    if (vta_kernel_logged(c) + k->head.n_uops <= all->max_log)
        return VTA_OK;
    if (c->capturing)
        return vta_fail(e, VTA_NO_MEMORY, "the captured stream does not fit a log of %u micro-ops; raise max_uops",
                        all->max_log);
    return vta_queue_synchronize(c, c->options.wait_cycles, e);
}

/* Refuses what no field holds before anything is queued. Iterations may be more than that: they are cut. */
static vta_status check_fields(const vta_context *c, vta_kernel *k, const vta_loop *outer, const vta_loop *inner,
                               vta_error *e)
{
    if (k->checked)
        return VTA_OK;
    vta_loop part = *outer;
    vta_fields f;
    vta_insn insn;
    part.extent = 1;
    fill(&f, k, 0, &part, inner);
    vta_status s = vta_queue_encode(c, &f, &insn, e);
    k->checked = s == VTA_OK;
    return s;
}

vta_status vta_kernel_queue(vta_context *c, vta_kernel *k, vta_error *e)
{
    vta_loop outer, inner;
    set_loops(&k->head, &outer, &inner);
    vta_status s = check_iterations(&outer, &inner, e);
    uint32_t parts = (outer.extent + VTA_MOST_ITERATIONS - 1) / VTA_MOST_ITERATIONS;
    if (s == VTA_OK)
        s = check_fields(c, k, &outer, &inner, e);
    if (s == VTA_OK && parts > c->queue.most / 2)
        s = vta_fail(e, VTA_BAD_FIELD, "a loop of %u iterations needs %u instructions; the queue holds %u",
                     outer.extent, parts, c->queue.most);
    if (s == VTA_OK)
        s = make_way(c, k, parts, e);
    if (s == VTA_OK && !is_resident(c, k))
        s = load_uops(c, k, e);
    for (uint32_t left = outer.extent; left > 0 && s == VTA_OK;) {
        vta_loop part = outer;
        vta_fields f;
        part.extent = left < VTA_MOST_ITERATIONS ? left : VTA_MOST_ITERATIONS;
        fill(&f, k, (uint32_t)(k->placed % c->geometry->depth[VTA_MEM_UOP]), &part, &inner);
        s = vta_queue_append(c, &f, e);
        left -= part.extent;
    }
    return s;
}
