#!/usr/bin/env bash
# Line coverage of src, tools and runtime by what `make check` runs, the runtime's tests and compiles of the official ONNX
# cases: coverage.sh [--write]. A table by folder, the files that are covered least, and build/coverage/lines.html with every
# line; --write puts the table into docs/notes/testing.md. What runs in generated packages is not seen: they are built
# without.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -eu
cd "$(dirname "$0")/.."
build=build/coverage jobs=${JOBS:-$(nproc)} python=$PWD/build/venv/bin/python
export LATHE_PYTHON=$python
mkdir -p $build
step() {
    local log=$build/$1.log
    shift
    "$@" > "$log" 2>&1 < /dev/null || { tail -n 20 "$log"; echo "coverage: $* fails"; exit 1; }
}
step configure cmake -S . -B $build -G Ninja -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=--coverage
step build ninja -C $build -j "$jobs"
find $build -name '*.gcda' -delete
step golden python3 test/golden.py $build/lathe
# Not those that link the VTA library without counters, or look at which symbols its objects need.
step tests ctest --test-dir $build -L '^(unit|vta|cli|long|longest|runtime)$' -E '^vta/(docs|object|replay)$' -j "$jobs" --output-on-failure
step cases "$python" -c '
import subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
sys.path.insert(0, "test/py")
import cases
def compiled(case):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.argv[1], "compile", case.model, "-o", out + "/package"], capture_output=True)
with ThreadPoolExecutor(int(sys.argv[2])) as pool:
    list(pool.map(compiled, cases.find()))
' $build/lathe "$jobs"
step gcovr gcovr --root . --object-directory $build -j "$jobs" --filter src/ --filter tools/ --filter runtime/ \
    --gcov-ignore-parse-errors --json-summary $build/summary.json --html-details $build/lines.html
"$python" scripts/coverage_table.py $build/summary.json "$@"
