/* seeds.h: how many random cases a test draws. SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_TEST_SEEDS_H
#define LATHE_TEST_SEEDS_H
#include <stdint.h>
#include <stdlib.h>

/* `few` for daily work, `many` where LATHE_LONG is set, as `make test-long` sets it. The first ones are the same. */
static inline uint32_t seeds(uint32_t few, uint32_t many)
{
    return getenv("LATHE_LONG") ? many : few;
}
#endif
