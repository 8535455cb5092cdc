#!/bin/bash
# The sample package on a Cortex-M4: same output as on this machine for the same fixed inputs.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cp -r "$root/test/runtime/sample/." "$work/m4"
cp "$root"/runtime/tvmrt/{tvmrt.h,tvmrt.c,tvmrt_port_baremetal.c,tvmrt_port_common.h} "$work/m4/src"
mv "$work/m4/src/main_baremetal.c" "$work/m4/src/main.c"
rm "$work/m4/src/main_freertos.c"
cp -r "$root/test/runtime/sample/." "$work/host"
cp "$root"/runtime/tvmrt/{tvmrt.h,tvmrt.c,tvmrt_port_posix.c,tvmrt_port_blocking.h,tvmrt_port_common.h} "$work/host/src"

SKIP=77 PORT=baremetal WORKERS=0 "$here/run_m4.sh" "$work/m4" "$work/build" > "$work/m4.out" || { code=$?; cat "$work/m4.out"; exit $code; }
cat "$work/m4.out"
make -s -C "$work/host" > /dev/null || exit 1
"$work/host/runner" > "$work/host.out" || exit 1
grep '^output ' "$work/m4.out" | cmp - "$work/host.out" || { echo "outputs differ"; cat "$work/host.out"; exit 1; }
grep -Eq '^instructions [1-9][0-9]*$' "$work/m4.out" || { echo "no count of instructions"; exit 1; }
if arm-none-eabi-nm -u "$work"/build/package/build/{tvmrt,tvmrt_port_baremetal,default_lib0,default_lib1,model_data,ops}.o |
    grep -E ' (malloc|calloc|realloc|free|aligned_alloc|memalign|alloca|_sbrk)$'; then
    echo "an object refers to an allocator"
    exit 1
fi
