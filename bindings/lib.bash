# Shared by test.sh and wheel.sh: counts, and the versions of tvm-ffi that the packages allow. Sourced, not run, at the top
# of the tree; `log` names the file that takes what a check prints.
# SPDX-License-Identifier: Apache-2.0
passed=0 failed=0 skipped=0
allowed=$(sed -n 's/^dependencies = .*"\(apache-tvm-ffi[^"]*\)".*/\1/p' bindings/python/pyproject.toml)
[ -n "$allowed" ] || { echo "bindings/python/pyproject.toml names no apache-tvm-ffi" >&2; exit 3; }

# check NAME COMMAND...
check() {
    local name=$1
    shift
    if "$@" > "$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        tail -n 40 "$log"
    fi
}

# python_tests ENVIRONMENT TESTS: in that environment, away from the sources; pytest's counts are added to ours.
python_tests() {
    local counts
    (cd "$1" && bin/python -m pytest -q -p no:cacheprovider "$2") > "$log" 2>&1
    counts=$(grep -Eo '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$log")
    set -- ${counts//[^0-9 ]/ }
    [ $# = 3 ] || set -- 0 1 0
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    [ "$2" = 0 ] || tail -n 60 "$log"
}

# finish: the sum, and the script's exit status
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
