/* reader.c: numbers and texts out of unchecked bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

vm_reader vm_reader_of(vm_bytes bytes)
{
    return (vm_reader){.bytes = bytes, .ok = true};
}

size_t vm_reader_left(const vm_reader *r)
{
    return r->ok ? r->bytes.size - r->at : 0;
}

vm_bytes vm_read_bytes(vm_reader *r, uint64_t n)
{
    if (n > vm_reader_left(r)) {
        r->ok = false;
        return (vm_bytes){0};
    }
    if (n == 0)
        return (vm_bytes){(const uint8_t *)"", 0};
    vm_bytes b = {r->bytes.data + r->at, (size_t)n};
    r->at += (size_t)n;
    return b;
}

static uint64_t number(vm_reader *r, size_t size)
{
    vm_bytes b = vm_read_bytes(r, size);
    uint64_t v = 0;
    for (size_t i = b.size; i-- > 0;)
        v = v << 8 | b.data[i];
    return v;
}

uint8_t vm_read_u8(vm_reader *r)
{
    return (uint8_t)number(r, 1);
}

uint16_t vm_read_u16(vm_reader *r)
{
    return (uint16_t)number(r, 2);
}

uint32_t vm_read_u32(vm_reader *r)
{
    return (uint32_t)number(r, 4);
}

uint64_t vm_read_u64(vm_reader *r)
{
    return number(r, 8);
}

int32_t vm_read_i32(vm_reader *r)
{
    uint32_t u = vm_read_u32(r);
    int32_t i;
    memcpy(&i, &u, sizeof i);
    return i;
}

int64_t vm_read_i64(vm_reader *r)
{
    uint64_t u = vm_read_u64(r);
    int64_t i;
    memcpy(&i, &u, sizeof i);
    return i;
}

double vm_read_f64(vm_reader *r)
{
    uint64_t u = vm_read_u64(r);
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

lathe_dtype vm_read_dtype(vm_reader *r)
{
    lathe_dtype t = {0};
    t.code = vm_read_u8(r);
    t.bits = vm_read_u8(r);
    t.lanes = vm_read_u16(r);
    return t;
}

uint64_t vm_read_count(vm_reader *r, size_t each)
{
    uint64_t n = vm_read_u64(r);
    if (n > vm_reader_left(r) / each) {
        r->ok = false;
        return 0;
    }
    return n;
}

vm_bytes vm_read_text(vm_reader *r)
{
    return vm_read_bytes(r, vm_read_u64(r));
}

void vm_read_words(vm_reader *r, int64_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = vm_read_i64(r);
}

bool vm_text_is(vm_bytes text, const char *expected)
{
    return text.size == strlen(expected) && (text.size == 0 || memcmp(text.data, expected, text.size) == 0);
}

int vm_text_compare(vm_bytes a, vm_bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int c = n > 0 ? memcmp(a.data, b.data, n) : 0;
    return c != 0 ? c : (a.size > b.size) - (a.size < b.size);
}

char *vm_text_copy(vm_bytes text)
{
    char *s = malloc(text.size + 1);
    if (!s)
        return NULL;
    if (text.size > 0)
        memcpy(s, text.data, text.size);
    s[text.size] = 0;
    return s;
}

bool vm_text_plain(vm_bytes text)
{
    return text.size == 0 || !memchr(text.data, 0, text.size);
}

int vm_text_shown(vm_bytes text)
{
    return text.size < 80 ? (int)text.size : 80;
}
