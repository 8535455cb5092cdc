/* SPDX-License-Identifier: Apache-2.0 */
/* How far an output stays from an input: for each kernel the distances, and the run of the naive reading in one piece
 * of memory at every offset that they allow, which must give what it gives in two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tir/facts.h"
#include "tir/text.h"
#include "tir_reference.h"

#define HEAD(in, out)                                                             \
    "primfn(x: handle, y: handle) -> ()\n"                                        \
    "  attr = {\"global_symbol\": \"f\", \"inputs\": 1}\n"                        \
    "  buffers = {x: Buffer(int8, [" in "]), y: Buffer(int8, [" out "])} {\n"

static const struct {
    const char *what, *text;
    bool gains;
    uint64_t below, above;
    bool tight; /* one byte less is wrong on one side */
} kernels[] = {
    {"element by element", HEAD("24", "24") "for (i: int64, 0, 24) { y[i] = ((int8*)x[i] + 1) } }", true, 0, 24, false},
    {"two rows ahead are read",
     HEAD("40", "32") "for (i: int64, 0, 8) { for (k: int64, 0, 4) { y[((i*4) + k)] = "
                      "((int8*)x[((i*4) + k)] + (int8*)x[(((i*4) + k) + 8)]) } } }",
     true, 0, 40, false},
    {"a row behind is read",
     HEAD("32", "32") "for (i: int64, 0, 8) { for (k: int64, 0, 4) { y[((i*4) + k)] = "
                      "select((i >= 1), (int8*)x[(((i*4) + k) - 4)], 7) } } }",
     true, 4, 28, true},
    {"twice as much comes out",
     HEAD("16", "32") "for (i: int64, 0, 8) { for (k: int64, 0, 4) { y[((i*4) + k)] = "
                      "(int8*)x[((i*2) + floordiv(k, 2))] } } }",
     true, 16, 16, true},
    {"half comes out",
     HEAD("32", "16") "for (i: int64, 0, 16) { y[i] = ((int8*)x[(i*2)] + (int8*)x[((i*2) + 1)]) } }", true, 0, 32,
     false},
    {"from the end",
     HEAD("32", "32") "for (i: int64, 0, 32) { y[(31 - i)] = select((i >= 2), (int8*)x[(33 - i)], 3) } }", true, 30, 2,
     true},
    {"each row is kept before it goes",
     HEAD("32", "64") "for (i: int64, 0, 8) { allocate(row, int8, [4]) { for (k: int64, 0, 4) { row[k] = "
                      "(int8*)x[((i*4) + k)] } for (k1: int64, 0, 8) { y[((i*8) + k1)] = "
                      "(int8*)row[floordiv(k1, 2)] } } } }",
     true, 28, 32, true},
    {"a transpose",
     HEAD("24", "24") "for (i: int64, 0, 4) { for (k: int64, 0, 6) { y[((i*6) + k)] = (int8*)x[((k*4) + i)] } } }",
     true, 15, 24, true},
    {"all is read again",
     HEAD("16", "16") "for (i: int64, 0, 16) { y[i] = 0 for (k: int64, 0, 16) { y[i] = "
                      "((int8*)y[i] + (int8*)x[k]) } } }",
     false, 16, 16, false},
    {"how often a loop runs is read again for each round",
     HEAD("16", "16") "for (i: int64, 0, 16) { for (k: int64, 0, floormod(cast(int64, (int8*)x[0]), 3)) { "
                      "y[i] = 5 } } }",
     false, 16, 16, false},
    {"an index from data",
     HEAD("16", "16") "for (i: int64, 0, 16) { y[i] = (int8*)x[floormod(cast(int64, (int8*)x[i]), 16)] } }",
     true, 15, 16, true},
};

static void run(const tir_func *f, uint8_t *in, uint8_t *out)
{
    ref_env env = {.n_mem = 2, .mem = {{f->params[0], in}, {f->params[1], out}}};
    ref_run(&env, f->body);
    assert_false(env.failed);
}

#define MOST 128

/* The input at MOST, the output `offset` bytes from there. */
static bool agrees(const tir_func *f, int64_t n_in, int64_t n_out, int64_t offset)
{
    uint8_t in[MOST], want[MOST], memory[3 * MOST];
    for (int64_t i = 0; i < n_in; i++)
        in[i] = memory[MOST + i] = (uint8_t)(i * 37 + 11);
    run(f, in, want);
    run(f, memory + MOST, memory + MOST + offset);
    return memcmp(want, memory + MOST + offset, (size_t)n_out) == 0;
}

static void kernels_keep_their_distance(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        compiler c;
        compiler_init(&c);
        tir_module *m;
        tir_distance d;
        if (!tir_parse(&c, "case", kernels[i].text, strlen(kernels[i].text), &m))
            fail_msg("%s: %s", kernels[i].what, diags_print(&c.diags, &c.mem));
        const tir_func *f = m->funcs.data[0];
        int64_t n_in = tir_buffer_count(f->params[0]), n_out = tir_buffer_count(f->params[1]);
        bool gains = tir_find_distance(&c, f, 0, 1, &d);
        if (gains != kernels[i].gains || (gains && (d.below != kernels[i].below || d.above != kernels[i].above)))
            fail_msg("%s: %d below %llu above %llu", kernels[i].what, gains, (unsigned long long)d.below,
                     (unsigned long long)d.above);
        for (int64_t offset = -n_out; gains && offset <= n_in; offset++)
            if ((offset <= -(int64_t)d.below || offset >= (int64_t)d.above) && !agrees(f, n_in, n_out, offset))
                fail_msg("%s: wrong at %lld", kernels[i].what, (long long)offset);
        if (kernels[i].tight)
            assert_false(agrees(f, n_in, n_out, 1 - (int64_t)d.below) && agrees(f, n_in, n_out, (int64_t)d.above - 1));
        compiler_free(&c);
    }
}

#define PIXELS                                                                          \
    "primfn(x: handle, y: handle) -> ()\n"                                              \
    "  attr = {\"global_symbol\": \"f\", \"inputs\": 1}\n"                              \
    "  buffers = {x: Buffer(int8, [5, 6]), y: Buffer(int8, [5, 6])} {\n"

/* The channels in two lanes, each through all pixels: y of a pixel from x of `pixel`, channel by channel or `more`. */
#define LANES(pixel, more, keep)                                                                                 \
    PIXELS "for (c: int64, 0, 2) { for (i: int64, 0, 5) { for (k: int64, 0, 3) {"                                \
           " y[(((i*6) + (c*3)) + k)] = (select((" keep "), (int8*)x[((((" pixel ")*6) + (c*3)) + (" more "))], 5)" \
           " + (int8*)x[(((i*6) + (c*3)) + k)]) } } } }"

static const struct {
    const char *what, *text;
    bool fits;
} lanes[] = {
    {"the next pixel", LANES("i + 1", "k", "i < 4"), true},
    {"the pixel before", LANES("i - 1", "k", "i >= 1"), false},
    {"the lane before", LANES("i + 1", "k - 3", "(i < 4) && (c >= 1)"), false},
    {"one channel of the lane before", LANES("i + 1", "k - 1", "(i < 4) && (c >= 1)"), false},
    {"pixels outside of lanes",
     PIXELS "for (i: int64, 0, 5) { for (c: int64, 0, 2) { for (k: int64, 0, 3) { y[(((i*6) + (c*3)) + k)] = "
            "select((i >= 1), (int8*)x[((((i - 1)*6) + (c*3)) + k)], 7) } } } }",
     false},
};

static void lanes_take_the_place_of_the_input(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        compiler c;
        compiler_init(&c);
        tir_module *m;
        if (!tir_parse(&c, "case", lanes[i].text, strlen(lanes[i].text), &m))
            fail_msg("%s: %s", lanes[i].what, diags_print(&c.diags, &c.mem));
        const tir_func *f = m->funcs.data[0];
        if (tir_can_alias_in_lanes(&c, f, 0, 1) != lanes[i].fits || agrees(f, 30, 30, 0) != lanes[i].fits)
            fail_msg("%s", lanes[i].what);
        compiler_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_keep_their_distance),
                                       cmocka_unit_test(lanes_take_the_place_of_the_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
