/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that change their order: an axis that is contiguous where it is read, and another one where it is written.
 * Row by row of the result each line of memory would be fetched for one element, and again for the next one. So a tile
 * of both axes is moved at a time: a few elements of each row of the result, and inside of it what lies side by side
 * in the operand. */
#include "te/rule/rule.h"
#include "tir/walk.h"
#include "type/target.h"

#define READ_TILE  8  /* elements side by side in the operand: as many lines of the result, which one set of the first
                       * cache holds where they are a power of two apart */
#define WRITE_TILE 8  /* and in the result, from each of a few lines that stay in the cache */
#define LEAST_LINE_MOVED 17 /* elements of the result's lines */
#define LINE_TILE  16 /* floats side by side in the operand that shuffles move: those of a line of the cache */
#define LEAST_BLOCK 4 /* elements of a block that shuffles move */
#define LONG_ROW   1024 /* pixels of blocks that one call of the kernel moves */
#define MOST_READ  64 /* elements side by side in the operand, that are moved at a time */
#define WAY        4096 /* bytes: lines that are a multiple of it apart stand in one set of the first cache */

typedef struct move_search {
    const te_graph *g;
    tir_expr_ref found; /* the only read of a parameter */
    bool several;
} move_search;

static void note_read(void *ctx, tir_expr_ref e)
{
    move_search *m = ctx;
    const te_tensor *t = e->kind == TIR_LOAD ? te_tensor_of(m->g, e->u.buffer) : NULL;
    if (!t || e->n_args == 0)
        return;
    m->several |= m->found || t->node->kind != TE_PLACEHOLDER;
    m->found = e;
}

/* The axis of n along which neighbors are neighbors in memory where `at`, a last index, is read, up to *out_block of
 * them; n_axes: none. */
static uint32_t contiguous_axis(const te_node *n, tir_expr_ref at, int64_t *out_block)
{
    *out_block = 0;
    if (tir_is_binary(at, TIR_FLOORMOD) && tir_is_int(at->args[1], out_block))
        at = at->args[0];
    for (uint32_t i = 0; i < n->n_axes; i++)
        if (at->kind == TIR_VAR && n->axes[i]->var == at->u.var)
            return i;
    return n->n_axes;
}

/* Does the index of any other dimension of the read follow the axis? In blocks it does: the block's number. */
static bool is_apart(tir_expr_ref read, const te_axis *axis)
{
    for (uint32_t i = 0; i + 1 < read->n_args; i++)
        if (tir_uses_var(read->args[i], axis->var))
            return false;
    return true;
}

/* Elements of the operand that a tile has side by side: a block, or half of it where the lines of the result that it
 * goes to would displace each other in the cache; or READ_TILE. */
static int64_t read_tile(const te_node *last, uint32_t read, int64_t block)
{
    int64_t apart = (int64_t)dtype_bytes(last->outputs[0]->dt);
    for (uint32_t i = read + 1; i < last->n_axes; i++)
        apart *= te_axis_extent(last, i);
    return block == 0 || (block == 2 * READ_TILE && apart % WAY == 0) ? READ_TILE : block;
}

/* What moves tiles of elements of a type by shuffles: so many side by side in the operand, and in the result. */
typedef struct mover {
    dtype dt;
    const char *intrin;
    int64_t read, write;
    int64_t least; /* of both, or other loops do as well */
} mover;
static const mover movers[] = {
    {DT_F32, "transpose_tile", LINE_TILE, WRITE_TILE, WRITE_TILE},
    {DT_U8, "transpose_u8", 4 * LINE_TILE, LINE_TILE, LEAST_BLOCK},
    {DT_I8, "transpose_i8", 4 * LINE_TILE, LINE_TILE, LEAST_BLOCK},
    {DT_F16, "transpose_f16", 2 * LINE_TILE, LINE_TILE, WRITE_TILE},
    {DT_I16, "transpose_i16", 2 * LINE_TILE, LINE_TILE, WRITE_TILE},
};

/* An index that grows in even steps with both axes; in blocks, which are moved one by one, it does, too. */
static bool is_even(tir_expr_ref at, int64_t block)
{
    const bool sum = at->kind == TIR_BINOP && (at->op == TIR_ADD || at->op == TIR_MUL),
               cut = at->kind == TIR_BINOP && (at->op == TIR_FLOORDIV || at->op == TIR_FLOORMOD);
    return at->kind == TIR_VAR || at->kind == TIR_INT ||
           (sum && is_even(at->args[0], block) && is_even(at->args[1], block)) ||
           (cut && at->args[0]->kind == TIR_VAR && tir_is_const(at->args[1], block));
}

/* Shuffles take numbers of elements from line to line: along the axis that is contiguous in the result, those of the
 * operand, and along the other one those of the result. Extents behind them that are open leave none. */
static bool has_known_lines(const te_node *last, const move_search *m, uint32_t read)
{
    const tir_buffer *b = m->found->u.buffer;
    const te_axis *inner = last->axes[last->n_axes - 1];
    bool known = true, behind = false;
    for (uint32_t i = read + 1; i < last->n_axes; i++)
        known &= te_axis_extent(last, i) > 0;
    for (uint32_t i = 0; i < m->found->n_args; i++) {
        known &= !behind || b->shape[i]->kind == TIR_INT;
        behind |= tir_uses_var(m->found->args[i], inner->var);
    }
    return known;
}

/* Elements that only change their order: both axes are known, and each follows one index of the read. NULL: no. */
static const mover *find_mover(const te_node *last, const move_search *m, uint32_t read, int64_t block)
{
    const int64_t extent = te_axis_extent(last, read), inner = te_axis_extent(last, last->n_axes - 1);
    bool plain = last->body[0] == m->found && extent > 0 && inner > 0 && (block == 0 || extent % block == 0) &&
                 has_known_lines(last, m, read);
    for (uint32_t i = 0; i < m->found->n_args && plain; i++)
        plain = is_even(m->found->args[i], block);
    for (uint32_t i = 0; i < sizeof movers / sizeof *movers && plain; i++)
        if (movers[i].dt == m->found->type.dt)
            return &movers[i];
    return NULL;
}

/* Shuffles of vectors whose length is open take a register for their places, and write over none that they read: beside
 * these 16 rows of floats do not fit. */
static bool fits_registers(const struct target *t, const mover *by, int64_t block)
{
    return !(t->features & TARGET_RVV) || by->dt != DT_F32 || block < LINE_TILE;
}

/* The tile that is moved. */
typedef struct move_tile {
    int64_t read, write;
    const char *intrin; /* NULL: element by element */
} move_tile;

/* Into blocks or out of them, a long row at once: on one side of the move all of it is contiguous. false: rows of the
 * result do as well. */
static bool choose_tile(const struct target *t, const te_node *last, const move_search *m, uint32_t read, int64_t block,
                        move_tile *out_tile)
{
    const int64_t extent = te_axis_extent(last, read), inner = te_axis_extent(last, last->n_axes - 1);
    const mover *by = find_mover(last, m, read, block);
    by = by && fits_registers(t, by, block) ? by : NULL;
    if (by && block > 0)
        *out_tile = (move_tile){block, LONG_ROW, by->intrin};
    else if (by && inner <= LINE_TILE)
        *out_tile = (move_tile){LONG_ROW, inner, by->intrin};
    else if (by)
        *out_tile = (move_tile){by->read, by->write, by->intrin};
    else
        *out_tile = (move_tile){read_tile(last, read, block), WRITE_TILE, NULL};
    if (by && (block > 0 || inner <= LINE_TILE))
        return extent >= LEAST_BLOCK && inner >= LEAST_BLOCK && extent + inner > LEAST_LINE_MOVED;
    return inner >= LEAST_LINE_MOVED && extent >= (by ? by->least : WRITE_TILE) && out_tile->read <= MOST_READ;
}

bool te_move_in_tiles(te_sched *s, const struct target *t, const te_node *last)
{
    move_search m = {.g = s->g};
    int64_t block = 0;
    uint32_t inner = last->n_axes - 1, read;
    move_tile tile;
    if (t->vector_bytes / 4 < 2 || last->n_outputs != 1 || last->n_axes < 2)
        return false;
    tir_visit_expr(last->body[0], note_read, &m);
    if (!m.found || m.several)
        return false;
    read = contiguous_axis(last, m.found->args[m.found->n_args - 1], &block);
    if (read >= inner || (block == 0 && !is_apart(m.found, last->axes[read])) ||
        !choose_tile(t, last, &m, read, block, &tile))
        return false;
    const char **order = arena_array(&s->c->mem, const char *, last->n_axes + 2u), *part;
    uint32_t n = 0, count = te_parallel_axes(s->g, last);
    te_sched_split(s, last->name, te_axis_name(last, read), tile.read, "read_o", "read_i");
    te_sched_split(s, last->name, te_axis_name(last, inner), tile.write, "write_o", "write_i");
    for (uint32_t i = 0; i < inner; i++)
        order[n++] = i == read ? "read_o" : te_axis_name(last, i);
    order[n++] = "write_o";
    order[n++] = "write_i";
    order[n++] = "read_i";
    te_sched_reorder(s, last->name, n, order);
    if (tile.intrin)
        te_sched_tensorize(s, last->name, "write_i", tile.intrin);
    part = order[0];
    for (uint32_t i = 1; i < count; i++) {
        const char *fused = arena_printf(&s->c->mem, "f%u", i);
        te_sched_fuse(s, last->name, part, order[i], fused);
        part = fused;
    }
    if (count > 0)
        te_sched_annotate(s, TE_PARALLEL, last->name, part);
    return true;
}
