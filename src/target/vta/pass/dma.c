/* SPDX-License-Identifier: Apache-2.0 */
/* InjectDMAIntrin: a loop nest under pragma_dma_copy that copies between memory and a scratchpad becomes one transfer
 * of rows (VTALoadBuffer2D, VTAStoreBuffer2D), in loops of its own when it has more dimensions than two. Nothing is
 * taken that does not fit: every refusal names the buffer. */
#include "tir/build.h"
#include "target/vta/pass/vta.h"

#include <inttypes.h>

#define MAX_DIMS 8u

/* One loop of the copy. Strides count scalars at first, elements (tiles) once the lanes are taken off. */
typedef struct copy_dim {
    const tir_var *var;
    int64_t extent, dram, sram; /* iterations; distance in memory and in the scratchpad */
    tir_expr_ref least, most;   /* iterations that copy, the others give zero; NULL: all from there on */
    tir_expr_ref before, after; /* how many give zero at each end; NULL: none */
    bool single;                /* one iteration copies: the copy starts there, and `dram` means nothing */
} copy_dim;

typedef struct copy {
    copy_dim dims[MAX_DIMS]; /* outermost first */
    uint32_t n;
    bool to_dram;
    const tir_buffer *dram, *sram;
    linear dram_at, sram_at; /* of the first iteration */
    enum vta_mem memory;     /* as the instruction names it */
    enum vta_queue queue;
    uint32_t width;         /* bits of a scalar in memory */
    tir_expr_ref dram_from; /* index of the scalar that is read */
} copy;

/* --- reading the loop nest --- */

static bool take_loops(vta_pass *p, copy *k, tir_stmt **at)
{
    tir_stmt *s = *at;
    for (; s->kind == TIR_FOR; s = s->body) {
        copy_dim d = {.var = s->var};
        if (!tir_is_int(s->extent, &d.extent) || d.extent < 1 || k->n == MAX_DIMS)
            return vta_error(p, "a 'dma_copy' loop '%s' has no constant extent, or there are more than %u loops",
                             s->var->name, MAX_DIMS);
        if (!tir_is_const(s->min, 0))
            return vta_error(p, "a 'dma_copy' loop '%s' does not start at 0", s->var->name);
        k->dims[k->n++] = d;
    }
    *at = s;
    return true;
}

/* The load that value stores, the condition under which it does, and whether it goes through a cast. */
static tir_expr_ref copied(tir_expr_ref value, tir_expr_ref *out_cond, bool *out_cast)
{
    tir_expr_ref e = value;
    for (uint32_t i = 0; i < 3; i++) {
        if (e->kind == TIR_CAST && !*out_cast) {
            *out_cast = true;
            e = e->args[0];
        } else if (e->kind == TIR_SELECT && !*out_cond && tir_is_const(e->args[2], 0)) {
            *out_cond = e->args[0];
            e = e->args[1];
        }
    }
    return e->kind == TIR_LOAD ? e : NULL;
}

/* What is taken modulo 8 / width in cast(8 - width - (... mod (8 / width)) * width); NULL: `by` is something else. */
static tir_expr_ref scalar_in_byte(vta_pass *p, tir_expr_ref by, int64_t width)
{
    linear l;
    while (by->kind == TIR_CAST)
        by = by->args[0];
    if (!vta_linear(p, by, &l) || l.len != 1 || l.constant != 8 - width || l.terms[0].n != 1 ||
        l.terms[0].coeff != -width)
        return NULL;
    tir_expr_ref lane = l.terms[0].atoms[0];
    return tir_is_binary(lane, TIR_FLOORMOD) && tir_is_const(lane->args[1], 8 / width) ? lane : NULL;
}

/* Scalars of less than a byte lie several in one, the first in the low bits:
 * (bytes[at + l/n] << cast(8 - width - (l mod n)*width)) >> (8 - width), n = 8/width. Finds the load, the width, and
 * the index that the scalar would have alone. */
static tir_expr_ref unpacked(vta_pass *p, tir_expr_ref e, copy *k)
{
    int64_t drop;
    if (!tir_is_binary(e, TIR_SHR) || !tir_is_int(e->args[1], &drop) || drop < 4 || drop > 7 || 8 % (8 - drop))
        return NULL;
    const int64_t width = 8 - drop, n = 8 / width;
    tir_expr_ref up = e->args[0], load = tir_is_binary(up, TIR_SHL) ? up->args[0] : NULL;
    if (!load || load->kind != TIR_LOAD || load->n_args != 1 || dtype_bits(load->u.buffer->dt) != 8)
        return NULL;
    tir_expr_ref lane = scalar_in_byte(p, up->args[1], width);
    if (!lane)
        return NULL;
    dtype dt = load->args[0]->type.dt;
    k->width = (uint32_t)width;
    k->dram_from = tir_add(p->c, tir_mul(p->c, load->args[0], tir_int(p->c, dt, n)), tir_cast(p->c, dt, lane));
    return load;
}

/* What memory the transfer names, and who makes it. */
static bool find_direction(vta_pass *p, copy *k, tir_stmt *store, tir_expr_ref load, bool cast)
{
    enum vta_mem m;
    const tir_buffer *dst = store->buffer, *src = load->u.buffer;
    k->to_dram = !vta_scratchpad(dst, &m);
    k->dram = k->to_dram ? dst : src;
    k->sram = k->to_dram ? src : dst;
    if (!vta_scratchpad(k->sram, &m) || vta_scratchpad(k->dram, &(enum vta_mem){VTA_MEM_UOP}))
        return vta_error(p,
                         "a 'dma_copy' goes between memory and a scratchpad of the accelerator, not from '%s' to '%s'",
                         src->name, dst->name);
    if (k->to_dram && m != VTA_MEM_ACC)
        return vta_error(p, "'%s' cannot be stored to '%s': the accelerator stores from %s only", src->name, dst->name,
                         vta_scope_name(VTA_MEM_ACC));
    k->memory = k->to_dram ? VTA_MEM_OUT : m;
    if (!k->to_dram && m == VTA_MEM_ACC && cast && src->dt == DT_I8 && dst->dt == DT_I32)
        k->memory = VTA_MEM_ACC_8BIT;
    else if (!k->to_dram && cast)
        return vta_error(p, "the copy from '%s' to '%s' converts: only int8 is widened, into accumulators of int32",
                         src->name, dst->name);
    k->queue = k->to_dram ? VTA_QUEUE_STORE : m == VTA_MEM_ACC ? VTA_QUEUE_COMPUTE : VTA_QUEUE_LOAD;
    k->width = k->width ? k->width : dtype_bits(k->dram->dt);
    if (k->width != p->g.width[k->memory] || dtype_is_float(k->dram->dt) || !vta_holds(p, m, k->sram->dt))
        return vta_error(p, "the copy from '%s' (%s) to '%s' (%s) does not have the device's widths, %u and %u bits",
                         src->name, dtype_name(src->dt), dst->name, dtype_name(dst->dt),
                         p->g.width[k->to_dram ? m : k->memory], p->g.width[k->to_dram ? k->memory : m]);
    return true;
}

static bool read_indices(vta_pass *p, copy *k, tir_stmt *store, tir_expr_ref load)
{
    tir_expr_ref to = store->indices[0], from = k->dram_from ? k->dram_from : load->args[0];
    if (store->n_indices != 1 || load->n_args != 1)
        return vta_error(p, "the copy to '%s' has several dimensions: run flatten before InjectDMAIntrin",
                         store->buffer->name);
    bool ok = vta_linear(p, k->to_dram ? to : from, &k->dram_at) && vta_linear(p, k->to_dram ? from : to, &k->sram_at);
    for (uint32_t i = 0; ok && i < k->n; i++)
        ok = vta_take_var(&k->dram_at, k->dims[i].var, &k->dims[i].dram) &&
             vta_take_var(&k->sram_at, k->dims[i].var, &k->dims[i].sram);
    return ok || vta_error(p, "the copy between '%s' and '%s' has an index that is not linear in its loops",
                           k->dram->name, k->sram->name);
}

/* --- padding --- */

/* The condition under which the copy copies, as ranges of its loops. */
static bool add_condition(vta_pass *p, copy *k, tir_expr_ref cond)
{
    vta_range ranges[MAX_DIMS];
    for (uint32_t i = 0; i < k->n; i++)
        ranges[i] = (vta_range){k->dims[i].var, NULL, NULL};
    if (!vta_add_condition(p, ranges, k->n, cond, NULL))
        return false;
    for (uint32_t i = 0; i < k->n; i++) {
        k->dims[i].least = ranges[i].least;
        k->dims[i].most = ranges[i].most;
    }
    return true;
}

/* Whether e is never below least or above most: by ranges, or in all iterations of the loops around. */
static bool lies_within(vta_pass *p, tir_expr_ref e, int64_t least, int64_t most)
{
    tir_range r = tir_range_of(p->bounds, e);
    int64_t min, max;
    if (r.known_min && r.min >= least && r.known_max && r.max <= most)
        return true;
    return vta_exact_range(p, e, &min, &max) && min >= least && max <= most;
}

/* A number of zeros: never negative, at most what the instruction can say. */
static bool pad_of(vta_pass *p, const copy *k, tir_expr_ref e, tir_expr_ref *out)
{
    e = tir_simplify(p->bounds, tir_max(p->c, e, tir_int(p->c, e->type.dt, 0)));
    if (tir_is_const(e, 0))
        return true;
    *out = e;
    return lies_within(p, e, 0, VTA_MAX_PAD) ||
           vta_error(p, "the copy to '%s' pads with more than %u zeros on a side, or an unknown number",
                     k->sram->name, VTA_MAX_PAD);
}

static bool find_pads(vta_pass *p, copy *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        copy_dim *d = &k->dims[i];
        dtype dt = d->var->type.dt;
        if (d->least && !pad_of(p, k, d->least, &d->before))
            return false;
        if (d->most && !pad_of(p, k, tir_sub(p->c, tir_int(p->c, dt, d->extent - 1), d->most), &d->after))
            return false;
    }
    return true;
}

/* --- rows and columns --- */

static tir_expr_ref as_argument(vta_pass *p, tir_expr_ref e)
{
    return tir_cast(p->c, p->f->index_type, e);
}

static tir_expr_ref plus(vta_pass *p, tir_expr_ref at, tir_expr_ref v, int64_t stride)
{
    tir_expr_ref step = tir_mul(p->c, as_argument(p, v), vta_int(p, stride));
    return tir_simplify(p->bounds, tir_add(p->c, at, step));
}

/* Iterations of d that copy. */
static bool size_of(vta_pass *p, const copy *k, const copy_dim *d, tir_expr_ref *out)
{
    tir_expr_ref e = vta_int(p, d->extent);
    if (d->before)
        e = tir_sub(p->c, e, as_argument(p, d->before));
    if (d->after)
        e = tir_sub(p->c, e, as_argument(p, d->after));
    *out = tir_simplify(p->bounds, e);
    return lies_within(p, *out, 1, INT32_MAX) ||
           vta_error(p, "the copy to '%s' may consist of padding alone, which no instruction can do", k->sram->name);
}

static bool is_padded(const copy_dim *d)
{
    return d->before || d->after;
}

static void drop_dim(copy *k, uint32_t i)
{
    for (; i + 1 < k->n; i++)
        k->dims[i] = k->dims[i + 1];
    k->n--;
}

/* The innermost loops fill elements whole: they go away, or one of them goes on counting elements. */
static bool take_lanes(vta_pass *p, copy *k)
{
    int64_t lanes = p->g.lanes[k->memory], done = 1;
    while (done < lanes && k->n) {
        copy_dim *d = &k->dims[k->n - 1];
        int64_t left = lanes / done;
        bool whole = d->extent <= left;
        if (d->dram != done || d->sram != done || is_padded(d) || (whole ? left % d->extent : d->extent % left) != 0)
            break;
        done *= whole ? d->extent : left;
        if (whole) {
            k->n--;
            continue;
        }
        d->extent /= left;
        d->dram = d->sram = lanes;
    }
    if (done != lanes)
        return vta_error(p,
                         "the copy between '%s' and '%s' does not move whole elements of %" PRId64
                         " neighbors: block the layout by the device's tile",
                         k->dram->name, k->sram->name, lanes);
    bool ok = vta_divide(&k->dram_at, lanes) && vta_divide(&k->sram_at, lanes);
    for (uint32_t i = 0; ok && i < k->n; i++) {
        ok = k->dims[i].dram % lanes == 0 && k->dims[i].sram % lanes == 0;
        k->dims[i].dram /= lanes;
        k->dims[i].sram /= lanes;
    }
    return ok || vta_error(p, "the copy between '%s' and '%s' starts or steps within an element of %" PRId64 " values",
                           k->dram->name, k->sram->name, lanes);
}

/* The scratchpad is filled without gaps, in the order of the loops. */
static bool is_dense(const copy *k)
{
    int64_t expected = 1;
    for (uint32_t i = k->n; i > 0; i--) {
        if (k->dims[i - 1].sram != expected && k->dims[i - 1].extent > 1)
            return false;
        expected *= k->dims[i - 1].extent;
    }
    return true;
}

static void merge_dims(copy *k)
{
    for (uint32_t i = k->n; i > 0; i--)
        if (k->dims[i - 1].extent == 1 && !is_padded(&k->dims[i - 1]))
            drop_dim(k, i - 1);
    for (uint32_t i = k->n; i > 1; i--) {
        copy_dim *outer = &k->dims[i - 2], *inner = &k->dims[i - 1];
        if (is_padded(outer) || is_padded(inner) || outer->dram != inner->dram * inner->extent)
            continue;
        inner->extent *= outer->extent;
        drop_dim(k, i - 2);
    }
}

/* Of a padded loop one iteration may be left, whose place in memory then does not depend on the loop any more. */
static void find_single(vta_pass *p, copy *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        copy_dim *d = &k->dims[i];
        tir_expr_ref size = NULL;
        if (d->dram || !is_padded(d) || !size_of(p, k, d, &size) || !tir_is_const(size, 1))
            continue;
        d->single = true;
        d->dram = d->sram;
    }
}

/* Leaves the last two dimensions as rows and columns; a column is one element when elements do not lie side by side. */
static bool make_rows(vta_pass *p, copy *k)
{
    find_single(p, k);
    merge_dims(k);
    bool apart = k->n == 0 || k->dims[k->n - 1].dram != 1;
    if (apart && k->n == MAX_DIMS)
        return vta_error(p, "the copy to '%s' has too many dimensions", k->sram->name);
    if (apart)
        k->dims[k->n++] = (copy_dim){.extent = 1, .dram = 1, .sram = 1};
    for (uint32_t i = 0; i + 2 < k->n; i++)
        if (is_padded(&k->dims[i]))
            return vta_error(
                p,
                "the copy to '%s' pads the loop '%s': rows and columns of a transfer are the two innermost "
                "loops over elements, and only they can be padded",
                k->sram->name, k->dims[i].var->name);
    return true;
}

/* --- writing the transfer --- */

static tir_expr_ref or_zero(vta_pass *p, tir_expr_ref pad)
{
    return pad ? as_argument(p, pad) : vta_int(p, 0);
}

static bool transfer(vta_pass *p, const copy *k, tir_expr_ref dram_at, tir_expr_ref sram_at, tir_stmt **out)
{
    static const copy_dim one_row = {.extent = 1, .dram = 0};
    const copy_dim *x = &k->dims[k->n - 1], *y = k->n > 1 ? &k->dims[k->n - 2] : &one_row;
    tir_expr_ref columns, rows, stride = vta_int(p, k->n > 1 ? y->dram : x->extent);
    if (!size_of(p, k, x, &columns) || !size_of(p, k, y, &rows))
        return false;
    if (x->before && !x->single)
        dram_at = plus(p, dram_at, x->before, x->dram);
    if (y->before && !y->single)
        dram_at = plus(p, dram_at, y->before, y->dram);
    int64_t lanes = p->g.lanes[k->to_dram ? VTA_MEM_ACC : k->memory];
    tir_expr_ref first = tir_simplify(p->bounds, tir_mul(p->c, sram_at, vta_int(p, lanes)));
    tir_expr_ref sram = tir_address(p->c, k->sram, 1, &first), dram = tir_address(p->c, k->dram, 0, NULL);
    tir_expr_ref cmd = vta_command_handle(p), memory = vta_int(p, k->memory);
    tir_expr_ref load[VTA_LOAD_ARGS] = {cmd,
                                        dram,
                                        dram_at,
                                        columns,
                                        rows,
                                        stride,
                                        or_zero(p, x->before),
                                        or_zero(p, y->before),
                                        or_zero(p, x->after),
                                        or_zero(p, y->after),
                                        sram,
                                        memory};
    tir_expr_ref store[VTA_STORE_ARGS] = {cmd, sram, memory, dram, dram_at, columns, rows, stride};
    *out =
        tir_evaluate(p->c, k->to_dram ? tir_extern(p->c, "VTAStoreBuffer2D", tir_scalar(DT_I32), VTA_STORE_ARGS, store)
                                      : tir_extern(p->c, "VTALoadBuffer2D", tir_scalar(DT_I32), VTA_LOAD_ARGS, load));
    return true;
}

/* Dimensions in front of rows and columns are loops around the transfer. */
static tir_stmt *write_copy(vta_pass *p, copy *k)
{
    tir_expr_ref dram_at = vta_build(p, &k->dram_at), sram_at = vta_build(p, &k->sram_at);
    uint32_t loops = k->n > 2 ? k->n - 2 : 0;
    tir_stmt *s = NULL;
    for (uint32_t i = 0; i < loops; i++) {
        copy_dim *d = &k->dims[i];
        tir_bounds_push(p->bounds, d->var, tir_int(p->c, d->var->type.dt, 0),
                        tir_int(p->c, d->var->type.dt, d->extent));
        dram_at = plus(p, dram_at, tir_varref(p->c, d->var), d->dram);
        sram_at = plus(p, sram_at, tir_varref(p->c, d->var), d->sram);
    }
    bool ok = transfer(p, k, dram_at, sram_at, &s);
    for (uint32_t i = loops; i > 0; i--) {
        const copy_dim *d = &k->dims[i - 1];
        tir_bounds_pop(p->bounds);
        if (ok)
            s = tir_for(p->c, d->var, tir_int(p->c, d->var->type.dt, 0), tir_int(p->c, d->var->type.dt, d->extent),
                        FOR_SERIAL, s);
    }
    return ok ? vta_coproc_scope(p, k->queue, s) : NULL;
}

static tir_stmt *inject(vta_pass *p, tir_stmt *s)
{
    copy k = {0};
    tir_expr_ref cond = NULL;
    bool cast = false;
    if (!take_loops(p, &k, &s))
        return NULL;
    tir_expr_ref load = s->kind == TIR_STORE ? copied(s->value, &cond, &cast) : NULL;
    if (!load && s->kind == TIR_STORE)
        load = unpacked(p, s->value, &k);
    if (s->kind == TIR_IF) {
        (void)vta_error(p, "a 'dma_copy' nest of '%s' copies under a condition, as a split makes that does not divide",
                        vta_stage_name(s));
        diag_hint(&p->c->diags, "split by a divisor of the extent");
        return NULL;
    }
    if (!load) {
        (void)vta_error(p, "a 'dma_copy' nest (%s) is more than one store of one load, perhaps cast or padded with 0",
                        s->buffer ? s->buffer->name : "no store");
        return NULL;
    }
    if (!find_direction(p, &k, s, load, cast) || !read_indices(p, &k, s, load))
        return NULL;
    if (cond && k.to_dram) {
        (void)vta_error(p, "the store to '%s' is padded or guarded: only loads can be", k.dram->name);
        return NULL;
    }
    if (cond && !add_condition(p, &k, tir_simplify(p->bounds, cond))) {
        (void)vta_error(p, "the condition of the copy to '%s' is not a range of each of its loops", k.sram->name);
        return NULL;
    }
    if (!find_pads(p, &k) || !take_lanes(p, &k))
        return NULL;
    if (!is_dense(&k)) {
        (void)vta_error(p, "the copy does not fill '%s' without gaps in the order of its loops", k.sram->name);
        return NULL;
    }
    return make_rows(p, &k) ? write_copy(p, &k) : NULL;
}

/* --- the pass --- */

static tir_stmt *inject_marked(vta_pass *p, tir_stmt *s)
{
    tir_stmt *made = vta_is_attr(s, "pragma_dma_copy") ? inject(p, s->body) : NULL;
    return made ? made : s;
}

bool tir_pass_inject_dma_intrin(compiler *c, tir_func *f)
{
    return vta_pass_run(c, f, inject_marked);
}
