#!/usr/bin/env bash
# A big-endian machine (s390x in qemu): a package whose constants are C gives what it gives here, files included, but for the
# last digits of that machine's exp; a package whose constants are a little-endian file does not compile and says what to do.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
for tool in s390x-linux-gnu-gcc qemu-s390x; do
    command -v $tool > /dev/null || { echo "$tool is not here: scripts/setup.sh test installs it"; exit 77; }
done
cd "$work" || exit 3

# close FILE FILE: as float32 numbers.
close() {
    paste <(od -An -v -w4 -tf4 "$1") <(od -An -v -w4 -tf4 "$2") |
        awk '{ d = $1 - $2; if ($1 + 0 != $1 || NF != 2 || d * d > 1e-12) bad = 1 } END { exit bad || NR == 0 }'
}

# built MODEL: packages for both machines, in there and here.
built() {
    rm -rf there here
    "$lathe" compile "$1" --target generic --constants c -o there && cp -r there here &&
        make -s -C there CC=s390x-linux-gnu-gcc LDFLAGS=-static CFLAGS="-O1 -Wall -Wextra -Werror" && make -s -C here CC="$cc"
}

# same INPUT...: given the same files, both write the same files, or close ones where the model takes exp.
same() {
    rm -rf out-here out-there
    ./here/runner -o out-here "$@" > said-here && qemu-s390x ./there/runner -o out-there "$@" > said-there &&
        { cmp said-here said-there && diff -r out-here out-there || close out-here/probabilities.bin out-there/probabilities.bin; }
}
check "the demo's network: it builds" built "$top/demo/digits.onnx"
head -c 256 "$top/demo/inputs/digits.bin" > picture
check "the demo's network" same image=picture
check "the demo's network on the fixed pattern" same

# --- every element type in one model, as input, constant and output, and cast to others
params='' body='' results='' inputs=()
for dt in f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64; do
    case $dt in f16 | bf16) numbers="[1.5, -0.25, 100.0, 3.0]" ;; f*) numbers="[1.5, -0.1, 1e20, 3.0]" ;; u*) numbers="[1, 2, 100, 200]" ;; *) numbers="[1, -2, 100, -3]" ;; esac
    case $dt in *64) size=32 ;; *32) size=16 ;; *16) size=8 ;; *) size=4 ;; esac
    params="$params${params:+, }%x_$dt: $dt[4]"
    body="$body
  %c_$dt = constant $dt[4] dense $numbers
  %y_$dt = add(%x_$dt, %c_$dt) : $dt[4]
  %i_$dt = cast(%y_$dt) {dtype = i32}
  %f_$dt = cast(%y_$dt) {dtype = f32}
  %h_$dt = cast(%f_$dt) {dtype = f16}
  %d_$dt = cast(%y_$dt) {dtype = f64}"
    results="$results${results:+, }%y_$dt, %i_$dt, %h_$dt, %d_$dt"
    head -c $size "$top/demo/inputs/digits.bin" > some_$dt
    inputs+=("x_$dt=some_$dt")
done
echo "func @main($params) {$body
  return $results
}" > types.txt
check "all element types: it builds" built types.txt
check "all element types" same
check "all element types from files" same "${inputs[@]}"
check "48 outputs" sh -c '[ "$(ls out-there | wc -l)" = 48 ]'
for form in incbin bin; do
    "$lathe" compile "$top/demo/digits.onnx" --target generic --constants $form -o $form
    check "$form says what to do" sh -c "! make -s -C $form CC=s390x-linux-gnu-gcc LDFLAGS=-static > log 2>&1 && grep -q -- '--constants c' log"
done
finish
