/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as text that becomes numbers, and their first eight as a number that becomes text, compared
 * with the C library. */
#include "kernel/text/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void differ(const char *what)
{
    fprintf(stderr, "%s differs from the C library's\n", what);
    abort();
}

static void check(int right, const char *what)
{
    if (!right)
        differ(what);
}

/* text: of `width` bytes exactly, and z the same with a zero behind it. */
static void read_text(const uint8_t *text, const char *z, int64_t width)
{
    char *end;
    const double want = strtod(z, &end);
    const char *digits = z + strspn(z, " \t\n\v\f\r");
    double got = 0;
    digits += *digits == '-' || *digits == '+';
    if (digits[0] != '0' || (digits[1] | 0x20) != 'x') {
        check(lathe_read_numbers(text, 1, width, LATHE_FLOAT, &got) == (end == z), "whether a float is read");
        check(end == z || want != want || memcmp(&got, &want, sizeof got) == 0, "a float");
    }
    errno = 0;
    const long long whole = strtoll(z, &end, 10);
    const int fails = end == z || errno == ERANGE;
    int64_t i = 0;
    check(lathe_read_numbers(text, 1, width, LATHE_SIGNED, &i) == fails && (fails || i == whole), "an integer");
    errno = 0;
    const unsigned long long natural = strtoull(z, &end, 10);
    const int too_large = end == z || errno == ERANGE;
    uint64_t u = 0;
    check(lathe_read_numbers(text, 1, width, LATHE_UNSIGNED, &u) == too_large && (too_large || u == natural),
          "an unsigned integer");
}

static void write_text(const uint8_t *number)
{
    double v;
    int64_t i;
    char want[64];
    uint8_t *text = malloc(15), *digits = malloc(20);
    if (!text || !digits)
        abort();
    memcpy(&v, number, sizeof v);
    memcpy(&i, number, sizeof i);
    memset(want, 0, sizeof want);
    snprintf(want, sizeof want, "%.8g", v);
    lathe_write_numbers(number, 1, 15, LATHE_FLOAT, text);
    if (v - v == 0) /* finite */
        check(memcmp(text, want, 15) == 0, "the text of a float");
    memset(want, 0, sizeof want);
    snprintf(want, sizeof want, "%lld", (long long)i);
    lathe_write_numbers(number, 1, 20, LATHE_SIGNED, digits);
    check(memcmp(digits, want, 20) == 0, "the text of an integer");
    free(text);
    free(digits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size + !size);
    char *z = malloc(size + 1);
    if (!text || !z)
        abort();
    if (size > 0) {
        memcpy(text, data, size);
        memcpy(z, data, size);
        z[size] = '\0';
        read_text(text, z, (int64_t)size);
    }
    if (size >= 8)
        write_text(data);
    free(text);
    free(z);
    return 0;
}
