#!/usr/bin/env bash
# Generated C under strict warnings at every level of optimisation, where it has had some: recurrent networks, halves that are
# only read or only written, small dense layers, quantised layers of microcontrollers. test/cli/package.sh does the same for a whole network. Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

# model NAME: its text comes from standard input.
model() { cat > "$1.txt"; models="$models $1"; }
models=
for linear in 0 1; do
    for hidden in 1 3; do
        model gru$linear$hidden << TEXT
func @main(%x: f32[2, 1, 4], %w: f32[1, $((3 * hidden)), 4], %r: f32[1, $((3 * hidden)), $hidden]) {
  %y, %h = gru(%x, %w, %r) {hidden_size = $hidden, linear_before_reset = $linear}
  return %y, %h
}
TEXT
    done
done
for dt in f16 bf16; do
    model read$dt <<< "func @main(%x: $dt[4]) { %y = cast(%x) {dtype = f32} return %y }"
    model write$dt <<< "func @main(%x: f32[4]) { %y = cast(%x) {dtype = $dt} return %y }"
    model both$dt <<< "func @main(%x: $dt[4]) { %y = exp(%x) return %y }"
    model compare$dt <<< "func @main(%x: $dt[4], %z: $dt[4]) { %y = less(%x, %z) return %y }"
done
for shape in "1 1 1" "1 3 2" "1 8 10" "2 5 7" "3 4 33" "4 2 16" "8 10 5"; do
    read -r m k n <<< "$shape"
    model dense${m}_${k}_$n << TEXT
func @main(%x: f32[$m, $k], %w: f32[$k, $n], %b: f32[$n]) {
  %p = nn.matmul(%x, %w)
  %s = add(%p, %b)
  %y = nn.relu(%s)
  return %y
}
TEXT
done
for name in $models; do
    for target in generic x86-64-v3; do
        expect 0 '' compile "$name.txt" -o "$name-$target" --target $target
        march=; [ $target = generic ] || march=-march=$target
        strict="-std=c99 $march -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -I$name-$target/include -I$name-$target/src"
        [ -z "${LATHE_SANITIZE:-}" ] || continue # the compiler is what a sanitizer looks at
        for level in 0 1 2 3; do # some warnings come from the passes that only one level has
            check "$name, $target, gcc -O$level" gcc $strict -O$level -S "$name-$target/src/ops.c" -o /dev/null
        done
        command -v clang-19 > /dev/null || continue # its warnings are all of its front end
        check "$name, $target, clang" clang-19 $strict -fsyntax-only "$name-$target/src/ops.c"
    done
done
# Products that are rounded once, without sums that are: no function stands there that nothing calls.
cat > mean.txt << 'TEXT'
func @main(%x: i8[1, 4, 5, 5]) {
  %a = constant f32[] splat 0.11
  %b = constant f32[] splat 0.03
  %z = constant i8[] splat -3
  %y = qnn.avg_pool2d(%x, %a, %b, %z, %z) {pool_size = [5, 5]}
  return %y
}
TEXT
expect 0 '' compile mean.txt -o mean --target cortex-m
for cc in gcc clang-19; do
    command -v $cc > /dev/null || continue
    check "mean, cortex-m, $cc" $cc -std=c99 -O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -Imean/include -Imean/src \
        -c mean/src/ops.c -o mean.o
done
# Helium chooses and rounds by instructions of its own: what lanes call without them is not left behind.
cat > least.txt << 'TEXT'
placeholder a: float32[8, 8]
placeholder b: float32[8, 8]
compute least: float32[i: 8, j: 8] = min((float32*)a[i, j], (float32*)b[i, j])
return least
--- schedule for cortex-m55
split least.j 4 -> o v
vectorize least.v
TEXT
cat > bytes.txt << 'TEXT'
func @main(%x: f32[1, 8, 8, 8]) {
  %s = constant f32[] splat 0.11
  %z = constant i8[] splat -3
  %y = qnn.quantize(%x, %s, %z)
  return %y
}
TEXT
for name in least bytes; do
    expect 0 '' compile $name.txt -o $name -q --target cortex-m55
    for mve in 0 1 2; do
        command -v clang-19 > /dev/null && [ -d /usr/lib/arm-none-eabi/include ] || continue
        check "$name, Helium $mve" clang-19 --target=arm-none-eabi -isystem /usr/lib/arm-none-eabi/include \
            -mcpu=cortex-m55 -mfloat-abi=hard -DLATHE_MVE=$mve -std=c99 -O1 -Wall -Wextra -Wundef -Werror -I$name/include \
            -I$name/src -c $name/src/ops.c -o lanes.o
    done
done
# Extents that a run decides, maps and labels: the program that runs the package, too.
while read -r name options; do
    # shellcheck disable=SC2086
    expect 0 '' compile "$top/test/golden/onnx/$name.onnx" -o $name -q --target generic $options
    for cc in gcc clang-19; do
        command -v $cc > /dev/null && [ -z "${LATHE_SANITIZE:-}" ] || continue
        check "$name, $cc" sh -c "cd $name/src && $cc -std=c99 -O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror \
            -I../include -I. -c *.c"
    done
done << 'ROWS'
maps --dim words<=8 --dim places<=4
zip_map --dim X_0<=4
run_time_axes
ROWS
# Layers of all kinds in integers, as the compilers of microcontrollers read them, as C and as C++.
strict='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -DTVMRT_NUM_WORKERS=0 -DTVMRT_HOOKS=0'
for type in u8 i8 i16; do python3 "$top/test/cli/network.py" $type > $type.txt; done
# On a host some of them take vectors wider than registers apart: gcc says nothing of how these would be passed.
for type in u8 i16; do
    expect 0 '' compile $type.txt -o host_$type -q --integers --target x86-64-v3
    [ -z "${LATHE_SANITIZE:-}" ] || continue
    check "$type: vectors wider than registers" grep -q 'f64x8 ' host_$type/src/ops.c
    check "$type: the package's build is silent" bash -c '! make -C "$1" lib CC=gcc 2>&1 | grep -E "warning:|note:"' - host_$type
done
headers=/usr/lib/arm-none-eabi/include
while read -r name type options; do
    # shellcheck disable=SC2086
    expect 0 '' compile $type.txt -o "$name" -q --port baremetal --target $options
    [ -z "${LATHE_SANITIZE:-}" ] || continue
    flags="$strict $(sed -n 's/^TARGET_FLAGS ?= //p' "$name/Makefile") -I$name/src -I$name/include"
    files=$(ls "$name"/src/{ops,model_data,tvmrt,tvmrt_port_baremetal,default_lib0,default_lib1}.c)
    for cc in 'arm-none-eabi-gcc -std=c99' 'arm-none-eabi-g++ -std=c++11 -x c++' \
        "clang-19 --target=arm-none-eabi -isystem $headers -std=c99" \
        "clang++-19 --target=arm-none-eabi -isystem $headers -std=c++11 -x c++"; do
        command -v "${cc%% *}" > /dev/null && [ -d $headers ] || continue
        for file in $files; do
            # shellcheck disable=SC2086
            check "$name: ${cc%% *} $file" $cc $flags -O2 -S "$file" -o quantised.s
        done
    done
done << 'ROWS'
m0plus u8 cortex-m0plus
m4 u8 cortex-m4
m4_wide i16 cortex-m4 --minimize ram
m33_fast u8 cortex-m33 --requant fast --minimize ram
m7_tflite i8 cortex-m7 --requant tflite --names short
m55 i8 cortex-m55
m55_wide i16 cortex-m55
ROWS
finish
