/* SPDX-License-Identifier: Apache-2.0 */
/* Models of test/golden and test/golden/error, a folder for each front end: each NAME.onnx or NAME.tflite imports to
 * the text in NAME.txt, or is refused with the messages there. What is accepted must verify, and
 * print(parse(text)) must give the text again.
 * With LATHE_GOLDEN_UPDATE set the texts are rewritten: review the difference. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/onnx/onnx.h"
#include "frontend/tflite/tflite.h"

typedef struct front_end {
    const char *suffix, *models, *refused;
    frontend_import_fn import;
} front_end;

static const front_end onnx = {".onnx", "test/golden/onnx", "test/golden/error/onnx", onnx_import};
static const front_end tflite = {".tflite", "test/golden/tflite", "test/golden/error/tflite", tflite_import};

static char *read_text(const char *path, size_t *out_len)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    *out_len = f ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static void check_again(compiler *c, const char *text)
{
    graph_module *again = NULL;
    writer w;
    writer_init(&w, &c->mem);
    if (!graph_parse(c, "again", text, strlen(text), &again))
        fail_msg("the text does not parse: %s", diags_print(&c->diags, &c->mem));
    graph_print(&w, again);
    assert_string_equal(w.data, text);
}

static const char *import_text(compiler *c, const front_end *f, const char *name, const char *bytes, size_t len)
{
    graph_module *m = NULL;
    writer w;
    writer_init(&w, &c->mem);
    if (!f->import(c, (span){(const uint8_t *)bytes, len}, name, NULL, &m))
        return diags_print(&c->diags, &c->mem);
    assert_true(graph_verify(c, m));
    graph_print(&w, m);
    check_again(c, w.data);
    return w.data;
}

static void check_model(const front_end *front, const char *dir, const char *file)
{
    compiler c;
    size_t len = 0, want_len = 0;
    char path[1024], stem[256];
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(file) - strlen(front->suffix)), file);
    snprintf(path, sizeof path, "%s/%s", dir, file);
    char *bytes = read_text(path, &len);
    snprintf(path, sizeof path, "%s/%s.txt", dir, stem);
    char *want = read_text(path, &want_len);
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    const char *got = import_text(&c, front, file, bytes, len);
    if (getenv("LATHE_GOLDEN_UPDATE")) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fputs(got, f);
        fclose(f);
    } else if (strcmp(got, want) != 0) {
        fail_msg("%s differs; it is now:\n%s", path, got);
    }
    compiler_free(&c);
    free(bytes);
    free(want);
}

static uint32_t check_folder(const front_end *front, const char *folder)
{
    const char *source = getenv("LATHE_SOURCE");
    struct dirent **list = NULL;
    char dir[512];
    uint32_t seen = 0;
    snprintf(dir, sizeof dir, "%s/%s", source ? source : ".", folder);
    int n = scandir(dir, &list, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(list[i]->d_name), tail = strlen(front->suffix);
        if (len > tail && strcmp(list[i]->d_name + len - tail, front->suffix) == 0) {
            check_model(front, dir, list[i]->d_name);
            seen++;
        }
        free(list[i]);
    }
    free(list);
    return seen;
}

static void test_onnx(void **state)
{
    (void)state;
    assert_true(check_folder(&onnx, onnx.models) >= 5);
    assert_true(check_folder(&onnx, onnx.refused) >= 5);
}

static void test_tflite(void **state)
{
    (void)state;
    assert_true(check_folder(&tflite, tflite.models) >= 3);
    assert_true(check_folder(&tflite, tflite.refused) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx),
        cmocka_unit_test(test_tflite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
