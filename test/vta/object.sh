#!/usr/bin/env bash
# An object that knows the run-time only by its undefined VTA* symbols links with libvta and runs: statically, and as
# a module loaded after libvta.so. Its undefined symbols are exactly those of the published my_gemm.
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$LATHE_SOURCE"
build=$LATHE_BUILD/runtime/vta
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
flags="-std=c11 -O2 -Wall -Wextra -Werror ${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE}"

wanted='VTADepPop VTADepPush VTALoadBuffer2D VTAPushGEMMOp VTAStoreBuffer2D VTASynchronize VTATLSCommandHandle
VTAUopLoopBegin VTAUopLoopEnd VTAUopPush'
$cc -std=c11 -O2 -Wall -Wextra -Werror -fPIC -c test/vta/object/gemm.c -o "$work/gemm.o"
undefined=$(nm -u "$work/gemm.o" | awk '$NF ~ /^VTA/ { print $NF }' | LC_ALL=C sort | xargs)
[ "$undefined" = "$(xargs <<< "$wanted")" ] || { echo "FAILED undefined symbols: $undefined"; exit 1; }

# shellcheck disable=SC2086
$cc $flags -D_XOPEN_SOURCE=700 -Iruntime/vta -Iinclude/abi test/vta/object/caller.c "$work/gemm.o" "$build/libvta.a" \
    -ljansson -lpthread -lm -o "$work/linked"
"$work/linked"

$cc -shared "$work/gemm.o" -o "$work/gemm.so"
$cc -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -DREVERSED test/vta/object/gemm.c -o "$work/reversed.so"
# shellcheck disable=SC2086
$cc $flags -D_XOPEN_SOURCE=700 -DLOADED test/vta/object/caller.c -ldl -o "$work/loader"
"$work/loader" "$build/libvta.so" "$work/gemm.so" "$work/reversed.so" "$work/gemm.so"
echo "2 passed, 0 failed"
