/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/base but for text: arenas, growing arrays, diagnostics, files, checked sizes. */
#include "base/compiler.h"
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- arenas --- */

static void arena_gives_aligned_zeroed_memory(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, NULL);
    for (size_t align = 1; align <= 64; align *= 2) {
        for (size_t size = 0; size < 300; size += 7) {
            unsigned char *p = arena_alloc(&a, size, align);
            assert_int_equal((uintptr_t)p % align, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xee, size);
        }
    }
    assert_ptr_not_equal(arena_alloc(&a, 0, 1), arena_alloc(&a, 0, 1));
    char *big = arena_alloc(&a, 1 << 20, 64);
    memset(big, 1, 1 << 20);
    assert_true(a.bytes >= 1 << 20);
    arena_free(&a);
    assert_int_equal(a.bytes, 0);
    assert_string_equal(arena_strdup(&a, "usable again"), "usable again");
    arena_free(&a);
}

static void arena_reset_frees_what_came_after_the_mark(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, NULL);
    char *kept = arena_strdup(&a, "kept");
    arena_mark mark = arena_get_mark(&a);
    size_t before = a.bytes;
    unsigned char *first = arena_alloc(&a, 100, 8);
    memset(first, 0xff, 100);
    (void)arena_alloc(&a, 1 << 22, 8);
    arena_reset(&a, mark);
    assert_int_equal(a.bytes, before);
    assert_string_equal(kept, "kept");
    unsigned char *again = arena_alloc(&a, 100, 8);
    assert_ptr_equal(again, first);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(again[i], 0);
    arena_free(&a);

    mark = arena_get_mark(&a); /* of an empty arena */
    (void)arena_alloc(&a, 10, 1);
    arena_reset(&a, mark);
    assert_int_equal(a.bytes, 0);
}

static void arena_texts(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, NULL);
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&a, "%s-%d", "x", 42), "x-42");
    char *wide = arena_printf(&a, "%0*d", 5000, 1);
    assert_int_equal(strlen(wide), 5000);
    assert_memory_equal(arena_copy(&a, "1234", 4, 4), "1234", 4);
    arena_free(&a);
}

static jmp_buf out_of_memory;
static size_t refused_size;

static void note_out_of_memory(void *context, size_t size)
{
    refused_size = size;
    *(int *)context += 1;
    longjmp(out_of_memory, 1);
}

static void arena_refuses_impossible_sizes(void **state)
{
    (void)state;
    arena a, child;
    int calls = 0;
    arena_init(&a, NULL);
    a.out_of_memory = note_out_of_memory;
    a.context = &calls;
    arena_init(&child, &a);
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 63, SIZE_MAX / 2 + 1, SIZE_MAX / 2 - 4096};
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_null(arena_try_alloc(&a, sizes[i], 64));
    assert_non_null(arena_try_alloc(&a, 16, 16));

    if (setjmp(out_of_memory) == 0) {
        (void)arena_alloc(&a, SIZE_MAX - 5, 1);
        fail();
    }
    assert_int_equal(refused_size, SIZE_MAX - 5);
    if (setjmp(out_of_memory) == 0) { /* the product wraps to 16 */
        (void)arena_alloc_array(&child, SIZE_MAX / 16 + 2, 16, 8);
        fail();
    }
    assert_int_equal(calls, 2);
    assert_string_equal(arena_strdup(&a, "still usable"), "still usable");
    arena_free(&a);
}

static void vectors_grow(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, NULL);
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(&a, &v, i * i);
    assert_int_equal(v.len, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v.data[i], i * i);
    assert_int_equal(vec_last(&v), 999 * 999);
    assert_int_equal(vec_pop(&v), 999 * 999);
    assert_int_equal(v.len, 999);
    arena_free(&a);
}

/* --- diagnostics --- */

static void diagnostics_print_one_a_line(void **state)
{
    (void)state;
    diags d;
    arena a;
    diags_init(&d, NULL);
    arena_init(&a, NULL);
    assert_int_equal(diags_exit_status(&d), 0);
    assert_string_equal(diags_print(&d, &a), "");
    src_loc node = {.file = "model.onnx", .node = "conv1", .op = "Conv", .node_index = 3};
    src_loc text = {.file = "a.txt", .line = 3, .col = 5, .node_index = -1};
    src_loc file = {.file = "b.bin", .node_index = -1}, unnamed = {.node = "", .op = "Add", .node_index = 0};
    assert_false(diag_warning(&d, DIAG_DATA, src_loc_none(), "odd"));
    assert_int_equal(diags_exit_status(&d), 0);
    assert_false(diag_error(&d, DIAG_TYPE, node, "channels %d and %d", 1, 2));
    diag_hint(&d, "check %s", "W");
    (void)diag_error(&d, DIAG_ENVIRONMENT, text, "x");
    (void)diag_error(&d, DIAG_IO, file, "y");
    (void)diag_error(&d, DIAG_USAGE, unnamed, "z");
    assert_string_equal(diags_print(&d, &a), "warning: odd [data]\n"
                                             "error: model.onnx: node 3 'conv1' (Conv): channels 1 and 2 [type]\n"
                                             "  hint: check W\n"
                                             "error: a.txt:3:5: x [environment]\n"
                                             "error: b.bin: y [io]\n"
                                             "error: node 0 (Add): z [usage]\n");
    assert_int_equal(diags_exit_status(&d), 1); /* of the first error */
    diags_free(&d);
    diags_init(&d, NULL);
    (void)diag_error(&d, DIAG_USAGE, src_loc_none(), "u");
    assert_int_equal(diags_exit_status(&d), 2);
    diags_free(&d);
    arena_free(&a);
}

static void diagnostics_have_a_limit_and_copy_their_texts(void **state)
{
    (void)state;
    diags d;
    arena a;
    diags_init(&d, NULL);
    arena_init(&a, NULL);
    d.limit = 2;
    char name[] = "evil\n\033[2Jname";
    src_loc loc = {.file = "f", .node = name, .node_index = 1};
    (void)diag_error(&d, DIAG_FORMAT, loc, "line\nend\tand \033 bell\007");
    memset(name, 'x', sizeof name - 1);
    for (int i = 0; i < 4; i++) {
        (void)diag_error(&d, DIAG_FORMAT, src_loc_none(), "%d", i);
        diag_hint(&d, "hint %d", i);
        (void)diag_warning(&d, DIAG_FORMAT, src_loc_none(), "w");
    }
    assert_int_equal(d.errors, 5);
    assert_string_equal(diags_print(&d, &a), "error: f: node 1 'evil ?[2Jname': line end and ? bell? [format]\n"
                                             "error: 0 [format]\n  hint: hint 0\n"
                                             "warning: w [format]\nwarning: w [format]\n"
                                             "note: 3 more errors\nnote: 2 more warnings\n");
    char *huge = arena_printf(&a, "%0*d", 9000, 0);
    diags_free(&d);
    diags_init(&d, NULL);
    (void)diag_error(&d, DIAG_FORMAT, src_loc_none(), "%s", huge);
    assert_int_equal(strlen(d.first->text), 2000);
    diags_free(&d);
    arena_free(&a);
}

/* --- files --- */

typedef struct folder {
    arena a;
    diags d;
    temps temps;
    char path[32];
} folder;

static int open_folder(void **state)
{
    folder *f = calloc(1, sizeof *f);
    assert_non_null(f);
    arena_init(&f->a, NULL);
    diags_init(&f->d, NULL);
    strcpy(f->path, "/tmp/lathe-test-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    *state = f;
    return 0;
}

static int close_folder(void **state)
{
    folder *f = *state;
    assert_true(file_remove_tree(&f->d, &f->temps, f->path));
    assert_false(file_exists(f->path));
    arena_free(&f->a);
    diags_free(&f->d);
    free(f);
    return 0;
}

static void files_are_written_whole(void **state)
{
    folder *f = *state;
    const char *path = path_join(&f->a, f->path, "a/b/c.bin");
    span s;
    file_id id;
    assert_false(file_exists(path));
    assert_true(file_write(&f->d, &f->temps, path, "first", 5));
    assert_true(file_write(&f->d, &f->temps, path, "second", 6)); /* replaces */
    assert_true(file_exists(path));
    assert_false(file_is_dir(path));
    assert_true(file_is_dir(path_dir(&f->a, path)));
    assert_true(file_read(&f->d, path, &s, &id));
    assert_int_equal(s.len, 6);
    assert_memory_equal(s.data, "second", 6);
    file_free(s);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
    /* nothing but the file is left in the folder: removing it empties the folder */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(path_dir(&f->a, path)), 0);
    assert_true(file_write(&f->d, &f->temps, "/dev/null", "x", 1));
    assert_int_equal(f->d.errors, 0);
}

static void empty_files_and_streams_are_read(void **state)
{
    folder *f = *state;
    span s = {NULL, 7};
    file_id id;
    const char *path = path_join(&f->a, f->path, "empty");
    assert_true(file_write(&f->d, &f->temps, path, NULL, 0));
    assert_true(file_read(&f->d, path, &s, &id));
    assert_int_equal(s.len, 0);
    file_free(s);
    assert_true(file_read(&f->d, "/proc/self/status", &s, &id)); /* says that it has 0 bytes */
    assert_true(s.len > 100);
    file_free(s);
    assert_int_equal(f->d.errors, 0);
}

static void pipes_are_read_to_their_end(void **state)
{
    folder *f = *state;
    int ends[2], saved = dup(STDIN_FILENO);
    span s;
    file_id id;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char block[1000];
        memset(block, 'x', sizeof block);
        for (int i = 0; i < 500; i++)
            if (write(ends[1], block, sizeof block) != sizeof block)
                _exit(1);
        _exit(0);
    }
    (void)close(ends[1]);
    assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    assert_true(file_read(&f->d, "-", &s, &id));
    assert_int_equal(s.len, 500000);
    for (size_t i = 0; i < s.len; i++)
        assert_true(s.data[i] == 'x');
    file_free(s);
    (void)dup2(saved, STDIN_FILENO);
    (void)close(saved);
    (void)close(ends[0]);
}

static void file_errors_say_what(void **state)
{
    folder *f = *state;
    span s;
    file_id id;
    assert_false(file_read(&f->d, path_join(&f->a, f->path, "none"), &s, &id));
    assert_non_null(strstr(f->d.last->text, "No such file"));
    assert_int_equal(f->d.last->code, DIAG_IO);
    assert_false(file_read(&f->d, f->path, &s, &id));
    assert_non_null(strstr(f->d.last->text, "directory"));
    const char *file = path_join(&f->a, f->path, "file");
    assert_true(file_write(&f->d, &f->temps, file, "x", 1));
    assert_false(file_write(&f->d, &f->temps, path_join(&f->a, file, "below"), "x", 1));
    assert_non_null(strstr(f->d.last->text, "Not a directory"));
    assert_int_equal(f->d.last->code, DIAG_ENVIRONMENT);
    assert_false(file_write(&f->d, &f->temps, f->path, "x", 1)); /* a folder is not replaced */
    assert_true(file_is_dir(f->path));
    assert_int_equal(f->d.errors, 4);
}

static void trees_are_removed_links_not_followed(void **state)
{
    folder *f = *state;
    const char *outside = path_join(&f->a, f->path, "outside/file"), *tree = path_join(&f->a, f->path, "tree");
    assert_true(file_write(&f->d, &f->temps, outside, "x", 1));
    assert_true(file_write(&f->d, &f->temps, path_join(&f->a, tree, "a/b/c"), "x", 1));
    assert_int_equal(symlink(path_dir(&f->a, outside), path_join(&f->a, tree, "link")), 0);
    assert_true(file_remove_tree(&f->d, &f->temps, tree));
    assert_false(file_exists(tree));
    assert_true(file_exists(outside));
    assert_true(file_remove_tree(&f->d, &f->temps, tree)); /* what is not there is removed already */
}

static void files_are_read_once(void **state)
{
    folder *f = *state;
    compiler c;
    span a, b;
    const char *path = path_join(&f->a, f->path, "w.bin");
    assert_true(file_write(&f->d, &f->temps, path, "weights", 7));
    compiler_init(&c);
    assert_true(compiler_read_file(&c, path, &a));
    assert_true(compiler_read_file(&c, path, &b));
    assert_ptr_equal(a.data, b.data);
    assert_false(compiler_read_file(&c, path_join(&f->a, f->path, "none"), &a));
    assert_int_equal(c.diags.errors, 1);
    compiler_free(&c);
}

static void paths(void **state)
{
    folder *f = *state;
    static const char *const joined[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"}, {"/", "b", "/b"}};
    static const char *const folders[][2] = {{"a/b", "a"}, {"b", "."}, {"/b", "/"}, {"/a/b/c", "/a/b"}};
    for (size_t i = 0; i < COUNT(joined); i++)
        assert_string_equal(path_join(&f->a, joined[i][0], joined[i][1]), joined[i][2]);
    for (size_t i = 0; i < COUNT(folders); i++)
        assert_string_equal(path_dir(&f->a, folders[i][0]), folders[i][1]);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    size_t s;
    int64_t i;
    assert_true(size_mul(3, 4, &s) && s == 12);
    assert_false(size_mul(SIZE_MAX, 2, &s));
    assert_false(size_add(SIZE_MAX, 1, &s));
    assert_true(i64_add(INT64_MAX, INT64_MIN, &i) && i == -1);
    assert_false(i64_add(INT64_MAX, 1, &i));
    assert_false(i64_mul(INT64_MIN, -1, &i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_gives_aligned_zeroed_memory),
        cmocka_unit_test(arena_reset_frees_what_came_after_the_mark),
        cmocka_unit_test(arena_texts),
        cmocka_unit_test(arena_refuses_impossible_sizes),
        cmocka_unit_test(vectors_grow),
        cmocka_unit_test(diagnostics_print_one_a_line),
        cmocka_unit_test(diagnostics_have_a_limit_and_copy_their_texts),
        cmocka_unit_test_setup_teardown(files_are_written_whole, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(empty_files_and_streams_are_read, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(pipes_are_read_to_their_end, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(file_errors_say_what, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(trees_are_removed_links_not_followed, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(files_are_read_once, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(paths, open_folder, close_folder),
        cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
