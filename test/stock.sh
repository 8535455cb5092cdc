#!/usr/bin/env bash
# Modules and remote devices in both directions between Lathe and Apache TVM: stock.sh [BUILD]. Skipped where build/tvm has no TVM
# (scripts/setup.sh test makes it).
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
build=$(realpath -m "${1:-build}") python=$PWD/build/tvm/bin/python
"$python" -c 'import tvm' > /dev/null 2>&1 || { echo "skipped: no Apache TVM in build/tvm"; exit 77; }
cmake -S . -B "$build/stock" -DLATHE_BINDINGS=ON -DLATHE_TESTS=OFF -DPython3_EXECUTABLE="$python" &&
    cmake --build "$build/stock" --target lathe_ffi || exit 1
export XDG_CACHE_HOME=$build/stock/cache
"$python" test/py/stock.py --lathe "$build/lathe" --vm "$build/runtime/vm/liblathe_vm.so" \
    --ffi "$build/stock/bindings/vm/liblathe_ffi.so" || exit 1
"$python" test/py/rpc.py --lathe "$build/lathe" --ffi "$build/stock/bindings/vm/liblathe_ffi.so"
