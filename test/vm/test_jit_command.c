/* SPDX-License-Identifier: Apache-2.0 */
/* Which compiler is called how: its name, flags for this machine and for another one, pieces; and calls of functions of
 * any number of arguments. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "jit_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static const char width_text[] = "int width(void) { return LATHE_VECTOR_BYTES * 1000 + LATHE_VECTOR_REGS; }\n";

static jit_library *compile_text(place *p, const char *text)
{
    lathe_error e = {0};
    jit_library *l = NULL;
    p->said[0] = '\0';
    if (jit_compile(&p->options, "text", text, strlen(text), &l, &e) != LATHE_OK)
        fail_msg("%s", e.message);
    place_no_temporaries(p);
    return l;
}

static int call_int(const jit_library *l, const char *name)
{
    int (*f)(void);
    *(void **)&f = jit_symbol(l, name);
    assert_non_null(f);
    return f();
}

/* Calls the compiler `name`, which is a script that writes its own name. */
static void expect_compiler(place *p, const char *name)
{
    char want[300];
    jit_unload(compile_text(p, width_text));
    (void)snprintf(want, sizeof want, "RVV compile command: %s/%s -O3 -fPIC -shared ", p->top, name);
    place_said(p, want);
}

static void test_which(void **state)
{
    place *p = place_of(state);
    char one[140], two[140], three[140];
    p->options.cache_dir = "";
    place_compiler(p, "one", "exec cc \"$@\"\n");
    memcpy(one, p->compiler, sizeof one);
    place_compiler(p, "two", "exec cc \"$@\"\n");
    memcpy(two, p->compiler, sizeof two);
    place_compiler(p, "three", "exec cc \"$@\"\n");
    memcpy(three, p->compiler, sizeof three);
    assert_int_equal(setenv("TVM_RVV_COMPILER", two, 1), 0);
    assert_int_equal(setenv("CC", one, 1), 0);
    expect_compiler(p, "three"); /* of the options */
    p->options.compiler = NULL;
    expect_compiler(p, "two");
    assert_int_equal(setenv("TVM_RVV_COMPILER", " ", 1), 0);
    expect_compiler(p, "one");
    assert_int_equal(unsetenv("TVM_RVV_COMPILER"), 0);
    expect_compiler(p, "one");
    assert_int_equal(unsetenv("CC"), 0);
    jit_unload(compile_text(p, width_text));
    place_said(p, "RVV compile command: cc -O3 ");
}

/* No shell: what a shell would take apart is one word, or none. */
static void test_split(void **state)
{
    place *p = place_of(state);
    char path[200];
    p->options.compiler = " cc \t -DTEXT=$(touch${IFS}x);\"  -g0 ";
    jit_unload(compile_text(p, width_text));
    place_said(p, "command: cc -DTEXT=$(touch${IFS}x);\" -g0 -O3 ");
    place_compiler(p, "arguments", "[ \"$1\" = -v ] || for a in \"$@\"; do echo \"$a\"; done >> $W/words\n"
                                   "exec cc \"$@\"\n");
    jit_unload(compile_text(p, width_text));
    FILE *f = fopen(place_file(p, "words", path), "r");
    char line[400];
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "-O3\n");
    (void)fclose(f);
}

enum { KERNELS = 8 };

/* A source of `kernels` functions that can be cut, long enough for that. */
static char *cuttable(const char *wrong)
{
    enum { ROOM = 300000 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t n = (size_t)snprintf(text, ROOM,
                                "#ifndef LATHE_SHARDS\n#define LATHE_SHARDS 1\n#define LATHE_SHARD 0\n#endif\n");
    for (int i = 0; i < KERNELS; i++)
        n += (size_t)snprintf(text + n, ROOM - n,
                              "#if %d %% LATHE_SHARDS == LATHE_SHARD\n"
                              "int k%d(void) { return %d * 10 + LATHE_SHARDS %s; }\n#endif\n"
                              "/*%20000s*/\n", i, i, i, i == KERNELS - 1 ? wrong : "", "");
    return text;
}

/* The seed's own compilers are for C++: they are told what is C, and what says that it is both is left as it is. */
static void test_cxx(void **state)
{
    place *p = place_of(state);
    const char *const compilers[] = {"g++", "g++ -g0"};
    const char c_only[] = "int *restrict_is_c(int *restrict p) { return p; }\nint class(void) { return 5; }\n";
    const char both[] = "#ifdef __cplusplus\nextern \"C\" int one(void);\n#endif\nint one(void) { return 1; }\n";
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        p->options.compiler = compilers[i];
        jit_library *l = compile_text(p, c_only);
        assert_int_equal(call_int(l, "class"), 5);
        place_said(p, " -x c ");
        jit_unload(l);
        l = compile_text(p, both);
        assert_int_equal(call_int(l, "one"), 1);
        assert_null(strstr(p->said, " -x c "));
        jit_unload(l);
        char *text = cuttable("");
        l = compile_text(p, text);
        assert_int_equal(call_int(l, "k3"), call_int(l, "k0") + 30);
        jit_unload(l);
        free(text);
    }
}

/* The environment lowers the width, and nothing else; flags and macros follow. */
static void test_width(void **state)
{
    place *p = place_of(state);
    static const struct {
        const char *text;
        uint32_t most;
    } cases[] = {{"64", 64}, {"63", 32}, {"32", 32}, {"31", 16}, {"16", 16}, {"15", 0}, {"0", 0}, {"4096", 4096},
                 {"", 4096}, {"x", 4096}, {"16x", 4096}, {"-16", 4096}};
    uint32_t widest = jit_this_machine().vector_bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(setenv("LATHE_VECTOR_BYTES", cases[i].text, 1), 0);
        jit_machine m = jit_this_machine();
        assert_int_equal(m.vector_bytes, cases[i].most < widest ? cases[i].most : widest);
        jit_library *l = compile_text(p, width_text);
        assert_int_equal(call_int(l, "width"), m.vector_bytes * 1000 + m.vector_regs);
        jit_unload(l);
    }
#if defined(__x86_64__)
    const char *const flags[] = {" -fPIC -shared -Wl,-Bsymbolic -fno-math-errno -fno-trapping-math -ffp-contract=fast ",
                                 " -march=x86-64-v2 ",
                                 " -march=x86-64-v3 ", " -march=x86-64-v4 -mprefer-vector-width=512 "};
    p->options.cache_dir = "";
    for (uint32_t i = 0, bytes = 0; i < 4 && bytes <= widest; i++, bytes = bytes ? 2 * bytes : 16) {
        char text[16];
        (void)snprintf(text, sizeof text, "%u", (unsigned)bytes);
        assert_int_equal(setenv("LATHE_VECTOR_BYTES", text, 1), 0);
        assert_int_equal(jit_this_machine().vector_regs, bytes == 64 ? 32 : 16);
        jit_unload(compile_text(p, width_text));
        place_said(p, flags[i]);
    }
#endif
    assert_int_equal(unsetenv("LATHE_VECTOR_BYTES"), 0);
}

static int major_of(const char *compiler)
{
    char command[100], text[32] = "";
    (void)snprintf(command, sizeof command, "%s -dumpversion", compiler);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    (void)!fgets(text, sizeof text, f);
    (void)pclose(f);
    return atoi(text);
}

/* A name with riscv64 in it gets the flags of the seed, a source for vectors of 16 bytes; its object is kept and not
 * loaded here. A compiler without vectors is said without a trace, too. */
static void test_cross(void **state)
{
#if defined(__riscv)
    (void)state;
    skip();
#else
    place *p = place_of(state);
    char keep[200], path[200];
    lathe_error e = {0};
    jit_library *l = NULL;
    p->options.compiler = "riscv64-linux-gnu-gcc";
    p->options.keep_sources = place_file(p, "kept", keep);
    assert_int_equal(jit_compile(&p->options, "text", width_text, strlen(width_text), &l, &e), LATHE_E_COMPILER);
    place_said(p, "RVV compile command: riscv64-linux-gnu-gcc -O3 -fPIC -shared -Wl,-Bsymbolic -march=rv64gcv "
                  "-mabi=lp64d -fno-math-errno -fno-trapping-math -ffp-contract=fast "
                  "-DLATHE_VECTOR_BYTES=16 -DLATHE_VECTOR_REGS=32 -o ");
    if (!strstr(e.message, "made 'text' for riscv64 (ELF machine 243), and this machine is "))
        fail_msg("%s", e.message);
    FILE *f = fopen(place_file(p, "kept/text.so", path), "rb");
    unsigned char head[20];
    assert_non_null(f);
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    (void)fclose(f);
    assert_int_equal(head[18], 243);
    assert_int_equal(access(place_file(p, "kept/text.c", path), F_OK), 0);
    assert_int_equal(place_count(p->cache, ""), 0);
    assert_int_equal(place_count(p->temporary, ""), 0);
    p->options.trace = 0;
    p->said[0] = '\0';
    assert_int_equal(jit_compile(&p->options, "text", width_text, strlen(width_text), &l, &e), LATHE_E_COMPILER);
    if (major_of("riscv64-linux-gnu-gcc") < 14)
        place_said(p, "warning: this gcc makes no vector code for RISC-V");
#endif
}

/* Only what the compiler says of itself tells that it is for another machine. */
static void test_target(void **state)
{
#if defined(__s390x__)
    (void)state;
    skip();
#else
    place *p = place_of(state);
    lathe_error e = {0};
    jit_library *l = NULL;
    p->options.compiler = "s390x-linux-gnu-gcc";
    assert_int_equal(jit_compile(&p->options, "text", width_text, strlen(width_text), &l, &e), LATHE_E_COMPILER);
    place_said(p, " -fPIC -shared -Wl,-Bsymbolic -fno-math-errno -fno-trapping-math -ffp-contract=fast "
                  "-DLATHE_VECTOR_BYTES=0 ");
    if (!strstr(e.message, "is not a whole 64-bit")) /* big endian */
        fail_msg("%s", e.message);
#endif
}

/* The name of a module becomes that of a file, and only that. */
static void test_name(void **state)
{
    place *p = place_of(state);
    char keep[200], path[200];
    static const char *const names[][2] = {{"../../etc/x", "_._.._etc_x"}, {"-o", "_o"}, {"", "module"},
                                           {"a b;c", "a_b_c"}, {".hidden", "_hidden"}, {"net-50.v1", "net-50.v1"},
                                           {"net.so", "net"}, {".so", "_so"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        jit_library *l = NULL;
        char name[60];
        p->options.keep_sources = place_file(p, "kept", keep);
        assert_int_equal(jit_compile(&p->options, names[i][0], width_text, strlen(width_text), &l, NULL), LATHE_OK);
        jit_unload(l);
        (void)snprintf(name, sizeof name, "kept/%s.so", names[i][1]);
        if (access(place_file(p, name, path), F_OK) != 0)
            fail_msg("no %s", path);
    }
    assert_int_equal(place_count(keep, ""), 2 * (int)(sizeof names / sizeof *names));
}

/* Kept in the folder of its module a shared object would take its place. */
static void test_module_stays(void **state)
{
    place *p = place_of(state);
    char path[200];
    lathe_error e = {0};
    jit_library *l = NULL;
    FILE *f = fopen(place_file(p, "net.so", path), "w");
    assert_non_null(f);
    (void)fprintf(f, "a module has %s", "__tvm_ffi__library_bin");
    assert_int_equal(fclose(f), 0);
    p->options.keep_sources = p->top;
    assert_int_equal(jit_compile(&p->options, "net.so", width_text, strlen(width_text), &l, &e), LATHE_E_REFUSED);
    assert_non_null(strstr(e.message, "would overwrite the module"));
    assert_int_equal(access(place_file(p, "net.c", path), F_OK), -1);
    assert_int_equal(jit_compile(&p->options, "other.so", width_text, strlen(width_text), &l, &e), LATHE_OK);
    jit_unload(l);
}

/* --- pieces --- */

static int count_said(const place *p, const char *words)
{
    int n = 0;
    for (const char *at = strstr(p->said, words); at; at = strstr(at + 1, words))
        n++;
    return n;
}

static void test_pieces(void **state)
{
    place *p = place_of(state);
    char *text = cuttable(""), name[16];
    jit_library *l = compile_text(p, text);
    int pieces = call_int(l, "k0");
    assert_true(pieces >= 1 && pieces <= KERNELS);
    for (int i = 0; i < KERNELS; i++) {
        (void)snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(call_int(l, name), 10 * i + pieces);
    }
    assert_int_equal(count_said(p, "compile command"), pieces > 1 ? pieces + 1 : 1); /* and a link */
    assert_int_equal(count_said(p, " -c "), pieces > 1 ? pieces : 0);
    jit_unload(l);
    free(text);
}

/* A program that may use one processor compiles in one piece. */
static void test_one_processor(void **state)
{
    place *p = place_of(state);
    cpu_set_t all, one;
    char *text = cuttable("");
    p->options.cache_dir = "";
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    jit_library *l = compile_text(p, text);
    assert_int_equal(call_int(l, "k0"), 1);
    assert_int_equal(count_said(p, "compile command"), 1);
    jit_unload(l);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    l = compile_text(p, text);
    int processors = CPU_COUNT(&all), most = (int)(strlen(text) / 32768) + 1;
    assert_int_equal(call_int(l, "k0"), processors < most ? processors : most);
    jit_unload(l);
    free(text);
}

/* Of the pieces one fails: one error, which is that of the compiler. */
static void test_piece_fails(void **state)
{
    place *p = place_of(state);
    char *text = cuttable("+ nothing");
    lathe_error e = {0};
    jit_library *l = NULL;
    assert_int_equal(jit_compile(&p->options, "text", text, strlen(text), &l, &e), LATHE_E_COMPILER);
    if (!strstr(e.message, "error: ") || !strstr(e.message, "nothing"))
        fail_msg("%s", e.message);
    place_no_temporaries(p);
    free(text);
}

/* A source that cannot be cut is compiled by one command, however long it is. */
static void test_not_cut(void **state)
{
    place *p = place_of(state);
    char *text = malloc(300000);
    assert_non_null(text);
    (void)snprintf(text, 300000, "/*%200000s*/ int one(void) { return 1; }\n", "");
    jit_library *l = compile_text(p, text);
    assert_int_equal(call_int(l, "one"), 1);
    assert_int_equal(count_said(p, "compile command"), 1);
    jit_unload(l);
    free(text);
}

/* --- loading and calling --- */

/* A library that stays when it is unloaded must not be taken for the next one. */
static void test_stays(void **state)
{
    place *p = place_of(state);
    p->options.compiler = "cc -Wl,-z,nodelete";
    for (int i = 0; i < 4; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "int number(void) { return %d; }\n", i);
        jit_library *l = compile_text(p, text);
        assert_int_equal(call_int(l, "number"), i);
        jit_unload(l);
    }
}

/* Two modules with kernels of one name, of which one calls the other. */
static void test_same_names(void **state)
{
    place *p = place_of(state);
    jit_library *a = compile_text(p, "int inner(void) { return 1; }\nint outer(void) { return inner(); }\n");
    jit_library *b = compile_text(p, "int inner(void) { return 2; }\nint outer(void) { return inner(); }\n");
    assert_int_equal(call_int(a, "outer"), 1);
    assert_int_equal(call_int(b, "outer"), 2);
    jit_unload(a);
    assert_int_equal(call_int(b, "outer"), 2);
    jit_unload(b);
}

/* A program that does not care for its children learns nothing of the exit codes of compilers; the object decides. */
static void test_children_ignored(void **state)
{
    place *p = place_of(state);
    lathe_error e = {0};
    jit_library *l = NULL;
    (void)signal(SIGCHLD, SIG_IGN);
    jit_unload(compile_text(p, width_text));
    const char bad[] = "int f(void) { return nothing; }\n";
    int32_t status = jit_compile(&p->options, "bad", bad, strlen(bad), &l, &e);
    (void)signal(SIGCHLD, SIG_DFL);
    assert_int_equal(status, LATHE_E_COMPILER);
    if (!strstr(e.message, "bad.c:1:22: error: "))
        fail_msg("%s", e.message);
}

/* NAME stores i + 100 behind address i, and returns -7 for part 3 of 5; in one of the forms of abi/module.h. */
static size_t write_kernel(char *text, size_t size, const char *name, uint32_t n_addresses, const char *form)
{
    const bool packed = strcmp(form, "packed") == 0, shares = strcmp(form, "plain") != 0;
    const char *more = shares ? "unsigned part, unsigned parts" : n_addresses == 0 ? "void" : "";
    size_t n = (size_t)snprintf(text, size, "%s %s%s(%s", shares ? "int" : "void", name, packed ? "_packed" : "",
                                packed ? "void *const *a" : "");
    for (uint32_t i = 0; i < n_addresses && !packed; i++)
        n += (size_t)snprintf(text + n, size - n, "%svoid *a%u", i ? ", " : "", i);
    n += (size_t)snprintf(text + n, size - n, "%s%s) {\n", *more && (packed || n_addresses > 0) ? ", " : "", more);
    for (uint32_t i = 0; i < n_addresses; i++)
        n += (size_t)snprintf(text + n, size - n, packed ? "    *(long long *)a[%u] = %u + 100;\n"
                                                          : "    *(long long *)a%u = %u + 100;\n", i, i);
    n += (size_t)snprintf(text + n, size - n, shares ? "    return part == 3 && parts == 5 ? -7 : 1;\n}\n" : "}\n");
    return n;
}

static void test_calls(void **state)
{
    static const uint32_t counts[] = {0, 1, 2, 6, 7, 20, 64, 65, 150};
    static const char *const forms[] = {"plain", "bare", "packed"};
    enum { MOST = 150, CASES = 3 * sizeof counts / sizeof *counts };
    static char text[100000];
    char name[16];
    int64_t numbers[MOST];
    void *addresses[MOST];
    size_t n = 0;
    for (size_t c = 0; c < CASES; c++) {
        (void)snprintf(name, sizeof name, "k%zu", c);
        n += write_kernel(text + n, sizeof text - n, name, counts[c / 3], forms[c % 3]);
    }
    jit_library *l = compile_text(place_of(state), text);
    for (int i = 0; i < MOST; i++)
        addresses[i] = &numbers[i];
    for (size_t c = 0; c < CASES; c++) {
        const bool plain = c % 3 == 0, packed = c % 3 == 2;
        jit_kernel *k;
        int32_t ended = 0;
        (void)snprintf(name, sizeof name, "k%zu", c);
        memset(numbers, 0, sizeof numbers);
        assert_int_equal(jit_kernel_find(l, name, counts[c / 3], !plain, &k, NULL), LATHE_OK);
        assert_int_equal(jit_kernel_is_bare(k), !packed);
        assert_int_equal(jit_kernel_shares(k), !plain);
        assert_int_equal(jit_kernel_call(k, addresses, 3, 5, &ended), LATHE_OK);
        assert_int_equal(ended, plain ? 0 : -7);
        for (uint32_t i = 0; i < MOST; i++)
            assert_int_equal(numbers[i], i < counts[c / 3] ? i + 100 : 0);
        jit_kernel_free(k);
    }
    /* names and numbers that are too large are neither cut nor wrapped */
    char longer[600];
    jit_kernel *none;
    memset(longer, 'k', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(jit_kernel_find(l, longer, 1, true, &none, NULL), LATHE_E_FORMAT);
    assert_int_not_equal(jit_kernel_find(l, "k1", UINT32_MAX - 1, true, &none, NULL), LATHE_OK);
    assert_null(none);
    jit_unload(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(test_which),  place_test(test_split),       place_test(test_width),
        place_test(test_cxx),    place_test(test_one_processor),
        place_test(test_cross),  place_test(test_target),      place_test(test_name),
        place_test(test_module_stays), place_test(test_pieces), place_test(test_piece_fails), place_test(test_not_cut),
        place_test(test_stays),  place_test(test_same_names),  place_test(test_children_ignored),
        place_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
