#!/usr/bin/env bash
# Operators and a code generator from outside, in programs that have the compiler as a library: liblathe.so, the same
# loaded privately by another library, liblathe.a. The program has functions of its own with names of the compiler's.
# And what the library shows is what its headers declare, and nothing else; scripts/check_headers.sh compares
# include/lathe/op_names.h with the headers.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
[ -z "${LATHE_SANITIZE:-}" ] || { echo "a library with sanitizers is for programs with sanitizers"; exit 77; }
build=${LATHE_BUILD:-$top/build}
cc=${CC:-cc}
cd "$work" || exit 1

# --- names
{
    for header in lathe codegen; do
        "$cc" -E -P -I"$top/include" -I"$top/runtime/vm" "$top/include/lathe/$header.h" |
            grep -oE '\blathe_[a-z0-9_]+ ?\(' | tr -d ' ('
    done | grep -v '^lathe_register_codegen$' # a library defines it
    awk '/^#define [a-z]/ { print $3 }' "$top/include/lathe/op_names.h"
} | sort -u > declared
nm -D --defined-only "$build/liblathe.so" | awk '{ print $3 }' | sort > shown
check "liblathe.so shows what its headers declare" diff declared shown

# --- libraries from outside: the operator of docs/tutorials/add-an-op.md; a code generator that gives -x for relu(x)
awk '/^```c title="softcap.c"/ { on = 1; next } /^```/ { on = 0 } on' "$top/docs/tutorials/add-an-op.md" > softcap.c
check "the operator library" "$cc" -std=c11 -shared -fPIC -I"$top/include" -I"$top/src" softcap.c -o softcap.so
cat > petal.c << 'END'
#include "lathe/codegen.h"
static bool node(lathe_gen *g, const lathe_node *n)
{
    const char *x = lathe_gen_name(g, lathe_node_input(n, 0)), *y = lathe_gen_name(g, lathe_node_output(n, 0));
    lathe_gen_line(g, "for (int i = 0; i < 4; i++) %s[i] = -%s[i];", y, x);
    return true;
}
bool lathe_register_codegen(lathe_compiler *c, int api)
{
    static const lathe_codegen own = {.api = LATHE_CODEGEN_API, .name = "petal", .node = node};
    return api == LATHE_CODEGEN_API && lathe_register(c, &own);
}
END
check "the code generator" "$cc" -std=c99 -shared -fPIC -I"$top/include" petal.c -o petal.so

# --- a program
cat > use.c << 'END'
#include <lathe/lathe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that the compiler has, too. */
void *arena_alloc(void) { abort(); }
void diag_error(void) { abort(); }
void graph_register_op(void) { abort(); }

static const char text[] = "func @petal_0(%x: f32[4]) [compiler = \"petal\"] { %y = nn.relu(%x) return %y }\n"
                           "func @main(%x: f32[4]) {\n"
                           "  %y = call(%x) {callee = @petal_0}\n"
                           "  %z = demo.softcap(%y) {cap = 2.0}\n"
                           "  return %z\n"
                           "}\n";

int use(void)
{
    float data[4] = {-1, 0, 1, 100};
    int64_t shape[1] = {4};
    const lathe_dltensor x = {.data = data, .device = {1, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = shape};
    const lathe_dltensor *inputs[] = {&x};
    lathe_managed_tensor *y;
    lathe_context *c = lathe_context_new();
    lathe_model *m = NULL;
    lathe_settings *s = NULL;
    lathe_executable *e = NULL;
    const lathe_diagnostic *d;
    int ok = lathe_read_bytes(c, text, strlen(text), "net", &m) == LATHE_DONE &&
             lathe_settings_new(c, "compile", &s) == LATHE_DONE &&
             lathe_set(c, s, "load-ops", "./softcap.so") == LATHE_DONE &&
             lathe_set(c, s, "load-codegen", "./petal.so") == LATHE_DONE && lathe_compile(c, m, s, &e) == LATHE_DONE &&
             lathe_run(c, e, inputs, 1, &y, 1) == LATHE_DONE;
    for (int i = 0; ok && i < 4; i++)
        printf("%.3f%s", ((const float *)y->dl_tensor.data)[i], i < 3 ? " " : "\n");
    for (uint32_t i = 0; !ok && (d = lathe_diagnostic_at(c, i)); i++)
        printf("%s %s\n", d->text, d->hint ? d->hint : "");
    if (ok)
        y->deleter(y);
    lathe_executable_free(e);
    lathe_settings_free(s);
    lathe_model_free(m);
    lathe_context_free(c);
    return !ok;
}
END
echo 'int use(void); int main(void) { return use(); }' > main.c
cat > private.c << 'END'
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    void *library = dlopen("./use.so", RTLD_NOW | RTLD_LOCAL);
    int (*use)(void) = library ? (int (*)(void))dlsym(library, "use") : 0;
    return use ? use() : puts(dlerror());
}
END
flags="-std=c11 -I$top/include -I$top/runtime/vm"
shared="-L$build -llathe -Wl,-rpath,$build"
static="$build/liblathe.a $(pkg-config --libs jansson libffi) -lm -lpthread -ldl"
gives() { ./"$1" > said; cat said; grep -qx "0.924 -0.000 -0.924 -2.000" said; }
# shellcheck disable=SC2086
{
    check "built with liblathe.so" "$cc" $flags -rdynamic main.c use.c -o with_shared $shared
    check "operators and generators with liblathe.so" gives with_shared
    check "a library that uses liblathe.so" "$cc" $flags -shared -fPIC use.c -o use.so $shared
    check "built to load that" "$cc" $flags -D_GNU_SOURCE private.c -o private -ldl
    check "operators and generators with liblathe.so loaded privately" gives private
    check "built with liblathe.a" "$cc" $flags -rdynamic main.c use.c -o with_static $static
    check "operators and generators with liblathe.a" gives with_static
    check "built with liblathe.a that is not shown" "$cc" $flags main.c use.c -o hidden $static
}
check "without -rdynamic it says so" sh -c '! ./hidden > said && grep -q "link it with -rdynamic" said'
finish
