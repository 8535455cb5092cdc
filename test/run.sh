#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The golden runner: every test/golden/**/*.case is text in, text out.
#     test/run.sh [--update] [LATHE] [CASE]...        LATHE defaults to build/lathe, CASE to all of them
# A case, from top to bottom:
#     # run: ARGS      arguments for lathe; several lines run in turn, their output is joined, the first failure ends it
#     # exit: N        the exit status that is expected (0 when the line is absent)
#     # ...            any other leading line with # is a remark
#     INPUT            the text that %i names as a file
#     --- schedule     optional: then the text that %s names as a file
#     ---              then what stdout must be
#     --- stderr       optional: then what stderr must be
# In ARGS, %i and %s are these files, %d the folder of the case, %t a fresh empty folder; in the output these paths are
# written back as %i, %s, %d, %t. --update rewrites the expected parts (never the exit status): review the difference like code.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
update=0
if [ "${1:-}" = --update ]; then update=1; shift; fi
lathe=$(realpath -m "${1:-$top/build/lathe}")
[ $# -gt 0 ] && shift
[ -x "$lathe" ] || { echo "golden: no compiler at $lathe; run make first" >&2; exit 3; }
mapfile -t cases < <(find "$top/test/golden" -name '*.case' 2> /dev/null | LC_ALL=C sort)
[ $# -gt 0 ] && cases=("$@")
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export NO_COLOR=1 LC_ALL=C
limit=$(< "$top/test/time_limit") # against hangs

# Cuts $1 into $work/{run,exit,head,input,want.out,want.err}.
split() {
    rm -rf "$work"/* && mkdir "$work/tmp" && (cd "$work" && : > run && : > head && : > input && : > want.out)
    awk -v w="$work" '
        BEGIN { part = "head" }
        part == "head" && /^# run: /  { print substr($0, 8) > (w "/run") }
        part == "head" && /^# exit: / { print substr($0, 9) > (w "/exit") }
        part == "head" && !/^#/       { part = "input" }
        part == "input" && /^--- schedule$/ { part = "schedule"; printf "" > (w "/schedule"); next }
        part != "want.err" && /^---$/ { part = "want.out"; next }
        part != "want.err" && /^--- stderr$/ { part = "want.err"; printf "" > (w "/want.err"); next }
        { print > (w "/" part) }' "$1"
}

# Runs the lines of $work/run; leaves got.out and got.err, returns the last exit status.
execute() {
    local dir=$1 status=0 line
    : > "$work/got.out" && : > "$work/got.err"
    while IFS= read -r line; do
        line=${line//%i/$work/input} line=${line//%s/$work/schedule} line=${line//%d/$dir} line=${line//%t/$work/tmp}
        eval "timeout $limit \"\$lathe\" $line" >> "$work/got.out" 2>> "$work/got.err" < "$work/input"
        status=$?
        [ $status -eq 0 ] || break
    done < "$work/run"
    sed -i -e "s|$work/input|%i|g" -e "s|$work/schedule|%s|g" -e "s|$work/tmp|%t|g" -e "s|$dir|%d|g" "$work/got.out" "$work/got.err"
    return $status
}

passed=0 failed=0 updated=0
for case in ${cases[@]+"${cases[@]}"}; do
    split "$case"
    execute "$(cd "$(dirname "$case")" && pwd)"
    status=$? why=
    [ -s "$work/run" ] || why="it has no '# run: ' line"
    want=0; [ -f "$work/exit" ] && read -r want < "$work/exit"
    [ "$status" = "$want" ] || why="exit status $status instead of $want: $(head -n 3 "$work/got.err")"
    if [ -z "$why" ] && [ $update = 1 ]; then
        { cat "$work/head" "$work/input"
          if [ -f "$work/schedule" ]; then echo "--- schedule"; cat "$work/schedule"; fi; echo ---; cat "$work/got.out"
          if [ -f "$work/want.err" ]; then echo "--- stderr"; cat "$work/got.err"; fi; } > "$work/new"
        if ! cmp -s "$work/new" "$case"; then
            cat "$work/new" > "$case"
            updated=$((updated + 1))
            echo "updated ${case#"$top"/}"
        fi
    elif [ -z "$why" ]; then
        diff -u --label expected --label actual "$work/want.out" "$work/got.out" > "$work/diff" || why="stdout differs"
        if [ -f "$work/want.err" ]; then
            diff -u --label expected-stderr --label actual-stderr "$work/want.err" "$work/got.err" >> "$work/diff" \
                || why="${why:-stderr differs}"
        fi
    fi
    if [ -z "$why" ]; then passed=$((passed + 1)); continue; fi
    failed=$((failed + 1))
    echo "FAILED ${case#"$top"/}: $why"
    [ -f "$work/diff" ] && head -n 40 "$work/diff"
done
[ $update = 1 ] && echo "golden: $updated updated"
echo "golden: $passed passed, $failed failed"
[ $failed = 0 ]
