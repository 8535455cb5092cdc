/* SPDX-License-Identifier: Apache-2.0 */
/* The ONNX front end: wire reader and import, on models that a small protobuf writer makes here. Each bad model must
 * give one message that names the place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

/* --- a protobuf writer
 * ------------------------------------------------------------------------------------------------ */

typedef struct bytes {
    uint8_t data[8192];
    size_t len;
} bytes;

static void put_varint(bytes *b, uint64_t v)
{
    do {
        assert_true(b->len < sizeof b->data);
        b->data[b->len++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
}

static void put_int(bytes *b, uint32_t field, uint64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, v);
}

static void put_raw(bytes *b, uint32_t field, const void *data, size_t len)
{
    put_varint(b, ((uint64_t)field << 3) | 2);
    put_varint(b, len);
    assert_true(b->len + len < sizeof b->data);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
}

static void put_text(bytes *b, uint32_t field, const char *s)
{
    put_raw(b, field, s, strlen(s));
}

static void put_msg(bytes *b, uint32_t field, const bytes *m)
{
    put_raw(b, field, m->data, m->len);
}

/* ValueInfoProto of f32 with the given extents (-1: symbol "n"). */
static void put_value(bytes *graph, uint32_t field, const char *name, uint32_t rank, const int64_t *dims)
{
    bytes extents = {0}, tensor = {0}, kind = {0}, info = {0};
    for (uint32_t i = 0; i < rank; i++) {
        bytes d = {0};
        if (dims[i] >= 0)
            put_int(&d, 1, (uint64_t)dims[i]);
        else
            put_text(&d, 2, "n");
        put_msg(&extents, 1, &d);
    }
    put_int(&tensor, 1, 1);
    put_msg(&tensor, 2, &extents);
    put_msg(&kind, 1, &tensor);
    put_text(&info, 1, name);
    put_msg(&info, 2, &kind);
    put_msg(graph, field, &info);
}

static void put_node(bytes *graph, const char *op, const char *a, const char *b, const char *out)
{
    bytes n = {0};
    put_text(&n, 1, a);
    if (b)
        put_text(&n, 1, b);
    put_text(&n, 2, out);
    put_text(&n, 4, op);
    put_msg(graph, 1, &n);
}

static void put_opset(bytes *model, uint64_t version)
{
    bytes o = {0};
    put_int(&o, 2, version);
    put_msg(model, 8, &o);
}

static bytes make_model(const bytes *graph, uint64_t ir, uint64_t opset)
{
    bytes m = {0};
    put_int(&m, 1, ir);
    put_opset(&m, opset);
    put_msg(&m, 7, graph);
    return m;
}

static const int64_t two[1] = {2};
static const int64_t symbolic[2] = {-1, 3};

/* --- running
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct result {
    compiler c;
    graph_module *m;
    bool ok;
    char *messages, *text;
} result;

static result import_bytes(const uint8_t *data, size_t len, const frontend_options *o)
{
    result r = {0};
    writer w;
    compiler_init(&r.c);
    graph_register_builtin_ops(&r.c);
    r.ok = onnx_import(&r.c, (span){data, len}, "m.onnx", o, &r.m);
    r.messages = diags_print(&r.c.diags, &r.c.mem);
    writer_init(&w, &r.c.mem);
    if (r.ok) {
        assert_true(graph_verify(&r.c, r.m));
        graph_print(&w, r.m);
    }
    r.text = r.ok ? w.data : NULL;
    return r;
}

static void refuse(const uint8_t *data, size_t len, const char *message)
{
    result r = import_bytes(data, len, NULL);
    assert_false(r.ok);
    assert_true(r.c.diags.errors > 0);
    if (!strstr(r.messages, message))
        fail_msg("no '%s' in: %s", message, r.messages);
    assert_non_null(strstr(r.messages, "m.onnx"));
    compiler_free(&r.c);
}

static void refuse_model(const bytes *graph, const char *message)
{
    bytes m = make_model(graph, 8, 17);
    refuse(m.data, m.len, message);
}

static void accept(const bytes *m, const frontend_options *o, const char *fragment)
{
    result r = import_bytes(m->data, m->len, o);
    if (!r.ok)
        fail_msg("refused: %s", r.messages);
    if (!strstr(r.text, fragment))
        fail_msg("no '%s' in: %s", fragment, r.text);
    compiler_free(&r.c);
}

static bytes add_graph(void)
{
    bytes g = {0};
    put_value(&g, 11, "x", 1, two);
    put_value(&g, 12, "y", 1, two);
    put_node(&g, "Add", "x", "x", "y");
    return g;
}

/* --- wire
 * -------------------------------------------------------------------------------------------------------------------
 */

static void test_broken_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } cases[] = {
        {"", 0, "empty"},
        {"\x08", 1, "a number is cut off"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "more than ten bytes"},
        {"\x3a\x05\x0a", 3, "a length goes beyond the end"},
        {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "a length goes beyond the end"},
        {"\x3b", 1, "wrong wire type"},
        {"\x00\x00", 2, "field number"},
        {"\x53", 1, "a group"},
        {"\x57", 1, "unknown wire type"},
        {"\x3d\x00\x00\x00\x00", 5, "wrong wire type"},
        {"\xa1\x06\x00", 3, "cut off"},
        {"hello, this is a text file\n", 27, "not a readable ONNX file"},
        {"\x08\x08", 2, "holds no graph"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse((const uint8_t *)cases[i].bytes, cases[i].len, cases[i].message);
}

/* Every prefix of a good model, and every model with one byte changed, gives an answer. */
static void test_truncated_and_flipped(void **state)
{
    (void)state;
    bytes g = add_graph(), m = make_model(&g, 8, 17);
    for (size_t n = 0; n < m.len; n++) {
        result r = import_bytes(m.data, n, NULL);
        assert_true(r.ok || r.c.diags.errors > 0);
        compiler_free(&r.c);
    }
    for (size_t n = 0; n < m.len; n++)
        for (uint32_t bit = 0; bit < 8; bit++) {
            bytes k = m;
            k.data[n] ^= (uint8_t)(1u << bit);
            result r = import_bytes(k.data, k.len, NULL);
            assert_true(r.ok || r.c.diags.errors > 0);
            compiler_free(&r.c);
        }
}

/* Messages in messages: graph, node, attribute, graph, ... */
static void test_deep_nesting(void **state)
{
    (void)state;
    enum { LEVELS = 100000 };
    size_t cap = (size_t)LEVELS * 8, at = cap, len = 0;
    uint8_t *buf = malloc(cap);
    assert_non_null(buf);
    for (uint32_t i = 0; i < LEVELS; i++) {
        static const uint8_t fields[3] = {1, 5, 6}; /* graph.node, node.attribute, attribute.g */
        uint8_t head[8];
        size_t n = 0, v = len;
        head[n++] = (uint8_t)(i + 1 == LEVELS ? 0x3a : fields[(LEVELS - 2 - i) % 3] << 3 | 2);
        do {
            head[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
            v >>= 7;
        } while (v);
        at -= n;
        memcpy(buf + at, head, n);
        len += n;
    }
    refuse(buf + at, len, "nested too deeply");
    free(buf);
}

static void test_unknown_fields_are_skipped(void **state)
{
    (void)state;
    bytes g = add_graph(), m = make_model(&g, 8, 17);
    put_text(&m, 2, "producer");
    put_int(&m, 99, 7);
    put_text(&m, 100, "later version");
    put_varint(&m, 101u << 3 | 5);
    for (int i = 0; i < 4; i++)
        m.data[m.len++] = 1;
    accept(&m, NULL, "%y = add(%x, %x)");
}

/* float_data packed and one by one; dims packed and one by one. */
static void test_packed_and_unpacked(void **state)
{
    (void)state;
    static const uint8_t one_two[8] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    for (uint32_t form = 0; form < 4; form++) {
        bytes g = {0}, t = {0};
        if (form & 1u)
            put_raw(&t, 1, "\x02", 1);
        else
            put_int(&t, 1, 2);
        put_int(&t, 2, 1);
        if (form & 2u)
            put_raw(&t, 4, one_two, 8);
        for (uint32_t i = 0; !(form & 2u) && i < 2; i++) {
            put_varint(&t, 4u << 3 | 5);
            for (uint32_t k = 0; k < 4; k++)
                t.data[t.len++] = one_two[4 * i + k];
        }
        put_text(&t, 8, "k");
        put_msg(&g, 5, &t);
        put_value(&g, 11, "x", 1, two);
        put_value(&g, 12, "y", 1, two);
        put_node(&g, "Add", "x", "k", "y");
        bytes m = make_model(&g, 8, 17);
        accept(&m, NULL, "%k = constant f32[2] dense [1.0, 2.0]");
    }
}

/* Tensor bytes are borrowed: the constant points into the model. */
static void test_raw_data_is_not_copied(void **state)
{
    (void)state;
    static const uint8_t raw[8] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    bytes t = {0};
    compiler c;
    const char *name = NULL;
    bool is_text = true;
    const tensor_data *d = NULL;
    put_int(&t, 1, 2);
    put_int(&t, 2, 1);
    put_text(&t, 8, "k");
    put_raw(&t, 9, raw, 8);
    compiler_init(&c);
    assert_true(onnx_read_tensor(&c, (span){t.data, t.len}, "k.pb", &name, &is_text, &d));
    assert_string_equal(name, "k");
    assert_false(is_text);
    assert_ptr_equal(d->data, t.data + t.len - 8);
    assert_int_equal(d->offset, t.len - 8);
    assert_true(tensor_get_f64(d, 1) == 2.0);
    t.data[t.len - 9] = 7; /* the length of raw_data */
    assert_false(onnx_read_tensor(&c, (span){t.data, t.len - 1}, "k.pb", &name, &is_text, &d));
    assert_non_null(strstr(diags_print(&c.diags, &c.mem), "raw_data has "));
    compiler_free(&c);
}

static void test_field_table(void **state)
{
    (void)state;
    char path[] = "/tmp/onnx_fields_XXXXXX", command[512];
    const char *source = getenv("LATHE_SOURCE"), *build = getenv("LATHE_BUILD"), *python = getenv("LATHE_PYTHON");
    arena a;
    writer w;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    arena_init(&a, NULL);
    writer_init(&w, &a);
    onnx_wire_print_fields(&w);
    assert_true(write(fd, w.data, w.len) == (ssize_t)w.len);
    close(fd);
    snprintf(command, sizeof command,
             "p='%s'; [ -x \"$p\" ] || p='%s/venv/bin/python'; [ -x \"$p\" ] || p=python3; "
             "\"$p\" '%s/test/py/check_onnx_fields.py' < %s",
             python ? python : "", build ? build : ".", source ? source : ".", path);
    int status = system(command);
    unlink(path);
    arena_free(&a);
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- models
 * ------------------------------------------------------------------------------------------------------------------ */

static void test_versions(void **state)
{
    (void)state;
    bytes g = add_graph();
    static const struct {
        uint64_t ir, opset;
        const char *message; /* NULL: good */
    } cases[] = {{2, 7, "IR version 2 is too old"}, {3, 7, NULL},   {8, 0, "version 0 of ai.onnx"},
                 {8, 29, "version 29 of ai.onnx"},  {12, 28, NULL}, {8, 1, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes m = make_model(&g, cases[i].ir, cases[i].opset);
        if (cases[i].message)
            refuse(m.data, m.len, cases[i].message);
        else
            accept(&m, NULL, "add");
    }
    bytes none = {0};
    put_int(&none, 1, 8);
    put_msg(&none, 7, &g);
    refuse(none.data, none.len, "imports no operator set");
}

static void test_bad_graphs(void **state)
{
    (void)state;
    bytes g = add_graph();
    put_node(&g, "Neg", "x", NULL, "y");
    refuse_model(&g, "node 1 (Neg): the name 'y' is given to two values");
    g = add_graph();
    put_value(&g, 11, "x", 1, two);
    refuse_model(&g, "two inputs are named 'x'");
    g = (bytes){0};
    put_value(&g, 11, "x", 1, two);
    put_value(&g, 12, "y", 1, two);
    refuse_model(&g, "nothing makes the model's output 'y'");
    put_node(&g, "Add", "x", "z", "y");
    refuse_model(&g, "node 0 (Add): input 'z' is not an input");
    put_node(&g, "Neg", "y", NULL, "z");
    refuse_model(&g, "a cycle");
    g = add_graph();
    put_node(&g, "Twirl", "x", NULL, "l");
    put_node(&g, "StringConcat", "l", NULL, "s");
    refuse_model(&g, "Twirl (operator set 17; 1 node: #1); StringConcat (operator set 17; 1 node: #2)");
    g = add_graph();
    put_node(&g, "SequenceConstruct", "x", NULL, "l");
    put_node(&g, "SequenceInsert", "l", "l", "s");
    refuse_model(&g, "node 2 (SequenceInsert): input 1 is a sequence or an optional, which this operator does not "
                     "take");
    g = (bytes){0};
    put_value(&g, 11, "x", 1, two);
    put_node(&g, "Add", "x", "x", "y");
    refuse_model(&g, "the model has no outputs");
    bytes dumb = {0};
    put_text(&dumb, 4, "Constant");
    g = add_graph();
    put_msg(&g, 1, &dumb);
    refuse_model(&g, "node 1 (Constant): the node has no results");
}

/* Nodes out of order are put in order. */
static void test_order(void **state)
{
    (void)state;
    bytes g = {0};
    put_value(&g, 11, "x", 1, two);
    put_value(&g, 12, "y", 1, two);
    put_node(&g, "Neg", "a", NULL, "y");
    put_node(&g, "Abs", "x", NULL, "a");
    bytes m = make_model(&g, 8, 17);
    accept(&m, NULL, "loc(\"m.onnx\", 1, \"\", \"Abs\")\n  %y = negative(%a)");
}

static bytes symbolic_model(void)
{
    bytes g = {0};
    put_value(&g, 11, "x", 2, symbolic);
    put_value(&g, 12, "y", 2, symbolic);
    put_node(&g, "Neg", "x", NULL, "y");
    return make_model(&g, 8, 17);
}

static void test_fixes(void **state)
{
    (void)state;
    bytes m = symbolic_model();
    static const struct {
        frontend_dim_fix fix[2];
        uint32_t n;
        const char *text;
        bool ok;
    } cases[] = {
        {{{"n", false, false, 1, {5}}}, 1, "%x: f32[5, 3]", true},
        {{{"x", true, false, 2, {4, 3}}}, 1, "%x: f32[4, 3]", true},
        {{{"n", false, false, 1, {5}}, {"x", true, false, 2, {5, 3}}}, 2, "%x: f32[5, 3]", true},
        {{{"batch", false, false, 1, {5}}}, 1, "no dimension 'batch'", false},
        {{{"z", true, false, 1, {5}}}, 1, "no input 'z'; its inputs are: x", false},
        {{{"x", true, false, 1, {5}}}, 1, "has rank 2; the shape given has rank 1", false},
        {{{"x", true, false, 2, {5, 4}}}, 1, "has extent 3 at axis 1; the shape given says 4", false},
        {{{"n", false, false, 1, {5}}, {"x", true, false, 2, {6, 3}}}, 2,
         "cannot be both 5 (dimension n) and 6 (shape of x)", false},
        {{{"n", false, false, 1, {-5}}}, 1, "cannot be negative", false},
    };
    accept(&m, NULL, "%x: f32[n, 3]");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frontend_options o = {.fixes = cases[i].fix, .n_fixes = cases[i].n};
        result r = import_bytes(m.data, m.len, &o);
        assert_int_equal(r.ok, cases[i].ok);
        if (!strstr(r.ok ? r.text : r.messages, cases[i].text))
            fail_msg("case %zu: no '%s' in: %s", i, cases[i].text, r.ok ? r.text : r.messages);
        if (!r.ok)
            assert_int_equal(diags_exit_status(&r.c.diags), 2);
        compiler_free(&r.c);
    }
}

/* --- external data
 * ------------------------------------------------------------------------------------------------------------- */

static void put_entry(bytes *t, const char *key, const char *value)
{
    bytes e = {0};
    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_msg(t, 13, &e);
}

static bytes external_tensor(const char *location, const char *offset, const char *length)
{
    bytes t = {0};
    put_int(&t, 1, 2);
    put_int(&t, 2, 1);
    put_text(&t, 8, "k");
    put_int(&t, 14, 1);
    if (location)
        put_entry(&t, "location", location);
    if (offset)
        put_entry(&t, "offset", offset);
    if (length)
        put_entry(&t, "length", length);
    return t;
}

static void test_external_data(void **state)
{
    (void)state;
    char dir[] = "/tmp/onnx_external_XXXXXX", path[64], command[512];
    static const float values[3] = {7, 1, 2};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/in/w.bin", dir);
    snprintf(command, sizeof command, "mkdir %s/in && ln -s /etc/passwd %s/in/link && ln -s w.bin %s/in/alias", dir,
             dir, dir);
    assert_int_equal(system(command), 0);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(values, 4, 3, f), 3);
    fclose(f);
    static const struct {
        const char *location, *offset, *length, *message;
    } cases[] = {
        {"w.bin", "4", "8", NULL},
        {"alias", "4", NULL, NULL},
        {"w.bin", "8", "8", "beyond the end"},
        {"w.bin", "18446744073709551615", "8", "beyond the end"},
        {"w.bin", "4", "4", "does not have the length"},
        {"w.bin", "-4", "8", "not a number"},
        {"w.bin", "4x", "8", "not a number"},
        {NULL, NULL, NULL, "names no file"},
        {"../in/w.bin", "4", "8", "is refused"},
        {"a/../../in/w.bin", "4", "8", "is refused"},
        {"/etc/passwd", NULL, NULL, "is refused"},
        {"link", NULL, NULL, "is refused"},
        {"C:\\w.bin", NULL, NULL, "is refused"},
        {"", NULL, NULL, "is refused"},
        {"nothing.bin", NULL, NULL, "nothing.bin"},
    };
    snprintf(path, sizeof path, "%s/in/m.onnx", dir);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes t = external_tensor(cases[i].location, cases[i].offset, cases[i].length);
        compiler c;
        const char *name = NULL;
        bool is_text = true;
        const tensor_data *d = NULL;
        compiler_init(&c);
        bool ok = onnx_read_tensor(&c, (span){t.data, t.len}, path, &name, &is_text, &d);
        char *text = diags_print(&c.diags, &c.mem);
        if (ok != !cases[i].message || (!ok && !strstr(text, cases[i].message)))
            fail_msg("case %zu: %s", i, ok ? "accepted" : text);
        if (ok)
            assert_true(tensor_get_f64(d, 0) == 1.0 && tensor_get_f64(d, 1) == 2.0);
        compiler_free(&c);
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* --- functions
 * ------------------------------------------------------------------------------------------------------------------ */

static bytes local_function(const char *name, const char *op, const char *op_domain)
{
    bytes f = {0}, n = {0}, o = {0}, k = {0};
    put_text(&f, 1, name);
    put_text(&f, 4, "a");
    put_text(&f, 5, "b");
    put_text(&n, 1, "a");
    put_text(&n, 2, "b");
    put_text(&n, 4, op);
    put_text(&n, 7, op_domain);
    put_msg(&f, 7, &n);
    put_int(&o, 2, 17);
    put_msg(&f, 9, &o);
    put_text(&k, 1, "local");
    put_int(&k, 2, 1);
    put_msg(&f, 9, &k);
    put_text(&f, 10, "local");
    return f;
}

static void test_functions(void **state)
{
    (void)state;
    bytes g = {0}, n = {0};
    put_value(&g, 11, "x", 1, two);
    put_value(&g, 12, "y", 1, two);
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 4, "f");
    put_text(&n, 7, "local");
    put_msg(&g, 1, &n);
    bytes f = local_function("f", "g", "local"), h = local_function("g", "Neg", ""),
          r = local_function("g", "f", "local");
    bytes good = make_model(&g, 9, 17), bad = good;
    put_msg(&good, 25, &f);
    put_msg(&good, 25, &h);
    accept(&good, NULL, "%y = negative(%x)");
    put_msg(&bad, 25, &f);
    put_msg(&bad, 25, &r);
    refuse(bad.data, bad.len, "function 'f' calls itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_bytes),
        cmocka_unit_test(test_truncated_and_flipped),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_unknown_fields_are_skipped),
        cmocka_unit_test(test_packed_and_unpacked),
        cmocka_unit_test(test_raw_data_is_not_copied),
        cmocka_unit_test(test_field_table),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_bad_graphs),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_fixes),
        cmocka_unit_test(test_external_data),
        cmocka_unit_test(test_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
