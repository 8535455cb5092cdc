/* SPDX-License-Identifier: Apache-2.0 */
/* main.c of a package: a program that runs the model once. On systems with files it reads and writes raw ones; the
 * others use a fixed pattern and print. The port's row says which one a package has. */
#include "codegen/c/package.h"

#include <string.h>

static bool has_files(const package *p)
{
    return p->u->port->main == PORT_MAIN_FILES;
}

static void io_rows(const package *p, writer *w, const char *kind, const package_io *io, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (package_is_data(&io[i]))
            w_fmt(w,
                  "static union {\n    double align;\n    unsigned char bytes[%s_%s_SIZE > 0 ? %s_%s_SIZE : 1];\n} "
                  "%s_%u;\n",
                  p->macro, package_upper(&p->c->mem, io[i].c_name), p->macro,
                  package_upper(&p->c->mem, io[i].c_name), kind, i);
    w_fmt(w, "static %sstruct tensor %ss[] = {\n", package_is_open(p) ? "" : "const ", kind);
    for (uint32_t i = 0; i < n; i++) {
        if (!package_is_data(&io[i]))
            continue;
        const char *shown = text_line(arena_strdup(&p->c->mem, io[i].name));
        w_str(w, "    {");
        w_quoted(w, io[i].name, strlen(io[i].name));
        w_str(w, ", ");
        w_quoted(w, shown, strlen(shown));
        w_fmt(w, ", \"%s\", \"", dtype_full_name(io[i].type.dt));
        package_shape(w, &io[i].type);
        w_fmt(w, "\", %s_%u.bytes, %s_%s_SIZE},\n", kind, i, p->macro, package_upper(&p->c->mem, io[i].c_name));
    }
    w_str(w, "    {NULL, NULL, NULL, NULL, NULL, 0},\n};\n\n");
}

static const char head_text[] =
    "/* main.c: runs model \"@n\" once and prints its outputs.\n"
    " *     runner [-o DIR] [NAME=FILE]...    FILE: raw little-endian data; an input that "
    "is not given gets a fixed pattern;\n"
    " *                                       -o DIR writes each output as DIR/NAME.bin\n";

static const char head_extents[] =
    " *     runner ... NAME=N ...              an extent of this run; one that is not given is at its bound\n";

static const char head_includes[] =
    OUTPUT_LICENCE
    "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include "
    "<string.h>\n#include <sys/stat.h>\n\n#include \"@n_names.h\"\n#include \"@p.h\"\n#include "
    "\"tvmrt.h\"\n\n";

static const char prints_head[] = "/* main.c: runs model \"@n\" once on a fixed pattern and prints its outputs.\n"
                                OUTPUT_LICENCE
                                "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include "
                                "<string.h>\n\n#include \"@n_names.h\"\n#include \"@p.h\"\n#include \"tvmrt.h\"\n\n";

static const char tensor_text[] =
    "struct tensor {\n    const char *name, *shown, *dtype, *shape;\n    unsigned char *data;\n    size_t bytes;\n"
    "};\n\n";

static const char values_text[] =
    "static size_t element_bytes(const char *dtype)\n{\n"
    "    if (strstr(dtype, \"64\") != NULL)\n        return 8;\n"
    "    if (strstr(dtype, \"32\") != NULL)\n        return 4;\n"
    "    return strstr(dtype, \"16\") != NULL ? 2 : 1;\n}\n\n"
    "static double half_value(uint16_t h)\n{\n"
    "    const int exponent = (h >> 10) & 31, fraction = h & 1023;\n"
    "    double v = exponent == 0 ? fraction / 1024.0 / 16384.0 : 1.0 + fraction / 1024.0;\n    int i;\n"
    "    if (exponent == 31)\n        return fraction != 0 ? (double)NAN : h >> 15 != 0 ? -HUGE_VAL : HUGE_VAL;\n"
    "    for (i = 15; exponent > 0 && i < exponent; i++)\n        v *= 2.0;\n"
    "    for (i = exponent; exponent > 0 && i < 15; i++)\n        v /= 2.0;\n"
    "    return h >> 15 != 0 ? -v : v;\n}\n\n"
    "#define VALUE(type) \\\n    do { \\\n        type x; \\\n        memcpy(&x, at, sizeof x); \\\n        return "
    "(double)x; \\\n    } while (0)\n\n"
    "static double value(const struct tensor *t, size_t i)\n{\n"
    "    const unsigned char *at = t->data + i * element_bytes(t->dtype);\n    uint16_t h;\n    uint32_t u;\n    float "
    "f;\n"
    "    if (strcmp(t->dtype, \"float32\") == 0)\n        VALUE(float);\n"
    "    if (strcmp(t->dtype, \"float64\") == 0)\n        VALUE(double);\n"
    "    if (strcmp(t->dtype, \"int8\") == 0)\n        VALUE(int8_t);\n"
    "    if (strcmp(t->dtype, \"int16\") == 0)\n        VALUE(int16_t);\n"
    "    if (strcmp(t->dtype, \"int32\") == 0)\n        VALUE(int32_t);\n"
    "    if (strcmp(t->dtype, \"int64\") == 0)\n        VALUE(int64_t);\n"
    "    if (strcmp(t->dtype, \"uint16\") == 0)\n        VALUE(uint16_t);\n"
    "    if (strcmp(t->dtype, \"uint32\") == 0)\n        VALUE(uint32_t);\n"
    "    if (strcmp(t->dtype, \"uint64\") == 0)\n        VALUE(uint64_t);\n"
    "    if (element_bytes(t->dtype) == 1)\n        return (double)*at;\n"
    "    memcpy(&h, at, sizeof h);\n"
    "    if (strcmp(t->dtype, \"float16\") == 0)\n        return half_value(h);\n"
    "    u = (uint32_t)h << 16;\n    memcpy(&f, &u, sizeof f);\n    return (double)f;\n}\n\n";

static const char order_text[] =
    "static int is_little_endian(void)\n{\n"
    "    const uint16_t one = 1;\n    return *(const unsigned char *)&one == 1;\n}\n\n";

static const char print_text[] =
    "/* Floats run from -1 to 1, integers from 0 to 1. */\n"
    "static void fill(const struct tensor *t)\n{\n"
    "    const size_t size = element_bytes(t->dtype), count = t->bytes / size;\n    size_t i;\n"
    "    for (i = 0; i < count; i++) {\n"
    "        const double d = (double)(i * 7 % 17) / 8.0 - 1.0;\n        const float f = (float)d;\n"
    "        const uint64_t whole = i * 7 % 2;\n        uint32_t u;\n        uint16_t h;\n"
    "        memcpy(&u, &f, sizeof u);\n        h = (uint16_t)(u >> 16);\n"
    "        if (strcmp(t->dtype, \"float32\") == 0)\n            memcpy(t->data + i * size, &f, size);\n"
    "        else if (strcmp(t->dtype, \"float64\") == 0)\n            memcpy(t->data + i * size, &d, size);\n"
    "        else if (strcmp(t->dtype, \"bfloat16\") == 0)\n            memcpy(t->data + i * size, &h, size);\n"
    "        else if (strcmp(t->dtype, \"float16\") == 0)\n            h = whole != 0 ? 0x3c00 : 0, memcpy(t->data + i "
    "* size, &h, size);\n"
    "        else {\n            memset(t->data + i * size, 0, size);\n"
    "            t->data[i * size + (is_little_endian() ? 0 : size - 1)] = (unsigned char)whole;\n        }\n    "
    "}\n}\n\n"
    "static void print(const struct tensor *t)\n{\n"
    "    const size_t count = t->bytes / element_bytes(t->dtype);\n    double low = 0, high = 0;\n    size_t i;\n"
    "    for (i = 0; i < count; i++) {\n        const double v = value(t, i);\n"
    "        low = i == 0 || v < low ? v : low;\n        high = i == 0 || v > high ? v : high;\n    }\n"
    "    printf(\"%s: %s %s, %.9g to %.9g:\", t->shown, t->dtype, t->shape, low, high);\n"
    "    for (i = 0; i < count && i < 10; i++)\n        printf(\" %.9g\", value(t, i));\n"
    "    printf(\"%s\\n\", count > 10 ? \" ...\" : \"\");\n}\n\n";

static const char usage_text[] =
    "static void usage(FILE *to)\n{\n    const struct tensor *t;\n"
    "    fprintf(to, \"usage: runner [-o DIR] [NAME=FILE]...\\ninputs:\\n\");\n"
    "    for (t = inputs; t->name != NULL; t++)\n"
    "        fprintf(to, \"  %s %s %s, %lu bytes\\n\", t->shown, t->dtype, t->shape, (unsigned long)t->bytes);\n}\n\n";

static const char usage_extents[] =
    "static void usage(FILE *to)\n{\n    const struct tensor *t;\n    const struct extent *x;\n"
    "    fprintf(to, \"usage: runner [-o DIR] [NAME=FILE]... [EXTENT=N]...\\n\"\n"
    "                \"inputs (bytes with all extents at their bounds):\\n\");\n"
    "    for (t = inputs; t->name != NULL; t++)\n"
    "        fprintf(to, \"  %s %s %s, %lu bytes\\n\", t->shown, t->dtype, t->shape, (unsigned long)t->bytes);\n"
    "    if (extents->name != NULL)\n        fprintf(to, \"extents (at the bound when not given):\\n\");\n"
    "    for (x = extents; x->name != NULL; x++)\n"
    "        fprintf(to, \"  %s, 0 to %ld\\n\", x->name, (long)x->most);\n}\n\n";

static const char names_text[] =
    "/* The name of a file: what is not a letter, digit, '_', '.' or '-' becomes '_'. */\n"
    "static int file_char(int ch)\n{\n"
    "    return strchr(\"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-\", ch) != NULL ? ch : '_';\n"
    "}\n\n"
    "/* How many outputs before t have the same file name, capital letters taken as small ones. */\n"
    "static int same_before(const struct tensor *t)\n{\n    const struct tensor *o;\n    int n = 0;\n"
    "    for (o = outputs; o != t; o++) {\n        const char *a = o->name, *b = t->name;\n"
    "        while (*a != '\\0' && *b != '\\0' && (file_char(*a) | 32) == (file_char(*b) | 32))\n"
    "            a++, b++;\n        n += *a == '\\0' && *b == '\\0';\n    }\n    return n;\n}\n\n";

static const char files_text[] =
    "/* Files are little-endian: turns the bytes of every element round where the memory is not. */\n"
    "static void swap_bytes(const struct tensor *t)\n{\n"
    "    const size_t size = element_bytes(t->dtype);\n    size_t i, k;\n"
    "    for (i = is_little_endian() ? t->bytes : 0; i < t->bytes; i += size)\n"
    "        for (k = 0; k < size / 2; k++) {\n            const unsigned char byte = t->data[i + k];\n"
    "            t->data[i + k] = t->data[i + size - 1 - k];\n"
    "            t->data[i + size - 1 - k] = byte;\n        }\n}\n\n"
    "static int given[sizeof inputs / sizeof *inputs];\n\n"
    "/* Fills the input that `arg`, NAME=FILE, names; returns 0, or 2 after a message. */\n"
    "static int read_input(const char *arg)\n{\n"
    "    const struct tensor *t;\n"
    "    for (t = inputs; t->name != NULL; t++) {\n"
    "        const size_t n = strlen(t->name);\n        FILE *file;\n        size_t got;\n        int more;\n"
    "        if (strncmp(arg, t->name, n) != 0 || arg[n] != '=')\n            continue;\n"
    "        file = fopen(arg + n + 1, \"rb\");\n"
    "        if (file == NULL) {\n            fprintf(stderr, \"runner: cannot read %s\\n\", arg + n + 1);\n           "
    " return 2;\n        }\n"
    "        got = t->bytes > 0 ? fread(t->data, 1, t->bytes, file) : 0;\n        more = fgetc(file);\n        "
    "fclose(file);\n"
    "        if (got != t->bytes || more != EOF) {\n"
    "            fprintf(stderr, \"runner: %s must have raw bytes, not .npy, exactly %lu (%s %s)";

static const char size_known[] =
    "\\n\", arg + n + 1, (unsigned long)t->bytes, t->dtype,\n                    t->shape);\n";

static const char size_open[] =
    "\", arg + n + 1, (unsigned long)t->bytes, t->dtype,\n                    t->shape);\n"
    "            print_extents(stderr);\n            if (extents->name != NULL)\n"
    "                fprintf(stderr, \"runner: the argument %s=N gives another size\\n\", extents->name);\n";

static const char read_text[] =
    "            return 2;\n        }\n"
    "        swap_bytes(t);\n        given[t - inputs] = 1;\n        return 0;\n    }\n"
    "    fprintf(stderr, \"runner: '%s' is not a NAME=FILE with the name of an input\\n\", arg);\n    usage(stderr);\n"
    "    return 2;\n}\n\n"
    "static int write_output(const char *folder, const struct tensor *t)\n{\n"
    "    static char path[4096];\n    char *s, suffix[16] = \"\";\n    FILE *file;\n    size_t put;\n"
    "    const size_t skip = strlen(folder) + 1;\n    const int same = same_before(t);\n"
    "    if (same > 0)\n        sprintf(suffix, \"_%d\", same);\n"
    "    if (snprintf(path, sizeof path, \"%s/%s%s.bin\", folder, t->name, suffix) >= (int)sizeof path)\n"
    "        return 1;\n"
    "    for (s = path + skip; *s != '\\0'; s++)\n        *s = (char)file_char(*s);\n"
    "    file = fopen(path, \"wb\");\n    swap_bytes(t); /* for the last use of them */\n"
    "    put = file != NULL && t->bytes > 0 ? fwrite(t->data, 1, t->bytes, file) : 0;\n"
    "    if (file == NULL || fclose(file) != 0 || put != t->bytes) {\n"
    "        fprintf(stderr, \"runner: cannot write %s\\n\", path);\n        return 1;\n    }\n    return 0;\n}\n\n";

static const char load_text[] =
    "TVMRT_ALIGNED(@M_CONST_ALIGN) static unsigned char constants[@M_CONST_SIZE];\n\n"
    "/* Hands over the constants, from src/ beside this program. */\n"
    "static int load_constants(const char *program)\n{\n"
    "    static char path[4096];\n    const char *slash = strrchr(program, '/');\n"
    "    const int folder = slash != NULL ? (int)(slash + 1 - program) : 0;\n"
    "    FILE *file;\n    size_t got = 0;\n    int32_t status;\n"
    "    if (snprintf(path, sizeof path, \"%.*ssrc/@n_constants.bin\", folder, program) >= (int)sizeof path)\n"
    "        path[0] = '\\0';\n"
    "    file = fopen(path, \"rb\");\n    if (file == NULL) {\n"
    "        fprintf(stderr, \"runner: cannot read %s, the constants: src/ belongs beside the program\\n\", path);\n"
    "        return 1;\n    }\n"
    "    got = fread(constants, 1, sizeof constants, file);\n    got += fgetc(file) != EOF;\n    fclose(file);\n"
    "    status = @p_set_constants(constants, got);\n    if (status != 0)\n"
    "        fprintf(stderr, \"runner: %s: status %ld: %s\\n\", path, (long)status, tvmrt_status_text(status));\n"
    "    return status != 0;\n}\n\n";

static const char placed_text[] =
    "#ifndef @M_CONST_ADDRESS\n"
    "#error \"define @M_CONST_ADDRESS as the address of the bytes of src/@n_constants.bin\"\n"
    "#endif\n\n";

/* --- extents that are known when it runs --- */

static const char extent_text[] =
    "static inline int64_t floordiv(int64_t a, int64_t b)\n{\n"
    "    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));\n}\n\n"
    "static inline int64_t mod(int64_t a, int64_t b)\n{\n    return b == 0 ? 0 : a - floordiv(a, b) * b;\n}\n\n"
    "static inline int64_t min(int64_t a, int64_t b)\n{\n    return a < b ? a : b;\n}\n\n"
    "static inline int64_t max(int64_t a, int64_t b)\n{\n    return a > b ? a : b;\n}\n\n";

static const char set_extent_text[] =
    "/* Sets the extent that `arg`, NAME=N, names: 1; it names none: 0; 2 after a message. */\n"
    "static int set_extent(const char *arg)\n{\n    struct extent *x;\n"
    "    for (x = extents; x->name != NULL; x++) {\n        const size_t n = strlen(x->name);\n"
    "        long v = -1;\n        char rest;\n"
    "        if (strncmp(arg, x->name, n) != 0 || arg[n] != '=')\n            continue;\n"
    "        if (sscanf(arg + n + 1, \"%ld%c\", &v, &rest) != 1 || v < 0 || v > x->most) {\n"
    "            fprintf(stderr, \"runner: %s must be a number from 0 to %ld\\n\", x->name, (long)x->most);\n"
    "            return 2;\n        }\n        x->value = v;\n        return 1;\n    }\n    return 0;\n}\n\n"
    "static int names_input(const char *arg)\n{\n    const struct tensor *t;\n"
    "    for (t = inputs; t->name != NULL; t++)\n"
    "        if (strncmp(arg, t->name, strlen(t->name)) == 0 && arg[strlen(t->name)] == '=')\n"
    "            return 1;\n    return 0;\n}\n\n"
    "/* Ends a line about sizes with the extents that they come from. */\n"
    "static void print_extents(FILE *to)\n{\n    const struct extent *x;\n"
    "    for (x = extents; x->name != NULL; x++)\n"
    "        fprintf(to, \"%s%s=%ld\", x == extents ? \" at \" : \" \", x->name, (long)x->value);\n"
    "    fprintf(to, \"\\n\");\n}\n\n";

static void extent_expr(const package *p, writer *w, dim d)
{
    static const char *const words[] = {
        [DIM_FLOORDIV] = "floordiv", [DIM_MOD] = "mod", [DIM_MIN] = "min", [DIM_MAX] = "max"};
    const dim *parts = NULL;
    uint32_t n = dim_operands(d, &parts);
    int64_t v;
    dim_kind kind = dim_get_kind(d);
    if (dim_is_const(d, &v)) {
        w_fmt(w, "%lld", (long long)v);
    } else if (n == 0) {
        w_fmt(w, "extents[%u].value", package_extent(p, d));
    } else {
        bool sum = kind == DIM_ADD || kind == DIM_MUL;
        w_str(w, sum ? "(" : words[kind]);
        w_str(w, sum ? "" : "(");
        for (uint32_t i = 0; i < n; i++) {
            w_str(w, i == 0 ? "" : kind == DIM_ADD ? " + " : kind == DIM_MUL ? " * " : ", ");
            extent_expr(p, w, parts[i]);
        }
        w_str(w, ")");
    }
}

/* Sizes of the inputs, once the extents are set. */
static void write_input_sizes(const package *p, writer *w)
{
    w_str(w, "static void size_inputs(void)\n{\n");
    for (uint32_t i = 0, at = 0; i < p->n_inputs; i++) {
        const shape *s = &p->inputs[i].type.shape;
        if (!package_is_data(&p->inputs[i]))
            continue;
        w_fmt(w, "    inputs[%u].bytes = (size_t)(%u", at++, (unsigned)dtype_bytes(p->inputs[i].type.dt));
        for (int32_t k = 0; k < s->rank; k++) {
            w_str(w, " * ");
            extent_expr(p, w, s->dims[k]);
        }
        w_str(w, ");\n");
    }
    w_str(w, "}\n\n");
}

/* What the run says of its outputs. */
static void write_output_sizes(const package *p, writer *w)
{
    package_template(p, w, "static void size_outputs(const struct @p_outputs *out)\n{\n");
    uint32_t written = 0;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        const package_io *io = &p->outputs[i];
        if (io->shape_of == PROG_NONE)
            continue;
        w_fmt(w, "    outputs[%u].bytes = shape_bytes(out->%s, %d, element_bytes(outputs[%u].dtype), shape_%u);\n"
                 "    outputs[%u].shape = shape_%u;\n",
              io->shape_of, io->c_name, p->outputs[io->shape_of].type.shape.rank, io->shape_of, io->shape_of,
              io->shape_of, io->shape_of);
        written++;
    }
    w_str(w, written ? "}\n\n" : "    (void)out;\n}\n\n");
}

static const char shape_text[] =
    "/* The bytes of a tensor of that shape, and the shape as text. */\n"
    "static inline size_t shape_bytes(const int64_t *shape, int rank, size_t size, char *text)\n{\n    int k;\n"
    "    text += sprintf(text, \"[\");\n"
    "    for (k = 0; k < rank; k++) {\n        size *= (size_t)shape[k];\n"
    "        text += sprintf(text, \"%s%ld\", k > 0 ? \", \" : \"\", (long)shape[k]);\n    }\n"
    "    sprintf(text, \"]\");\n    return size;\n}\n\n";

static void write_extents(const package *p, writer *w)
{
    w_str(w, extent_text);
    w_str(w, "static struct extent {\n    const char *name;\n    int64_t most, value;\n} extents[] = {\n");
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const package_io *io = &p->inputs[i];
        const char *macro = package_upper(&p->c->mem, io->c_name);
        if (!io->extent)
            continue;
        w_str(w, "    {");
        w_quoted(w, io->name, strlen(io->name));
        w_fmt(w, ", %s_%s_MAX, %s_%s_MAX},\n", p->macro, macro, p->macro, macro);
    }
    w_str(w, "    {NULL, 0, 0},\n};\n\n");
    if (has_files(p)) { /* the others run at the bounds */
        w_str(w, set_extent_text);
        write_input_sizes(p, w);
    }
    w_str(w, shape_text);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].shape_of != PROG_NONE)
            w_fmt(w, "static char shape_%u[%d];\n", p->outputs[i].shape_of,
                  3 + 22 * p->outputs[p->outputs[i].shape_of].type.shape.rank);
    write_output_sizes(p, w);
}

/* --- the run --- */

static void set_input(const package *p, writer *w, uint32_t i)
{
    if (p->inputs[i].extent)
        w_fmt(w, "    in.%s = extents[%u].value == 0 ? %s_EMPTY : extents[%u].value;\n", p->inputs[i].c_name,
              package_extent(p, p->inputs[i].extent), p->macro, package_extent(p, p->inputs[i].extent));
    else
        w_fmt(w, "    in.%s = (const void *)input_%u.bytes;\n", p->inputs[i].c_name, i);
}

static void run_body(const package *p, writer *w)
{
    bool open = package_is_open(p), placed = p->constants_form == CONSTANTS_BIN && !has_files(p);
    if (placed)
        package_template(p, w, placed_text);
    package_template(p, w, "static int32_t run(void)\n{\n    struct @p_inputs in;\n    struct @p_outputs out;\n");
    if (placed)
        package_template(
            p, w,
            "    int32_t status = @p_set_constants((const void *)(uintptr_t)@M_CONST_ADDRESS, @M_CONST_SIZE);\n"
            "    if (status != 0)\n        return status;\n");
    if (open)
        w_str(w, "    int32_t run_status;\n");
    for (uint32_t i = 0; i < p->n_inputs; i++)
        set_input(p, w, i);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (package_is_data(&p->outputs[i]))
            w_fmt(w, "    out.%s = (void *)output_%u.bytes;\n", p->outputs[i].c_name, i);
    w_str(w, p->n_inputs ? "" : "    in.none = NULL;\n");
    w_str(w, p->n_outputs ? "" : "    out.none = NULL;\n");
    package_template(p, w, open ? "    run_status = @p_run(&in, &out);\n    if (run_status == 0)\n        "
                                  "size_outputs(&out);\n    return run_status;\n}\n\n"
                                : "    return @p_run(&in, &out);\n}\n\n");
}

/* Which operator it was. */
static const char failed_text[] =
    "static void print_failure(int32_t status)\n{\n    tvmrt_log_record_t record;\n\n"
    "    fprintf(stderr, \"runner: status %ld: %s\\n\", (long)status, tvmrt_status_text(status));\n"
    "    while (tvmrt_log_pop(&record))\n        if (record.code == status && record.op_id >= 0)\n"
    "            fprintf(stderr, \"runner: operator %ld, %s\\n\", (long)record.op_id,\n"
    "                    model_get_op_descs()[record.op_id].name);\n}\n\n";

/* The same, with the extents that may be what is wrong. */
static const char failed_open[] =
    "static void print_failure(int32_t status)\n{\n    tvmrt_log_record_t record;\n\n"
    "    fprintf(stderr, \"runner: status %ld: %s\\n\", (long)status, tvmrt_status_text(status));\n"
    "    while (tvmrt_log_pop(&record))\n        if (record.code == status && record.op_id >= 0)\n"
    "            fprintf(stderr, \"runner: operator %ld, %s%s%s\\n\", (long)record.op_id,\n"
    "                    model_get_op_descs()[record.op_id].name,\n"
    "                    status == TVMRT_E_SHAPE && op_extents[record.op_id][0] != '\\0' ? \"; its data must give \" "
    ": \"\",\n"
    "                    status == TVMRT_E_SHAPE ? op_extents[record.op_id] : \"\");\n}\n\n";

static void write_op_extents(const package *p, writer *w)
{
    w_str(w, "/* Of each operator, extents that the data decides. */\nstatic const char *const op_extents[] = {\n");
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const char *text = package_op_extents(p, i);
        w_str(w, "    ");
        w_quoted(w, text, strlen(text));
        w_str(w, ",\n");
    }
    w_str(w, "    \"\",\n};\n\n");
}

static const char files_main[] =
    "int main(int argc, char **argv)\n{\n"
    "    const char *folder = NULL;\n    const struct tensor *t;\n    int32_t status;\n    int i, failed = 0;\n";

static const char files_extents[] =
    "    for (i = 1; i < argc; i++)\n"
    "        if (strcmp(argv[i], \"-h\") == 0 || strcmp(argv[i], \"--help\") == 0) {\n"
    "            usage(stdout);\n            return 0;\n        }\n"
    "    for (i = 1; i < argc; i++) {\n"
    "        const int is_folder = strcmp(argv[i], \"-o\") == 0 && i + 1 < argc;\n"
    "        const int set = is_folder ? 1 : set_extent(argv[i]);\n\n"
    "        if (set == 0 && !names_input(argv[i])) {\n"
    "            fprintf(stderr, \"runner: '%s' is neither NAME=FILE with the name of an input nor NAME=N with that of "
    "an \"\n                            \"extent\\n\", argv[i]);\n"
    "            usage(stderr);\n            return 2;\n        }\n"
    "        if (set == 2)\n            return 2;\n        i += is_folder;\n    }\n    size_inputs();\n";

static const char files_arguments[] =
    "    for (t = inputs; t->name != NULL; t++)\n        fill(t);\n"
    "    for (i = 1; i < argc; i++) {\n"
    "        if (strcmp(argv[i], \"-o\") == 0 && i + 1 < argc)\n            folder = argv[++i];\n"
    "        else if (strcmp(argv[i], \"-h\") == 0 || strcmp(argv[i], \"--help\") == 0) {\n"
    "            usage(stdout);\n            return 0;\n        } else if (";

static const char files_inputs[] =
    "read_input(argv[i]) != 0)\n            return 2;\n    }\n"
    "    for (t = inputs; t->name != NULL; t++)\n        if (given[t - inputs])\n            print(t);\n"
    "        else\n            fprintf(stderr, \"runner: %s has test numbers; %s=FILE gives yours\\n\",\n"
    "                    t->shown, t->shown);\n"
    "    if (folder != NULL)\n        (void)mkdir(folder, 0777); /* may exist */\n";

/* The table of times; with workers, parts of an operator run on several threads. */
static const char hooks_text[] =
    "#if TVMRT_HOOKS\n"
    "/* What the parts of each operator took together, as tvmrt_port_cycles counts, and how often 2^32 of that. */\n"
    "static uint32_t op_cycles[@M_NUM_OPS + 1], op_wraps[@M_NUM_OPS + 1];\n\n"
    "void tvmrt_hook_after(const tvmrt_context_t *context, uint32_t op_id, uint32_t part, int32_t status,\n"
    "                      uint32_t cycles)\n{\n"
    "    (void)context, (void)part, (void)status;\n"
    "    if (tvmrt_atomic_add(&op_cycles[op_id], cycles) < cycles)\n"
    "        tvmrt_atomic_add(&op_wraps[op_id], 1);\n}\n\n"
    "static void print_cycles(void)\n{\n    size_t op;\n"
    "    for (op = 0; op + 1 < sizeof op_cycles / sizeof *op_cycles; op++) {\n"
    "        const char *name = model_get_op_descs()[op].name;\n"
    "        if (op_wraps[op] > 0)\n            printf(\"%lu * 2^32 + \", (unsigned long)op_wraps[op]);\n"
    "        printf(\"%10lu \", (unsigned long)op_cycles[op]);\n"
    "        if (name != NULL && name[0] != '\\0')\n            printf(\"%s\\n\", name);\n"
    "        else /* names are left out */\n            printf(\"operator %lu\\n\", (unsigned long)op);\n"
    "    }\n}\n#endif\n\n";

static const char files_run[] =
    "    status = run();\n"
    "    if (status != 0) {\n        print_failure(status);\n        return 1;\n    }\n"
    "    for (t = outputs; t->name != NULL; t++) {\n        print(t);\n"
    "        failed |= folder != NULL ? write_output(folder, t) : 0;\n    }\n"
    "#if TVMRT_HOOKS\n    print_cycles();\n#endif\n"
    "    (void)tvmrt_engine_shutdown(NULL);\n    return failed;\n}\n";

static const char prints_run[] =
    "static int run_and_print(void)\n{\n    const struct tensor *t;\n    int32_t status;\n"
    "    for (t = inputs; t->name != NULL; t++)\n        fill(t);\n"
    "    status = run();\n    printf(\"status %ld\\n\", (long)status);\n"
    "    for (t = outputs; status == 0 && t->name != NULL; t++)\n        print(t);\n"
    "#if TVMRT_HOOKS\n    print_cycles();\n#endif\n"
    "    return status != 0;\n}\n\n";

static const char prints_main[] = "int main(void)\n{\n    return run_and_print();\n}\n";

static const char freertos_main[] =
    "#include \"FreeRTOS.h\"\n#include \"task.h\"\n\n"
    "/* Kernels, printf, the runtime. */\n"
    "#define STACK_WORDS (@M_KERNEL_STACK_BYTES / sizeof(StackType_t) + 2048)\n\n"
    "static void model_task(void *arg)\n{\n    (void)arg;\n    (void)run_and_print();\n    vTaskDelete(NULL);\n}\n\n"
    "int main(void)\n{\n"
    "    static StaticTask_t task;\n    static StackType_t stack[STACK_WORDS];\n"
    "    (void)xTaskCreateStatic(model_task, \"model\", STACK_WORDS, NULL, 1, stack, &task);\n"
    "    vTaskStartScheduler();\n    return 1; /* the scheduler does not return */\n}\n";

static const char cmsis_rtos2_main[] =
    "#include \"cmsis_os2.h\"\n\n"
    "/* Kernels, printf, the runtime. */\n"
    "#define STACK_BYTES (@M_KERNEL_STACK_BYTES + 8192u)\n\n"
    "static void model_thread(void *arg)\n{\n    (void)arg;\n    (void)run_and_print();\n    osThreadExit();\n}\n\n"
    "int main(void)\n{\n    osThreadAttr_t attributes = {0};\n\n"
    "    attributes.stack_size = STACK_BYTES;\n"
    "    if (osKernelInitialize() != osOK || osThreadNew(model_thread, NULL, &attributes) == NULL)\n        return 1;\n"
    "    (void)osKernelStart();\n    return 1; /* the scheduler does not return */\n}\n";

static const char dualcore_main[] =
    "#if defined(PICO_ON_DEVICE) /* the Pico SDK; link pico_multicore */\n#include \"pico/multicore.h\"\n\n"
    "/* Other boards have such a function: it starts their second core in `entry`, with a stack of its own. */\n"
    "void tvmrt_port_start_core(void (*entry)(void))\n{\n    multicore_launch_core1(entry);\n}\n#endif\n\n"
    "int main(void)\n{\n    return run_and_print();\n}\n";

/* Builds that take every file of a folder have a main of their own. */
static const char begin_guard[] =
    "#if !defined(ARDUINO) && !defined(ESP_PLATFORM) && !defined(@M_NO_MAIN)\n\n";
static const char end_guard[] = "\n#endif\n";

static const char *const mains[] = {[PORT_MAIN_FILES] = files_main,
                                    [PORT_MAIN_PRINTS] = prints_main,
                                    [PORT_MAIN_FREERTOS] = freertos_main,
                                    [PORT_MAIN_CMSIS_RTOS2] = cmsis_rtos2_main,
                                    [PORT_MAIN_DUALCORE] = dualcore_main};

void main_write(const package *p, writer *w)
{
    const bool files = has_files(p), open = package_is_open(p);
    package_template(p, w, files ? head_text : prints_head);
    w_str(w, files && open ? head_extents : "");
    package_template(p, w, files ? head_includes : "");
    package_template(p, w, begin_guard);
    w_str(w, tensor_text);
    io_rows(p, w, "input", p->inputs, p->n_inputs);
    io_rows(p, w, "output", p->outputs, p->n_outputs);
    w_str(w, values_text);
    w_str(w, order_text);
    w_str(w, print_text);
    if (open)
        write_extents(p, w);
    if (files) {
        w_str(w, open ? usage_extents : usage_text);
        w_str(w, names_text);
        w_str(w, files_text);
        w_str(w, open ? size_open : size_known);
        w_str(w, read_text);
    }
    if (files && open)
        write_op_extents(p, w);
    if (files)
        w_str(w, open ? failed_open : failed_text);
    if (files && p->constants_form == CONSTANTS_BIN)
        package_template(p, w, load_text);
    package_template(p, w, hooks_text);
    run_body(p, w);
    if (!files)
        w_str(w, prints_run);
    package_template(p, w, mains[p->u->port->main]);
    if (files) {
        w_str(w, open ? files_extents : "");
        w_str(w, files_arguments);
        w_str(w, open ? "set_extent(argv[i]) == 0 && " : "");
        w_str(w, files_inputs);
    }
    if (files && p->constants_form == CONSTANTS_BIN)
        w_str(w, "    if (load_constants(argv[0]) != 0)\n        return 1;\n");
    if (files)
        w_str(w, files_run);
    w_str(w, end_guard);
}
