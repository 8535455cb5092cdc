/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of compiled kernels: entries that are damaged, exchanged, or made for another width; folders that cannot be
 * trusted or not be written; many at once; clearing away. */
#include "jit_test.h"

#include "abi/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char source_text[] = "int answer(void) { return 42; }\n";

static jit_library *compile_text(place *p, const char *text)
{
    lathe_error e = {0};
    jit_library *l = NULL;
    if (jit_compile(&p->options, "answer", text, strlen(text), &l, &e) != LATHE_OK)
        fail_msg("%s", e.message);
    return l;
}

static int call_int(const jit_library *l, const char *name)
{
    int (*f)(void);
    *(void **)&f = jit_symbol(l, name);
    assert_non_null(f);
    return f();
}

/* Compiles or takes it from the cache; `said` has what was logged meanwhile. */
static void expect_answer(place *p)
{
    p->said[0] = '\0';
    jit_library *l = compile_text(p, source_text);
    assert_int_equal(call_int(l, "answer"), 42);
    jit_unload(l);
    place_no_temporaries(p);
}

static void expect_refused(place *p, int32_t code, const char *words)
{
    lathe_error e = {0};
    jit_library *l = NULL;
    assert_int_equal(jit_compile(&p->options, "answer", source_text, strlen(source_text), &l, &e), code);
    if (!strstr(e.message, words))
        fail_msg("no '%s' in '%s'", words, e.message);
    assert_int_equal(place_count(p->temporary, ""), 0);
}

static void use_counting(place *p)
{
    place_compiler(p, "counting", "case \"$*\" in *-v) ;; *) echo run >> $W/count ;; esac\nexec cc \"$@\"\n");
}

/* The n-th entry of the cache, by name. */
static void entry_path(const place *p, int n, char out[400])
{
    DIR *d = opendir(p->cache);
    assert_non_null(d);
    out[0] = '\0';
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (strstr(e->d_name, ".so") && n-- == 0)
            (void)snprintf(out, 400, "%s/%s", p->cache, e->d_name);
    (void)closedir(d);
    assert_true(out[0] != '\0');
}

typedef struct bytes {
    uint8_t at[1 << 18];
    size_t n;
} bytes;

static void read_all(const char *path, bytes *b)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    b->n = fread(b->at, 1, sizeof b->at, f);
    assert_true(b->n > 1000 && b->n < sizeof b->at);
    (void)fclose(f);
}

static void write_all(const char *path, const bytes *b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->at, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

/* --- entries --- */

/* After a change to the only entry the next one makes it again, says why, and the one after that takes it. */
static void expect_made_again(place *p, const char *why)
{
    expect_answer(p);
    place_said(p, why);
    place_said(p, "compile command");
    expect_answer(p);
    place_said(p, "cache hit");
}

static void test_damaged(void **state)
{
    place *p = place_of(state);
    static bytes whole, changed;
    char path[400];
    expect_answer(p);
    entry_path(p, 0, path);
    read_all(path, &whole);
    const size_t lengths[] = {0, 1, 47, 48, 1000, whole.n / 2, whole.n - 49, whole.n - 48, whole.n - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        changed = whole;
        changed.n = lengths[i];
        write_all(path, &changed);
        expect_made_again(p, "is made again: it is ");
    }
    const size_t places[] = {0, 100, whole.n / 2, whole.n - 49, whole.n - 40, whole.n - 36, whole.n - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        changed = whole;
        changed.at[places[i]] ^= 0x40;
        write_all(path, &changed);
        expect_made_again(p, "is made again: its hash is another");
    }
}

/* A sound entry for vectors of another width, under the name that this machine looks for. */
static void test_other_width(void **state)
{
    place *p = place_of(state);
    static bytes b;
    char path[400];
    expect_answer(p);
    entry_path(p, 0, path);
    read_all(path, &b);
    const char *key = strrchr(path, '/') + 1;
    sha256 s;
    b.at[b.n - 36] ^= 1; /* the width is the last number before the hash */
    sha256_init(&s);
    sha256_add(&s, key, strlen(key) - 3);
    sha256_add(&s, "", 1);
    sha256_add(&s, b.at, b.n - 32);
    sha256_end(&s, b.at + b.n - 32);
    write_all(path, &b);
    expect_made_again(p, "is made again: it was made for vectors of another width");
}

/* An entry under the name of another one. */
static void test_exchanged(void **state)
{
    place *p = place_of(state);
    char path[400], other[400];
    expect_answer(p);
    entry_path(p, 0, path);
    jit_unload(compile_text(p, "int answer(void) { return 43; }\n"));
    entry_path(p, 0, other);
    if (strcmp(path, other) == 0)
        entry_path(p, 1, other);
    assert_int_equal(rename(other, path), 0);
    expect_made_again(p, "is made again: its hash is another");
}

static void test_link(void **state)
{
    place *p = place_of(state);
    char path[400], elsewhere[200];
    struct stat st;
    expect_answer(p);
    entry_path(p, 0, path);
    assert_int_equal(rename(path, place_file(p, "elsewhere", elsewhere)), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    expect_made_again(p, "is made again: ");
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not be waited for */
    expect_made_again(p, "is made again: ");
    assert_int_equal(chmod(path, 0666), 0);
    expect_made_again(p, "is made again: others may have written it");
}

/* What a writer left that was killed, and its lock file. */
static void test_left_over(void **state)
{
    place *p = place_of(state);
    char path[400], text[1400];
    expect_answer(p);
    entry_path(p, 0, path);
    (void)snprintf(text, sizeof text, "cd %s; echo half > tmp.1.2.3; rm %s; : > %.*s.lock; : > %064d.lock", p->cache,
                   path, (int)strlen(path) - 3, path, 7);
    assert_int_equal(system(text), 0);
    expect_answer(p); /* it looks for what is left as well */
    place_said(p, "cache miss");
}

/* Without a compiler the newest object of the source serves, by whatever compiler; a damaged one is passed over. */
static void test_no_compiler(void **state)
{
    place *p = place_of(state);
    char first[400], second[400], text[1000];
    static bytes b;
    expect_answer(p);
    entry_path(p, 0, first);
    const char *compiler = p->options.compiler;
    p->options.compiler = "cc -DOTHER";
    expect_answer(p);
    entry_path(p, 0, second);
    if (strcmp(first, second) == 0)
        entry_path(p, 1, second);
    jit_unload(compile_text(p, "int answer(void) { return 43; }\n"));
    (void)snprintf(text, sizeof text, "touch -d @1000 %s", first);
    assert_int_equal(system(text), 0);
    p->options.compiler = "no-such-compiler";
    expect_answer(p);
    place_said(p, "no compiler; the newest object of this source for this machine: ");
    place_said(p, strrchr(second, '/'));
    read_all(second, &b);
    b.at[100] ^= 1;
    write_all(second, &b);
    expect_answer(p);
    place_said(p, "is not used: its hash is another");
    place_said(p, strrchr(first, '/'));
    assert_int_equal(unlink(first), 0);
    expect_refused(p, LATHE_E_COMPILER, "has no object of this source for this machine");
    assert_int_equal(chmod(p->cache, 0755), 0);
    expect_refused(p, LATHE_E_COMPILER, "is open to other users");
    p->options.compiler = compiler;
}

/* --- folders --- */

static void test_folder_of_others(void **state)
{
    place *p = place_of(state);
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(p->cache, 0700), 0);
    assert_int_equal(chown(p->cache, 12345, 12345), 0);
    expect_refused(p, LATHE_E_FILE, "belongs to another user");
    assert_int_equal(place_count(p->cache, ""), 0);
}

static void test_open_folder(void **state)
{
    place *p = place_of(state);
    const mode_t modes[] = {0777, 0770, 0755, 0701};
    assert_int_equal(mkdir(p->cache, 0700), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(p->cache, modes[i]), 0);
        expect_refused(p, LATHE_E_FILE, "is open to other users: chmod 700");
        assert_int_equal(place_count(p->cache, ""), 0);
    }
}

static void test_folder_is_link(void **state)
{
    place *p = place_of(state);
    char real[200];
    assert_int_equal(mkdir(place_file(p, "real", real), 0700), 0);
    assert_int_equal(symlink(real, p->cache), 0);
    expect_refused(p, LATHE_E_FILE, "is a link or a file");
    assert_int_equal(unlink(p->cache), 0);
    FILE *f = fopen(p->cache, "w");
    assert_non_null(f);
    (void)fclose(f);
    expect_refused(p, LATHE_E_FILE, "is a link or a file");
}

static void test_usual_folder(void **state)
{
    place *p = place_of(state);
    char path[200];
    p->options.cache_dir = NULL;
    assert_int_equal(setenv("XDG_CACHE_HOME", place_file(p, "xdg", path), 1), 0);
    jit_unload(compile_text(p, source_text));
    assert_int_equal(place_count(place_file(p, "xdg/lathe", path), ".so"), 1);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(setenv("HOME", place_file(p, "home", path), 1), 0);
    jit_unload(compile_text(p, source_text));
    assert_int_equal(place_count(place_file(p, "home/.cache/lathe", path), ".so"), 1);
    assert_int_equal(unsetenv("HOME"), 0);
    jit_unload(compile_text(p, source_text));
    place_said(p, "no cache: neither XDG_CACHE_HOME nor HOME is set");
    assert_int_equal(place_count(p->temporary, ""), 0);
}

/* A usual place that cannot be made is none; one that was asked for is an error. */
static void test_no_folder(void **state)
{
    place *p = place_of(state);
    p->options.cache_dir = "/proc/no/such";
    expect_refused(p, LATHE_E_FILE, "cannot use the cache folder '/proc/no/such'");
    p->options.cache_dir = NULL;
    assert_int_equal(setenv("XDG_CACHE_HOME", "/proc/no", 1), 0);
    jit_unload(compile_text(p, source_text));
    place_said(p, "no cache: '/proc/no/lathe': ");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
}

/* A folder without room for an entry: the module works, nothing half is left. Without room for the source: an error. */
static void test_full_disk(void **state)
{
    place *p = place_of(state);
    if (geteuid() != 0 || mkdir(p->cache, 0700) != 0)
        skip();
    if (mount("none", p->cache, "tmpfs", 0, "size=8k,mode=0700") != 0)
        skip(); /* no right to mount here */
    expect_answer(p);
    place_said(p, "cache: cannot write ");
    place_said(p, "No space left on device");
    assert_int_equal(place_count(p->cache, ""), 0);
    p->options.cache_dir = "";
    assert_int_equal(setenv("TMPDIR", p->cache, 1), 0);
    char keep[120];
    (void)snprintf(keep, sizeof keep, "%s/kept", p->cache);
    static char big[20000];
    memset(big, ' ', sizeof big - 1);
    jit_library *l = NULL;
    lathe_error e = {0};
    assert_int_equal(jit_compile(&p->options, "answer", big, strlen(big), &l, &e), LATHE_E_FILE);
    assert_non_null(strstr(e.message, "answer.c': No space left on device"));
    assert_int_equal(place_count(p->cache, ""), 0);
    p->options.keep_sources = keep;
    assert_int_equal(jit_compile(&p->options, "answer", big, strlen(big), &l, &e), LATHE_E_FILE);
    assert_non_null(strstr(e.message, "kept/answer.c': No space left on device"));
    assert_int_equal(place_count(keep, ""), 0);
    p->options.keep_sources = NULL;
    expect_refused(p, LATHE_E_COMPILER, "No space left on device"); /* the compiler's own message */
    assert_int_equal(umount(p->cache), 0);
}

/* The same by a limit on the size of files, which needs no rights. */
static void test_file_limit(void **state)
{
    place *p = place_of(state);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {4096, 4096};
        jit_library *l = NULL;
        lathe_error e = {0};
        static char big[20000];
        memset(big, ' ', sizeof big - 1);
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        int32_t status = jit_compile(&p->options, "answer", big, strlen(big), &l, &e);
        _exit(status == LATHE_E_FILE && strstr(e.message, "answer.c': File too large") ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    place_no_temporaries(p);
}

/* --- many at once --- */

static void test_processes(void **state)
{
    place *p = place_of(state);
    enum { MANY = 8 };
    pid_t children[MANY];
    int gate[2], status = 0;
    use_counting(p);
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < MANY; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char c;
            (void)close(gate[1]);
            ssize_t n = read(gate[0], &c, 1); /* all begin when the other end is closed */
            jit_library *l = NULL;
            lathe_error e = {0};
            bool good = n == 0 && !jit_compile(&p->options, "answer", source_text, strlen(source_text), &l, &e);
            _exit(good && call_int(l, "answer") == 42 ? 0 : 1);
        }
        assert_true(children[i] > 0);
    }
    (void)close(gate[0]);
    (void)close(gate[1]);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(place_lines(p, "count"), 1);
    place_no_temporaries(p);
}

typedef struct job {
    lathe_options options;
    int32_t status;
    jit_library *l;
} job;

static void *compile_one(void *user)
{
    job *j = user;
    j->status = jit_compile(&j->options, "answer", source_text, strlen(source_text), &j->l, NULL);
    return NULL;
}

static void test_threads(void **state)
{
    place *p = place_of(state);
    enum { MANY = 4 };
    pthread_t threads[MANY];
    job jobs[MANY];
    use_counting(p);
    p->options.trace = 0;
    for (int i = 0; i < MANY; i++) {
        jobs[i] = (job){.options = p->options};
        assert_int_equal(pthread_create(&threads[i], NULL, compile_one, &jobs[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(jobs[i].status, LATHE_OK);
        assert_int_equal(call_int(jobs[i].l, "answer"), 42);
    }
    for (int i = 0; i < MANY; i++)
        jit_unload(jobs[i].l);
    assert_int_equal(place_lines(p, "count"), 1);
    place_no_temporaries(p);
}

/* --- clearing away --- */

static void set_age(const char *path, time_t used)
{
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Three entries, of which two fit. */
static void test_clears_away(void **state)
{
    place *p = place_of(state);
    char first[400], path[400];
    struct stat st;
    jit_library *a = compile_text(p, "int a(void) { return 1; }\n");
    entry_path(p, 0, first);
    assert_int_equal(stat(first, &st), 0);
    p->options.cache_bytes = (uint64_t)st.st_size * 5 / 2;
    jit_unload(compile_text(p, "int b(void) { return 2; }\n"));
    for (int i = 0; i < 2; i++) {
        entry_path(p, i, path);
        set_age(path, strcmp(path, first) == 0 ? 1000 : 2000);
    }
    assert_int_equal(place_count(p->cache, ".so"), 2);
    jit_unload(compile_text(p, "int c(void) { return 3; }\n")); /* a is oldest, but loaded: b goes */
    assert_int_equal(place_count(p->cache, ".so"), 2);
    assert_int_equal(access(first, F_OK), 0);
    assert_int_equal(call_int(a, "a"), 1);
    jit_unload(a);
    jit_unload(compile_text(p, "int d(void) { return 4; }\n")); /* now a goes */
    assert_int_equal(place_count(p->cache, ".so"), 2);
    assert_int_equal(access(first, F_OK), -1);
    place_said(p, "is cleared away");
    p->options.cache_bytes = 1; /* the last one stays: it is in use */
    jit_unload(compile_text(p, "int e(void) { return 5; }\n"));
    assert_int_equal(place_count(p->cache, ".so"), 1);
    place_no_temporaries(p);
}

/* An entry that is taken again is young again. */
static void test_use_counts(void **state)
{
    place *p = place_of(state);
    char path[400];
    struct stat st;
    expect_answer(p);
    entry_path(p, 0, path);
    set_age(path, 1000);
    expect_answer(p);
    place_said(p, "cache hit");
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_mtime > 1000);
}

/* What the key is made of: another one of each gives another entry. */
static void test_key(void **state)
{
    place *p = place_of(state);
    const char *const changes[] = {"cc", "cc -g0", "gcc", "gcc-12"};
    int n = 0;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        p->options.compiler = changes[i];
        jit_unload(compile_text(p, source_text));
        assert_int_equal(place_count(p->cache, ".so"), ++n);
    }
    p->options.compiler = "cc";
    assert_int_equal(setenv("LATHE_VECTOR_BYTES", "0", 1), 0);
    jit_unload(compile_text(p, source_text));
    assert_int_equal(place_count(p->cache, ".so"), ++n);
    jit_unload(compile_text(p, "int answer(void) { return 42; }\n\n"));
    assert_int_equal(place_count(p->cache, ".so"), ++n);
    place_compiler(p, "own", "[ \"$1\" = -v ] && echo one; exec cc \"$@\"\n");
    jit_unload(compile_text(p, source_text));
    assert_int_equal(place_count(p->cache, ".so"), ++n);
    place_compiler(p, "own", "[ \"$1\" = -v ] && echo two; exec cc \"$@\"\n"); /* another version text */
    jit_unload(compile_text(p, source_text));
    assert_int_equal(place_count(p->cache, ".so"), ++n);
    jit_unload(compile_text(p, source_text));
    assert_int_equal(place_count(p->cache, ".so"), n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(test_damaged),          place_test(test_other_width),  place_test(test_exchanged),
        place_test(test_link),             place_test(test_left_over),
        place_test(test_no_compiler),      place_test(test_folder_of_others),
        place_test(test_open_folder),      place_test(test_folder_is_link), place_test(test_usual_folder),
        place_test(test_no_folder),        place_test(test_full_disk),    place_test(test_file_limit),
        place_test(test_processes),        place_test(test_threads),      place_test(test_clears_away),
        place_test(test_use_counts),       place_test(test_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
