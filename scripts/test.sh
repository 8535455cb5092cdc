#!/usr/bin/env bash
# The test tiers, as lists of stages: test.sh check|all|asan|tsan|fuzz|golden-update. CONTRIBUTING.md: what runs when.
# A stage is a command; its log lies in build/logs. Its counts are the last "N passed, N failed[, N skipped]" that it
# prints; a stage that prints none counts as one test. The last line of the run is the sum.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
build=${BUILD:-build} jobs=${JOBS:-$(nproc)} seconds=${SECONDS_PER_TARGET:-20}
python=$PWD/build/venv/bin/python
export LATHE_PYTHON=$python
logs=$build/logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0

# stage NAME COMMAND...
stage() {
    local name=$1 log start status counts
    shift
    log=$logs/${name//[ \/]/-}.log
    start=$(date +%s)
    "$@" > "$log" 2>&1 < /dev/null
    status=$?
    counts=$(grep -Eo '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log" | tail -n 1)
    if [ -z "$counts" ]; then
        case $status in
        0) counts='1 passed, 0 failed' ;;
        77) counts='0 passed, 0 failed, 1 skipped' ;;
        *) counts='0 passed, 1 failed' ;;
        esac
    fi
    set -- ${counts//[^0-9 ]/ } 0
    [ $status = 0 ] || [ $status = 77 ] || [ "$2" != 0 ] || set -- "$1" 1 "$3" # it failed outside of its own count
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    printf '%-22s %5d passed %4d failed %4d skipped %5d s\n' "$name" "$1" "$2" "$3" $(($(date +%s) - start))
    if [ "$2" != 0 ]; then
        grep -E 'FAILED|FAIL:|[Ee]rror|ERROR' "$log" | head -n 20
        echo "--- end of $log"
        tail -n 25 "$log"
    fi
    return $status
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}

# configure_and_build FOLDER COMPILER [CMake options]
configure_and_build() {
    local dir=$1 cc=$2
    shift 2
    cmake -S . -B "$dir" -G Ninja -DCMAKE_C_COMPILER="$cc" "$@" && ninja -C "$dir" -j "$jobs"
}

# labelled FOLDER LABEL: the CTest entries of one tier, counted.
labelled() {
    ctest --test-dir "$1" -L "^$2\$" -j "$jobs" --output-on-failure | tee "$logs/ctest.tmp"
    local status=${PIPESTATUS[0]}
    awk '/Test +#[0-9]+:/ { if (/Passed/) p++; else if (/\*\*\*Skipped/) s++; else f++ }
         END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$logs/ctest.tmp"
    return "$status"
}

checks() {
    stage layers bash scripts/check_layers.sh "$build"
    stage sizes bash scripts/check_sizes.sh
    stage headers bash scripts/check_headers.sh
}

fuzz_targets() {
    configure_and_build "$build/fuzz" clang-19 -DLATHE_FUZZ=ON -DLATHE_SANITIZE=address,undefined || return
    local good=0 bad=0 target name corpora
    mkdir -p "$build/fuzz/found"
    for target in "$build"/fuzz/fuzz/fuzz_*; do
        [ -x "$target" ] || continue
        name=${target##*/} corpora=()
        for dir in "test/fuzz/corpus/$name" "test/fuzz/corpus/${name#fuzz_}"; do
            [ -d "$dir" ] && corpora+=("$dir")
        done
        mkdir -p "$build/fuzz/corpus/$name"
        if "$target" -runs=0 -timeout=20 ${corpora[@]+"${corpora[@]}"} \
            && "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 -print_final_stats=1 \
                -artifact_prefix="$build/fuzz/found/" "$build/fuzz/corpus/$name" ${corpora[@]+"${corpora[@]}"}; then
            good=$((good + 1))
        else
            bad=$((bad + 1))
            echo "FAILED $name: see $build/fuzz/found"
        fi
    done
    echo "$good passed, $bad failed"
    [ $bad = 0 ]
}

asan() {
    local dir=$build/asan
    stage "asan build" configure_and_build "$dir" gcc -DLATHE_SANITIZE=address,undefined || return
    stage "asan unit" labelled "$dir" unit
    stage "asan vta" labelled "$dir" vta
    stage "asan golden" bash test/run.sh "$dir/lathe"
    stage "asan cli" labelled "$dir" cli
}

tsan() {
    stage "tsan build" configure_and_build "$build/tsan" clang-19 -DLATHE_SANITIZE=thread || return
    stage "tsan runtime" labelled "$build/tsan" runtime
    stage "tsan vta" labelled "$build/tsan" vta
}

daily() {
    stage "gcc build" configure_and_build "$build" gcc || finish
    checks
    stage golden bash test/run.sh "$build/lathe"
    stage unit labelled "$build" unit
    stage vta labelled "$build" vta
    stage cli labelled "$build" cli
}

golden_update() {
    configure_and_build "$build" gcc && bash test/run.sh --update "$build/lathe" \
        && LATHE_GOLDEN_UPDATE=1 labelled "$build" unit
}

case "${1:-}" in
check) daily ;;
golden-update) stage golden golden_update; grep '^updated' "$logs/golden.log" ;;
asan) asan ;;
tsan) tsan ;;
fuzz) stage fuzz fuzz_targets ;;
all)
    daily
    stage "clang build" configure_and_build "$build/clang" clang-19
    asan
    stage runtime labelled "$build" runtime
    stage embedded labelled "$build" embedded
    stage "embedded packages" "$python" test/py/embedded.py --lathe "$build/lathe"
    stage fuzz fuzz_targets
    stage demo sh demo/run.sh "$build/lathe" "$build/demo"
    stage "demo accuracy" "$python" test/py/accuracy.py --lathe "$build/lathe"
    stage bindings bash bindings/test.sh "$build"
    stage "other processors" "$python" test/py/cross.py --lathe "$build/lathe"
    stage contract "$python" test/py/contract.py --lathe "$build/lathe"
    stage convolutions "$python" test/py/convolutions.py --lathe "$build/lathe" -j "$jobs"
    stage models "$python" test/py/models.py --lathe "$build/lathe" -j "$jobs"
    stage conformance "$python" test/py/conformance.py --lathe "$build/lathe" -j "$jobs"
    ;;
*) echo "usage: test.sh check|all|asan|tsan|fuzz|golden-update" >&2; exit 2 ;;
esac
finish
