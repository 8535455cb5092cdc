#!/usr/bin/env bash
# Inputs and outputs whose names mean something in C: the package builds without warnings all the same.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
cd "$work" || exit 3
cat > names.txt << 'TEXT'
func @main(%int64_t: f32[4], %uint32_t: f32[4], %expf: f32[4], %INT32_MAX: f32[4], %lathe_max_f32: f32[4],
           %f32x8: f32[4], %part: f32[4], %while: f32[4]) {
  %a = add(%int64_t, %uint32_t)
  %b = exp(%expf)
  %c = maximum(%b, %INT32_MAX)
  %d = maximum(%c, %lathe_max_f32)
  %e = nn.softmax(%f32x8)
  %f = add(%part, %while)
  %g = add(%a, %d)
  %h = add(%e, %f)
  %printf = add(%g, %h)
  return %printf
}
TEXT
# --- every word of C23 and C++23, and the macros that a program is likely to have included
words='alignas alignof auto bool break case char const constexpr continue default do double else enum extern false float for goto
if inline int long nullptr register restrict return short signed sizeof static static_assert struct switch thread_local true
typedef typeof typeof_unqual union unsigned void volatile while _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal128
_Decimal32 _Decimal64 _Generic _Imaginary _Noreturn _Static_assert _Thread_local asm fortran __asm__ __attribute__ and and_eq
bitand bitor catch char8_t char16_t char32_t class compl concept consteval constinit const_cast co_await co_return co_yield
decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private
protected public reinterpret_cast requires static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
final override import module atomic_cancel atomic_commit atomic_noexcept reflexpr synchronized
NULL EOF NAN INFINITY HUGE_VAL errno assert stdin stdout stderr isnan isinf isfinite isnormal signbit isgreater isless
islessgreater isunordered fpclassify unix linux i386 complex imaginary I noreturn offsetof math_errhandling signgam setjmp
va_arg va_start va_end va_copy INT8_C SIZE_MAX EXIT_SUCCESS RAND_MAX BUFSIZ SEEK_SET CHAR_BIT M_PI putc getc toupper atomic_init
size_t int8_t FILE pow expf memcpy strlen printf malloc abs index y0 st_mtime major minor args main'
headers='assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool stddef
stdint stdio stdlib stdnoreturn string tgmath threads time wchar wctype unistd fcntl pthread sys/types sys/stat sys/time'
for kind in in out; do
    set -- $words
    {
        echo "func @main("
        [ $kind = out ] && echo "%some: f32[2]"
        [ $kind = in ] && printf '%%"%s": f32[2],\n' "$@" | sed '$ s/,$//'
        echo ") {"
        sum='%"alignas"'
        for w in "${@:2}"; do
            [ $kind = in ] && echo "  %\"sum $w\" = add($sum, %\"$w\")" && sum="%\"sum $w\""
        done
        n=0
        for w in "$@"; do
            [ $kind = out ] && n=$((n + 1)) &&
                printf '  %%"c %s" = constant f32[2] dense [%d.0, 1.0]\n  %%"%s" = add(%%some, %%"c %s")\n' "$w" $n "$w" "$w"
        done
        [ $kind = in ] && echo "  return $sum"
        [ $kind = out ] && echo "  return $(printf '%%"%s", ' "$@" | sed 's/, $//')"
        echo "}"
    } > words.txt
    expect 0 '' compile words.txt -o words-$kind --target generic
    check "words as ${kind}puts: the package builds" make -s -C words-$kind CC="$cc" CFLAGS="-O0 -Wall -Wextra -Wshadow -Werror"
    check "words as ${kind}puts: it runs" ./words-$kind/runner
    rm -f user.c && for h in $headers; do echo "#include <$h.h>" >> user.c; done
    { cat user.c && echo '#include "tvmgen_default.h"' && echo '#include "tvmgen_default_instance.h"'
        echo 'int main(void) { return 0; }'; } > user2.c && mv user2.c user.c
    sed -e '/stdatomic/d' -e '/threads/d' -e '/tgmath/d' -e '/complex/d' -e '/stdalign/d' -e '/stdbool/d' user.c > user.cc
    for std in c99 gnu99 c11 gnu11 gnu2x; do
        check "words as ${kind}puts: $std" "$cc" -std=$std -Wall -Wextra -Werror -Iwords-$kind/include -fsyntax-only user.c
    done
    for cxx in g++ clang++-19; do
        command -v $cxx > /dev/null || continue
        for std in c++11 gnu++17 gnu++20 c++2b; do
            check "words as ${kind}puts: $cxx $std" $cxx -std=$std -Wall -Wextra -Werror -Iwords-$kind/include -fsyntax-only user.cc
        done
    done
done

# --- characters that command a terminal or an editor: a title for the window, text that turns round, a new line
bad=$(printf '\033]0;x\007\302\233A\342\200\256evil\342\201\246\012end\177')
cat > bad.txt << 'TEXT'
func @main(%"in\033]0;x\007\302\233A\342\200\256evil\342\201\246\nend\177": f32[4]) {
  %"out\033]0;x\007\302\233A\342\200\256evil\342\201\246\nend\177" = exp(%"in\033]0;x\007\302\233A\342\200\256evil\342\201\246\nend\177")
  return %"out\033]0;x\007\302\233A\342\200\256evil\342\201\246\nend\177"
}
TEXT
# tame FILE...: none of them holds such characters.
tame() { ! LC_ALL=C grep -alP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]' "$@"; }
expect 0 '' compile bad.txt -o bad
check "commands in names: files" tame bad/src/* bad/include/* bad/report.json bad/Makefile bad/CMakeLists.txt
check "commands in names: it builds" make -s -C bad CC="$cc" CFLAGS="-O1 -Wall -Wextra -Werror"
head -c 16 /dev/zero > zeros
check "an input by its exact name" ./bad/runner "in$bad=zeros"
./bad/runner "in$bad=zeros" > said-runner
./bad/runner --help > said-usage
for verb in run inspect 'inspect --json' 'run --json' opt 'compile --emit graph' 'compile --emit tir'; do
    "$lathe" ${verb%% *} bad.txt $(echo "$verb" | sed 's/^[a-z]* *//') > "said-${verb// /}" 2>&1 || bad "$verb on such names"
done
"$lathe" inspect bad.txt --html page.html > said-html
sed '/<!-- dagre/,/<\/script>/d' page.html > said.html # the library holds control characters
"$lathe" run bad.txt --input 'nosuch=zeros' > said-error 2>&1
sed 's/return .*/return %nosuch/' bad.txt > worse.txt
"$lathe" inspect worse.txt > said-worse 2>&1
check "commands in names: what is printed" tame said*
check "a program says the name all the same" grep -q '^out?\]0;x??A?evil? end?: float32' said-runner

for level in 0 2; do
    expect 0 '' compile names.txt -O$level -o names$level
    check "names at -O$level" make -s -C names$level CC="$cc" CFLAGS="-O1 -Wall -Wextra -Wshadow -Wconversion -Werror"
    check "they run" ./names$level/runner
    check "fields of the public struct" grep -q 'const [a-z0-9_]* \*v_INT32_MAX;' names$level/include/tvmgen_default.h
done
# --- the library without main.c; stack figures; a microcontroller's package starts without threads
check "make lib" make -s -C names2 lib CC="$cc"
check "the library has no main" sh -c '! nm names2/libtvmgen_default.a | grep -q " T main$"'
check "stack figures in the header" grep -q 'TVMGEN_DEFAULT_KERNEL_STACK_BYTES' names2/include/tvmgen_default.h
check "stack figures in the report" grep -q '"stack_bytes"' names2/report.json
expect 0 '' compile names.txt --target cortex-m --port baremetal -o bare
check "no threads on bare metal" grep -q '^WORKERS ?= 0$' bare/Makefile
# --- the runner's help, and outputs whose file names are the same
check "runner --help" sh -c './names2/runner --help | grep -q "int64_t float32 .4., 16 bytes"'
check "an unknown argument names the inputs" sh -c './names2/runner bogus 2>&1 | grep -q "^usage: runner"'
cat > twice.txt << 'TEXT'
func @main(%x: f32[4]) {
  %a.b = exp(%x)
  %A.b = add(%x, %x)
  return %a.b, %A.b
}
TEXT
expect 0 '' compile twice.txt -o twice
check "it builds" make -s -C twice CC="$cc"
check "two outputs, two files" sh -c './twice/runner -o out && test -s out/a.b.bin && test -s out/A.b_1.bin'
cat > same.txt << 'TEXT'
func @main(%x: f32[4]) {
  %k = constant f32[4] dense [1.0, 2.0, 3.0, 4.0]
  %y = exp(%x)
  return %x, %k, %y
}
TEXT
expect 0 '' compile same.txt -o same
check "an output that is an input keeps its name" make -s -C same CC="$cc"
check "and so does one that is a constant" sh -c './same/runner -o kept && cd kept && test -s x.bin && test -s k.bin'
# Registers of a tile, conv_0 and up, and the end of a share, part_end, are names too: values of the model that are
# called so keep their own.
numbers() { seq "$1" | awk '{ printf "%s%.3f", (NR > 1 ? ", " : ""), sin($1) + 0.0001 }'; }
cat > registers.graph << END
func @main(%x: f32[1, 16, 8, 8], %part_end: f32[64, 64], %part: f32[64, 64]) {
  %a = constant f32[16, 16, 3, 3] dense [$(numbers 2304)]
  %b = constant f32[32, 16, 3, 3] dense [$(numbers 4608)]
  %conv_1 = nn.conv2d(%x, %a) {pads = [1, 1, 1, 1]}
  %c = nn.conv2d(%conv_1, %b) {pads = [1, 1, 1, 1]}
  %y = nn.relu(%c)
  %s = add(%part_end, %part)
  %t = nn.softmax(%s)
  return %y, %t
}
END
expect 0 '^y: .*: ok$' verify registers.graph --against interpreter --no-winograd --atol 1e-3
finish
