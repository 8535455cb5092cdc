/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of FlatBuffers: its field table against the schema, and models that are cut off or changed byte by byte,
 * which are read or refused with a message. */
#define _XOPEN_SOURCE 700
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

#include "frontend/tflite/tflite.h"
#include "frontend/tflite/tflite_schema.h"
#include "graph/op.h"

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : ".";
}

static void test_field_table(void **state)
{
    (void)state;
    char path[] = "/tmp/tflite_fields_XXXXXX", command[512];
    const char *python = getenv("LATHE_PYTHON");
    arena a;
    writer w;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    arena_init(&a, NULL);
    writer_init(&w, &a);
    flat_print_fields(&w);
    assert_true(write(fd, w.data, w.len) == (ssize_t)w.len);
    close(fd);
    snprintf(command, sizeof command,
             "p='%s'; [ -x \"$p\" ] || p='%s/venv/bin/python'; [ -x \"$p\" ] || p=python3; "
             "\"$p\" '%s/test/py/check_tflite_fields.py' < %s",
             python ? python : "", environment("LATHE_BUILD"), environment("LATHE_SOURCE"), path);
    int status = system(command);
    unlink(path);
    arena_free(&a);
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The bytes lie at the end of a block of their own, so that a sanitizer sees who reads beyond them. */
static void try_bytes(const uint8_t *data, size_t len)
{
    compiler c;
    graph_module *m = NULL;
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, data, len);
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    if (tflite_import(&c, (span){copy, len}, "m.tflite", NULL, &m))
        assert_true(graph_verify(&c, m));
    else
        assert_true(c.diags.errors > 0);
    compiler_free(&c);
    free(copy);
}

static void test_damaged(void **state)
{
    (void)state;
    static const uint8_t values[] = {0x7f, 0xff};
    char path[512];
    uint8_t data[4096];
    snprintf(path, sizeof path, "%s/test/golden/tflite/numbers.tflite", environment("LATHE_SOURCE"));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t len = fread(data, 1, sizeof data, f);
    fclose(f);
    assert_true(len > 500 && len < sizeof data);
    for (size_t i = 0; i <= len; i++)
        try_bytes(data, i);
    for (size_t i = 0; i < len; i++) {
        const uint8_t kept = data[i];
        for (size_t k = 0; k < sizeof values; k++) {
            data[i] = values[k];
            try_bytes(data, len);
        }
        data[i] = kept;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_field_table),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
