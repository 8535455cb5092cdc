#!/usr/bin/env bash
# Regions on the accelerator in a static package: the same bytes as the interpreter's, run after run; the package alone
# builds with the simulator, and without it holds no allocator and asks for the board's device.
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

# what is broken
sed 's|"src/vta.c"|"src/../../x.c"|' package/report.json > report && cp report package/report.json
expect_error 1 'report.json.* is broken' run package
expect_error 1 'a module holds no regions of the accelerator' compile "$net" --emit module -o m.so
finish
