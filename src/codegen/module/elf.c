/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF shared object that holds data and no code (System V ABI, chapters 4 and 5): one read-only segment with the
 * symbol table, the hash table and the bytes, and one for the dynamic section, which loaders may write to. Sections are
 * there for nm and readelf. It is the same for every machine but for two numbers of the header. */
#include "codegen/module/module.h"

#include <string.h>

enum {
    EHDR = 64,
    PHDR = 56,
    SHDR = 64,
    SYM = 24,
    DYN = 16,
    N_PHDR = 4,
    N_SHDR = 7,
    N_DYN = 6,
    PAGE = 0x10000, /* the largest page of the three machines */
    BLOB_ALIGN = 64
};

/* Section numbers. */
enum { SEC_NULL, SEC_HASH, SEC_DYNSYM, SEC_DYNSTR, SEC_RODATA, SEC_DYNAMIC, SEC_SHSTRTAB };
static const char section_names[] = "\0.hash\0.dynsym\0.dynstr\0.rodata\0.dynamic\0.shstrtab";
static const char strings[] = "\0" MODULE_SYMBOL;

typedef struct layout {
    uint64_t hash, sym, str, blob, blob_size, dyn, dyn_address, names, sections, size;
} layout;

static const struct host {
    const char *name;
    uint32_t machine, flags;
} hosts[] = {
#define X(name, machine, flags) {name, machine, flags},
    MODULE_HOSTS(X)
#undef X
};

static const struct host *find_host(const char *name)
{
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strcmp(hosts[i].name, name) == 0)
            return &hosts[i];
    return NULL;
}

bool elf_known_host(const char *host)
{
    return find_host(host) != NULL;
}

static uint64_t round_up(uint64_t v, uint64_t to)
{
    return (v + to - 1) / to * to;
}

static layout lay_out(uint64_t blob_size)
{
    layout l = {.hash = EHDR + N_PHDR * PHDR, .blob_size = blob_size};
    l.sym = round_up(l.hash + 5 * 4, 8); /* nbucket, nchain, 1 bucket, 2 chains */
    l.str = l.sym + 2 * SYM;
    l.blob = round_up(l.str + sizeof strings, BLOB_ALIGN);
    l.dyn = round_up(l.blob + blob_size, 16);
    l.dyn_address = round_up(l.dyn, PAGE) + l.dyn % PAGE; /* a page of its own in memory, not in the file */
    l.names = l.dyn + N_DYN * DYN;
    l.sections = round_up(l.names + sizeof section_names, 8);
    l.size = l.sections + N_SHDR * SHDR;
    return l;
}

static void header(module_bytes *b, const layout *l, const struct host *h)
{
    static const uint8_t ident[16] = {0x7f, 'E', 'L', 'F', 2 /* 64 bits */, 1 /* little endian */, 1};
    bytes_put(b, ident, sizeof ident);
    bytes_u16(b, 3); /* ET_DYN */
    bytes_u16(b, h->machine);
    bytes_u32(b, 1);
    bytes_u64(b, 0); /* no entry */
    bytes_u64(b, EHDR);
    bytes_u64(b, l->sections);
    bytes_u32(b, h->flags);
    bytes_u16(b, EHDR);
    bytes_u16(b, PHDR);
    bytes_u16(b, N_PHDR);
    bytes_u16(b, SHDR);
    bytes_u16(b, N_SHDR);
    bytes_u16(b, SEC_SHSTRTAB);
}

static void segment(module_bytes *b, uint32_t kind, uint32_t flags, uint64_t at, uint64_t address, uint64_t size,
                    uint64_t align)
{
    bytes_u32(b, kind);
    bytes_u32(b, flags);
    bytes_u64(b, at);
    bytes_u64(b, address);
    bytes_u64(b, address);
    bytes_u64(b, size);
    bytes_u64(b, size);
    bytes_u64(b, align);
}

static void segments(module_bytes *b, const layout *l)
{
    enum { LOAD = 1, DYNAMIC = 2, STACK = 0x6474e551, R = 4, RW = 6 };
    segment(b, LOAD, R, 0, 0, l->blob + l->blob_size, PAGE);
    segment(b, LOAD, RW, l->dyn, l->dyn_address, N_DYN * DYN, PAGE);
    segment(b, DYNAMIC, RW, l->dyn, l->dyn_address, N_DYN * DYN, 8);
    segment(b, STACK, RW, 0, 0, 0, 16); /* not executable */
}

static void symbols(module_bytes *b, const layout *l)
{
    const uint32_t hash[] = {1, 2, 1, 0, 0}; /* one bucket: every name is looked for at symbol 1 */
    bytes_zero_to(b, l->hash);
    for (size_t i = 0; i < 5; i++)
        bytes_u32(b, hash[i]);
    bytes_zero_to(b, l->sym + SYM); /* symbol 0 */
    bytes_u32(b, 1);                /* its name in the strings */
    bytes_u16(b, 0x11);             /* global object, default visibility */
    bytes_u16(b, SEC_RODATA);
    bytes_u64(b, l->blob);
    bytes_u64(b, l->blob_size);
    bytes_put(b, strings, sizeof strings);
}

static void dynamic(module_bytes *b, const layout *l)
{
    const uint64_t entries[N_DYN][2] = {{4 /* DT_HASH */, l->hash}, {5, l->str},  {6, l->sym},
                                        {10, sizeof strings},       {11, SYM},    {0, 0}};
    bytes_zero_to(b, l->dyn);
    for (size_t i = 0; i < N_DYN; i++) {
        bytes_u64(b, entries[i][0]);
        bytes_u64(b, entries[i][1]);
    }
}

static void section(module_bytes *b, uint32_t name, uint32_t kind, uint64_t flags, uint64_t address, uint64_t at,
                    uint64_t size, uint32_t link, uint32_t info, uint64_t align, uint64_t entry)
{
    bytes_u32(b, name);
    bytes_u32(b, kind);
    bytes_u64(b, flags);
    bytes_u64(b, address);
    bytes_u64(b, at);
    bytes_u64(b, size);
    bytes_u32(b, link);
    bytes_u32(b, info);
    bytes_u64(b, align);
    bytes_u64(b, entry);
}

static void sections(module_bytes *b, const layout *l)
{
    enum { ALLOC = 2, WRITE = 1, PROGBITS = 1, STRTAB = 3, HASH = 5, DYNAMIC = 6, DYNSYM = 11 };
    bytes_put(b, section_names, sizeof section_names);
    bytes_zero_to(b, l->sections);
    section(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    section(b, 1, HASH, ALLOC, l->hash, l->hash, 20, SEC_DYNSYM, 0, 4, 4);
    section(b, 7, DYNSYM, ALLOC, l->sym, l->sym, 2 * SYM, SEC_DYNSTR, 1, 8, SYM);
    section(b, 15, STRTAB, ALLOC, l->str, l->str, sizeof strings, 0, 0, 1, 0);
    section(b, 23, PROGBITS, ALLOC, l->blob, l->blob, l->blob_size, 0, 0, BLOB_ALIGN, 0);
    section(b, 31, DYNAMIC, ALLOC | WRITE, l->dyn_address, l->dyn, N_DYN * DYN, SEC_DYNSTR, 0, 8, DYN);
    section(b, 40, STRTAB, 0, 0, l->names, sizeof section_names, 0, 0, 1, 0);
}

void elf_write(module_bytes *b, const char *host, elf_blob_fn blob, const void *ctx)
{
    module_bytes count = {0};
    blob(ctx, &count);
    layout l = lay_out(count.len);
    header(b, &l, find_host(host));
    segments(b, &l);
    symbols(b, &l);
    bytes_zero_to(b, l.blob);
    if (b->data)
        blob(ctx, b);
    else
        b->len += count.len;
    dynamic(b, &l);
    sections(b, &l);
}
