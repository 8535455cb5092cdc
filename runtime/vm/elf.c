/* elf.c: finds a dynamic symbol by section headers, and where a file has none, by the dynamic segment. Every offset is
 * checked against the file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elf.h"

#include "abi/module.h"
#include "error.h"

#include <string.h>

enum {
    ET_SHARED = 3,
    PT_LOADED = 1,
    PT_DYNAMIC_TABLE = 2,
    SHT_DYNAMIC_SYMBOLS = 11,
    SYMBOL_BYTES = 24,
    DT_HASH_TABLE = 4,
    DT_STRINGS = 5,
    DT_SYMBOLS = 6,
    DT_STRINGS_BYTES = 10,
    DT_GNU_HASH_TABLE = 0x6ffffef5
};

struct segment {
    uint32_t type;
    uint64_t offset, address, size;
};

struct elf {
    vm_bytes file;
    uint64_t segments, sections;
    uint16_t segment_bytes, segment_count, section_bytes, section_count;
};

struct table {
    vm_bytes symbols, strings;
};

static vm_bytes part(vm_bytes b, uint64_t offset, uint64_t size)
{
    if (!b.data || offset > b.size || size > b.size - offset)
        return (vm_bytes){0};
    return (vm_bytes){b.data + offset, (size_t)size};
}

static vm_reader reader_at(vm_bytes b, uint64_t offset)
{
    return vm_reader_of(offset > b.size ? (vm_bytes){0} : part(b, offset, b.size - offset));
}

uint16_t vm_elf_machine(vm_bytes file)
{
    vm_reader r = reader_at(file, 18);
    return file.size >= 64 && memcmp(file.data, "\177ELF", 4) == 0 ? vm_read_u16(&r) : 0;
}

static int32_t read_header(vm_bytes file, struct elf *e, lathe_error *error)
{
    *e = (struct elf){.file = file};
    if (file.size < 64 || memcmp(file.data, "\177ELF", 4) != 0)
        return vm_fail(error, LATHE_E_FORMAT, "not an ELF file");
    if (file.data[4] != 2 || file.data[5] != 1)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "an ELF file of a 32-bit or a big-endian machine");
    vm_reader r = reader_at(file, 16);
    if (vm_read_u16(&r) != ET_SHARED)
        return vm_fail(error, LATHE_E_FORMAT, "an ELF file that is not a shared object");
    r = reader_at(file, 32);
    e->segments = vm_read_u64(&r);
    e->sections = vm_read_u64(&r);
    r = reader_at(file, 54);
    e->segment_bytes = vm_read_u16(&r);
    e->segment_count = vm_read_u16(&r);
    e->section_bytes = vm_read_u16(&r);
    e->section_count = vm_read_u16(&r);
    return LATHE_OK;
}

/* Segment i; all 0 where it lies outside of the file. */
static struct segment segment(const struct elf *e, uint16_t i)
{
    struct segment s = {0};
    uint64_t from = (uint64_t)i * e->segment_bytes;
    if (e->segment_bytes < 56 || e->segments > e->file.size || from > e->file.size)
        return s;
    vm_reader r = reader_at(e->file, e->segments + from);
    s.type = vm_read_u32(&r);
    (void)vm_read_u32(&r);
    s.offset = vm_read_u64(&r);
    s.address = vm_read_u64(&r);
    (void)vm_read_u64(&r);
    s.size = vm_read_u64(&r);
    return r.ok ? s : (struct segment){0};
}

/* What the file has from an address on, to the end of the segment that holds it. */
static vm_bytes at_address(const struct elf *e, uint64_t address)
{
    for (uint16_t i = 0; i < e->segment_count; i++) {
        struct segment s = segment(e, i);
        if (s.type == PT_LOADED && address >= s.address && address - s.address < s.size) {
            vm_bytes content = part(e->file, s.offset, s.size);
            return content.data ? part(content, address - s.address, s.size - (address - s.address)) : content;
        }
    }
    return (vm_bytes){0};
}

static bool section(const struct elf *e, uint32_t i, uint32_t *type, uint32_t *link, vm_bytes *content)
{
    uint64_t from = (uint64_t)i * e->section_bytes;
    if (i >= e->section_count || e->section_bytes < 64 || e->sections == 0 || e->sections > e->file.size)
        return false;
    vm_reader r = reader_at(e->file, e->sections + from);
    (void)vm_read_u32(&r);
    *type = vm_read_u32(&r);
    (void)vm_read_bytes(&r, 16);
    uint64_t offset = vm_read_u64(&r), size = vm_read_u64(&r);
    *link = vm_read_u32(&r);
    *content = part(e->file, offset, size);
    return r.ok;
}

static bool by_sections(const struct elf *e, struct table *out)
{
    uint32_t type, link, unused;
    for (uint32_t i = 0; i < e->section_count; i++) {
        if (!section(e, i, &type, &link, &out->symbols) || type != SHT_DYNAMIC_SYMBOLS)
            continue;
        if (section(e, link, &type, &unused, &out->strings) && out->symbols.data && out->strings.data)
            return true;
    }
    return false;
}

/* The number of symbols that a GNU hash table knows: one more than the largest in its chains. */
static uint64_t count_gnu_hash(vm_bytes table)
{
    vm_reader r = vm_reader_of(table);
    uint32_t buckets = vm_read_u32(&r), first = vm_read_u32(&r), filters = vm_read_u32(&r), last = 0;
    (void)vm_read_u32(&r);
    (void)vm_read_bytes(&r, (uint64_t)filters * 8);
    for (uint32_t i = 0; i < buckets && r.ok; i++) {
        uint32_t b = vm_read_u32(&r);
        last = b > last ? b : last;
    }
    if (!r.ok || last < first)
        return r.ok ? first : 0;
    (void)vm_read_bytes(&r, (uint64_t)(last - first) * 4);
    while (r.ok && (vm_read_u32(&r) & 1) == 0)
        last++;
    return r.ok ? (uint64_t)last + 1 : 0;
}

struct dynamic {
    uint64_t strings, symbols, string_bytes, hash, gnu_hash;
};

static struct dynamic read_dynamic(vm_bytes content)
{
    struct dynamic d = {0};
    vm_reader r = vm_reader_of(content);
    while (vm_reader_left(&r) >= 16) {
        uint64_t tag = vm_read_u64(&r), value = vm_read_u64(&r);
        switch (tag) {
        case 0: return d;
        case DT_STRINGS: d.strings = value; break;
        case DT_SYMBOLS: d.symbols = value; break;
        case DT_STRINGS_BYTES: d.string_bytes = value; break;
        case DT_HASH_TABLE: d.hash = value; break;
        case DT_GNU_HASH_TABLE: d.gnu_hash = value; break;
        default: break;
        }
    }
    return d;
}

static bool by_dynamic(const struct elf *e, struct table *out)
{
    for (uint16_t i = 0; i < e->segment_count; i++) {
        struct segment s = segment(e, i);
        if (s.type != PT_DYNAMIC_TABLE)
            continue;
        struct dynamic d = read_dynamic(part(e->file, s.offset, s.size));
        uint64_t count = 0;
        if (d.hash != 0) {
            vm_reader r = vm_reader_of(at_address(e, d.hash));
            (void)vm_read_u32(&r);
            count = vm_read_u32(&r);
        } else if (d.gnu_hash != 0) {
            count = count_gnu_hash(at_address(e, d.gnu_hash));
        }
        out->strings = part(at_address(e, d.strings), 0, d.string_bytes);
        out->symbols = part(at_address(e, d.symbols), 0, count * SYMBOL_BYTES);
        return out->strings.data && out->symbols.data;
    }
    return false;
}

static bool name_is(vm_bytes strings, uint32_t at, const char *name)
{
    size_t n = strlen(name) + 1;
    return at <= strings.size && n <= strings.size - at && memcmp(strings.data + at, name, n) == 0;
}

/* A defined symbol's address. */
static bool find(const struct table *t, const char *name, uint64_t *address)
{
    for (size_t at = 0; at + SYMBOL_BYTES <= t->symbols.size; at += SYMBOL_BYTES) {
        vm_reader r = reader_at(t->symbols, at);
        uint32_t text = vm_read_u32(&r);
        (void)vm_read_u16(&r);
        uint16_t where = vm_read_u16(&r);
        *address = vm_read_u64(&r);
        if (where != 0 && name_is(t->strings, text, name))
            return true;
    }
    return false;
}

bool vm_elf_has_prefix(vm_bytes file, const char *prefix)
{
    struct elf e;
    struct table t;
    const size_t n = strlen(prefix);
    if (read_header(file, &e, NULL) != LATHE_OK || (!by_sections(&e, &t) && !by_dynamic(&e, &t)))
        return false;
    for (size_t at = 0; at + SYMBOL_BYTES <= t.symbols.size; at += SYMBOL_BYTES) {
        vm_reader r = reader_at(t.symbols, at);
        uint32_t text = vm_read_u32(&r);
        (void)vm_read_u16(&r);
        if (vm_read_u16(&r) != 0 && text <= t.strings.size && n <= t.strings.size - text &&
            memcmp(t.strings.data + text, prefix, n) == 0)
            return true;
    }
    return false;
}

/* What older versions called the symbol, so that the message can say so. */
static const char *older(const struct table *t)
{
    uint64_t address;
    if (find(t, "__tvm_ffi_library_bin", &address))
        return "TVM 0.21";
    return find(t, "__tvm_dev_mblob", &address) ? "TVM 0.20 or older" : NULL;
}

int32_t vm_elf_symbol(vm_bytes file, const char *name, vm_bytes *out, lathe_error *error)
{
    struct elf e;
    struct table t;
    uint64_t address;
    *out = (vm_bytes){0};
    int32_t status = read_header(file, &e, error);
    if (status != LATHE_OK)
        return status;
    if (!by_sections(&e, &t) && !by_dynamic(&e, &t))
        return vm_fail(error, LATHE_E_FORMAT, "a shared object without a table of dynamic symbols, or a damaged one");
    if (!find(&t, name, &address)) {
        const char *by = older(&t);
        if (by)
            return vm_fail(error, LATHE_E_UNSUPPORTED, "a module of %s; export it with 0.22 or later", by);
        return vm_fail(error, LATHE_E_FORMAT, "a shared object that is not a module: it has no symbol %s", name);
    }
    *out = at_address(&e, address);
    if (!out->data)
        return vm_fail(error, LATHE_E_FORMAT, "the symbol %s lies outside of the file", name);
    return LATHE_OK;
}
