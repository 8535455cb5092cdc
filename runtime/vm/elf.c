/* elf.c: finds a dynamic symbol by section headers, or by the dynamic segment if a file has none. Every offset is
 * checked against the file. The system's loader checks nothing, so the segments of a file are checked before the loader
 * gets it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elf.h"

#include "abi/module.h"
#include "error.h"

#include <string.h>

enum {
    ET_SHARED = 3,
    PT_LOADED = 1,
    PT_DYNAMIC_TABLE = 2,
    PF_EXECUTABLE = 1,
    STT_FUNCTION = 2,
    HEADER_BYTES = 64,
    SEGMENT_BYTES = 56,
    LEAST_PAGE = 4096, /* of all machines that modules know */
    SHT_DYNAMIC_SYMBOLS = 11,
    SYMBOL_BYTES = 24,
    DT_HASH_TABLE = 4,
    DT_STRINGS = 5,
    DT_SYMBOLS = 6,
    DT_STRINGS_BYTES = 10,
    DT_GNU_HASH_TABLE = 0x6ffffef5
};

struct segment {
    uint32_t type, flags;
    uint64_t offset, address, size, memory; /* bytes in the file, and in memory */
};

struct symbol {
    uint32_t name; /* in the strings */
    uint8_t type;
    bool defined;
    uint64_t address;
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
    return file.size >= HEADER_BYTES && memcmp(file.data, "\177ELF", 4) == 0 ? vm_read_u16(&r) : 0;
}

static int32_t read_header(vm_bytes file, struct elf *e, lathe_error *error)
{
    *e = (struct elf){.file = file};
    if (file.size < HEADER_BYTES || memcmp(file.data, "\177ELF", 4) != 0)
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
    if (e->segment_bytes < SEGMENT_BYTES || e->segments > e->file.size || from > e->file.size)
        return s;
    vm_reader r = reader_at(e->file, e->segments + from);
    s.type = vm_read_u32(&r);
    s.flags = vm_read_u32(&r);
    s.offset = vm_read_u64(&r);
    s.address = vm_read_u64(&r);
    (void)vm_read_u64(&r);
    s.size = vm_read_u64(&r);
    s.memory = vm_read_u64(&r);
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

static struct symbol symbol(const struct table *t, size_t at)
{
    struct symbol s = {0};
    vm_reader r = reader_at(t->symbols, at);
    s.name = vm_read_u32(&r);
    s.type = vm_read_u8(&r) & 15;
    (void)vm_read_u8(&r);
    s.defined = vm_read_u16(&r) != 0;
    s.address = vm_read_u64(&r);
    return s;
}

/* Do the strings have these n bytes at a place? */
static bool text_at(vm_bytes strings, uint32_t at, const char *text, size_t n)
{
    return at <= strings.size && n <= strings.size - at && memcmp(strings.data + at, text, n) == 0;
}

/* A defined symbol's address. */
static bool find(const struct table *t, const char *name, uint64_t *address)
{
    for (size_t at = 0; at + SYMBOL_BYTES <= t->symbols.size; at += SYMBOL_BYTES) {
        const struct symbol s = symbol(t, at);
        *address = s.address;
        if (s.defined && text_at(t->strings, s.name, name, strlen(name) + 1))
            return true;
    }
    return false;
}

static bool is_executable(const struct elf *e, uint64_t address)
{
    for (uint16_t i = 0; i < e->segment_count; i++) {
        const struct segment s = segment(e, i);
        if (s.type == PT_LOADED && (s.flags & PF_EXECUTABLE) != 0 && address >= s.address &&
            address - s.address < s.size)
            return true;
    }
    return false;
}

static bool has_function(const struct elf *e, const struct table *t, const char *prefix)
{
    for (size_t at = 0; at + SYMBOL_BYTES <= t->symbols.size; at += SYMBOL_BYTES) {
        const struct symbol s = symbol(t, at);
        if (s.defined && s.type == STT_FUNCTION && text_at(t->strings, s.name, prefix, strlen(prefix)) &&
            !text_at(t->strings, s.name, MODULE_SYMBOL, sizeof MODULE_SYMBOL) && is_executable(e, s.address))
            return true;
    }
    return false;
}

bool vm_elf_has_function(vm_bytes file, const char *prefix)
{
    struct elf e;
    struct table t;
    return read_header(file, &e, NULL) == LATHE_OK && (by_sections(&e, &t) || by_dynamic(&e, &t)) &&
           has_function(&e, &t, prefix);
}

/* --- whether it can be mapped --- */

static bool inside(const struct elf *e, uint64_t offset, uint64_t size)
{
    return part(e->file, offset, size).data != NULL;
}

/* A segment behind all that end at `end`, which moves on. */
static bool can_load(const struct segment *s, uint64_t *end)
{
    if (s->size > s->memory || s->memory > UINT64_MAX - s->address || s->address < *end ||
        s->offset % LEAST_PAGE != s->address % LEAST_PAGE)
        return false;
    *end = s->address + s->memory;
    return true;
}

/* Is the dynamic segment what the file has at its address? */
static bool is_loaded(const struct elf *e, const struct segment *s)
{
    const vm_bytes content = at_address(e, s->address);
    return content.data && content.size >= s->size && content.data == e->file.data + s->offset;
}

bool vm_elf_is_whole(vm_bytes file)
{
    struct elf e;
    uint64_t end = 0;
    uint32_t dynamic = 0;
    if (read_header(file, &e, NULL) != LATHE_OK || e.segment_bytes != SEGMENT_BYTES || e.segment_count == 0 ||
        !inside(&e, e.segments, (uint64_t)e.segment_count * SEGMENT_BYTES) ||
        !inside(&e, e.sections, (uint64_t)e.section_count * e.section_bytes))
        return false;
    for (uint16_t i = 0; i < e.segment_count; i++) {
        const struct segment s = segment(&e, i);
        if (!inside(&e, s.offset, s.size) || (s.type == PT_LOADED && !can_load(&s, &end)))
            return false;
        if (s.type == PT_DYNAMIC_TABLE && (++dynamic > 1 || !is_loaded(&e, &s)))
            return false;
    }
    return dynamic == 1;
}

/* --- the symbol --- */

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
        return vm_fail(error, LATHE_E_NAME, "a shared object that is not a module: it has no symbol %s", name);
    }
    *out = at_address(&e, address);
    if (!out->data)
        return vm_fail(error, LATHE_E_FORMAT, "the symbol %s lies outside of the file", name);
    return LATHE_OK;
}
