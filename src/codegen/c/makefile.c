/* SPDX-License-Identifier: Apache-2.0 */
/* How a package is built: a Makefile (objects in build/, the program `runner` beside it) and a CMakeLists.txt. */
#include "codegen/c/package.h"
#include "codegen/embedded.h"
#include "prog/source.h"

#include <string.h>

/* "tvmrt_port_posix.o" */
static const char *port_object(const package *p)
{
    return arena_printf(&p->c->mem, "%.*s.o", (int)strlen(p->u->port->file) - 2, p->u->port->file);
}

static const char *contract(const package *p)
{
    return strstr(p->u->target->cflags, "-ffp-contract") ? "" : " -ffp-contract=off";
}

/* gcc tells how x86's vectors are passed that are wider than registers: all functions that take them are inline. */
static const char *quiet(const package *p)
{
    const target *t = p->u->target;
    return (t->features & TARGET_MADD) != 0 && t->vector_bytes < 64 ? " -Wno-psabi" : "";
}

/* main.o apart: the library has no main. Each of several functions has what a package of one has beside the runtime.
 */
static void write_object(const package *p, writer *w, const char *before, const char *name, const char *behind)
{
    w_str(w, before);
    package_template(p, w, name);
    w_str(w, behind);
}

static void write_own_objects(const package *p, writer *w, const char *before, const char *behind)
{
    write_object(p, w, before, "@n_lib0", behind);
    write_object(p, w, before, "@n_lib1", behind);
    write_object(p, w, before, package_file_of(p, "model_data"), behind);
    write_object(p, w, before, package_file_of(p, "ops"), behind);
}

static void write_all_objects(const package *p, writer *w, const char *before, const char *behind)
{
    if (p->n_functions > 0)
        write_object(p, w, before, "@n_lib0", behind);
    else
        write_own_objects(p, w, before, behind);
    for (uint32_t i = 0; i < p->n_functions; i++)
        write_own_objects(&p->functions[i], w, before, behind);
    write_object(p, w, before, "tvmrt", behind);
}

/* "runner", or "runner_encode". */
static const char *runner_of(const package *p)
{
    return p->u->group ? arena_printf(&p->c->mem, "runner%s", p->u->module_name + strlen(p->u->group)) : "runner";
}

/* All programs. */
static const char *runners_of(const package *p)
{
    const char *all = p->n_functions > 0 ? "" : runner_of(p);
    for (uint32_t i = 0; i < p->n_functions; i++)
        all = arena_printf(&p->c->mem, "%s%s%s", all, i ? " " : "", runner_of(&p->functions[i]));
    return all;
}

static void add_product(const package *p, artifact *out, const char *text)
{
    writer w;
    writer_init(&w, &p->c->mem);
    package_template(p, &w, text);
    vec_push(&p->c->mem, &out->made, w.data);
}

/* Words of a line. */
static void add_products(const package *p, artifact *out, const char *line)
{
    for (const char *s = line; *s; s += strspn(s, " ")) {
        const size_t n = strcspn(s, " ");
        add_product(p, out, arena_printf(&p->c->mem, "%.*s", (int)n, s));
        s += n;
    }
}

void makefile_products(const package *p, artifact *out)
{
    arena *a = &p->c->mem;
    writer w;
    writer_init(&w, a);
    write_all_objects(p, &w, "build/", ".o ");
    add_products(p, out, w.data);
    add_product(p, out, arena_printf(a, "build/%s", port_object(p)));
    for (uint32_t i = 0; i < (p->n_functions ? p->n_functions : 1); i++)
        add_product(p, out, arena_printf(a, "build/%s", package_file_of(p->n_functions ? &p->functions[i] : p,
                                                                        "main.o")));
    add_product(p, out, "build/flags");
    add_products(p, out, runners_of(p));
    add_product(p, out, "lib@p.a");
}

/* Of the files that code generators ask for. */
static void write_file_objects(const package *p, writer *w, bool hosted)
{
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++) {
        const prog_source *s = &p->u->prog->sources.data[i];
        for (uint32_t k = 0; k < s->n_files; k++)
            if (s->files[k].hosted == hosted && package_file_object(p, s, k))
                w_fmt(w, " \\\n          %s", package_file_object(p, s, k));
    }
}

static bool has_hosted(const package *p)
{
    bool found = false;
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++)
        for (uint32_t k = 0; k < p->u->prog->sources.data[i].n_files; k++)
            found |= p->u->prog->sources.data[i].files[k].hosted;
    return found;
}

static void write_objects(const package *p, writer *w)
{
    w_str(w, "OBJECTS =");
    write_all_objects(p, w, " build/", ".o");
    w_fmt(w, " \\\n          build/%s", port_object(p));
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++)
        w_fmt(w, " build/%s.o", p->u->prog->sources.data[i].target->name);
    write_file_objects(p, w, false);
    w_str(w, "\n");
    if (has_hosted(p)) {
        w_fmt(w, "# Stands for the device where there is none; on a board: HOSTED= leaves it out.\nHOSTED ?=%s\n"
                 "OBJECTS += $(if $(HOSTED),", p->u->port->system == PORT_HOSTED ? " yes" : "");
        write_file_objects(p, w, true);
        w_str(w, ")\n");
    }
    w_str(w, "\n");
}

/* What code generators have written has flags of its own, and may want another compiler. */
static void write_sources(const package *p, writer *w)
{
    const prog_module *m = p->u->prog;
    bool cuda = false;
    for (uint32_t i = 0; i < m->sources.len; i++) {
        const prog_source *s = &m->sources.data[i];
        bool is_c = strcmp(s->suffix, "c") == 0;
        if (*s->cflags)
            w_fmt(w, "build/%s.o: %s += %s\n", s->target->name, is_c ? "FLAGS" : "NVCCFLAGS", s->cflags);
        cuda |= !is_c;
        if (s->n_files > 0)
            w_fmt(w, "FLAGS += -I%s\nbuild/%s_%%.o: %s/%%.c $(wildcard %s/*.h %s/*.def) Makefile build/flags\n"
                     "\t$(CC) $(FLAGS) -c -o $@ $<\n\n",
                  s->target->name, s->target->name, s->target->name, s->target->name, s->target->name);
    }
    if (cuda)
        w_str(w, "# CUDA: nvcc, or NVCC='clang++ --cuda-gpu-arch=sm_80'.\nNVCC ?= nvcc\nNVCCFLAGS ?= -O3\n"
                 "build/%.o: src/%.cu $(wildcard src/*.h include/*.h) Makefile build/flags\n"
                 "\t$(NVCC) $(NVCCFLAGS) -Isrc -Iinclude -c -o $@ $<\n");
    w_str(w, m->sources.len ? "\n" : "");
}

/* Where the target's row says nothing. */
#define BY_HAND "src/target/cortex_m/by_hand.in"

/* Files of constants that the assembler includes. */
static void list_included(const package *p, writer *w, const char *folder, const char *between)
{
    bool first = p->constants_form == CONSTANTS_INCBIN && package_constant_bytes(p) > 0;
    if (first)
        w_fmt(w, "%s%s", folder, p->constant_file);
    for (uint32_t i = 1; i < p->n_areas; i++)
        w_fmt(w, "%s%s%s", i > 1 || first ? between : "", folder, package_area_file(p, i));
}

static void write_runner(const package *p, writer *w, const char *libraries)
{
    const char *name = runner_of(p), *main = package_file_of(p, "main.o");
    w_fmt(w, "%s: build/%s $(OBJECTS)\n\t$(CC) $(CFLAGS) $(TARGET_FLAGS) $(CPU) $(LDFLAGS) -o %s build/%s $(OBJECTS) ",
          name, main, name, main);
    w_fmt(w, "%s%s\n\n", p->u->port->system == PORT_BARE ? "-Wl,--gc-sections " : "", libraries);
}

/* make's own CC is this machine's compiler, which does not know the flags of another one. Whoever names a compiler gets
 * that one. */
static void write_compiler(const target *t, writer *w)
{
    const size_t n = t->cc ? strlen(t->cc) : 0;
    if (t->address_bits != 32 || n < 4 || strcmp(t->cc + n - 4, "-gcc") != 0)
        return;
    w_fmt(w, "# The compiler and the archiver, unless you name others.\nifeq ($(origin CC),default)\nCC = %s\nendif\n"
             "ifeq ($(origin AR),default)\nAR = %.*s-ar\nendif\n", t->cc, (int)n - 4, t->cc);
}

void makefile_write(const package *p, writer *w)
{
    const bool bare = p->u->port->system == PORT_BARE;
    package_template(p, w, p->n_functions > 0
                     ? "# Builds model \"@n\": `make all` gives a program for each function, `make lib` the library\n"
                       "# lib@p.a without them; `make clean`.\n# SPDX-License-Identifier: Apache-2.0\n"
                     : "# Builds model \"@n\": `make all` gives the program `runner`, `make lib` the library lib@p.a\n"
                       "# without main.c; `make run`; `make clean`.\n# SPDX-License-Identifier: Apache-2.0\n");
    const target *t = p->u->target;
    if (bare || t->address_bits == 32)
        w_str(w, t->by_hand ? t->by_hand : embedded_text(t->by_hand_file ? t->by_hand_file : BY_HAND));
    if (bare)
        write_compiler(t, w);
    w_fmt(w, "# Threads that work on one run, the caller included; 0: single thread, no thread code.\nWORKERS ?= %u\n",
          port_usual_workers(p->u->port, p->u->target->workers));
    w_str(w, "# 1: hooks before and after every operator, tvmrt_cancel, and a table of times in main.c.\nHOOKS ?= 0\n");
    if (bare)
        w_str(w, "# 1: the log of failures, tvmrt_log_*: 100 bytes of RAM.\nLOG ?= 0\n");
    w_fmt(w, "# Target %s. The floating-point contract (-ffp-contract) is part of the results: keep it.\n",
          p->u->target->name);
    w_fmt(w, "TARGET_FLAGS ?= %s%s%s\n", package_target_flags(p), contract(p), quiet(p));
    w_str(w, embedded_text("src/codegen/c/text/flags.mk.in"));
    if (bare)
        w_str(w, " -DTVMRT_LOG_ENABLE=$(LOG) \\\n        -ffunction-sections -fdata-sections");
    w_fmt(w, "%s\n", package_includes_files(p) ? " -Wa,-Isrc" : "");
    w_fmt(w, "LDLIBS ?= -lm%s\n", p->u->port->libraries);
    const char *libraries = package_libraries(p);
    if (*libraries)
        w_fmt(w, "# Code generators need these: link them to your program, too.\nLIBS = %s\n", libraries);
    write_objects(p, w);
    w_fmt(w, ".PHONY: all lib %sclean\nall: %s\n\n", p->n_functions > 0 ? "" : "run ", runners_of(p));
    package_template(p, w, "lib: lib@p.a\n\n");
    for (uint32_t i = 0; i < (p->n_functions ? p->n_functions : 1); i++)
        write_runner(p->n_functions ? &p->functions[i] : p, w, *libraries ? "$(LIBS) $(LDLIBS)" : "$(LDLIBS)");
    package_template(p, w,
                     "lib@p.a: $(OBJECTS)\n\trm -f lib@p.a\n\t$(AR) rcs lib@p.a $(OBJECTS)\n\n");
    w_str(w, "build/%.o: src/%.c $(wildcard src/*.h include/*.h) Makefile build/flags\n"
             "\t$(CC) $(FLAGS) -c -o $@ $<\n\n"
             "# Another compiler, another number of workers, other flags: another build.\n"
             "SAID = '$(subst ','\\'',$(CC) $(FLAGS) $(LDFLAGS) $(LDLIBS))'\n.PHONY: look\nbuild/flags: look\n"
             "\t@mkdir -p build && printf '%s\\n' $(SAID) | cmp -s - $@ || printf '%s\\n' $(SAID) > $@\n\n");
    write_sources(p, w);
    if (package_includes_files(p)) {
        w_fmt(w, "build/%s_lib0.o: ", p->u->module_name);
        list_included(p, w, "", " ");
        w_str(w, "\n\n");
    }
    w_str(w, p->n_functions > 0 ? "" : "run: runner\n\t./runner $(ARGS)\n\n");
    w_fmt(w, "clean:\n\trm -rf build %s ", runners_of(p));
    package_template(p, w, "lib@p.a\n");
}

static void write_cmake_files(const package *p, writer *w, bool hosted)
{
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++) {
        const prog_source *s = &p->u->prog->sources.data[i];
        for (uint32_t k = 0; k < s->n_files; k++)
            if (s->files[k].hosted == hosted && package_file_object(p, s, k))
                w_fmt(w, "\n    %s", package_file(p, s, k));
    }
}

static void write_cmake_hosted(const package *p, writer *w)
{
    if (!has_hosted(p))
        return;
    w_fmt(w, "option(HOSTED \"a simulator stands for the device\" %s)\nif(HOSTED)\n",
          p->u->port->system == PORT_HOSTED ? "ON" : "OFF");
    package_template(p, w, "    target_sources(@p PRIVATE");
    write_cmake_files(p, w, true);
    w_str(w, ")\nendif()\n");
}

static void write_cmake_sources(const package *p, writer *w)
{
    const prog_module *m = p->u->prog;
    write_cmake_hosted(p, w);
    for (uint32_t i = 0; i < m->sources.len; i++)
        if (m->sources.data[i].n_files > 0)
            package_template(p, w, arena_printf(&p->c->mem, "target_include_directories(@p PUBLIC %s)\n",
                                                m->sources.data[i].target->name));
    for (uint32_t i = 0; i < m->sources.len; i++)
        if (*m->sources.data[i].cflags)
            w_fmt(w, "set_source_files_properties(%s PROPERTIES COMPILE_FLAGS \"%s\")\n",
                  package_source_file(p, &m->sources.data[i]), m->sources.data[i].cflags);
    if (*package_libraries(p)) {
        package_template(p, w, "target_link_libraries(@p PUBLIC ");
        w_fmt(w, "%s)\n", package_libraries(p));
    }
}

/* library: of the whole package. */
static void write_cmake_runner(const package *p, const char *library, writer *w)
{
    w_fmt(w, "add_executable(%s_runner src/%s)\ntarget_link_libraries(%s_runner PRIVATE %s)\n", p->prefix,
          package_file_of(p, "main.c"), p->prefix, library);
    w_fmt(w, "set_target_properties(%s_runner PROPERTIES OUTPUT_NAME %s C_STANDARD 99 C_EXTENSIONS OFF)\n", p->prefix,
          runner_of(p));
    package_template(p, w, "if(NOT CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR) # a part of another build\n"
                           "    set_target_properties(@p_runner PROPERTIES EXCLUDE_FROM_ALL ON)\nendif()\n");
}

void makefile_write_cmake(const package *p, writer *w)
{
    const bool bare = p->u->port->system == PORT_BARE;
    package_template(p, w,
                     "# Model \"@n\" as a static library, and its program.\n# SPDX-License-Identifier: Apache-2.0\n"
                     "cmake_minimum_required(VERSION 3.16)\nproject(@p C");
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++)
        w_str(w, strcmp(p->u->prog->sources.data[i].suffix, "cu") == 0 ? " CXX CUDA" : "");
    w_str(w, ")\n\n");
    w_fmt(w, "set(TVMRT_NUM_WORKERS %u CACHE STRING \"threads that work on one run; 0: single thread\")\n",
          port_usual_workers(p->u->port, p->u->target->workers));
    w_str(w, "set(TVMRT_HOOKS 0 CACHE STRING \"1: hooks before and after every operator, tvmrt_cancel\")\n");
    if (bare)
        w_str(w, "set(TVMRT_LOG_ENABLE 0 CACHE STRING \"1: the log of failures, tvmrt_log_*\")\n");
    w_str(w, "if(NOT CMAKE_BUILD_TYPE)\n    set(CMAKE_BUILD_TYPE Release)\nendif()\n\n");
    package_template(p, w, "add_library(@p STATIC");
    write_all_objects(p, w, " src/", ".c");
    w_fmt(w, "\n    src/%s", p->u->port->file);
    for (uint32_t i = 0; i < p->u->prog->sources.len; i++)
        w_fmt(w, " %s", package_source_file(p, &p->u->prog->sources.data[i]));
    write_cmake_files(p, w, false);
    w_str(w, ")\n");
    package_template(
        p, w,
        "target_include_directories(@p PUBLIC include src)\n"
        "target_compile_definitions(@p PUBLIC TVMRT_NUM_WORKERS=${TVMRT_NUM_WORKERS} TVMRT_HOOKS=${TVMRT_HOOKS}\n");
    w_str(w, bare ? "    TVMRT_LOG_ENABLE=${TVMRT_LOG_ENABLE} _POSIX_C_SOURCE=200809L)\n"
                  : "    _POSIX_C_SOURCE=200809L)\n");
    package_template(p, w, "target_compile_options(@p PUBLIC");
    w_str(w, bare ? " -ffunction-sections -fdata-sections" : "");
    w_fmt(w, " %s%s%s)\n", package_target_flags(p), contract(p), quiet(p));
    if (package_includes_files(p)) {
        package_template(p, w,
                         "set_source_files_properties(src/@n_lib0.c PROPERTIES\n"
                         "    COMPILE_OPTIONS \"-Xassembler;-I${CMAKE_CURRENT_SOURCE_DIR}/src\"\n");
        w_str(w, "    OBJECT_DEPENDS ");
        list_included(p, w, "${CMAKE_CURRENT_SOURCE_DIR}/", p->n_areas > 1 ? "\\;" : "");
        w_str(w, ")\n");
    }
    if (p->u->port->system == PORT_HOSTED)
        package_template(p, w, "find_package(Threads REQUIRED)\ntarget_link_libraries(@p PUBLIC m Threads::Threads)\n");
    else
        package_template(p, w, "target_link_libraries(@p PUBLIC m)\n");
    if (bare)
        package_template(p, w, "target_link_options(@p PUBLIC -Wl,--gc-sections)\n");
    write_cmake_sources(p, w);
    package_template(p, w, "set_target_properties(@p PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)\n\n");
    for (uint32_t i = 0; i < (p->n_functions ? p->n_functions : 1); i++)
        write_cmake_runner(p->n_functions ? &p->functions[i] : p, p->prefix, w);
}
