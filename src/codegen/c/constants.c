/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of a package in one of three forms: numbers in C, which every compiler reads but slowly; a binary file
 * that the assembler includes; a binary file that the program loads and hands over. */
#include "codegen/c/emit.h"
#include "codegen/c/package.h"
#include "codegen/embedded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes from which the form is incbin unless another is asked for, and from which numbers are written for the compiler
 * rather than for a reader. */
enum { LARGE = 32768 };

static bool is_large(const plan *pl)
{
    return pl->constant_bytes > LARGE;
}

const char *constants_form_name(constants_form f)
{
    static const char *const names[] = {"default",
#define X(id, name) name,
                                        CONSTANTS_FORMS(X)
#undef X
    };
    return names[f];
}

constants_form constants_form_find(const char *name)
{
#define X(id, known)              \
    if (strcmp(name, known) == 0) \
        return id;
    CONSTANTS_FORMS(X)
#undef X
    return CONSTANTS_DEFAULT;
}

constants_form constants_form_of(const codegen_unit *u)
{
    if (u->plan->constant_bytes == 0)
        return CONSTANTS_C;
    if (u->constants_form != CONSTANTS_DEFAULT)
        return u->constants_form;
    return is_large(u->plan) ? CONSTANTS_INCBIN : CONSTANTS_C;
}

/* Constants by their place. */
static int by_offset(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;
    return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1];
}

static uint64_t (*sorted(const package *p))[2]
{
    uint64_t(*keys)[2] = arena_alloc_array(&p->c->mem, p->n_constants + 1u, sizeof *keys, 8);
    for (uint32_t i = 0; i < p->n_constants; i++) {
        keys[i][0] = p->pl->places[p->constants[i].value].offset;
        keys[i][1] = i;
    }
    qsort(keys, p->n_constants, sizeof *keys, by_offset);
    return keys;
}

void *constants_bytes(const package *p, size_t *out_len)
{
    *out_len = (size_t)p->pl->constant_bytes;
    uint8_t *data = arena_try_alloc(&p->c->mem, *out_len, 64);
    for (uint32_t i = 0; data && i < p->n_constants; i++) {
        const tensor_data *t = p->constants[i].data;
        uint8_t *to = data + p->pl->places[p->constants[i].value].offset;
        if (t->kind == TENSOR_DENSE)
            memcpy(to, t->data, tensor_size(t));
        else
            for (int64_t k = 0; k < t->count; k++)
                memcpy(to + (size_t)k * dtype_bytes(t->dt), t->data, dtype_bytes(t->dt));
    }
    return data;
}

/* A whole number and a power of two: a compiler reads it two to three times as fast as decimals. */
static void write_binary_float(writer *w, dtype dt, double v)
{
    int exponent, digits = dt == DT_F64 ? 53 : 24;
    uint64_t whole = (uint64_t)ldexp(frexp(fabs(v), &exponent), digits);
    for (exponent -= digits; whole != 0 && whole % 2 == 0; whole /= 2)
        exponent++;
    w_fmt(w, "%s0x%llxp%d%s", signbit(v) ? "-" : "", (unsigned long long)whole, whole == 0 ? 0 : exponent,
          dt == DT_F64 ? "" : "f");
}

static void write_number(const package *p, writer *w, const tensor_data *t, int64_t i)
{
    const uint8_t *at = tensor_element(t, i);
    uint16_t half;
    if (t->dt == DT_F16 || t->dt == DT_BF16) {
        memcpy(&half, at, sizeof half);
        w_fmt(w, "%u", half);
    } else if (dtype_is_float(t->dt) && is_large(p->pl) && isfinite(tensor_get_f64(t, i))) {
        write_binary_float(w, t->dt, tensor_get_f64(t, i));
    } else if (dtype_is_float(t->dt)) {
        w_str(w, scalar_float(&p->c->mem, t->dt, tensor_get_f64(t, i)).s);
    } else {
        w_str(w, scalar_int(&p->c->mem, t->dt, tensor_get_i64(t, i)).s);
    }
}

void constants_write_numbers(const package *p, writer *w, const tensor_data *t)
{
    w_str(w, "    {");
    for (int64_t i = 0; i < t->count; i++) {
        w_str(w, i == 0 ? "" : i % 12 == 0 ? ",\n     " : ", ");
        write_number(p, w, t, i);
    }
    w_str(w, "}");
}

static void write_initialiser(const package *p, writer *w, const tensor_data *t)
{
    constants_write_numbers(p, w, t);
    w_str(w, ",\n");
}

/* "global_const_workspace", "const_area_1" */
static const char *area_name(const package *p, uint32_t area)
{
    return area == 0 ? "global_const_workspace" : arena_printf(&p->c->mem, "const_area_%u", area);
}

/* Whether a constant has bytes there. */
static bool is_in(const package *p, const uint64_t key[2], uint32_t area)
{
    return p->constants[key[1]].data->count > 0 && package_area(p, key[0]) == area;
}

static void write_struct(const package *p, writer *w, uint32_t area)
{
    uint64_t(*keys)[2] = sorted(p), at = p->areas[area].begin;
    w_fmt(w, "struct %s {\n", area_name(p, area));
    for (uint32_t i = 0; i < p->n_constants; i++) {
        const package_const *k = &p->constants[keys[i][1]];
        if (!is_in(p, keys[i], area))
            continue;
        if (keys[i][0] > at)
            w_fmt(w, "    uint8_t gap_%llu[%llu];\n", (unsigned long long)at, (unsigned long long)(keys[i][0] - at));
        at = keys[i][0] + tensor_size(k->data);
        w_fmt(w, "    %s %s[%lld]; /* offset %llu: %s */\n", dtype_c_name(k->data->dt), k->name,
              (long long)k->data->count, (unsigned long long)keys[i][0],
              package_comment(&p->c->mem, k->label));
    }
    w_str(w, "}");
}

static void write_text(const package *p, writer *w, uint32_t area)
{
    uint64_t(*keys)[2] = sorted(p), at = p->areas[area].begin;
    const board_memory *m = p->areas[area].memory;
    if (area > 0)
        w_fmt(w, "/* In the memory %s. */\nTVMRT_SECTION(\"%s\")\n", m->name, m->section);
    w_str(w, "TVMRT_ALIGNED(64) static const ");
    write_struct(p, w, area);
    w_fmt(w, " %s = {\n", area_name(p, area));
    for (uint32_t i = 0; i < p->n_constants; i++) {
        const package_const *k = &p->constants[keys[i][1]];
        if (!is_in(p, keys[i], area))
            continue;
        if (keys[i][0] > at)
            w_str(w, "    {0},\n");
        at = keys[i][0] + tensor_size(k->data);
        write_initialiser(p, w, k->data);
    }
    w_str(w, "};\n\n");
}

static const char little_endian[] =
    "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
    "#error \"@n_constants.bin is little-endian and this machine is not: compile the model with --constants c\"\n"
    "#endif\n\n";

/* The same of a part that lies in another memory. */
static void write_included_area(const package *p, writer *w, uint32_t area)
{
    const board_memory *m = p->areas[area].memory;
    const char *name = area_name(p, area), *file = strchr(package_area_file(p, area), '/') + 1;
    w_fmt(w, "/* In the memory %s. */\n#define %s %s_%s\n", m->name, name, p->prefix, name);
    write_struct(p, w, area);
    w_fmt(w, ";\nextern const struct %s %s;\n", name, name);
    w_fmt(w, "__asm__(\".section %s,\\\"a\\\"\\n\"\n        \".balign 64\\n\"\n", m->section);
    w_fmt(w, "        \".globl %s_%s\\n\"\n        \".hidden %s_%s\\n\"\n        \"%s_%s:\\n\"\n", p->prefix, name,
          p->prefix, name, p->prefix, name);
    w_fmt(w, "        \".incbin \\\"%s\\\"\\n\"\n        \".previous\\n\");\n\n", file);
}

/* The file's bytes under a symbol of the type that names the constants. */
static void write_included(const package *p, writer *w)
{
    package_template(p, w, little_endian);
    if (package_constant_bytes(p) == 0)
        return;
    package_template(p, w, "#define global_const_workspace @p_global_const_workspace\n");
    write_struct(p, w, 0);
    w_str(w, ";\n");
    package_template(p, w, embedded_text("src/codegen/c/text/included.c.in"));
}

/* handed_text computes the same. */
static uint64_t identity(const uint8_t *data, size_t size)
{
    uint64_t sum = size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        for (size_t k = 0; k < 8 && i + k < size; k++)
            word |= (uint64_t)data[i + k] << 8 * k;
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 32;
    }
    return sum;
}

/* Without comments, which tell of the model. */
static size_t strip(const artifact_file *f, uint8_t *out)
{
    const char *text = f->data;
    size_t n = 0;
    bool inside = false;
    for (size_t i = 0; i < f->len; i++) {
        const bool begins = !inside && i + 1 < f->len && text[i] == '/' && text[i + 1] == '*';
        if (!inside && !begins)
            out[n++] = (uint8_t)text[i];
        inside = (inside || begins) && !(i >= 1 && text[i - 1] == '*' && text[i] == '/');
    }
    return n;
}

uint64_t constants_layout(const package *p, const artifact_file *ops, const artifact_file *tables)
{
    uint8_t *text = arena_alloc(&p->c->mem, ops->len + tables->len + 1, 1);
    const size_t n = strip(ops, text);
    return identity(text, n + strip(tables, text + n));
}

static void put_word(uint8_t *to, uint64_t v)
{
    for (uint32_t i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

void *constants_sealed(const package *p, size_t *out_len)
{
    const size_t bytes = (size_t)package_constant_bytes(p);
    *out_len = (size_t)package_placed_bytes(p);
    uint8_t *data = arena_try_alloc(&p->c->mem, *out_len, 64);
    if (!data)
        return NULL;
    memset(data, 0, *out_len);
    memcpy(data, p->constant_data, bytes);
    put_word(data + *out_len - 16, p->constants_layout);
    put_word(data + *out_len - 8, identity(data, *out_len - 8));
    return data;
}

static void write_handed(const package *p, writer *w)
{
    package_template(p, w, little_endian);
    w_fmt(w, "#define CONST_LAYOUT UINT64_C(0x%016llx)\n\n", (unsigned long long)p->constants_layout);
    package_template(p, w, embedded_text("src/codegen/c/text/handed.c.in"));
}

/* Infinities and NaNs are written by the names that math.h gives them. */
static bool has_non_finite(const package *p)
{
    for (uint32_t i = 0; i < p->n_constants; i++) {
        const tensor_data *t = p->constants[i].data;
        for (int64_t k = 0; (t->dt == DT_F32 || t->dt == DT_F64) && k < t->count; k++)
            if (!isfinite(tensor_get_f64(t, k)))
                return true;
    }
    return false;
}

/* Parts in memories of their own, as the model's description finds them. */
static void write_areas(const package *p, writer *w)
{
    for (uint32_t i = 1; i < p->n_areas; i++) {
        if (p->constants_form == CONSTANTS_C)
            write_text(p, w, i);
        else
            write_included_area(p, w, i);
        w_fmt(w, "const void *%s_get_const_area_%u(void)\n{\n    return &%s;\n}\n\n", p->prefix, i, area_name(p, i));
    }
}

void constants_write(const package *p, writer *w)
{
    if (p->u->group) { /* the functions of a package have them together */
        package_template(p, w, "#define GLOBAL_CONSTANTS (@g_get_const_workspace())\n");
        return;
    }
    const char *address = package_constant_bytes(p) > 0 ? "(&global_const_workspace)" : "NULL /* there are none */";
    switch (p->constants_form) {
    case CONSTANTS_C:
        if (p->pl->constant_bytes == 0)
            break;
        w_str(w, has_non_finite(p) ? "#include <math.h>\n\n" : "");
        if (package_constant_bytes(p) > 0)
            write_text(p, w, 0);
        break;
    case CONSTANTS_INCBIN: write_included(p, w); break;
    case CONSTANTS_BIN:
        write_handed(p, w);
        address = "global_const_workspace";
        break;
    case CONSTANTS_DEFAULT: break; /* constants_form_of gives another */
    }
    write_areas(p, w);
    w_fmt(w, "#define GLOBAL_CONSTANTS %s\n", address);
}
