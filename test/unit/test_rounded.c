/* SPDX-License-Identifier: Apache-2.0 */
/* Floats rounded to bytes and words as on a processor without a floating-point unit (kernel/round), natively, against
 * arithmetic in double precision. Boards without a unit run in emulators, which have no time for these values: all
 * ties, the floats beside them, and every exponent with mantissas at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#define LATHE_NO_FPU 1
#include "kernel/round/rounded_i16.h"
#include "kernel/round/rounded_i8.h"
#include "kernel/round/rounded_u16.h"
#include "kernel/round/rounded_u8.h"

static int64_t expected(float v, int32_t zero, int32_t least, int32_t most)
{
    double n = nearbyint((double)v) + zero;
    return isnan(v) ? 0 : n < least ? least : n > most ? most : (int64_t)n;
}

static void check(float v, uint32_t pick)
{
    static const int32_t places[] = {0, 1, 7, 128, 254, 255};
    int32_t p = places[pick % 6u], wide = p * 257;
    assert_int_equal(lathe_rounded_i8(v, p - 128), expected(v, p - 128, -128, 127));
    assert_int_equal(lathe_rounded_u8(v, p), expected(v, p, 0, 255));
    assert_int_equal(lathe_rounded_i16(v, wide - 32768), expected(v, wide - 32768, -32768, 32767));
    assert_int_equal(lathe_rounded_u16(v, wide), expected(v, wide, 0, 65535));
}

static void ties(void **state)
{
    (void)state;
    for (int32_t i = -140000; i <= 140000; i++) {
        float v = (float)i * 0.5f;
        for (uint32_t zero = 0; zero < 6; zero++) {
            check(v, zero);
            check(nextafterf(v, INFINITY), zero);
            check(nextafterf(v, -INFINITY), zero);
        }
    }
}

static void all_exponents(void **state)
{
    uint32_t random = 1;
    (void)state;
    for (uint32_t high = 0; high < 512; high++)
        for (uint32_t i = 0; i < 4000; i++) {
            random = random * 1664525u + 1013904223u;
            uint32_t bits = high << 23 | (i == 0 ? 0 : i == 1 ? 0x7fffffu : random >> 9);
            float v;
            memcpy(&v, &bits, sizeof v);
            check(v, i);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties),
        cmocka_unit_test(all_exponents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
