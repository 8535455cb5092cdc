#!/usr/bin/env bash
# Regions on the accelerator in a static package: the same bytes as the interpreter's, run after run; the package alone
# builds with the simulator, and without it holds no allocator and asks for the board's device.
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/../cli/lib.bash"
net=$top/test/vta/package/net.txt
cd "$work" || exit 1
bytes() { tail -c 256 "$1"; }

printf '%256s' '' | tr ' ' '\005' > five.bin
for ((i = 0; i < 256; i++)); do printf "\\$(printf %03o $((i * 7 % 11)))"; done > text.bin
for x in five text; do
    expect 0 '' run "$net" --interpret --input "x=$x.bin" --output-dir "want_$x"
    expect 0 '' run "$net" --input "x=$x.bin" --output-dir "got_$x" --keep "kept_$x"
    check "numbers of $x" cmp "want_$x/z.npy" "got_$x/z.npy"
done
check "they differ" bash -c '! cmp -s want_five/z.npy want_text/z.npy'

expect 0 '' compile "$net" -o package
check "operators" test "$(grep -c 'vta_[01]", TVMRT_BACKEND_VTA, g_op' package/src/model_data.c)" = 2
check "make" make -C package -j2 CFLAGS="-O1 -Wall -Wextra -Werror" all lib
check "runner" package/runner x=text.bin
# shellcheck disable=SC2086
check "twice" ${CC:-cc} -Ipackage/include "$top/test/vta/package/twice.c" package/libtvmgen_default.a -lm -lpthread -o twice
./twice text.bin five.bin text.bin > all.bin
cat <(bytes want_text/z.npy) <(bytes want_five/z.npy) <(bytes want_text/z.npy) > want.bin
check "run after run" cmp all.bin want.bin
expect 0 '' run package --input x=five.bin --output-dir again
check "the package alone" cmp again/z.npy want_five/z.npy

# For a board: no simulator, no allocator; what is left undefined is the board's.
expect 0 '' compile "$net" -o board --port baremetal --target generic
check "board" make -C board lib CFLAGS=-Os
nm -u board/libtvmgen_default.a | awk 'NF == 2 { print $2 }' | LC_ALL=C sort -u > undefined
nm board/libtvmgen_default.a | awk '$2 ~ /[TDBRC]/ { print $3 }' | LC_ALL=C sort -u > defined
left=$(comm -23 undefined defined | grep -v -e '^mem' -e '^str' -e _GLOBAL_OFFSET_TABLE_ -e '^__stack' | xargs)
check "the board's: $left" test "$left" = "vta_host_acquire vta_host_release"

# A board whose device reaches none of the program's memory, and has caches.
check "without a host" make -C package lib HOSTED= CFLAGS=-O1
# shellcheck disable=SC2086
check "on the board" ${CC:-cc} -D_XOPEN_SOURCE=700 -Ipackage/include -I"$top/runtime/vta" -I"$top/include/abi" \
    "$top/test/vta/package/twice.c" "$top/test/vta/package/board.c" package/libtvmgen_default.a \
    "$LATHE_BUILD/runtime/vta/libvta.a" -ljansson -lm -lpthread ${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE} -o staged
./staged text.bin five.bin text.bin > staged.bin 2> staged.log
check "numbers of the board" cmp staged.bin want.bin
check "its memory: $(cat staged.log)" grep -qx '1 allocated, flushed, invalidated' staged.log
BOARD_MAPS=2 ./staged text.bin five.bin > mapped.bin 2> mapped.log
check "a device that reaches it no more ends the run" [ $? = 1 ]
check "the first was right" cmp mapped.bin <(bytes want_text/z.npy)

# A network of floats, quantised, given to devices of several shapes.
printf 'func @main(%%x: f32[8, 1, 8, 8]) {\n  %%y = nn.relu(%%x)\n  return %%y\n}\n' > data.txt
expect 0 '' run data.txt --interpret --output-dir data
expect 0 '' quantize "$top/demo/residual.onnx" --data data/y.npy --for vta -o q.onnx
for config in 1x16_i8w8a32_15_15_18_17 2x16_i8w8a32_15_15_18_17 1x32_i8w8a32_15_15_18_17 4x8_i8w8a32_15_16_16_18; do
    expect 0 'logits: max abs 0,' verify q.onnx --offload vta --against interpreter --vta-config $config
done

# what is broken
sed 's|"src/vta.c"|"src/../../x.c"|' package/report.json > report && cp report package/report.json
expect_error 1 'report.json.* is broken' run package
finish
