# Shared by the command-line tests: counts, scratch folder, expectations. Sourced, not run.
# SPDX-License-Identifier: Apache-2.0
set -u
unset ARGS MAKEFLAGS MAKEOVERRIDES # of the make that runs the tests
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lathe=${LATHE:-$top/build/lathe}
work=$(mktemp -d) && trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
limit=$(< "$top/test/time_limit") # against hangs
# Of packages: nothing here is measured, and most of the time is the C compiler's. Optimised code is for the tests of
# code generation, and for `make test-long`.
export CFLAGS=-O0
[ -n "${LATHE_SANITIZE:-}" ] || [ "${LATHE_TIER:-}" != long ] || CFLAGS=-O1
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED $*"; }

# expect STATUS PATTERN ARGS...: lathe ARGS ends with STATUS, and what it says matches PATTERN (extended, in one line).
expect() {
    local want=$1 pattern=$2 status
    shift 2
    timeout "$limit" "$lathe" "$@" > "$work/stdout" 2> "$work/stderr" < /dev/null
    status=$?
    if [ $status != "$want" ]; then
        bad "lathe $*: status $status instead of $want: $(head -n 2 "$work/stderr")"
    elif [ -n "$pattern" ] && ! cat "$work/stderr" "$work/stdout" | grep -Eq -- "$pattern"; then
        bad "lathe $*: nothing said about '$pattern': $(head -n 2 "$work/stderr")"
    else
        good
    fi
}

# A bad input: one reason line, and a hint where the test asks for one; no usage dump, no leftovers beside OUT.
expect_error() {
    expect "$@"
    [ "$(grep -c '^error: ' "$work/stderr")" -ge 1 ] || bad "no line 'error: ...' in: $(cat "$work/stderr")"
    [ -z "$(find "$work" -maxdepth 1 -name '*.tmp*')" ] || bad "leftovers: $(ls "$work")"
}

check() { # check TEXT COMMAND...: the command succeeds
    local text=$1
    shift
    if "$@" > "$work/log" 2>&1; then good; else bad "$text: $(tail -n 3 "$work/log")"; fi
}

result_of() { # result_of FILE: the result in a document of --json
    python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["result"], sys.stdout)' "$1"
}

finish() {
    echo "$(basename "$0"): $passed passed, $failed failed"
    [ $failed = 0 ]
    exit
}

# golden_models AREA: the programs of the goldens of that area, as AREA_NAME.txt in the current folder.
golden_models() {
    local case
    for case in "$top/test/golden/$1"/*.case; do
        awk '/^---/ { exit } !/^#/' "$case" > "$1_$(basename "$case" .case).txt"
    done
}

# A 1x1 convolution of bytes between planes of channels, as graph text.
bytes_1x1() {
    cat << TEXT
func @main(%x: i8[1, 32, 16, 16]) {
  %s = constant f32[] dense [0.05]
  %z = constant i8[] dense [0]
  %w = constant i8[32, 32, 1, 1] hex "$(printf '03%.0s' $(seq 1024))"
  %f = qnn.dequantize(%x, %s, %z)
  %g = qnn.dequantize(%w, %s, %z)
  %c = nn.conv2d(%f, %g)
  %y = qnn.quantize(%c, %s, %z)
  return %y
}
TEXT
}

# The six operators of the runtime's example, as graph text: 10 -> 23.
six_operators() {
    cat << 'TEXT'
func @main(%x: f32[1]) {
  %c1 = constant f32[1] dense [1.0]
  %c2 = constant f32[1] dense [2.0]
  %c3 = constant f32[1] dense [3.0]
  %c4 = constant f32[1] dense [4.0]
  %c5 = constant f32[1] dense [5.0]
  %s1 = add(%x, %c1) : f32[1]
  %s2 = subtract(%s1, %c2) : f32[1]
  %s3 = add(%x, %c3) : f32[1]
  %s4 = subtract(%s3, %c4) : f32[1]
  %s5 = add(%s4, %c5) : f32[1]
  %y = add(%s2, %s5) : f32[1]
  return %y
}
TEXT
}

# Two convolutions of 1 x 1, which may lie on planes or on blocks of channels, and one of 3 x 3, which may be Winograd's.
three_convolutions() {
    python3 << 'PY'
import random
random.seed(1)
def conv(result, data, outs, ins, side):
    numbers = ", ".join(f"{random.uniform(-1, 1):.4f}" for _ in range(outs * ins * side * side))
    print(f"""  %w_{result} = constant f32[{outs}, {ins}, {side}, {side}] dense [{numbers}]
  %{result} = nn.conv2d(%{data}, %w_{result}) {{pads = [{", ".join([str(side // 2)] * 4)}]}} : f32[1, {outs}, 28, 28]""")
print("func @main(%x: f32[1, 32, 28, 28]) {")
conv("a", "x", 128, 32, 1)
conv("b", "a", 32, 128, 1)
conv("c", "b", 64, 32, 3)
print("  return %c\n}")
PY
}

# warnings CC FOLDER: every C file of a package under the strict flags; prints what a compiler says.
warnings() {
    local f
    for f in "$2"/src/*.c; do
        "$1" -std=c99 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror ${3:-} \
            -I"$2/src" -I"$2/include" -Wa,-I,"$2/src" -c "$f" -o "$work/o.o" || return 1
    done
}
