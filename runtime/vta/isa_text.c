/* isa_text.c: programs as text. A line is a configuration, a buffer, a micro-op or an instruction; an instruction is
 * its operation and its fields by name, all from the field tables of vta_isa.def. docs/reference/vta-isa.md describes
 * it. SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "text.h"
#include "vta.h"

static const char *const opcodes[] = {
#define X(id, code, text) [code] = text,
    VTA_OPCODES(X)
#undef X
};
static const char *const memories[] = {
#define X(code, text) [code] = text,
    VTA_MEMORIES(X)
#undef X
};
static const char *const alu_opcodes[] = {
#define X(id, code, text) [code] = text,
    VTA_ALU_OPCODES(X)
#undef X
};

enum {
    N_OPCODES = sizeof opcodes / sizeof *opcodes,
    N_MEMORIES = sizeof memories / sizeof *memories,
    N_ALU_OPCODES = sizeof alu_opcodes / sizeof *alu_opcodes
};

static const char uop_image[] = "uops"; /* binding 0 */

/* --- printing ----------------------------------------------------------------------------------------------------- */

static bool is_field(const vta_field *f, const char *name)
{
    return strcmp(f->name, name) == 0;
}

/* Fields that the words in front say. */
static bool is_implied(const vta_field *f)
{
    return is_field(f, "opcode") || is_field(f, "memory_type") || is_field(f, "alu_opcode");
}

static int64_t value_of(const vta_fields *f, const vta_field *layout)
{
    int64_t v;
    memcpy(&v, (const char *)f + layout->member, sizeof v);
    return v;
}

/* Whether the words have no bits but those of fields with a name. */
static bool is_plain(const vta_geometry *g, const vta_insn *insn, const vta_fields *f)
{
    vta_insn again;
    vta_field_error e;
    return vta_encode(g, f, &again, &e) && again.word[0] == insn->word[0] && again.word[1] == insn->word[1] &&
           f->memory_type < N_MEMORIES && f->alu_opcode < N_ALU_OPCODES;
}

/* `base`, when not NULL, stands for the address in DRAM. */
static void put_insn(vta_text *t, const vta_geometry *g, const vta_insn *insn, const char *base, uint32_t offset)
{
    vta_fields f;
    vta_field layout[VTA_MAX_FIELDS];
    if (!vta_decode(g, insn, &f) || !is_plain(g, insn, &f)) {
        vta_put(t, "word 0x%016llx 0x%016llx", (unsigned long long)insn->word[0], (unsigned long long)insn->word[1]);
        return;
    }
    vta_put(t, "%s", opcodes[f.opcode]);
    if (f.opcode == VTA_LOAD || f.opcode == VTA_STORE)
        vta_put(t, " %s", memories[f.memory_type]);
    else if (f.opcode == VTA_ALU)
        vta_put(t, " %s", alu_opcodes[f.alu_opcode]);
    uint32_t n = vta_insn_layout(g, f.opcode, layout);
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = value_of(&f, &layout[i]);
        if (is_field(&layout[i], "dram_base") && base)
            vta_put(t, offset ? " dram_base=%s+%u" : " dram_base=%s", base, offset);
        else if (v == 0 || is_implied(&layout[i]))
            continue;
        else if (layout[i].bits == 1)
            vta_put(t, " %s", layout[i].name);
        else
            vta_put(t, " %s=%lld", layout[i].name, (long long)v);
    }
}

size_t vta_insn_print(const vta_geometry *g, const vta_insn *insn, char *out, size_t size)
{
    vta_text t = {out, size, 0};
    put_insn(&t, g, insn, NULL, 0);
    return t.length;
}

size_t vta_disassemble(const vta_program *p, char *out, size_t size)
{
    vta_text t = {out, size, 0};
    vta_geometry g;
    char bitstream[80];
    if (vta_config_check(&p->config, &g, NULL) != VTA_OK)
        return 0;
    vta_config_bitstream(&p->config, bitstream, sizeof bitstream);
    vta_put(&t, "config %s_%s\n", p->config.target, bitstream);
    for (uint32_t i = 0; i < p->n_buffers; i++)
        vta_put(&t, "buffer %s %llu\n", p->buffers[i].name, (unsigned long long)p->buffers[i].bytes);
    for (uint32_t i = 0; i < p->n_uops; i++) {
        vta_uop_fields f;
        uint32_t again = 0;
        vta_field_error e;
        vta_uop_decode(&g, p->uops[i], &f);
        if (vta_uop_encode(&g, &f, &again, &e) && again == p->uops[i])
            vta_put(&t, "uop %lld %lld %lld\n", (long long)f.dst, (long long)f.src, (long long)f.wgt);
        else
            vta_put(&t, "uop 0x%08x\n", p->uops[i]);
    }
    for (uint32_t i = 0, r = 0; i < p->n_insns; i++) {
        const vta_relocation *at = r < p->n_relocations && p->relocations[r].insn == i ? &p->relocations[r++] : NULL;
        const char *base = !at ? NULL : at->binding == 0 ? uop_image : p->buffers[at->binding - 1].name;
        put_insn(&t, &g, &p->insns[i], base, at ? at->offset : 0);
        vta_put(&t, "\n");
    }
    return t.length;
}

/* --- parsing ------------------------------------------------------------------------------------------------------ */

typedef struct token {
    const char *s;
    size_t n;
    uint32_t col;
} token;

typedef struct parser {
    const char *name, *at, *end, *line_start;
    uint32_t line;
    bool configured; /* the configuration cannot change any more */
    vta_program *p;
    uint32_t cap_insns, cap_uops, cap_buffers, cap_relocations;
    vta_geometry g;
    vta_error *e;
} parser;

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static bool
fail(parser *p, vta_status s, const token *t, const char *fmt, ...)
{
    char message[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    vta_fail(p->e, s, "%s:%u:%u: %s", p->name, p->line, t->col, message);
    return false;
}

static bool same(const token *t, const char *word)
{
    return strlen(word) == t->n && memcmp(word, t->s, t->n) == 0;
}

static int find(const token *t, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (same(t, words[i]))
            return (int)i;
    return -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; empty at its end or at a remark. */
static token next(parser *p)
{
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
    token t = {p->at, 0, (uint32_t)(p->at - p->line_start) + 1};
    while (p->at < p->end && !is_blank(*p->at) && *p->at != '\n' && *p->at != '#')
        p->at++;
    t.n = (size_t)(p->at - t.s);
    return t;
}

static bool line_ends(parser *p)
{
    token t = next(p);
    return t.n == 0 || fail(p, VTA_BAD_TEXT, &t, "'%.*s' is one word too many", (int)(t.n > 40 ? 40 : t.n), t.s);
}

/* A number, decimal or hexadecimal; at most 64 bits with their sign. */
static bool read_number(parser *p, const token *t, int64_t *out)
{
    char digits[24], *end;
    if (t->n == 0)
        return fail(p, VTA_BAD_TEXT, t, "a number is missing");
    if (t->n < sizeof digits && strchr("-0123456789", *t->s)) {
        memcpy(digits, t->s, t->n);
        digits[t->n] = 0;
        bool hex = t->n > 2 && digits[0] == '0' && digits[1] == 'x';
        unsigned long long v = strtoull(digits + (*digits == '-'), &end, hex ? 16 : 10);
        *out = *digits == '-' ? (int64_t)(0 - v) : (int64_t)v;
        if (*end == 0 && end != digits + (*digits == '-') &&
            strspn(digits, hex ? "0123456789abcdefABCDEFx" : "-0123456789") == t->n)
            return true;
    }
    return fail(p, VTA_BAD_TEXT, t, "'%.*s' is not a number", (int)(t->n > 40 ? 40 : t->n), t->s);
}

/* Room for one more; arrays double. */
static bool grow(parser *p, void *array, uint32_t n, uint32_t *cap, size_t size)
{
    void **data = array, *more;
    if (n < *cap)
        return true;
    uint32_t wanted = *cap ? 2 * *cap : 64;
    if (*cap > UINT32_MAX / 4 || !(more = realloc(*data, wanted * size))) {
        vta_fail(p->e, VTA_NO_MEMORY, "%s:%u: no memory for the program", p->name, p->line);
        return false;
    }
    *data = more;
    *cap = wanted;
    return true;
}

static bool read_config(parser *p, const token *word)
{
    char preset[80];
    vta_error inner = {VTA_OK, ""};
    token t = next(p);
    if (p->configured)
        return fail(p, VTA_BAD_TEXT, word, "the configuration comes first, and once");
    if (t.n == 0 || t.n >= sizeof preset)
        return fail(p, VTA_BAD_TEXT, &t, "a configuration is missing, such as 1x16_i8w8a32_15_15_18_17");
    memcpy(preset, t.s, t.n);
    preset[t.n] = 0;
    if (vta_config_preset(preset, &p->p->config, &inner) != VTA_OK)
        return fail(p, inner.status, &t, "%s", inner.text);
    (void)vta_config_check(&p->p->config, &p->g, NULL); /* the preset was checked */
    return line_ends(p);
}

static bool is_name(const token *t)
{
    for (size_t i = 0; i < t->n; i++) {
        char c = t->s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && ((c >= '0' && c <= '9') || c == '.')))
            return false;
    }
    return t->n > 0 && t->n < VTA_NAME_BYTES;
}

/* The binding of a name: 0 for the micro-op image; -1: none. */
static int64_t find_binding(const parser *p, const token *t)
{
    if (same(t, uop_image))
        return 0;
    for (uint32_t i = 0; i < p->p->n_buffers; i++)
        if (same(t, p->p->buffers[i].name))
            return (int64_t)i + 1;
    return -1;
}

static bool read_buffer(parser *p)
{
    token name = next(p), size = next(p);
    int64_t bytes;
    if (!is_name(&name))
        return fail(p, VTA_BAD_TEXT, &name, "a buffer needs a name of letters, digits, '_' and '.', at most 31");
    if (find_binding(p, &name) >= 0)
        return fail(p, VTA_BAD_TEXT, &name, "'%.*s' is taken", (int)name.n, name.s);
    if (!read_number(p, &size, &bytes))
        return false;
    if (bytes < 1 || bytes > (int64_t)UINT32_MAX)
        return fail(p, VTA_BAD_FIELD, &size, "a buffer has 1 to 4294967295 bytes");
    if (!grow(p, &p->p->buffers, p->p->n_buffers, &p->cap_buffers, sizeof *p->p->buffers))
        return false;
    vta_program_buffer *b = &p->p->buffers[p->p->n_buffers++];
    memset(b, 0, sizeof *b);
    memcpy(b->name, name.s, name.n);
    b->bytes = (uint64_t)bytes;
    return line_ends(p);
}

/* "uop DST SRC WGT", or the word itself. */
static bool read_uop(parser *p)
{
    vta_field layout[VTA_MAX_FIELDS];
    uint32_t word = 0, n = vta_uop_layout(&p->g, layout);
    for (uint32_t i = 0; i < n; i++) {
        token t = next(p);
        int64_t v;
        if (!read_number(p, &t, &v))
            return false;
        if (i == 0 && t.n == 10 && memcmp(t.s, "0x", 2) == 0) {
            word = (uint32_t)v;
            break;
        }
        if (v < vta_field_least(&layout[i]) || v > vta_field_most(&layout[i]))
            return fail(p, VTA_BAD_FIELD, &t, "%s is %lld, %lld to %lld fit", layout[i].name, (long long)v,
                        (long long)vta_field_least(&layout[i]), (long long)vta_field_most(&layout[i]));
        word |= (uint32_t)((uint64_t)v << layout[i].bit);
    }
    if (!grow(p, &p->p->uops, p->p->n_uops, &p->cap_uops, sizeof *p->p->uops))
        return false;
    p->p->uops[p->p->n_uops++] = word;
    return line_ends(p);
}

static bool add_insn(parser *p, const vta_insn *insn)
{
    if (!grow(p, &p->p->insns, p->p->n_insns, &p->cap_insns, sizeof *p->p->insns))
        return false;
    p->p->insns[p->p->n_insns++] = *insn;
    return true;
}

static bool read_word(parser *p)
{
    vta_insn insn;
    for (int i = 0; i < 2; i++) {
        token t = next(p);
        int64_t v;
        if (!read_number(p, &t, &v))
            return false;
        insn.word[i] = (uint64_t)v;
    }
    return add_insn(p, &insn) && line_ends(p);
}

/* "NAME", "NAME+7" for dram_base: 0 in the instruction, and a relocation. */
static bool read_address(parser *p, const token *t)
{
    const char *plus = memchr(t->s, '+', t->n);
    token name = {t->s, plus ? (size_t)(plus - t->s) : t->n, t->col};
    int64_t binding = find_binding(p, &name), offset = 0;
    if (binding < 0)
        return fail(p, VTA_BAD_TEXT, t, "there is no buffer '%.*s'", (int)(name.n > 40 ? 40 : name.n), name.s);
    if (plus) {
        token number = {plus + 1, t->n - name.n - 1, t->col + (uint32_t)name.n + 1};
        if (!read_number(p, &number, &offset))
            return false;
        if (offset < 0 || offset > (int64_t)UINT32_MAX)
            return fail(p, VTA_BAD_FIELD, &number, "an offset is 0 to 4294967295 elements");
    }
    vta_program *q = p->p;
    if (!grow(p, &q->relocations, q->n_relocations, &p->cap_relocations, sizeof *q->relocations))
        return false;
    q->relocations[q->n_relocations++] = (vta_relocation){q->n_insns, (uint32_t)binding, (uint32_t)offset};
    return true;
}

/* "name=value" or "name". */
static bool read_field(parser *p, const token *t, const vta_field *layout, uint32_t n, uint32_t *seen, vta_fields *f)
{
    const char *equals = memchr(t->s, '=', t->n);
    token name = {t->s, equals ? (size_t)(equals - t->s) : t->n, t->col};
    token value = {equals ? equals + 1 : t->s, equals ? t->n - name.n - 1 : 0, t->col + (uint32_t)name.n + 1};
    int64_t v = 1;
    uint32_t i = 0;
    while (i < n && (is_implied(&layout[i]) || !same(&name, layout[i].name)))
        i++;
    if (i == n)
        return fail(p, VTA_BAD_TEXT, t, "'%s' has no field '%.*s'", opcodes[f->opcode],
                    (int)(name.n > 40 ? 40 : name.n), name.s);
    if (*seen >> i & 1u)
        return fail(p, VTA_BAD_TEXT, t, "%s is given twice", layout[i].name);
    *seen |= 1u << i;
    if (!equals && layout[i].bits > 1)
        return fail(p, VTA_BAD_TEXT, t, "%s needs a value: %s=N", layout[i].name, layout[i].name);
    if (equals && is_field(&layout[i], "dram_base") && value.n > 0 && !strchr("-0123456789", *value.s))
        return read_address(p, &value);
    if (equals && !read_number(p, &value, &v))
        return false;
    if (v < vta_field_least(&layout[i]) || v > vta_field_most(&layout[i]))
        return fail(p, VTA_BAD_FIELD, &value, "%s is %lld, %lld to %lld fit", layout[i].name, (long long)v,
                    (long long)vta_field_least(&layout[i]), (long long)vta_field_most(&layout[i]));
    memcpy((char *)f + layout[i].member, &v, sizeof v);
    return true;
}

/* A word that is none of a list: a field's name or nothing at all means that it was left out. */
static bool unknown_word(parser *p, const token *t, const char *what, const char *list)
{
    if (t->n == 0 || memchr(t->s, '=', t->n))
        return fail(p, VTA_BAD_TEXT, t, "the %s is missing: %s", what, list);
    return fail(p, VTA_BAD_TEXT, t, "'%.*s' is not a known %s: %s", (int)(t->n > 40 ? 40 : t->n), t->s, what, list);
}

static bool read_insn(parser *p, const token *word)
{
    vta_fields f = {.opcode = find(word, opcodes, N_OPCODES)};
    vta_field layout[VTA_MAX_FIELDS];
    vta_field_error fe;
    vta_insn insn;
    uint32_t seen = 0;
    if (f.opcode < 0)
        return fail(p, VTA_BAD_TEXT, word, "'%.*s' is not an instruction, and none of config, buffer, uop, word",
                    (int)(word->n > 40 ? 40 : word->n), word->s);
    uint32_t n = vta_insn_layout(&p->g, f.opcode, layout);
    if (f.opcode == VTA_LOAD || f.opcode == VTA_STORE) {
        token t = next(p);
        if ((f.memory_type = find(&t, memories, N_MEMORIES)) < 0)
            return unknown_word(p, &t, "memory", "uop, wgt, inp, acc, out or acc8");
    } else if (f.opcode == VTA_ALU) {
        token t = next(p);
        if ((f.alu_opcode = find(&t, alu_opcodes, N_ALU_OPCODES)) < 0)
            return unknown_word(p, &t, "operation", "min, max, add, shr or mul");
    }
    for (token t = next(p); t.n > 0; t = next(p))
        if (!read_field(p, &t, layout, n, &seen, &f))
            return false;
    if (!vta_encode(&p->g, &f, &insn, &fe)) /* cannot be: each field was checked */
        return fail(p, VTA_BAD_FIELD, word, "%s does not fit", fe.field);
    return add_insn(p, &insn);
}

static bool read_line(parser *p)
{
    token word = next(p);
    if (word.n == 0)
        return true;
    if (same(&word, "config")) {
        bool ok = read_config(p, &word);
        p->configured = true;
        return ok;
    }
    p->configured = true;
    if (same(&word, "buffer"))
        return read_buffer(p);
    if (same(&word, "uop"))
        return read_uop(p);
    if (same(&word, "word"))
        return read_word(p);
    return read_insn(p, &word);
}

vta_status vta_assemble(const char *name, const char *source, size_t len, const vta_config *base, vta_program *out,
                        vta_error *e)
{
    vta_error inner = {VTA_OK, ""};
    parser p = {.name = name, .at = source, .end = source + len, .line_start = source, .p = out, .e = &inner};
    memset(out, 0, sizeof *out);
    out->config = base ? *base : vta_config_default();
    bool ok = vta_config_check(&out->config, &p.g, &inner) == VTA_OK;
    for (p.line = 1; ok && p.at < p.end; p.line++) {
        ok = read_line(&p);
        const char *newline = memchr(p.at, '\n', (size_t)(p.end - p.at));
        p.at = p.line_start = newline ? newline + 1 : p.end;
    }
    if (ok)
        return VTA_OK;
    vta_program_release(out);
    return vta_fail(e, inner.status, "%s", inner.text);
}
