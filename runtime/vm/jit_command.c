/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler of the kernels: its name from the options or the environment, split at blanks and found as a shell
 * would; its target from what it says of itself; flags for that target, and for this machine when it is the same. */
#include "jit_command.h"

#include "jit_file.h"
#include "jit_machine.h"
#include "jit_process.h"

#include "abi/module.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is compiled for machines that are not this one: vectors that all of them have. */
static const struct row {
    const char *name, *flags;
    uint32_t vector_bytes, vector_regs;
} others[] = {
    {"x86_64", "-march=x86-64-v2", 16, 16},
    {"aarch64", "-march=armv8-a", 16, 32},
    {"riscv64", "-march=rv64gcv -mabi=lp64d", 16, 32},
};

uint32_t jit_command_seconds(const lathe_options *options)
{
    const char *said = getenv("LATHE_COMPILE_SECONDS");
    const long n = said ? strtol(said, NULL, 10) : 0;
    return options->compile_seconds ? options->compile_seconds : n > 0 && n <= INT32_MAX ? (uint32_t)n : 600;
}

static const char *named(const lathe_options *options)
{
    const char *const names[] = {options->compiler, getenv("TVM_RVV_COMPILER"), getenv("CC"), "cc"};
    size_t i = 0;
    while (!names[i] || !names[i][strspn(names[i], " \t\r\n")])
        i++;
    return names[i];
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* In new memory; NULL: there is none, or *out_lacking: no memory. */
static char *find_program(const char *name, bool *out_lacking)
{
    *out_lacking = false;
    const char *path = getenv("PATH");
    if (strchr(name, '/')) {
        char *copy = jit_printf("%s", name);
        *out_lacking = !copy;
        if (copy && is_program(copy))
            return copy;
        free(copy);
        return NULL;
    }
    path = path ? path : "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t n = strcspn(path, ":");
        char *full = jit_printf("%.*s/%s", (int)(n ? n : 1), n ? path : ".", name);
        *out_lacking = !full;
        if (!full || is_program(full))
            return full;
        free(full);
        path += n + (path[n] == ':');
    }
    return NULL;
}

/* `-v` and not `--version`: both say the version, this one of gcc says the target as well. What a compiler exits with
 * here does not matter: one that cannot compile says so later. */
static int32_t ask_version(const lathe_options *options, const char *folder, jit_command *c, lathe_error *error)
{
    jit_words ask = {0};
    jit_bytes said = {0};
    char *log = jit_printf("%s/version", folder);
    jit_words_all(&ask, &c->words);
    jit_words_copy(&ask, "-v");
    int32_t status = ask.failed || !log ? jit_no_memory(error) : LATHE_OK;
    if (!status) {
        jit_process p = {.path = c->path, .argv = ask.at, .log = log};
        (void)jit_processes_run(options, &p, 1, 1, jit_command_seconds(options), folder);
        if (p.how == JIT_NOT_STARTED)
            status = vm_fail(error, LATHE_E_COMPILER, "the compiler '%s' cannot be started: %s", c->path,
                              strerror(p.number));
        else if (p.how == JIT_STOPPED)
            status = vm_fail(error, LATHE_E_STOPPED, "stopped");
        else if (p.how == JIT_TOO_LONG)
            status = vm_fail(error, LATHE_E_COMPILER, "the compiler '%s' took longer than %u s to say its version and "
                              "was stopped", c->path, (unsigned)jit_command_seconds(options));
        else if (!jit_file_take(log, &said))
            status = vm_fail(error, LATHE_E_FILE, "cannot read '%s': %s", log, strerror(errno));
        (void)unlink(log);
    }
    c->version = (char *)said.at;
    free(log);
    jit_words_free(&ask);
    return status;
}

/* The machine that it compiles for: "x86_64" of "Target: x86_64-linux-gnu"; the seed's rule for names comes first. */
static void find_target(const jit_command *c, char out[32])
{
    const char *line = strstr(c->version, "Target: ");
    (void)snprintf(out, 32, "%s", jit_machine_name());
    if (line) {
        line += strlen("Target: ");
        (void)snprintf(out, 32, "%.*s", (int)strcspn(line, "- \r\n"), line);
    }
    for (size_t i = 0; i < c->words.n; i++)
        if (strstr(c->words.at[i], "riscv64"))
            (void)snprintf(out, 32, "riscv64");
}

/* gcc has no vector code for RISC-V before its version 14: the kernels are right, and slow. */
static void warn_of_scalars(const lathe_options *options, const jit_command *c)
{
    const char *gcc = strstr(c->version, "gcc version ");
    if (gcc && atoi(gcc + strlen("gcc version ")) < 14)
        jit_warn(options, "warning: this gcc makes no vector code for RISC-V: gcc 14 or clang would");
}

/* clang lays vectors of fixed size out for the width that it is told; gcc takes none as given. Where clang also knows
 * that the machine is no wider (from version 17 on), a register that it keeps in memory takes one instruction more, not
 * six. */
static void add_riscv(const lathe_options *options, jit_command *c)
{
    const char *clang = strstr(c->version, "clang version ");
    uint32_t vlen = jit_machine_vlen();
    if (vlen)
        warn_of_scalars(options, c);
    if (vlen && clang && atoi(clang + strlen("clang version ")) >= 17)
        jit_words_copy(&c->flags, "-mrvv-vector-bits=zvl");
    if (vlen && clang)
        jit_words_add(&c->flags, jit_printf("-march=rv64gcv_zvl%ub", (unsigned)vlen));
    else
        jit_words_copy(&c->flags, vlen ? "-march=rv64gcv" : "-march=rv64gc");
    jit_words_copy(&c->flags, "-mabi=lp64d");
}

/* On RISC-V code relies on the width of the registers, however little of them it uses. */
uint32_t jit_command_own_width(void)
{
    return strcmp(jit_machine_name(), "riscv64") == 0 ? jit_machine_vlen() : 8 * jit_this_machine().vector_bytes;
}

static void add_own(const lathe_options *options, jit_command *c, jit_machine m)
{
    c->width = jit_command_own_width();
    if (strcmp(jit_machine_name(), "riscv64") == 0)
        add_riscv(options, c);
    else if (strcmp(jit_machine_name(), "aarch64") == 0)
        jit_words_copy(&c->flags, "-march=armv8-a");
    else if (strcmp(jit_machine_name(), "x86_64") == 0)
        jit_words_split(&c->flags, m.vector_bytes == 64   ? "-march=x86-64-v4 -mprefer-vector-width=512"
                                   : m.vector_bytes == 32 ? "-march=x86-64-v3"
                                   : m.vector_bytes == 16 ? "-march=x86-64-v2"
                                                          : "");
}

static void add_flags(const lathe_options *options, jit_command *c)
{
    char target[32];
    jit_machine m = jit_this_machine();
    find_target(c, target);
    if (strcmp(target, jit_machine_name()) == 0) {
        add_own(options, c, m);
    } else {
        m = (jit_machine){0, 16};
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strcmp(others[i].name, target) == 0) {
                m = (jit_machine){others[i].vector_bytes, others[i].vector_regs};
                jit_words_split(&c->flags, others[i].flags);
            }
        if (strcmp(target, "riscv64") == 0)
            warn_of_scalars(options, c);
        c->width = 8 * m.vector_bytes;
    }
    jit_words_copy(&c->flags, "-fno-math-errno");
    jit_words_copy(&c->flags, "-fno-trapping-math");
    jit_words_copy(&c->flags, "-ffp-contract=fast");
    jit_words_add(&c->flags, jit_printf("-D" MODULE_MACRO_VECTOR_BYTES "=%u", (unsigned)m.vector_bytes));
    jit_words_add(&c->flags, jit_printf("-D" MODULE_MACRO_VECTOR_REGS "=%u", (unsigned)m.vector_regs));
}

/* g++ and the like, and a source that does not say that it is for C++. */
static bool takes_for_cxx(const jit_command *c, const char *source, size_t size)
{
    for (size_t i = 0; i < c->words.n; i++)
        if (c->words.at[i][0] != '-' && strstr(c->words.at[i], "++"))
            return !jit_contains(source, size, "extern \"C\"");
    return false;
}

/* A name, not a path, and no option that begins like one. */
static bool is_library(const char *word)
{
    if (strncmp(word, "-l", 2) != 0 || !word[2])
        return false;
    for (const char *s = word + 2; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') && !(*s >= '0' && *s <= '9') && !strchr("_+.-", *s))
            return false;
    return true;
}

/* MODULE_LIBRARIES in the second line. */
static int32_t find_libraries(const char *source, size_t size, jit_command *c, lathe_error *error)
{
    const size_t mark = strlen(MODULE_LIBRARIES);
    const char *line = memchr(source, '\n', size), *end;
    if (!line || (size_t)(source + size - ++line) <= mark || memcmp(line, MODULE_LIBRARIES, mark) != 0)
        return LATHE_OK;
    line += mark;
    end = memchr(line, '*', (size_t)(source + size - line));
    char *words = end ? jit_printf("%.*s", (int)(end - line < 4096 ? end - line : 4096), line) : NULL;
    if (!words)
        return end ? jit_no_memory(error) : vm_fail(error, LATHE_E_FORMAT, "the list of libraries has no end");
    jit_words_split(&c->libraries, words);
    free(words);
    for (size_t i = 0; i < c->libraries.n && !c->libraries.failed; i++)
        if (!is_library(c->libraries.at[i]))
            return vm_fail(error, LATHE_E_FORMAT, "the module wants '%.100s' from the linker: only -lNAME is known",
                           c->libraries.at[i]);
    return c->libraries.failed ? jit_no_memory(error) : LATHE_OK;
}

int32_t jit_command_find(const lathe_options *options, const char *folder, const char *source, size_t size,
                         jit_command *out, lathe_error *error)
{
    *out = (jit_command){0};
    jit_words_split(&out->words, named(options));
    if (out->words.failed)
        return jit_no_memory(error);
    bool lacking;
    out->path = find_program(out->words.at[0], &lacking);
    if (lacking)
        return jit_no_memory(error);
    if (!out->path)
        return vm_fail(error, LATHE_E_COMPILER, "there is no compiler '%s': install one, or name it by the option "
                        "`compiler`, TVM_RVV_COMPILER or CC", out->words.at[0]);
    int32_t status = ask_version(options, folder, out, error);
    if (status)
        return status;
    add_flags(options, out);
    out->say_c = takes_for_cxx(out, source, size);
    status = find_libraries(source, size, out, error);
    return status ? status : out->flags.failed ? jit_no_memory(error) : LATHE_OK;
}

bool jit_command_exists(const lathe_options *options)
{
    jit_words words = {0};
    bool lacking = true;
    jit_words_split(&words, named(options));
    char *path = words.failed ? NULL : find_program(words.at[0], &lacking);
    bool exists = path || lacking;
    jit_words_free(&words);
    free(path);
    return exists;
}

void jit_command_free(jit_command *c)
{
    jit_words_free(&c->words);
    jit_words_free(&c->flags);
    jit_words_free(&c->libraries);
    free(c->path);
    free(c->version);
    *c = (jit_command){0};
}

static void begin(const jit_command *c, const char *form, jit_words *out)
{
    jit_words_all(out, &c->words);
    jit_words_split(out, form);
    jit_words_all(out, &c->flags);
}

static void add_output(jit_words *out, const char *object)
{
    jit_words_copy(out, "-o");
    jit_words_copy(out, object);
}

static void add_source(const jit_command *c, jit_words *out, const char *source)
{
    if (c->say_c)
        jit_words_split(out, "-x c");
    jit_words_copy(out, source);
}

/* -Bsymbolic: kernels call each other, not what the program may have of the same names. -lm stands behind what needs
 * it, which some linkers want. */
#define SHARED "-O3 -fPIC -shared -Wl,-Bsymbolic"

void jit_command_whole(const jit_command *c, const char *source, const char *object, jit_words *out)
{
    begin(c, SHARED, out);
    add_output(out, object);
    add_source(c, out, source);
    jit_words_all(out, &c->libraries);
    jit_words_copy(out, "-lm");
}

void jit_command_piece(const jit_command *c, const char *source, uint32_t k, uint32_t n, const char *object,
                       jit_words *out)
{
    begin(c, "-O3 -fPIC -c", out);
    jit_words_add(out, jit_printf("-D" MODULE_MACRO_SHARD "=%u", (unsigned)k));
    jit_words_add(out, jit_printf("-D" MODULE_MACRO_SHARDS "=%u", (unsigned)n));
    add_output(out, object);
    add_source(c, out, source);
}

void jit_command_link(const jit_command *c, const jit_words *pieces, const char *object, jit_words *out)
{
    begin(c, SHARED, out);
    add_output(out, object);
    jit_words_all(out, pieces);
    jit_words_all(out, &c->libraries);
    jit_words_copy(out, "-lm");
}
