#!/usr/bin/env bash
# The test tiers, as lists of stages: test.sh check|test|long|asan|tsan|fuzz|fuzz-long|golden-update. What runs when is
# in CONTRIBUTING.md. A new stage is one line of `stages` at the end of this file: the tier, the name, the command.
# A stage is a command; its log lies in build/logs. Its counts are the last "N passed, N failed[, N skipped]" that it
# prints; a stage that prints none counts as one test. The last line of the run is the sum.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
build=${BUILD:-build} jobs=${JOBS:-$(nproc)}
limit=$(< test/time_limit) # against hangs
tier=${1:-}
seconds=${SECONDS_PER_TARGET:-$([ "$tier" = test ] && echo 1 || echo 10)}
chance=${SEED:-$(date +%s)} # of the random tests of `long`, which prints it; the others have fixed seeds
only=${ONLY:-*} # a pattern: the stages that run, besides the builds that they need
python=$PWD/build/venv/bin/python
export LATHE_PYTHON=$python
export LATHE_TIER=$tier
logs=$build/logs
mkdir -p "$logs"
results=$logs/results # a line for each stage: passed, failed, skipped, processor seconds
: > "$results"

# stage NAME COMMAND...: runs it and prints its counts, the processor time of all its processes, and how long it took.
stage() {
    local name=$1 log start status counts used
    shift
    log=$logs/${name//[ \/]/-}.log
    start=$(date +%s)
    TIMEFORMAT='%U %S'
    { time "$@" > "$log" 2>&1 < /dev/null; } 2> "$log.time"
    status=$?
    used=$(awk 'END { printf "%.0f", $1 + $2 }' "$log.time")
    rm -f "$log.time"
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
    echo "$1 $2 $3 $used" >> "$results"
    printf '%-22s %5d passed %4d failed %4d skipped %5d s processor %5d s\n' "$name" "$1" "$2" "$3" "$used" \
        $(($(date +%s) - start))
    if [ "$2" != 0 ]; then
        grep -E 'FAILED|FAIL:|[Ee]rror|ERROR' "$log" | head -n 20
        echo "--- end of $log"
        tail -n 25 "$log"
    fi
    return $status
}

# start COMMAND...: a stage, or a function of several, in the pool: as many at once as there are processors.
start() {
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    "$@" &
}

# includes TIER: does the tier that was asked for include TIER? check is a part of test, and test one of long.
includes() {
    case $tier in
    check) [ "$1" = check ] ;;
    test) [ "$1" != long ] ;;
    *) true ;;
    esac
}

# run TIER NAME COMMAND...: a stage of that tier in the pool. `group` has a function of several stages instead.
run() { if asked "$1" "$2"; then start stage "${@:2}"; fi; }
group() { if asked "$1" "$2"; then start "${@:2}"; fi; }
# shellcheck disable=SC2053 # a pattern it is
asked() { includes "$1" && [[ $2 == $only ]]; }

finish() {
    wait
    awk '{ p += $1; f += $2; s += $3; t += $4 }
         END { printf "processor time %d s\n%d passed, %d failed, %d skipped\n", t, p, f, s; exit f != 0 }' "$results"
    exit
}

# configure_and_build FOLDER COMPILER [CMake options]: what `products` names, by default everything.
configure_and_build() {
    local dir=$1 cc=$2
    shift 2
    # shellcheck disable=SC2086
    cmake -S . -B "$dir" -G Ninja -DCMAKE_C_COMPILER="$cc" "$@" && ninja -C "$dir" -j "$jobs" ${products:-}
}

# labelled FOLDER LABELS: the CTest entries of some tiers (unit|cli), counted. One call a folder at a time.
labelled() {
    ctest --test-dir "$1" -L "^($2)\$" -j "$jobs" --output-on-failure | awk '{ print }
        /Test +#[0-9]+:/ { if (/Passed/) p++; else if (/\*\*\*Skipped/) s++; else f++ }
        END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
    return "${PIPESTATUS[0]}"
}

# fuzz_one TARGET: its corpora replayed, then the time that each target gets.
fuzz_one() {
    local target=$1 name=${1##*/} dir corpora=()
    for dir in "test/fuzz/corpus/$name" "test/fuzz/corpus/${name#fuzz_}"; do
        [ -d "$dir" ] && corpora+=("$dir")
    done
    mkdir -p "$build/fuzz/corpus/$name"
    local options=(-timeout="$limit" -artifact_prefix="$build/fuzz/found/")
    "$target" -runs=0 "${options[@]}" ${corpora[@]+"${corpora[@]}"} \
        && "$target" -max_total_time="$seconds" "${options[@]}" -rss_limit_mb=3072 -print_final_stats=1 \
            "$build/fuzz/corpus/$name" ${corpora[@]+"${corpora[@]}"}
}

fuzz_targets() {
    local good=0 bad=0 target name
    export -f fuzz_one
    export build limit seconds
    mkdir -p "$build/fuzz/found" "$build/fuzz/logs"
    find "$build"/checked/fuzz/fuzz_* -type f -executable \
        | xargs -P "$jobs" -I{} bash -c \
            'f={}; log=$build/fuzz/logs/${f##*/}; fuzz_one "$f" > "$log" 2>&1; echo $? >> "$log"'
    for target in "$build"/checked/fuzz/fuzz_*; do
        name=${target##*/}
        if [ "$(tail -n 1 "$build/fuzz/logs/$name")" = 0 ]; then
            good=$((good + 1))
        else
            bad=$((bad + 1))
            tail -n 40 "$build/fuzz/logs/$name"
            echo "FAILED $name: see $build/fuzz/found and $build/fuzz/logs/$name"
        fi
    done
    echo "$good passed, $bad failed"
    [ $bad = 0 ]
}

# The leak sanitizer for the program of a build without sanitizers: nothing has to be compiled for it.
golden() {
    local leaks
    leaks=$(gcc -print-file-name=liblsan.so)
    python3 test/golden.py -j "$jobs" --preload "$(realpath "$leaks")" "$build/lathe"
}

# One build with clang-19, AddressSanitizer and UBSan: the readers under libFuzzer, and the program for what drives it.
checked_build() {
    products="lathe vmrun fuzz importers" configure_and_build "$build/checked" clang-19 -DLATHE_FUZZ=ON \
        -DLATHE_SANITIZE=address,undefined
}

checked() {
    local dir=$build/checked
    stage "sanitized build" checked_build || return
    stage "sanitized golden" python3 test/golden.py -j "$jobs" "$dir/lathe"
    stage "sanitized modules" "$python" test/py/vm.py --vmrun "$dir/test/vmrun"
    stage importers "$python" test/py/importers.py --importers "$dir/test/importers" -j "$jobs" --count 1000
    stage fuzz fuzz_targets
}

asan_build() {
    configure_and_build "$build/asan" gcc -DLATHE_SANITIZE=address,undefined
}

# Models changed by chance; needs the asan build.
mutants() {
    stage mutants "$python" test/py/mutants.py --mutants "$build/asan/test/mutants" -j "$jobs" "$@"
    stage "importers by chance" "$python" test/py/importers.py --importers "$build/asan/test/importers" -j "$jobs" \
        --count 20000 --seed "$chance"
}

asan() {
    local dir=$build/asan
    stage "asan build" asan_build || return
    stage "asan golden" python3 test/golden.py -j "$jobs" "$dir/lathe"
    stage "asan modules" "$python" test/py/vm.py --vmrun "$dir/test/vmrun"
    stage "asan tests" labelled "$dir" 'unit|vta|vm|cli|long|longest'
}

# A test that fails is no reason to leave out what is hostile.
asan_and_mutants() {
    asan
    [ -x "$build/asan/test/mutants" ] || return
    mutants
    mutants --first "$chance"
}

# A compiler that counts its steps, by clang, which has warnings of its own.
growth() {
    stage "clang build" growth_build && stage growth "$python" test/py/growth.py --lathe "$build/clang/lathe"
}

growth_build() {
    products=lathe configure_and_build "$build/clang" clang-19 -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-g1 \
        -DLATHE_STEPS=ON
}

# Their globals and circles are looked at where they are built.
bindings_and_layers() {
    stage bindings bash bindings/test.sh "$build" && stage "layers of bindings" bash scripts/check_layers.sh "$build"
}

architectures() {
    local with=$build/torch/bin/python
    "$with" -c 'import torch, transformers' || { echo "skipped: no PyTorch in $build/torch"; return 77; }
    "$with" test/py/architectures.py --lathe "$build/lathe"
}

keras_networks() {
    local with=$build/tensorflow/bin/python
    "$with" -c 'import tensorflow' || { echo "skipped: no TensorFlow in $build/tensorflow"; return 77; }
    "$with" test/py/tflite_keras.py --lathe "$build/lathe" --seed "$chance"
}

pages_torch() {
    local with=$build/torch/bin/python
    "$with" -c 'import torch' || { echo "skipped: no PyTorch in $build/torch"; return 77; }
    "$with" test/docs.py --lathe "$build/lathe" docs/tutorials/pytorch.md
}

tsan() {
    stage "tsan build" configure_and_build "$build/tsan" clang-19 -DLATHE_SANITIZE=thread || return
    # test_fork.c starts threads in a child, which the sanitizer ends by default. More cases would find nothing more
    # between threads, and take this sanitizer an hour.
    LATHE_TIER=test TSAN_OPTIONS="die_after_fork=0 suppressions=$PWD/test/thread_suppressions ${TSAN_OPTIONS:-}" stage "tsan tests" labelled "$build/tsan" 'runtime|vta|vm|threads'
}

golden_update() {
    configure_and_build "$build" gcc && python3 test/golden.py --update "$build/lathe" \
        && LATHE_GOLDEN_UPDATE=1 labelled "$build" unit
}

# All stages, the long ones first: what stands at the end of the pool should be short.
stages() {
    local labels='unit|vta|vm|cli'
    includes test && labels="$labels|runtime|embedded|long"
    includes long && labels="$labels|longest"
    # functions of ONNX taken apart into operators that have cases of their own; "official cases" interprets them
    local repeats='*_expanded*'
    includes long && repeats=''
    stage "gcc build" configure_and_build "$build" gcc || return
    run check tests labelled "$build" "$labels"
    group test checked
    run check golden golden
    run check "official cases" "$python" test/py/official.py --library "$build/liblathe.so" -j "$jobs"
    run check modules "$python" test/py/vm.py --vmrun "$build/test/vmrun"
    if [ "$tier" = check ]; then run check headers bash scripts/check_headers.sh c++
    else run test headers bash scripts/check_headers.sh; fi
    run check layers bash scripts/check_layers.sh "$build"
    run check sizes bash scripts/check_sizes.sh
    run check goals "$python" scripts/classical.py --check
    run check words bash scripts/check_words.sh
    run test conformance "$python" test/py/conformance.py --lathe "$build/lathe" -j "$jobs" --skip "$repeats"
    run test "pages, some" "$python" test/docs.py --lathe "$build/lathe" --tier test
    group test growth
    group long asan_and_mutants
    group long tsan
    run long "failing calls" "$python" test/oom/oom.py --lathe "$build/lathe" -j "$jobs"
    run long pages "$python" test/py/pages.py
    run long figures "$python" scripts/figures.py --check --lathe "$build/lathe"
    run test "failing calls, some" "$python" test/oom/oom.py --lathe "$build/lathe" -j "$jobs" \
        --filter 'compile* write *'
    run long models "$python" test/py/models.py --lathe "$build/lathe" -j "$jobs"
    run test "small models" "$python" test/py/models.py --lathe "$build/lathe" -j "$jobs" --filter '[dt]*_*'
    run test "Python package" bash bindings/wheel.sh "$build" test
    run long "Python package, all of it" bash bindings/wheel.sh "$build" long
    group long bindings_and_layers
    run long "modules of TVM" bash test/stock.sh "$build"
    run long operands "$python" test/py/operands.py --lathe "$build/lathe" -j "$jobs"
    run long "open extents" "$python" test/py/dynamic.py --lathe "$build/lathe"
    run long "extents that differ" "$python" test/py/extents.py --lathe "$build/lathe" --first "$chance" -j "$jobs"
    run long architectures architectures
    run long operators "$python" test/py/operators.py --lathe "$build/lathe" \
        --targets interpret,x86-64-v3,qemu-m55
    run test "operators here" "$python" test/py/operators.py --lathe "$build/lathe" --targets interpret,x86-64-v3
    run long "chosen extents" "$python" test/py/chosen.py --lathe "$build/lathe"
    run long grid "$python" test/py/grid.py --lathe "$build/lathe" -j "$jobs"
    run long "kernels without vectors" "$python" test/py/vectors.py --lathe "$build/lathe"
    run long instructions "$python" test/py/instructions.py --lathe "$build/lathe"
    run long "RISC-V registers" "$python" test/py/riscv.py --lathe "$build/lathe" --long
    run test "RISC-V registers, some" "$python" test/py/riscv.py --lathe "$build/lathe"
    run long "forms of kernels" env LATHE_BUILD="$build" bash test/embedded/test_kernels.sh --all
    run long "any order" "$python" test/py/any_order.py --lathe "$build/lathe" --seed "$chance" -j "$jobs"
    run long convolutions "$python" test/py/convolutions.py --lathe "$build/lathe" -j "$jobs"
    run long "recurrent operators" "$python" test/py/recurrent.py --lathe "$build/lathe"
    run long attention "$python" test/py/attention.py --lathe "$build/lathe"
    run test ml "$python" test/py/ml.py --lathe "$build/lathe"
    run long "ml at random" "$python" test/py/ml.py --lathe "$build/lathe" --count 30 --seed "$chance"
    run long "ml on Cortex-M4" "$python" test/py/ml.py --lathe "$build/lathe" --count 1 --targets qemu-m4
    run test sequences "$python" test/py/sequences.py --lathe "$build/lathe" --count 25
    run long "sequences at random" "$python" test/py/sequences.py --lathe "$build/lathe" --count 1000 --seed "$chance"
    run long "sequences as packages" "$python" test/py/sequences.py --lathe "$build/lathe" --count 60 --packages
    run test strings "$python" test/py/strings.py --lathe "$build/lathe"
    run long "strings at random" "$python" test/py/strings.py --lathe "$build/lathe" --count 30 --seed "$chance"
    run test transformers "$python" test/py/transformers.py --lathe "$build/lathe"
    run test domains "$python" test/py/domains.py --lathe "$build/lathe"
    run long "domains as packages" "$python" test/py/domains.py --lathe "$build/lathe" --packages --seed "$chance"
    run test "quantised layers" "$python" test/py/quantised.py --lathe "$build/lathe" --count 1
    run test documents "$python" test/py/documents.py --lathe "$build/lathe"
    run test options "$python" test/py/options.py --lathe "$build/lathe" -j "$jobs"
    run test "quantised networks" "$python" test/py/quantised_networks.py --lathe "$build/lathe" --seeds 20 --networks 5
    run long "quantised networks, 200 inputs" "$python" test/py/quantised_networks.py --lathe "$build/lathe"
    run long "quantised networks by chance" "$python" test/py/quantised_networks.py --lathe "$build/lathe" --seeds 20 \
        --first "$chance"
    run long "quantised networks elsewhere" "$python" test/py/quantised_networks.py --lathe "$build/lathe" --seeds 20 \
        --target qemu-m4
    run long "quantised layers by chance" "$python" test/py/quantised.py --lathe "$build/lathe" --count 4 \
        --seed "$chance"
    run long "quantised layers elsewhere" "$python" test/py/quantised.py --lathe "$build/lathe" --cross --count 8 \
        --seed 300
    run long "quantised layers for AVX2" "$python" test/py/quantised.py --lathe "$build/lathe" --count 1 --seed 70 \
        --target x86-64-v3
    run long "quantised operators" "$python" test/py/contributed.py --lathe "$build/lathe" --count 3
    run test "stored constants" "$python" test/py/stored.py --lathe "$build/lathe"
    run long contraction "$python" test/py/contraction.py --lathe "$build/lathe" --count 1
    run long "values of 16 bits" "$python" test/py/wide.py --lathe "$build/lathe" --count 3
    run long "values of 16 bits elsewhere" "$python" test/py/wide.py --lathe "$build/lathe" --cross --count 2
    run long "weights of 4 bits" "$python" test/py/nibbles.py --lathe "$build/lathe"
    run long "types of 8 bits and less" "$python" test/py/small.py --lathe "$build/lathe" --seed "$chance"
    run long "weights of 4 bits elsewhere" "$python" test/py/nibbles.py --lathe "$build/lathe" --cross --count 1
    run long "sums in integers" "$python" test/py/quantised.py --lathe "$build/lathe" --count 2 --seed 50 \
        --target generic
    run test "TensorFlow Lite's rounding" "$python" test/py/tflite.py --lathe "$build/lathe" --runs 0
    run long "TensorFlow Lite Micro" "$python" test/py/tflite.py --lathe "$build/lathe" --count 0
    run long "TensorFlow Lite Micro elsewhere" "$python" test/py/tflite.py --lathe "$build/lathe" --count 0 --runs 20 \
        --target qemu-m4
    run test "TensorFlow Lite models" "$python" test/py/tflite_models.py --lathe "$build/lathe" --count 2 \
        --target generic --cc "cc -O0" --filter-models int8
    run long "TensorFlow Lite models by chance" "$python" test/py/tflite_models.py --lathe "$build/lathe" --count 200 \
        --runs 1000 --network-runs 5 --seed "$chance"
    run test "TensorFlow Lite networks at random" "$python" test/py/tflite_chains.py --lathe "$build/lathe" --count 2 \
        --target generic
    run long "TensorFlow Lite networks by chance" "$python" test/py/tflite_chains.py --lathe "$build/lathe" \
        --count 250 --seed "$chance"
    run long "networks of Keras" keras_networks
    run test "TensorFlow Lite models with states" "$python" test/py/tflite_states.py --lathe "$build/lathe" --count 2 \
        --target generic --cc "cc -O0"
    for seed in 10 34; do # rows of a batch at once, and sums that saturate
        run test "parts of LSTM layers, $seed" "$python" test/py/tflite_states.py --lathe "$build/lathe" --count 1 \
            --filter lstm_of_parts --seed "$seed" --target generic --cc "cc -O0"
    done
    run long "TensorFlow Lite models with states by chance" "$python" test/py/tflite_states.py --lathe "$build/lathe" \
        --count 100 --seed "$chance"
    run test "networks on VTA" "$python" test/py/vta_networks.py --lathe "$build/lathe" --count 30
    run long "more networks on VTA" "$python" test/py/vta_networks.py --lathe "$build/lathe" --first 30
    run long "models on VTA" "$python" test/py/vta_models.py --lathe "$build/lathe" --package --module
    run long "unbounded modules" "$python" test/py/modules.py --lathe "$build/lathe" -j "$jobs"
    run long branches "$python" test/py/branches.py --lathe "$build/lathe" -j "$jobs"
    run long "other processors" "$python" test/py/cross.py --lathe "$build/lathe"
    run long "modules elsewhere" "$python" test/py/vm.py --for aarch64 riscv64
    run long "one module file" "$python" test/py/portable.py --lathe "$build/lathe"
    run test "stack frames" "$python" test/py/frames.py --lathe "$build/lathe" -j "$jobs"
    run long "stack frames of all" "$python" test/py/frames.py --lathe "$build/lathe" -j "$jobs" --all
    run test "long sums" "$python" test/py/sums.py --lathe "$build/lathe"
    run test functions "$python" test/py/functions.py --lathe "$build/lathe"
    run long "functions of all floats" "$python" test/py/functions.py --lathe "$build/lathe" --step 1
    run test contract "$python" test/py/contract.py --lathe "$build/lathe"
    run test "embedded packages" "$python" test/py/embedded.py --lathe "$build/lathe"
    run long microcontrollers "$python" test/py/microcontrollers.py --lathe "$build/lathe"
    run test "rows streamed" "$python" test/py/streams.py --lathe "$build/lathe" --count 2
    run long "rows streamed by chance" "$python" test/py/streams.py --lathe "$build/lathe" --seed "$chance"
    run long "tuning in parts" "$python" test/py/sweep.py --lathe "$build/lathe"
    run long "pages, all of them" "$python" test/docs.py --lathe "$build/lathe"
    run long "pages, with PyTorch" pages_torch
    run test demo sh demo/run.sh "$build/lathe" "$build/demo"
    run long "demo accuracy" "$python" test/py/accuracy.py --lathe "$build/lathe"
    run long "demo on VTA" "$python" test/py/vta_accuracy.py --lathe "$build/lathe"
}

case $tier in
check | test) stages ;;
long)
    echo "random tests begin with SEED=$chance"
    stages
    ;;
golden-update) stage golden golden_update; grep '^updated' "$logs/golden.log" ;;
asan) asan ;;
tsan) tsan ;;
fuzz) stage "sanitized build" checked_build && stage fuzz fuzz_targets ;;
fuzz-long)
    stage "sanitized build" checked_build && stage "asan build" asan_build || finish
    start stage fuzz fuzz_targets
    start mutants --seconds "$seconds" --first "$chance"
    ;;
*) echo "usage: test.sh check|test|long|asan|tsan|fuzz|fuzz-long|golden-update" >&2; exit 2 ;;
esac
finish
