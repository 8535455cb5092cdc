/* reader.h: little-endian numbers and texts from unchecked bytes. After a read beyond the end, all further reads give
 * zeros, and `ok` is false.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_READER_H
#define LATHE_VM_READER_H
#include "lathe_vm.h"

#include <stdbool.h>

/* Bytes of a file, which the owner of the file keeps. */
typedef struct vm_bytes {
    const uint8_t *data;
    size_t size;
} vm_bytes;

typedef struct vm_reader {
    vm_bytes bytes;
    size_t at;
    bool ok;
} vm_reader;

vm_reader vm_reader_of(vm_bytes bytes);
size_t vm_reader_left(const vm_reader *r);
/* n bytes, not copied; {NULL, 0} where they are not there. */
vm_bytes vm_read_bytes(vm_reader *r, uint64_t n);
uint8_t vm_read_u8(vm_reader *r);
uint16_t vm_read_u16(vm_reader *r);
uint32_t vm_read_u32(vm_reader *r);
uint64_t vm_read_u64(vm_reader *r);
int32_t vm_read_i32(vm_reader *r);
int64_t vm_read_i64(vm_reader *r);
double vm_read_f64(vm_reader *r);
lathe_dtype vm_read_dtype(vm_reader *r);
/* u64 n of elements with at least `each` bytes; fails where the rest of the bytes cannot hold them. */
uint64_t vm_read_count(vm_reader *r, size_t each);
/* A `str`: a length and bytes. */
vm_bytes vm_read_text(vm_reader *r);
/* n words of a vec<i64> into memory that the caller has. */
void vm_read_words(vm_reader *r, int64_t *out, size_t n);

bool vm_text_is(vm_bytes text, const char *expected);
/* As memcmp; of two of which one begins the other, the shorter comes first. */
int vm_text_compare(vm_bytes a, vm_bytes b);
/* The text with a zero behind it; NULL: no memory. Zeros within it are the caller's to refuse (vm_text_plain). */
char *vm_text_copy(vm_bytes text);
bool vm_text_plain(vm_bytes text);
/* For "%.*s" in messages: not more than 80 bytes. */
int vm_text_shown(vm_bytes text);
#endif
