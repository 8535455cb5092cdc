#!/usr/bin/env bash
# Tests of the tvm-ffi bindings as their users meet them: test.sh [BUILD]. For the oldest and the newest tvm-ffi that is
# allowed: an environment of its own, `pip install ./bindings/python`, the Python tests, the examples in Python, C++ and C.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
top=$PWD build=$(realpath -m "${1:-build}")/bindings
LATHE=$(realpath -m "${1:-build}")/lathe
export LATHE XDG_CACHE_HOME=$build/cache
log=$build/log
mkdir -p "$build"
. bindings/lib.bash

# The libraries and the header under a prefix, by CMake alone.
installed() {
    local python=$1 prefix=$build/prefix
    rm -rf "$prefix"
    cmake -S . -B "$build/cmake" -DLATHE_BINDINGS=ON -DLATHE_TESTS=OFF -DPython3_EXECUTABLE="$python" &&
        cmake --build "$build/cmake" --target vta_ffi --target lathe_ffi &&
        cmake --install "$build/cmake" --component vta_ffi --prefix "$prefix" &&
        cmake --install "$build/cmake" --component lathe_ffi --prefix "$prefix" &&
        find "$prefix" -name liblathe_ffi.so | grep -q . && find "$prefix" -name vta_ffi.h | grep -q lathe/vta &&
        "$build/newest/caller_c" "$(find "$prefix" -name libvta_ffi.so)"
}

environment() {
    local dir=$1 version=$2
    [ "$(cat "$dir/ready" 2> /dev/null)" = "$version" ] && return
    rm -rf "$dir"
    python3 -m venv "$dir" && "$dir/bin/pip" install -q --disable-pip-version-check numpy onnx pytest "$version" &&
        echo "$version" > "$dir/ready"
}

examples() {
    local dir=$1 python=$1/bin/python config="$1/bin/python -m tvm_ffi.config" lib
    lib=$(cd "$dir" && "$python" -c 'import vta_ffi; print(vta_ffi.library_path())')
    check "$2 load_2d.py" sh -c "cd $dir && $python $top/bindings/examples/load_2d.py | grep '12 13 14 15'"
    check "$2 load_module.py" sh -c "cd $dir && $python $top/bindings/examples/load_module.py | grep 'has load_2d: True'"
    check "$2 caller.c builds" sh -c "cc -std=c11 bindings/examples/caller.c \$($config --cflags --ldflags --libs) \
        -Wl,-rpath,\$($config --libdir) -o $dir/caller_c"
    check "$2 caller.c" "$dir/caller_c" "$lib"
    check "$2 caller.cc builds" sh -c "c++ -std=c++17 bindings/examples/caller.cc \$($config --cxxflags --ldflags --libs) \
        -Wl,-rpath,\$($config --libdir) -o $dir/caller_cc"
    check "$2 caller.cc" "$dir/caller_cc" "$lib"
    check "$2 without_tvm_ffi.c builds" sh -c "cc bindings/examples/without_tvm_ffi.c \$($config --cflags) -ldl \
        -o $dir/without_tvm_ffi"
    check "$2 without_tvm_ffi.c" "$dir/without_tvm_ffi" "$lib"
    check "$2 views.c builds" sh -c "cc -std=c11 bindings/python/tests/views.c \$($config --cflags --ldflags --libs) \
        -Wl,-rpath,\$($config --libdir) -o $dir/views"
    check "$2 views.c" "$dir/views" "$lib"
    check "$2 header in C++" sh -c "echo '#include \"vta_ffi.h\"' | c++ -std=c++17 -fsyntax-only -Ibindings/ffi -x c++ -"
}

for row in "oldest apache-tvm-ffi==0.1.9" "newest $allowed"; do
    name=${row%% *} version=${row#* } dir=$build/$name
    check "$name environment" environment "$dir" "$version"
    check "$name pip install" "$dir/bin/pip" install -q --disable-pip-version-check ./bindings/python \
        -C cmake.define.LATHE_BUILD="$(dirname "$build")"
    python_tests "$dir" "$top/bindings/python/tests"
    examples "$dir" "$name"
done
check "CMake install" installed "$build/newest/bin/python"
finish
