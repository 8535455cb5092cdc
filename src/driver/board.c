/* SPDX-License-Identifier: Apache-2.0 */
/* The table of boards; a package built for one of them: its objects as its Makefile's flags make them, which are
 * measured, and a program with hooks that calls it (runtime/board). */
#include "driver/board.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/build.h"
#include "driver/emulate.h"

#define SEMIHOSTING                                                                                                    \
    "-display none -serial null -monitor none -semihosting-config enable=on,target=native -icount shift=0 "
#define ARM_TOOLS                                                                                                      \
    .tools = "arm-none-eabi-", .compiler_packages = "gcc-arm-none-eabi libnewlib-arm-none-eabi",                       \
    .ldflags = "-nostartfiles --specs=nano.specs --specs=nosys.specs", .emulator_package = "qemu-system-arm"

static const board table[] = {
    {.name = "qemu-m4", .target = "cortex-m4", .stands_for = "cortex-m", .port = "baremetal", ARM_TOOLS, .cflags = "",
     .script = "mps2.ld", .startup = "startup_mps2.c",
     .emulator = "qemu-system-arm -M mps2-an386 " SEMIHOSTING "-kernel",
     .count = "counted by QEMU, to the nearest 40"},
    /* Processors whose code runs on a larger one that the emulator has. */
    {.name = "qemu-m0plus", .target = "cortex-m0plus", .port = "baremetal", ARM_TOOLS, .cflags = "",
     .script = "mps2.ld", .startup = "startup_mps2.c",
     .emulator = "qemu-system-arm -M mps2-an385 " SEMIHOSTING "-kernel",
     .count = "counted by QEMU, to the nearest 40"},
    {.name = "qemu-m3", .target = "cortex-m3", .port = "baremetal", ARM_TOOLS, .cflags = "", .script = "mps2.ld",
     .startup = "startup_mps2.c", .emulator = "qemu-system-arm -M mps2-an385 " SEMIHOSTING "-kernel",
     .count = "counted by QEMU, to the nearest 40"},
    {.name = "qemu-m7", .target = "cortex-m7", .port = "baremetal", ARM_TOOLS, .cflags = "-DBOARD_AN547",
     .script = "mps3.ld", .startup = "startup_mps2.c",
     .emulator = "qemu-system-arm -M mps3-an547 " SEMIHOSTING "-kernel",
     .count = "counted by QEMU, to the nearest 32"},
    {.name = "qemu-m33", .target = "cortex-m33", .port = "baremetal", ARM_TOOLS, .cflags = "-DBOARD_AN547",
     .script = "mps3.ld", .startup = "startup_mps2.c",
     .emulator = "qemu-system-arm -M mps3-an547 " SEMIHOSTING "-kernel",
     .count = "counted by QEMU, to the nearest 32"},
    {.name = "qemu-m55", .target = "cortex-m55", .port = "baremetal", ARM_TOOLS, .cflags = "-DBOARD_AN547",
     .script = "mps3.ld", .startup = "startup_mps2.c",
     .emulator = "qemu-system-arm -M mps3-an547 " SEMIHOSTING "-kernel",
     .count = "counted by QEMU, to the nearest 32"},
    {.name = "qemu-rv32", .target = "rv32imc", .port = "baremetal", .tools = "riscv64-unknown-elf-",
     .compiler_packages = "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
     .emulator_package = "qemu-system-misc", .cflags = "--specs=picolibc.specs", .ldflags = "-nostartfiles",
     .script = "virt_rv32.ld", .startup = "startup_rv32.c",
     .emulator = "qemu-system-riscv32 -M virt -bios none " SEMIHOSTING "-kernel", .count = "counted by QEMU"},
    {.name = "qemu-aarch64", .target = "aarch64", .port = "posix", .tools = "aarch64-linux-gnu-",
     .compiler_packages = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross", .emulator_package = "qemu-user", .cflags = "",
     .ldflags = "-static -lpthread", .emulator = "qemu-aarch64", .count = "counted by a plugin of QEMU",
     .plugin = "qemu_counter"},
};

const board *board_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

const board *board_of_target(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].target, name) == 0)
            return &table[i];
    return NULL;
}

const board *board_of_example(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].target, name) == 0 || (table[i].stands_for && strcmp(table[i].stands_for, name) == 0))
            return &table[i];
    return NULL;
}

const board *board_of_port(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].port, name) == 0 && !board_is_hosted(&table[i]))
            return &table[i];
    return NULL;
}

const board *board_at(uint32_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const char *board_names(compiler *c)
{
    writer w;
    writer_init(&w, &c->mem);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", table[i].name);
    return w.data;
}

bool board_is_hosted(const board *b)
{
    return b->script == NULL;
}

/* --- building --- */

#define MEASURED_OBJECT "measured.o"

/* A tool of the board's in the scratch folder. */
static bool run_tool(compiler *c, const run_model *m, process_words *a, const char *what)
{
    const board *b = m->board;
    vec_push(&c->mem, a, NULL);
    if (!compiler_progress(c, arena_printf(&c->mem, "%s with %s", what, a->data[0]), 0, 0))
        return false;
    const char *install = arena_printf(&c->mem, "install it: apt-get install %s", b->compiler_packages);
    const char *log = arena_printf(&c->mem, "it needs the packages %s; or the model may be too large for the board",
                                   b->compiler_packages);
    return process_run(c, &(process_task){.argv = a->data,
                                          .dir = m->scratch,
                                          .what = what,
                                          .hint = install,
                                          .whole_log = log,
                                          .name = "package",
                                          .path = m->dir});
}

static void begin(compiler *c, const run_model *m, int64_t workers, process_words *a)
{
    vec_push(&c->mem, a, arena_printf(&c->mem, "%sgcc", m->board->tools));
    build_add_flags(c, m, workers, a);
}

static void begin_compile(compiler *c, const run_model *m, int64_t workers, process_words *a)
{
    begin(c, m, workers, a);
    process_add_words(c, a, m->board->cflags);
    process_add_words(c, a, "-ffunction-sections -fdata-sections");
}

/* What hooks, or the lack of them, are compiled into; kernels know nothing of them. */
static void name_small_files(compiler *c, const run_model *m, process_words *a, const char *folder, const char *end)
{
    const char *file = port_find(m->board->port)->file;
    const char *const names[] = {arena_printf(&c->mem, "%s_lib0", m->report->module),
                                 arena_printf(&c->mem, "%s_lib1", m->report->module), "model_data", "tvmrt",
                                 arena_printf(&c->mem, "%.*s", (int)strlen(file) - 2, file)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        vec_push(&c->mem, a, arena_printf(&c->mem, "%s%s%s", folder, names[i], end));
}

/* "src/xnnpack.c" -> "xnnpack.o"; other words are options. */
static void name_objects(compiler *c, const process_words *sources, process_words *a)
{
    for (uint32_t i = 0; i < sources->len; i++) {
        const char *s = sources->data[i], *slash = strrchr(s, '/');
        size_t n = strlen(s);
        if (*s != '-' && n > 2 && strcmp(s + n - 2, ".c") == 0)
            vec_push(&c->mem, a, arena_printf(&c->mem, "%.*s.o", (int)(s + n - 2 - (slash + 1)), slash + 1));
    }
}

static bool compile_objects(compiler *c, const run_model *m, int64_t workers, const process_words *sources)
{
    process_words a = {0};
    begin_compile(c, m, workers, &a);
    if (!board_is_hosted(m->board)) /* as in the package's Makefile; the program that runs wants one */
        process_add_words(c, &a, "-DTVMRT_LOG_ENABLE=0");
    name_small_files(c, m, &a, "package/src/", ".c");
    vec_push(&c->mem, &a, "package/src/ops.c");
    for (uint32_t i = 0; i < sources->len; i++)
        vec_push(&c->mem, &a, sources->data[i]);
    vec_push(&c->mem, &a, "-c");
    return run_tool(c, m, &a, "building the package");
}

/* All that a program which calls the model gets of the package: for the sizes of its sections. */
static bool link_objects(compiler *c, const run_model *m, int64_t workers, const process_words *sources)
{
    const char *module = m->report->module;
    process_words a = {0};
    begin(c, m, workers, &a);
    process_add_words(c, &a, "-nostdlib -r -Wl,--gc-sections");
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-Wl,-e,tvmgen_%s_run,-u,tvmgen_%s_run", module, module));
    if (m->constants)
        vec_push(&c->mem, &a, arena_printf(&c->mem, "-Wl,-u,tvmgen_%s_set_constants", module));
    name_small_files(c, m, &a, "", ".o");
    vec_push(&c->mem, &a, "ops.o");
    name_objects(c, sources, &a);
    process_add_words(c, &a, "-o " MEASURED_OBJECT);
    return run_tool(c, m, &a, "linking the package");
}

/* The caller's side, for a machine without an operating system. */
static bool add_bare(compiler *c, const run_model *m, process_words *a)
{
    const board *b = m->board;
    if (!build_write_embedded(c, m->scratch, "board", b->script) ||
        !build_write_embedded(c, m->scratch, "board", b->startup) ||
        !build_write_embedded(c, m->scratch, "board", "semihost.c"))
        return false;
    process_add_words(c, a, "-DBOARD -T");
    vec_push(&c->mem, a, b->script);
    vec_push(&c->mem, a, b->startup);
    vec_push(&c->mem, a, "semihost.c");
    vec_push(&c->mem, a,
             m->constants ? arena_printf(&c->mem, "-DCONSTANTS_FILE=\"%s\"", m->constants) : "-DCONSTANTS_FILE=NULL");
    return true;
}

static bool build_program(compiler *c, const run_model *m, int64_t workers, const process_words *sources)
{
    const run_report *r = m->report;
    process_words a = {0};
    begin_compile(c, m, workers, &a);
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-DCALLED=tvmgen_%s_run", r->module));
    if (m->constants)
        vec_push(&c->mem, &a, arena_printf(&c->mem, "-DCONSTANTS=tvmgen_%s_set_constants", r->module));
    vec_push(&c->mem, &a, arena_printf(&c->mem, "-DOPERATORS=%u", r->n_operators));
    process_add_words(c, &a, "-DMEASURED -DTVMRT_HOOKS=1 -Wl,--gc-sections " EMULATE_CALLER ".c");
    name_small_files(c, m, &a, "package/src/", ".c");
    vec_push(&c->mem, &a, "ops.o");
    name_objects(c, sources, &a);
    if (m->board->script && !add_bare(c, m, &a))
        return false;
    for (uint32_t i = 0; i < r->n_sources; i++)
        process_add_words(c, &a, r->sources[i].ldflags);
    process_add_words(c, &a, "-lm");
    process_add_words(c, &a, m->board->ldflags);
    process_add_words(c, &a, "-o " EMULATE_CALLER);
    return run_tool(c, m, &a, "building the program");
}

static bool measure_sections(compiler *c, const run_model *m)
{
    process_words a = {0};
    vec_push(&c->mem, &a, arena_printf(&c->mem, "%sobjdump", m->board->tools));
    process_add_words(c, &a, "-h -w " MEASURED_OBJECT);
    return run_tool(c, m, &a, "measuring the package");
}

#define SECTIONS "sections.txt"

/* A package with regions for VTA brings the device's driver and simulator, which want a host's threads and memory. */
static bool check_devices(compiler *c, const run_model *m)
{
    if (board_is_hosted(m->board) || !file_exists(path_join(&c->mem, m->dir, "vta")))
        return true;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
               "a package with regions for VTA cannot run on %s: nothing simulates the device there", m->board->name);
    diag_hint(&c->diags, "leave --target out: it runs on this machine, beside the simulated device");
    return false;
}

/* The emulator's plugin that counts, compiled for this machine, and tried: versions of the emulator differ. */
static bool add_plugin(compiler *c, run_model *m, int64_t workers)
{
    const board *b = m->board;
    bool works = false;
    if (!b->plugin)
        return true;
    if (workers > 1) {
        m->uncounted = "instructions of several workers cannot be counted; use --workers 1";
        return true;
    }
    const char *emulator = arena_printf(&c->mem, "%s -plugin ./%s.so", b->emulator, b->plugin);
    process_words build = {0}, probe = {0};
    process_add_words(c, &build, "cc -O2 -fPIC -shared -o");
    vec_push(&c->mem, &build, arena_printf(&c->mem, "%s.so", b->plugin));
    vec_push(&c->mem, &build, arena_printf(&c->mem, "%s.c", b->plugin));
    vec_push(&c->mem, &build, NULL);
    process_add_words(c, &probe, emulator);
    process_add_words(c, &probe, "./" EMULATE_CALLER);
    vec_push(&c->mem, &probe, NULL);
    if (!build_write_embedded(c, m->scratch, "board", arena_printf(&c->mem, "%s.c", b->plugin)) ||
        !process_try(c, &(process_task){.argv = build.data, .dir = m->scratch}, &works) ||
        (works && !process_try(c, &(process_task){.argv = probe.data, .dir = m->scratch}, &works)))
        return false;
    if (works)
        m->emulator = emulator;
    else
        m->uncounted = arena_printf(&c->mem, "cc or this %s cannot make or load its plugin", b->emulator);
    return true;
}

bool board_build(compiler *c, run_model *m, int64_t workers)
{
    process_words sources = {0};
    span sizes;
    const bool bare = port_find(m->board->port)->most_workers == 1;
    workers = bare ? 0 : workers >= 0 ? workers : m->board->plugin ? 1 : m->report->workers;
    return check_devices(c, m) && build_link_package(c, m->dir, m->scratch) &&
           build_add_sources(c, m, m->scratch, &sources) && compile_objects(c, m, workers, &sources) &&
           link_objects(c, m, workers, &sources) &&
           measure_sections(c, m) && compiler_read_file(c, path_join(&c->mem, m->scratch, "log"), &sizes) &&
           compiler_write_file(c, path_join(&c->mem, m->scratch, SECTIONS), sizes.data, sizes.len) &&
           build_program(c, m, workers, &sources) && add_plugin(c, m, workers);
}

/* --- what it took --- */

/* Tables of the C library's unwinder, which a board's image leaves out. */
static bool is_of_unwinder(const char *name)
{
    return strncmp(name, ".eh_frame", 9) == 0 || strncmp(name, ".ARM.", 5) == 0;
}

/* A line of objdump -h -w: number, name, bytes, addresses, flags. What a board's description names a section of is told
 * by the flags too; one that is written and is not .data holds nothing at first, whatever the assembler calls it. */
static void take_section(const char *line, board_measure *out)
{
    char name[256], bytes[32];
    if (sscanf(line, "%*u %255s %31s", name, bytes) != 2 || !strstr(line, "ALLOC") || is_of_unwinder(name))
        return;
    const uint64_t n = strtoull(bytes, NULL, 16);
    if (strstr(line, "CODE"))
        out->text += n;
    else if (strstr(line, "READONLY"))
        out->rodata += n;
    else if (strncmp(name, ".data", 5) == 0 || strncmp(name, ".sdata", 6) == 0)
        out->data += n;
    else
        out->bss += n;
}

static bool read_sections(compiler *c, const run_model *m, board_measure *out)
{
    span s;
    if (!compiler_read_file(c, path_join(&c->mem, m->scratch, SECTIONS), &s))
        return false;
    char *text = arena_strndup(&c->mem, (const char *)s.data, s.len);
    for (char *end; *text; text = end) {
        end = text + strcspn(text, "\n");
        if (*end)
            *end++ = '\0';
        take_section(text, out);
    }
    return true;
}

bool board_measured(compiler *c, const run_model *m, board_measure *out)
{
    span s;
    const uint32_t n = m->report->n_operators;
    const size_t want = (3u + (size_t)n) * sizeof(int64_t);
    *out = (board_measure){.n_operators = n};
    if (!read_sections(c, m, out) || !compiler_read_file(c, path_join(&c->mem, m->scratch, "measured.bin"), &s))
        return false;
    if (s.len != want)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                          "the program in the emulator wrote %zu bytes of measurements instead of %zu", s.len, want);
    int64_t *numbers = arena_array(&c->mem, int64_t, 3u + n);
    memcpy(numbers, s.data, want);
    out->instructions = numbers[0];
    out->stack = (uint64_t)numbers[1];
    out->operators = numbers[0] < 0 ? NULL : numbers + 2;
    out->counting = numbers[2 + n];
    return true;
}
