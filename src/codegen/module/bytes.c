/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and strings as they lie in a file, little endian on every host. */
#include "codegen/module/module.h"

#include <string.h>

void bytes_put(module_bytes *b, const void *data, size_t n)
{
    if (b->data && n > 0)
        memcpy(b->data + b->len, data, n);
    b->len += n;
}

static void put_number(module_bytes *b, uint64_t v, size_t bytes)
{
    uint8_t digits[8];
    for (size_t i = 0; i < bytes; i++)
        digits[i] = (uint8_t)(v >> (8 * i));
    bytes_put(b, digits, bytes);
}

void bytes_u16(module_bytes *b, uint32_t v)
{
    put_number(b, v, 2);
}

void bytes_u32(module_bytes *b, uint32_t v)
{
    put_number(b, v, 4);
}

void bytes_u64(module_bytes *b, uint64_t v)
{
    put_number(b, v, 8);
}

void bytes_str(module_bytes *b, const char *s)
{
    size_t n = strlen(s);
    bytes_u64(b, n);
    bytes_put(b, s, n);
}

void bytes_zero_to(module_bytes *b, size_t len)
{
    if (b->data && len > b->len)
        memset(b->data + b->len, 0, len - b->len);
    b->len = len > b->len ? len : b->len;
}
