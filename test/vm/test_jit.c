/* SPDX-License-Identifier: Apache-2.0 */
/* The run-time compiler through jit.h: compilers that work and that do not, the cache in good and in bad condition,
 * calls. Compilers are small scripts here, which call the real one, count, hang or write nonsense. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "jit_test.h"

#include "jit_file.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>

static const char two_functions[] = "void twice(float *a, float *b) { b[0] = 2 * a[0]; }\n"
                                    "int width(void) { return LATHE_VECTOR_BYTES; }\n";

static void run_twice(const jit_library *l)
{
    float a = 21, b = 0;
    void (*twice)(float *, float *);
    *(void **)&twice = jit_symbol(l, "twice");
    assert_non_null(twice);
    twice(&a, &b);
    assert_true(b == 42);
}

/* Compiles, runs, unloads. */
static void expect_works(place *p)
{
    lathe_error e = {0};
    jit_library *l = NULL;
    if (jit_compile(&p->options, "two", two_functions, strlen(two_functions), &l, &e) != LATHE_OK)
        fail_msg("%s", e.message);
    run_twice(l);
    jit_unload(l);
    place_no_temporaries(p);
}

static void expect_error(place *p, int32_t code, const char *words)
{
    lathe_error e = {0};
    jit_library *l = NULL;
    assert_int_equal(jit_compile(&p->options, "two", two_functions, strlen(two_functions), &l, &e), code);
    assert_null(l);
    assert_int_equal(e.code, code);
    if (!strstr(e.message, words))
        fail_msg("no '%s' in '%s'", words, e.message);
    place_no_temporaries(p);
}

static void test_compiles(void **state)
{
    place *p = place_of(state);
    jit_library *l = NULL;
    lathe_error e = {0};
    assert_int_equal(jit_compile(&p->options, "two", two_functions, strlen(two_functions), &l, &e), LATHE_OK);
    run_twice(l);
    int (*width)(void);
    *(void **)&width = jit_symbol(l, "width");
    assert_int_equal(width(), jit_this_machine().vector_bytes);
    assert_null(jit_symbol(l, "thrice"));
    jit_unload(l);
    place_said(p, "RVV compile command: cc -O3 -fPIC -shared ");
    place_said(p, "/two.so ");
    place_said(p, "/two.c");
    place_said(p, "-ffp-contract=fast");
    place_said(p, "cache miss: ");
}

static void test_cache_hit(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "counting", "case \"$*\" in *-v) ;; *) echo run >> $W/count ;; esac\nexec cc \"$@\"\n");
    expect_works(p);
    p->said[0] = '\0';
    expect_works(p);
    place_said(p, "cache hit: ");
    assert_null(strstr(p->said, "compile command"));
    assert_int_equal(place_lines(p, "count"), 1);
    p->options.cache_dir = "";
    expect_works(p);
    assert_int_equal(place_lines(p, "count"), 2);
}

/* --- compilers that fail; each body begins with what they say to -v --- */

#define VERSION "case \"$*\" in *-v) echo 'fake 1'; exit 0 ;; esac\n"

static void test_fails(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "failing", VERSION "echo 'some talk'\necho \"$TMPDIR/two.c:1:2: error: bad weather\"\nexit 1\n");
    expect_error(p, LATHE_E_COMPILER, "failed on 'two': two.c:1:2: error: bad weather; LATHE_KEEP_SOURCES names");
    char keep[200], log[200];
    p->options.keep_sources = place_file(p, "kept/deep", keep);
    expect_error(p, LATHE_E_COMPILER, "/kept/deep/two.log");
    assert_int_equal(place_lines(p, "kept/deep/two.log"), 2);
    assert_int_equal(place_lines(p, "kept/deep/two.c"), 2);
    p->options.compiler = "cc";
    expect_works(p);
    assert_int_equal(access(place_file(p, "kept/deep/two.log", log), F_OK), -1);
    assert_int_equal(access(place_file(p, "kept/deep/two.so", log), F_OK), 0);
    assert_int_equal(place_count(keep, ""), 2);
}

/* What a compiler says is read once, however long it is. */
static void test_long_talk(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "talking", VERSION "awk -v f=\"$TMPDIR/two.c\" 'BEGIN { for (i = 0; i < 200000; i++) "
                                         "print f \":\" i \": warning: it rains\" }'\n"
                                         "echo \"$TMPDIR/two.c:1:2: error: bad weather\"\nexit 1\n");
    expect_error(p, LATHE_E_COMPILER, "failed on 'two': two.c:1:2: error: bad weather; LATHE_KEEP_SOURCES names");
}

static void test_real_error(void **state)
{
    place *p = place_of(state);
    jit_library *l = NULL;
    lathe_error e = {0};
    const char bad[] = "int f(void) { return nothing; }\n";
    assert_int_equal(jit_compile(&p->options, "bad", bad, strlen(bad), &l, &e), LATHE_E_COMPILER);
    assert_non_null(strstr(e.message, "bad.c:1:22: error: "));
    place_no_temporaries(p);
}

static void test_missing(void **state)
{
    place *p = place_of(state);
    p->options.compiler = "no-such-compiler -O3";
    expect_error(p, LATHE_E_COMPILER, "there is no compiler 'no-such-compiler': install one");
    p->options.compiler = p->top; /* a folder */
    expect_error(p, LATHE_E_COMPILER, "there is no compiler '");
}

static void test_killed(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "killed", VERSION "kill -9 $$\n");
    expect_error(p, LATHE_E_COMPILER, "was killed by signal 9 on 'two'");
}

/* The whole group is killed: the child would write a file when it is not. */
static void test_hangs(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "hanging", VERSION "mkdir $TMPDIR/deep; echo x > $TMPDIR/deep/file\n"
                                         "sleep 1000 & echo $! > $W/child; echo $$ > $W/parent\nwait\n");
    p->options.compile_seconds = 1;
    expect_error(p, LATHE_E_COMPILER, "took longer than 1 s on 'two' and was stopped");
    char path[200];
    const char *const files[] = {"parent", "child"};
    for (int i = 0; i < 2; i++) {
        long pid = 0;
        FILE *f = fopen(place_file(p, files[i], path), "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%ld", &pid), 1);
        (void)fclose(f);
        place_is_gone(pid);
    }
}

static void test_version_hangs(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "hanging", "sleep 1000\n");
    p->options.compile_seconds = 1;
    expect_error(p, LATHE_E_COMPILER, "took longer than 1 s to say its version");
}

/* "$out" of a command line. */
#define OUT "while [ $# -gt 0 ]; do [ \"$1\" != -o ] || out=$2; shift; done\n"

static void test_writes_nothing(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "lazy", "exit 0\n");
    expect_error(p, LATHE_E_COMPILER, "ended without an error on 'two' but wrote nothing");
    place_compiler(p, "empty", VERSION OUT ": > $out\n");
    expect_error(p, LATHE_E_COMPILER, "ended without an error on 'two' but wrote nothing");
    assert_int_equal(place_count(p->cache, ""), 0);
}

static void test_writes_garbage(void **state)
{
    place *p = place_of(state);
    place_compiler(p, "garbage", VERSION OUT "echo some garbage > $out\n");
    expect_error(p, LATHE_E_COMPILER, "wrote something for 'two' that is not a whole 64-bit shared object");
    place_compiler(p, "half", VERSION "a=\"$*\"\n" OUT "cc $a; head -c 1000 $out > $out.half; mv $out.half $out\n");
    expect_error(p, LATHE_E_COMPILER, "is not a whole 64-bit shared object");
    place_compiler(p, "lacking", VERSION "echo 'void no_such(void); void two(void) { no_such(); }' > $W/other.c\n" OUT
                                         "cc -shared -fPIC -o $out $W/other.c\n");
    expect_error(p, LATHE_E_COMPILER, "the compiled kernels of 'two' cannot be loaded: ");
    place_compiler(p, "linked", VERSION OUT "ln -s /etc/passwd $out\n");
    expect_error(p, LATHE_E_FILE, "cannot read what the compiler '");
    assert_int_equal(place_count(p->cache, ""), 0);
}

/* The C library's way to list a folder takes memory, which may be lacking when a compile ends. */
static bool no_memory;

DIR *fdopendir(int fd)
{
    DIR *(*real)(int) = NULL;
    if (no_memory) {
        errno = ENOMEM;
        return NULL;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
    return real(fd);
}

/* Its folder is removed all the same. */
static void test_folder_without_memory(void **state)
{
    char *folder = jit_folder_temporary(), file[256];
    (void)state;
    assert_non_null(folder);
    assert_true((size_t)snprintf(file, sizeof file, "%s/m.c", folder) < sizeof file);
    assert_int_equal(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
    no_memory = true;
    jit_folder_remove(folder);
    no_memory = false;
    assert_int_equal(access(folder, F_OK), -1);
    free(folder);
}

static void test_no_jit(void **state)
{
    place *p = place_of(state);
    p->options.no_jit = 1;
    expect_error(p, LATHE_E_REFUSED, "no_jit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(test_compiles),
        place_test(test_cache_hit),
        place_test(test_fails),
        place_test(test_long_talk),
        place_test(test_real_error),
        place_test(test_missing),
        place_test(test_killed),
        place_test(test_hangs),
        place_test(test_version_hangs),
        place_test(test_writes_nothing),
        place_test(test_writes_garbage),
        place_test(test_folder_without_memory), place_test(test_no_jit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
