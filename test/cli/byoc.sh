#!/usr/bin/env bash
# Code generators from outside the tree: the header alone, and what a generator may do wrong. test/docs.py follows
# docs/how-to/add-a-back-end.md to the letter; its generator and its graph are used here too. Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
lathe=$(cd "$(dirname "$lathe")" && pwd)/$(basename "$lathe")
export LATHE=$lathe LATHE_SOURCE=$top HOME=$work XDG_CACHE_HOME=$work/cache
doc=$top/docs/how-to/add-a-back-end.md
cd "$work" || exit 1

# block INFO: the contents of the fenced block whose info string is INFO
block() {
    awk -v want="\`\`\`$1" '$0 == want {on = 1; next} $0 == "```" {on = 0} on' "$doc"
}
block 'text title="net.txt"' > net.txt
block 'c title="petal_codegen.c"' > petal_codegen.c
check "the page's generator" cc -shared -fPIC -I"$top/include" petal_codegen.c -o petal_codegen.so
check "a module" "$lathe" compile net.txt --load-codegen ./petal_codegen.so --emit module -q -o net.so

# --- the header needs nothing else of the tree, in C and in C++
printf '#include "lathe/codegen.h"\n' > alone.c
check "alone in C" cc -std=c99 -pedantic -Wall -Werror -I"$top/include" -fsyntax-only alone.c
check "alone in C++" g++ -std=c++17 -Wall -Werror -I"$top/include" -x c++ -fsyntax-only alone.c

# --- what a generator may do wrong. generator NAME FIELDS [BODY]: NAME.so with one whose `node` is BODY
generator() {
    cat > "$1.c" << END
#include "lathe/codegen.h"
static bool node(lathe_gen *g, const lathe_node *n) { (void)g; (void)n; ${3:-return true;} }
bool lathe_register_codegen(lathe_compiler *c, int api)
{
    static const lathe_codegen own = {.api = LATHE_CODEGEN_API, .name = "petal", .node = node, $2};
    return api == LATHE_CODEGEN_API && lathe_register(c, &own);
}
END
    cc -w -std=c99 -shared -fPIC -I"$top/include" "$1.c" -o "$1.so" || bad "$1.c"
}
refused() { # STATUS PATTERN NAME FIELDS [BODY]
    generator "$3" "$4" "${5:-}"
    expect_error "$1" "$2" compile net.txt --load-codegen "./$3.so" -o never
    check "nothing is written" [ ! -e never ]
}
refused 2 'is for API 9' api '.api = 9'
refused 2 "cannot be the name of a code generator" name '.name = "../x"'
refused 2 'there is a target' generic '.name = "generic"'
refused 1 'fails at @petal_0 and does not say why' silent '.user = 0' 'return false;'
refused 1 'no luck' error '.user = 0' 'return lathe_gen_error(g, n, "no luck");'
refused 1 'neither .func. nor .node.' empty '.node = 0'
generator declines '.user = 0' 'lathe_gen_declare(g, "#error left over"); return lathe_gen_decline(g, "not today");'
expect 0 '@petal_0 runs on the CPU, not on petal: not today' compile net.txt --load-codegen ./declines.so -o declined
check "nothing is left of it" [ ! -e declined/src/petal.c ]
check "the CPU runs it" make -s -C declined
# tables of one name: each has its own, and its numbers
generator tables '.user = 0' 'const float a[2] = {1, 2}, b[2] = {3, 4};
    const char *x = lathe_gen_table(g, "t", "f32", a, 2), *y = lathe_gen_table(g, "t", "f32", b, 2);
    lathe_gen_line(g, "(void)%s, (void)%s;", x, y); return true;'
expect 0 '' compile net.txt --load-codegen ./tables.so -o tables
check "two tables, two names" [ "$(grep -o 'static const float [a-z_0-9]*' tables/src/petal.c | sort -u | wc -l)" -ge 2 ]
check "the numbers of both" sh -c 'grep -A1 "^static const float" tables/src/petal.c | grep -q "1.0*F, 2.0*F" &&
    grep "^static const float" tables/src/petal.c | grep -q "3.0*F, 4.0*F"'
check "it compiles" cc -std=c99 -Wno-return-type -fsyntax-only tables/src/petal.c
for flags in '-Wl,-z,now' '-L/tmp' '-l' '-l../x' 'petal'; do
    generator flags ".ldflags = \"$flags\""
    expect_error 1 'names libraries by -lNAME alone' compile net.txt --load-codegen ./flags.so --emit module -o never.so
done
generator cflags '.cflags = "-I."'
expect_error 1 'a module cannot hold' compile net.txt --load-codegen ./cflags.so --emit module -o never.so
printf 'int lathe_nothing;\n' > no.c && cc -shared -fPIC no.c -o no.so
expect_error 2 'is not a library of code generators' compile net.txt --load-codegen ./no.so -o never
expect_error 3 'cannot be loaded' compile net.txt --load-codegen ./net.txt -o never
expect_error 1 'cannot be read|no such file|No such file' compile net.txt --load-codegen ./missing.so -o never
expect_error 1 "no code generator for 'petal' is loaded" compile net.txt -o never
# a file of its own that a package has already
generator ops '.user = 0' && sed -i 's/"petal"/"ops"/' ops.c && cc -w -shared -fPIC -I"$top/include" ops.c -o ops.so
sed 's/compiler = "petal"/compiler = "ops"/' net.txt > ops.txt
expect_error 2 'the name of a file of packages' compile ops.txt --load-codegen ./ops.so -o never
# a module whose list of libraries somebody has changed
sed 's/lathe libraries: -lpetal/lathe libraries: -Wpetal/' net.so > wrong.so
expect_error 1 'only -lNAME is known' run wrong.so

finish
