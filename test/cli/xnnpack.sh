#!/usr/bin/env bash
# Regions that XNNPACK runs: every operator it takes, alone and together, and whole models, in packages and in modules,
# against the operators' definitions; what it does not take; and a library that gets no memory.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
printf '#include <xnnpack.h>\nint main(void) { return 0; }\n' > "$work/have.c"
if ! cc "$work/have.c" -o "$work/have" -lXNNPACK -lpthreadpool 2> /dev/null; then
    echo "xnnpack.sh: libxnnpack-dev is not installed: skipped"
    exit 77
fi
lathe=$(cd "$(dirname "$lathe")" && pwd)/$(basename "$lathe")
export XDG_CACHE_HOME=$work/cache HOME=$work
# What the library finds out about the processor it never frees, and a module unloads the library.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
cd "$work" || exit 1

# constant NAME SHAPE...: a line of a graph with numbers between -0.5 and 0.5
constant() {
    local name=$1
    shift
    awk -v name="$name" -v shape="$*" 'BEGIN {
        n = split(shape, d, " "); count = 1; seed = length(shape) * 7919 + 17
        for (i = 1; i <= n; i++) { count *= d[i]; dims = dims (i > 1 ? ", " : "") d[i]; seed += d[i] * i * 131 }
        printf "  %%%s = constant f32[%s] dense [", name, dims
        for (i = 0; i < count; i++) {
            seed = (seed * 1103 + 12345) % 65536
            printf "%s%.4f", i ? ", " : "", seed / 65536 - 0.5
        }
        print "]" }'
}
near() { # A.npy B.npy: all floats within 1e-4 of each other, relative or absolute
    paste <(tail -c +129 "$1" | od -An -v -t f4 -w4) <(tail -c +129 "$2" | od -An -v -t f4 -w4) |
        awk '{ d = $1 - $2; d = d < 0 ? -d : d; m = $2 < 0 ? -$2 : $2
               if (!(d <= 1e-4 + 1e-4 * m)) bad++ } END { exit !NR || bad > 0 }'
}
# both NAME MODEL OPTIONS...: package and module give what the definitions say
both() {
    local name=$1 model=$2 output
    shift 2
    expect 0 ': ok' verify "$model" "$@" --against interpreter --rtol 1e-4 --atol 1e-4
    expect 0 '' compile "$model" "$@" --emit module -o "$name.so"
    expect 0 '' run "$name.so" --output-dir "$name.module"
    expect 0 '' run "$model" --interpret --output-dir "$name.oracle"
    for output in "$name.oracle"/*.npy; do
        check "$name: module's $(basename "$output")" near "$name.module/$(basename "$output")" "$output"
    done
}

# --- one region of everything, by hand
{
    cat << 'END'
func @part(%x: f32[2, 3, 9, 11], %w: f32[8, 3, 3, 3], %b: f32[8, 1, 1], %wd: f32[16, 1, 3, 3],
           %wg: f32[8, 4, 3, 2], %m: f32[8, 5], %c: f32[5], %m2: f32[4, 5],
           %k: f32[1, 8, 1, 1]) [compiler = "xnnpack"] {
  %h = nn.conv2d(%x, %w) {strides = [2, 2], pads = [1, 0, 1, 2]}
  %s = add(%h, %b)
  %r = nn.relu(%s)
  %d = nn.conv2d(%r, %wd) {pads = [1, 1, 1, 1], groups = 8}
  %g = nn.conv2d(%d, %wg) {groups = 4, dilations = [2, 1], pads = [2, 1, 2, 0]}
  %low = constant f32[] splat -0.4
  %high = constant f32[] splat 0.9
  %cl = clip(%g, %low, %high)
  %e = add(%cl, %r)
  %t = multiply(%e, %k)
  %p = nn.max_pool2d(%t) {pool_size = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0], ceil_mode = 1}
  %q = nn.avg_pool2d(%e) {pool_size = [3, 3], strides = [1, 2], pads = [1, 1, 1, 1]}
  %u = sigmoid(%q)
  %v = hard_swish(%u)
  %a = mean(%p) {axes = [2, 3]}
  %f = reshape(%a) : f32[2, 8]
  %l = nn.matmul(%f, %m)
  %lc = add(%l, %c)
  %o = nn.matmul(%lc, %m2) {transpose_b = 1}
  %z = nn.softmax(%o)
  return %z, %v, %t, %r
}
func @main(%x: f32[2, 3, 9, 11]) {
END
    constant w 8 3 3 3
    constant b 8 1 1
    constant wd 16 1 3 3
    constant wg 8 4 3 2
    constant m 8 5
    constant c 5
    constant m2 4 5
    constant k 1 8 1 1
    cat << 'END'
  %n = negative(%x)
  %z, %v, %t, %r = call(%n, %w, %b, %wd, %wg, %m, %c, %m2, %k) {callee = @part}
  return %z, %v, %t, %r
}
END
} > all.txt
both all all.txt
{
    echo 'func @main(%x: f32[2, 90]) {'
    constant m 90 7
    constant c 7
    printf '  %%l = nn.matmul(%%x, %%m)\n  %%y = add(%%l, %%c)\n  return %%y\n}\n'
} > bound.txt
both bound bound.txt --offload xnnpack --bind-constants
expect 0 '' compile bound.txt --offload xnnpack --bind-constants -o bound
check "what is bound lies in its code alone" grep -q '"constant_bytes": 0,' bound/report.json
check "who misses the library is told what to install" grep -q \
    '^#error "xnnpack.h is not there: .* the package libxnnpack-dev"' bound/src/xnnpack.c
expect 0 '' compile all.txt -o all --workers 2
check "the region is one function" [ "$(grep -c '^int32_t' all/src/xnnpack.c)" = 1 ]
check "nothing is declined" [ ! -s stderr ]
cat > pool.c << 'END'
#include <stdlib.h>
void *__wrap_pthreadpool_create(size_t n);
void *__wrap_pthreadpool_create(size_t n) { exit(40 + (int)n); }
END
cc -c pool.c -o pool.o
for threads in '' 3; do
    cp -r all "threads$threads"
    check "built for '$threads' threads" make -s -C "threads$threads" \
        CPU="${threads:+-DLATHE_XNNPACK_THREADS=$threads}" \
        LDFLAGS="-Wl,--wrap=pthreadpool_create $work/pool.o"
    "threads$threads/runner" > /dev/null 2>&1
    check "a pool of '$threads' threads is made only where it is asked for" [ $? = $((threads ? 40 + threads : 0)) ]
done
if command -v cmake > /dev/null; then
    check "CMake configures it" cmake -S all -B all.cmake
    check "CMake builds it" cmake --build all.cmake
    check "that runs" all.cmake/runner
fi

# --- models, partitioned
both digits "$top/demo/digits.onnx" --offload xnnpack
for model in vww_float ic_float; do
    file=$(find "${LATHE_ZOO:-$top/../shared}" -name "$model.onnx" 2> /dev/null | head -n 1)
    [ -z "$file" ] || both $model "$file" --offload xnnpack
done
expect 0 'lathe\+xnnpack .*median.*' bench "$top/demo/digits.onnx" --offload xnnpack --against lathe --repeat 1 \
    --workers 1
expect_error 2 'without --offload and --schedules' bench "$top/demo/digits.onnx" --against lathe

# --- what it does not take runs on the CPU, and the compile says why
cat > other.txt << 'END'
func @odd(%x: f32[1, 4]) [compiler = "xnnpack"] {
  %y = tan(%x)
  return %y
}
func @ints(%x: i32[4]) [compiler = "xnnpack"] {
  %y = add(%x, %x)
  return %y
}
func @empty(%x: f32[1, 4]) [compiler = "xnnpack"] {
  %low = constant f32[] splat 0.5
  %y = clip(%x, %low, %low)
  return %y
}
func @deep(%x: f32[1, 1, 1, 1, 1, 1, 1, 1, 2], %k: f32[1, 1, 1, 1, 1, 1, 1, 1, 2]) [compiler = "xnnpack"] {
  %y = add(%x, %k)
  return %y
}
func @main(%x: f32[1, 4], %i: i32[4]) {
  %y = call(%x) {callee = @odd}
  %j = call(%i) {callee = @ints}
  %k = constant f32[1, 1, 1, 1, 1, 1, 1, 1, 2] splat 0.5
  %d = call(%k, %k) {callee = @deep}
  %e = call(%x) {callee = @empty}
  return %y, %j, %d, %e
}
END
expect 0 '@odd runs on the CPU, not on xnnpack: XNNPACK has no tan' compile other.txt -o other
check "nor a clip to one number" grep -q "@empty runs on the CPU.*lower bound" stderr
check "nor of many dimensions" grep -q "@deep runs on the CPU.*more dimensions" stderr
expect 0 '@ints runs on the CPU.*takes f32 tensors' verify other.txt --against interpreter
check "no source is left of it" [ ! -e other/src/xnnpack.c ]
expect_error 2 '--offload xnnpack' compile all.txt --target xnnpack -o never

# --- what would end the library, and the program with it: results that nobody reads, images without pixels
cat > dead.txt << 'END'
func @pair(%x: f32[1, 4, 6, 6]) [composite = "pair"] {
  %a = abs(%x)
  %n = negative(%x)
  return %a, %n
}
func @part(%x: f32[1, 4, 6, 6], %z: f32[1, 4, 6, 6]) [compiler = "xnnpack"] {
  %s = sigmoid(%x)
  %d = subtract(%z, %s)
  %t = hard_swish(%d)
  %a, %n = call(%s) {callee = @pair}
  return %a
}
func @none(%x: f32[1, 4, 0, 6]) [compiler = "xnnpack"] {
  %y = mean(%x) {axes = [2, 3]}
  return %y
}
func @main(%x: f32[1, 4, 6, 6], %z: f32[1, 4, 6, 6], %e: f32[1, 4, 0, 6]) {
  %a = add(%z, %x)
  %s = sigmoid(%a)
  %d = subtract(%z, %s)
  %m = multiply(%s, %z)
  %p = call(%x, %z) {callee = @part}
  %q = call(%e) {callee = @none}
  return %m, %p, %q
}
END
for level in -O0 -O3; do
    expect 0 'm: .*: ok' verify dead.txt --offload xnnpack --offload-least 0 --against interpreter $level
done

# --- no memory
cat > refuse.c << 'END'
#include <stddef.h>
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { (void)n; return NULL; }
END
cc -c refuse.c -o refuse.o
check "building it" make -s -C all LDFLAGS="-Wl,--wrap=malloc $work/refuse.o"
all/runner > said.txt 2>&1
check "a library without memory ends the run" [ $? = 1 ]
check "and says the status and where" grep -q 'status 6' said.txt
finish
