/* SPDX-License-Identifier: Apache-2.0 */
/* Gemmini's instructions. A comment in front of each part names what it follows: "ISA" is the section of that name in
 * the README of ucb-bar/gemmini, gemmini.cc and gemmini_params.h are files of ucb-bar/libgemmini, .scala those of
 * src/main/scala/gemmini. Where that functional model and the hardware differ, the comment says so. */
#include "device.h"

#include <math.h>
#include <string.h>

#define DIM GEMMINI_DIM
#define SUM (1u << 31)  /* bits of a local address: of the accumulator */
#define ADD (1u << 30)  /* a write adds */
#define WIDE (1u << 29) /* a read gives int32 */
#define ROW 0x3FFFu
#define GARBAGE 0xFFFFFFFFu /* no operand, or a result that nobody wants */

/* --- local memory (ISA, "Gemmini's Memory Addressing Scheme") --- */

static bool fault(gemmini *g, const char *why)
{
    g->fault = g->fault ? g->fault : why;
    return false;
}

static uint32_t field(uint64_t word, unsigned low, unsigned bits)
{
    return (uint32_t)(word >> low) & ((1u << bits) - 1);
}

static gemmini_block block_of(uint64_t word)
{
    const gemmini_block b = {(uint32_t)word, field(word, 32, 16), field(word, 48, 16)};
    return b;
}

/* Hardware wraps rows around, Spike stops. */
static bool are_rows(gemmini *g, uint32_t address, uint32_t n)
{
    if ((address & ~(SUM | ADD | WIDE | ROW)) != 0)
        return fault(g, "a local address has bits that mean nothing");
    return (address & ROW) + n <= (address & SUM ? GEMMINI_SUMS : GEMMINI_ROWS) ||
           fault(g, "a local memory has no such row");
}

/* The number of a row among those of both memories. */
static uint32_t row_of(uint32_t address)
{
    return (address & SUM ? GEMMINI_ROWS : 0) + (address & ROW);
}

/* Something uses rows, so it waits for the loads before, and later loads wait for it (ReservationStation.scala).
 * Loads do not wait for each other: two of them into the same element leave any of the two, until something else is
 * written there. */
static void use(gemmini *g, uint32_t address, uint32_t rows)
{
    memset(&g->loaded[row_of(address)], 0, rows * sizeof g->loaded[0]);
}

/* Whether an element has one meaning; else that is the fault. */
static bool is_known(gemmini *g, uint32_t address, uint32_t row, uint32_t column)
{
    return !g->strict || !(g->raced[row_of(address + row)] & 1u << column) ||
           fault(g, "two loads wrote what is read here, and nothing between them waited for the first");
}

/* --- arithmetic --- */

/* By a scale: the integer as a float, the product as a float, to nearest with ties to even (gemmini_params.h,
 * ACC_SCALE, MVIN_SCALE; hardfloat units in hardware). Spike's macro adds one in float, and so makes one too much of
 * 14 floats just below a power of two; this does not. Limits before the rounding give the same, and no overflow. */
static int8_t scaled(int32_t v, float scale)
{
    const float y = (float)v * scale;
    return (int8_t)(y >= 127 ? 127 : y > -128 ? nearbyintf(y) : -128);
}

/* By 2^n, to nearest with ties to even (gemmini_params.h, ROUNDING_RIGHT_SHIFT). */
static int64_t shifted(int64_t v, uint32_t n)
{
    const int64_t one = (int64_t)1 << n, down = v >> n, rest = 2 * (v - down * one);
    return down + (rest > one || (rest == one && (down & 1)));
}

/* --- config (ISA, "Configuration"; gemmini.cc, config) --- */

static float float_of(uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}

static bool config_ex(gemmini *g, uint64_t rs1, uint64_t rs2)
{
    g->a_stride = field(rs1, 16, 16);
    g->c_stride = field(rs2, 48, 16);
    if (field(rs1, 7, 1)) /* only the strides */
        return true;
    g->weights_stay = field(rs1, 2, 1);
    g->relu = field(rs1, 3, 2) == 1;
    g->transpose_a = field(rs1, 8, 1);
    g->transpose_b = field(rs1, 9, 1);
    g->shift = field(rs2, 0, 5);
    return !g->transpose_b || g->transpose_a != g->weights_stay ||
           fault(g, "these operands cannot be transposed together");
}

static bool config_ld(gemmini *g, uint64_t rs1, uint64_t rs2)
{
    const uint32_t unit = field(rs1, 3, 2), repeats = field(rs1, 8, 8);
    if (unit > 2)
        return fault(g, "there are three load units");
    g->load[unit] = (gemmini_load){.stride = rs2, .block_stride = field(rs1, 16, 16), .repeats = repeats ? repeats : 1,
                                   .scale = float_of(rs1 >> 32), .shrink = field(rs1, 2, 1)};
    return true;
}

static bool config_st(gemmini *g, uint64_t rs1, uint64_t rs2)
{
    g->store = (gemmini_store){
        .scale = float_of(rs2 >> 32), .relu = field(rs1, 2, 2) == 1, .stride = (uint32_t)rs2,
        .row_length = field(rs1, 24, 8), .pool_stride = field(rs1, 4, 2), .pool_size = field(rs1, 6, 2),
        .up = field(rs1, 8, 2), .left = field(rs1, 10, 2), .pooled_rows = field(rs1, 32, 8),
        .pooled_columns = field(rs1, 40, 8), .rows = field(rs1, 48, 8), .columns = field(rs1, 56, 8)};
    if (field(rs1, 2, 2) > 1)
        return fault(g, "a default Gemmini has no other activation than ReLU");
    if (g->strict && g->store.relu && g->store.scale < 0) /* hardware clips first, Spike scales first */
        return fault(g, "ReLU with a negative scale");
    return g->store.pool_stride || !g->store.pool_size || fault(g, "a window of a pool needs a stride");
}

/* --- mvin, mvin2, mvin3 (ISA, "mvin"; gemmini.cc, mvin) --- */

/* An element goes to its place, and `repeats - 1` times to the row above, to the columns behind: neighboring pixels
 * come into one row, and few channels fill more of it. Spike repeats in the accumulator, too; hardware does not. */
static void put(gemmini *g, const gemmini_load *u, gemmini_block to, uint32_t row, uint32_t column, int32_t v)
{
    const uint32_t first = (to.address & ROW) + row;
    for (uint32_t q = 0; q < u->repeats && q <= first; q++) {
        const uint32_t at = first - q, c = column + q * to.columns;
        int32_t *sum = &g->sums[at % GEMMINI_SUMS][c];
        uint16_t *loaded = &g->loaded[row_of((to.address & SUM) | at)];
        uint16_t *raced = &g->raced[row_of((to.address & SUM) | at)];
        if (to.address & SUM)
            *sum = to.address & ADD ? (int32_t)((uint32_t)*sum + (uint32_t)v) : v;
        else
            g->scratchpad[at][c] = (int8_t)v;
        *raced = (uint16_t)((*raced & ~(1u << c)) | (*loaded & 1u << c));
        *loaded = (uint16_t)(*loaded | 1u << c);
    }
}

static bool mvin(gemmini *g, const gemmini_load *u, uint64_t from, gemmini_block to)
{
    const bool sums = to.address & SUM, wide = sums && !u->shrink;
    const uint32_t bytes = to.columns * (wide ? 4 : 1), blocks = (to.columns + DIM - 1) / DIM;
    if (to.rows < 1 || to.rows > DIM || to.columns < 1 || to.columns > (wide && g->strict ? DIM : 4 * DIM))
        return fault(g, "mvin takes 16 rows and 64 columns of int8, or 16 of int32");
    if (u->repeats > 1 && ((sums && g->strict) || u->repeats * to.columns > DIM))
        return fault(g, "pixels are repeated in one row of the scratchpad");
    if (g->strict && u->block_stride < to.rows)
        return fault(g, "the blocks of an mvin are nearer than its rows");
    if (!are_rows(g, to.address, to.rows + (blocks - 1) * u->block_stride))
        return false;
    for (uint32_t r = 0; r < to.rows; r++) {
        const uint64_t address = from + r * u->stride + g->offset;
        const uint8_t *data = from ? (const uint8_t *)(uintptr_t)address : NULL; /* address 0: zeros */
        if (g->strict && from && address < g->written_to && address + bytes > g->written_from)
            return fault(g, "mvin reads what a store wrote, and there is no fence between");
        for (uint32_t c = 0; c < to.columns; c++) {
            int32_t v = 0;
            if (data && wide)
                memcpy(&v, data + 4 * c, sizeof v);
            else if (data)
                v = scaled((int8_t)data[c], u->scale);
            put(g, u, to, r + c / DIM * u->block_stride, c % DIM, v);
        }
    }
    g->loads++;
    g->bytes_loaded += from ? (uint64_t)bytes * (u->stride ? to.rows : 1) : 0; /* a row that is repeated: once */
    return true;
}

/* --- mvout (ISA, "mvout"; gemmini.cc, mvout; max pool: "config_mvout") --- */

static void note_written(gemmini *g, uint64_t address, uint64_t bytes)
{
    g->bytes_stored += bytes;
    g->written_from = g->written_to == 0 || address < g->written_from ? address : g->written_from;
    g->written_to = address + bytes > g->written_to ? address + bytes : g->written_to;
}

static int8_t element(gemmini *g, uint32_t address, uint32_t row, uint32_t column)
{
    const uint32_t at = (address & ROW) + row;
    if (!is_known(g, address, row, column) || !(address & SUM))
        return g->scratchpad[at][column];
    const int8_t v = scaled(g->sums[at][column], g->store.scale);
    return g->store.relu && v < 0 ? 0 : v;
}

/* The largest of a window; what lies outside of the tile counts as 0, not as nothing. */
static int8_t largest(gemmini *g, uint32_t address, uint32_t y, uint32_t x, uint32_t channel)
{
    const gemmini_store *s = &g->store;
    int8_t most = -128;
    for (uint32_t i = 0; i < s->pool_size; i++)
        for (uint32_t j = 0; j < s->pool_size; j++) {
            const uint32_t row = y * s->pool_stride + i - s->up, column = x * s->pool_stride + j - s->left;
            const bool inside = row < s->rows && column < s->columns; /* numbers below 0 are large ones */
            const int8_t v = inside ? element(g, address, row * s->columns + column, channel) : 0;
            most = v > most ? v : most;
        }
    return most;
}

static bool mvout_pooled(gemmini *g, uint64_t to, gemmini_block from)
{
    const gemmini_store *s = &g->store;
    const uint32_t rows = s->rows * s->columns, first = from.address & ROW, bank = GEMMINI_SUMS / 2;
    if (from.columns < 1 || from.columns > DIM || (from.address & WIDE))
        return fault(g, "a pooling mvout takes 16 columns, as int8");
    if (!are_rows(g, from.address, rows))
        return false;
    if (g->strict && (from.address & SUM) && rows && first / bank != (first + rows - 1) / bank)
        return fault(g, "the tile of a pooling mvout lies in both banks of the accumulator");
    for (uint32_t y = 0; y < s->pooled_rows; y++)
        for (uint32_t x = 0; x < s->pooled_columns; x++) {
            const uint64_t address = to + ((uint64_t)y * s->row_length + x) * s->stride + g->offset;
            for (uint32_t c = 0; c < from.columns; c++)
                ((int8_t *)(uintptr_t)address)[c] = largest(g, from.address, y, x, c);
            note_written(g, address, from.columns);
        }
    use(g, from.address, rows);
    return !g->fault;
}

static bool mvout(gemmini *g, uint64_t to, gemmini_block from)
{
    const bool wide = (from.address & SUM) && (from.address & WIDE);
    const uint32_t blocks = (from.columns + DIM - 1) / DIM;
    g->stores++;
    if (g->store.pool_stride)
        return mvout_pooled(g, to, from);
    if (from.rows < 1 || from.rows > DIM || from.columns < 1 || from.columns > (wide && g->strict ? DIM : 4 * DIM))
        return fault(g, "mvout takes 16 rows and 64 columns as int8, or 16 as int32");
    if (!are_rows(g, from.address, from.rows + (blocks - 1) * DIM))
        return false;
    for (uint32_t r = 0; r < from.rows; r++) {
        const uint64_t address = to + (uint64_t)r * g->store.stride + g->offset;
        uint8_t *data = (uint8_t *)(uintptr_t)address;
        for (uint32_t c = 0; c < from.columns; c++)
            if (wide && is_known(g, from.address, r + c / DIM * DIM, c % DIM))
                memcpy(data + 4 * c, &g->sums[(from.address & ROW) + r + c / DIM * DIM][c % DIM], 4);
            else if (!wide)
                data[c] = (uint8_t)element(g, from.address, r + c / DIM * DIM, c % DIM);
        note_written(g, address, (uint64_t)from.columns * (wide ? 4 : 1));
    }
    for (uint32_t b = 0; b < blocks; b++)
        use(g, from.address + b * DIM, from.rows);
    return !g->fault;
}

/* --- preload, compute (ISA, "matmul.preload", "matmul.compute"; gemmini.cc, compute) --- */

/* An operand of the array as a matrix, zeros outside of it and for garbage. Element (i, j) is in row `stride * i`,
 * column j; transposed in row `stride * j`, column i. `rows` and `columns` are those of the matrix. */
static bool read_matrix(gemmini *g, gemmini_block b, uint32_t stride, bool transposed, int32_t m[DIM][DIM])
{
    const uint32_t n = transposed ? b.columns : b.rows, rows = n ? (n - 1) * stride + 1 : 0, at = b.address & ROW;
    memset(m, 0, DIM * sizeof m[0]);
    if (b.address == GARBAGE)
        return true;
    if ((b.address & SUM) || b.rows > DIM || b.columns > DIM)
        return fault(g, "an operand of the array lies in the accumulator, or has more than 16 rows or columns");
    if (!are_rows(g, b.address, rows))
        return false;
    for (uint32_t i = 0; i < b.rows; i++)
        for (uint32_t j = 0; j < b.columns; j++) {
            const uint32_t row = stride * (transposed ? j : i), column = transposed ? i : j;
            m[i][j] = g->scratchpad[at + row][column];
            (void)is_known(g, b.address, row, column);
        }
    use(g, b.address, rows);
    return !g->fault;
}

/* Only sums of the array are shifted on their way to the scratchpad. */
static bool write_matrix(gemmini *g, gemmini_block c, int32_t m[DIM][DIM])
{
    const uint32_t rows = c.rows ? (c.rows - 1) * g->c_stride + 1 : 0;
    if (c.address == GARBAGE)
        return true;
    if (c.rows > DIM || c.columns > DIM)
        return fault(g, "a result of the array has more than 16 rows or columns");
    if (!are_rows(g, c.address, rows))
        return false;
    for (uint32_t i = 0; i < c.rows; i++)
        for (uint32_t j = 0; j < c.columns; j++) {
            const uint32_t row = (c.address & ROW) + i * g->c_stride;
            int32_t *sum = &g->sums[row % GEMMINI_SUMS][j];
            const int64_t v = g->weights_stay ? m[i][j] : shifted(m[i][j], g->shift);
            if (c.address & SUM)
                *sum = c.address & ADD ? (int32_t)((uint32_t)*sum + (uint32_t)m[i][j]) : m[i][j];
            else
                g->scratchpad[row][j] = (int8_t)(v > 127 ? 127 : v >= 0 ? v : g->relu ? 0 : v < -128 ? -128 : v);
            if (!(c.address & SUM) || !(c.address & ADD))
                g->raced[row_of((c.address & SUM) | row)] &= (uint16_t)~(1u << j);
        }
    use(g, c.address, rows);
    return true;
}

static void add_product(int32_t to[DIM][DIM], int32_t a[DIM][DIM], int32_t b[DIM][DIM])
{
    for (uint32_t i = 0; i < DIM; i++)
        for (uint32_t k = 0; k < DIM; k++)
            for (uint32_t j = 0; j < DIM; j++)
                to[i][j] = (int32_t)((uint32_t)to[i][j] + (uint32_t)a[i][k] * (uint32_t)b[k][j]);
}

/* Weights that stay: result = D + A * cells. Output that stays: cells += A * B, and they are the result. Either way
 * `compute` takes new cells from the operand of the preload first, `compute again` does not. */
static bool compute(gemmini *g, bool fresh, gemmini_block a, gemmini_block bd)
{
    int32_t left[DIM][DIM], right[DIM][DIM];
    if (a.address == GARBAGE)
        return fault(g, "the first operand of compute is garbage"); /* unknown numbers, here as there */
    if (g->strict && !g->weights_stay)
        return fault(g, "sums in the array have 20 bits in hardware: let the weights stay");
    if ((fresh && !read_matrix(g, g->preloaded, 1, g->weights_stay && g->transpose_b, g->cells)) ||
        !read_matrix(g, a, g->a_stride, g->transpose_a, left) ||
        !read_matrix(g, bd, 1, !g->weights_stay && g->transpose_b, right))
        return false;
    /* A row of A for each cycle; new cells take 16, beside the rows of the compute before (ExecuteController.scala). */
    g->computes++;
    g->compute_cycles += fresh ? DIM : a.rows < 4 ? 4 : a.rows;
    add_product(g->weights_stay ? right : g->cells, left, g->weights_stay ? g->cells : right);
    return write_matrix(g, g->result, g->weights_stay ? right : g->cells);
}

/* --- all --- */

void gemmini_reset(gemmini *g)
{
    memset(g, 0, sizeof *g);
    g->load[0].repeats = g->load[1].repeats = g->load[2].repeats = 1;
    g->strict = true;
}

void gemmini_fence(gemmini *g)
{
    memset(g->loaded, 0, sizeof g->loaded);
    g->written_from = g->written_to = 0;
    g->fences++;
}

bool gemmini_run(gemmini *g, uint32_t funct, uint64_t rs1, uint64_t rs2)
{
    if (g->fault)
        return false;
    g->instructions++;
    switch (funct) {
    case 0: return (rs1 & 3) == 0   ? config_ex(g, rs1, rs2)
                   : (rs1 & 3) == 1 ? config_ld(g, rs1, rs2)
                   : (rs1 & 3) == 2 ? config_st(g, rs1, rs2)
                                    : fault(g, "a default Gemmini has no config_norm");
    case 2: return mvin(g, &g->load[0], rs1, block_of(rs2));
    case 1: return mvin(g, &g->load[1], rs1, block_of(rs2));
    case 14: return mvin(g, &g->load[2], rs1, block_of(rs2));
    case 3: return mvout(g, rs1, block_of(rs2));
    case 4: return compute(g, true, block_of(rs1), block_of(rs2));
    case 5: return compute(g, false, block_of(rs1), block_of(rs2));
    case 6: g->preloaded = block_of(rs1); g->result = block_of(rs2); return true;
    case 7: return true; /* flush: of address translations, which this model does not have */
    default: return fault(g, "this model has no such instruction"); /* loops, counters, clock gates */
    }
}
