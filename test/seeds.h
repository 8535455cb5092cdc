/* seeds.h: how much a random test does in each tier of scripts/test.sh. SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_TEST_SEEDS_H
#define LATHE_TEST_SEEDS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How many cases: in `make check`, in `make test`, in `make test-long`. scripts/test.sh names its tier in LATHE_TIER; a
 * test that is started by itself does what `make test` does. The first cases are the same everywhere. */
static inline uint32_t seeds(uint32_t check, uint32_t test, uint32_t all)
{
    const char *tier = getenv("LATHE_TIER");
    return tier && strcmp(tier, "check") == 0 ? check : tier && strcmp(tier, "long") == 0 ? all : test;
}
#endif
