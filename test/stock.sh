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
# The VTA in TVM's own device table, whose classes are C++: compiled against the headers of that TVM.
packages=$("$python" -c 'import os, tvm; print(os.path.dirname(os.path.dirname(tvm.__file__)))')
c++ -std=c++17 -O1 -Wall -Wextra -fPIC -shared -isystem "$packages/tvm/include" -isystem "$packages/tvm_ffi/include" \
    -Iruntime/vta -Iinclude/abi bindings/tvm/ext_dev.cc -o "$build/stock/ext_dev.so" \
    -L"$build/runtime/vta" -lvta -Wl,-rpath,"$build/runtime/vta" -L"$packages/tvm/lib" -ltvm_runtime \
    -L"$packages/tvm_ffi/lib" -ltvm_ffi || exit 1
"$python" test/py/rpc.py --lathe "$build/lathe" --ffi "$build/stock/bindings/vm/liblathe_ffi.so" \
    --ext-dev "$build/stock/ext_dev.so"
