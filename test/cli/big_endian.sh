#!/usr/bin/env bash
# A big-endian machine (s390x in qemu): a package whose constants are C gives what it gives here, files included, but for the
# last digits of that machine's exp; a package whose constants are a little-endian file does not compile and says what to do.
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

# same MODEL: built for both machines, given the same files, it writes the same files, or close ones where it takes exp.
same() {
    local name
    name=$(basename "$1")
    "$lathe" compile "$1" --target generic --constants c -o there && cp -r there here &&
        make -s -C there CC=s390x-linux-gnu-gcc LDFLAGS=-static CFLAGS="-O1 -Wall -Wextra -Werror" && make -s -C here CC="$cc" &&
        ./here/runner -o out-here $inputs > said-here && qemu-s390x ./there/runner -o out-there $inputs > said-there &&
        { cmp said-here said-there && diff -r out-here out-there || close out-here/probabilities.bin out-there/probabilities.bin; }
    status=$?
    rm -rf here there out-here out-there
    return $status
}
head -c 256 "$top/demo/inputs/digits.bin" > picture
inputs=image=picture
check "the demo's network" same "$top/demo/digits.onnx"
inputs=
check "the demo's network on the fixed pattern" same "$top/demo/digits.onnx"
for dt in f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64; do
    case $dt in f16 | bf16) numbers="[1.5, -0.25, 100.0, 3.0]" ;; f*) numbers="[1.5, -0.1, 1e20, 3.0]" ;; u*) numbers="[1, 2, 100, 200]" ;; *) numbers="[1, -2, 100, -3]" ;; esac
    cat > $dt.txt << TEXT
func @main(%x: $dt[4]) {
  %c = constant $dt[4] dense $numbers
  %y = add(%x, %c) : $dt[4]
  %i = cast(%y) {dtype = i32}
  %f = cast(%y) {dtype = f32}
  %h = cast(%f) {dtype = f16}
  %d = cast(%y) {dtype = f64}
  return %y, %i, %h, %d
}
TEXT
    inputs=
    check "$dt" same $dt.txt
    case $dt in *64) size=32 ;; *32) size=16 ;; *16) size=8 ;; *) size=4 ;; esac
    head -c $size "$top/demo/inputs/digits.bin" > some
    inputs=x=some
    check "$dt from a file" same $dt.txt
done
for form in incbin bin; do
    "$lathe" compile "$top/demo/digits.onnx" --target generic --constants $form -o $form
    check "$form says what to do" sh -c "! make -s -C $form CC=s390x-linux-gnu-gcc LDFLAGS=-static > log 2>&1 && grep -q -- '--constants c' log"
done
finish
