#!/usr/bin/env bash
# How much do the tests see? Puts small faults into a copy of the sources, one at a time (scripts/mutate.py), and runs tests.
#     scripts/mutate.sh [--first N] [--count N] [COMMAND...]      faults N, N + 1, ... (from 1, 23 of them)
# COMMAND runs in the copy, its build folder is build; the default is make check. A fault is found when COMMAND fails; the
# first failure that it printed is shown below the fault. One that the compiler refuses is not counted: the next number
# takes its place. A fault that changes nothing that can be seen (a bound that no input reaches) is not told from one
# that the tests miss: the reader of the list has to judge.
# The copy is build/mutate, made anew from the last commit; a log for each fault lies beside it. Its tests end after
# five minutes: a fault may make them run for ever.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -u
cd "$(dirname "$0")/.." || exit 3
first=1 count=23
while [ $# -gt 0 ]; do
    case $1 in
    --first) first=$2; shift 2 ;;
    --count) count=$2; shift 2 ;;
    -*) sed -n 's/^# \{0,1\}//; 2,10p' "$0" >&2; exit 2 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- make check
work=$PWD/build/mutate clean=$PWD/build/mutate/clean copy=$PWD/build/mutate/copy
rm -rf "$clean" "$copy"
mkdir -p "$clean" "$copy/build" "$work/logs"
git archive HEAD | tar -x -C "$clean" -f - || exit 3
echo 300 > "$clean/test/time_limit"
cp -r "$clean/." "$copy"
for environment in venv tvm; do
    [ -d "build/$environment" ] && ln -s "$PWD/build/$environment" "$copy/build/$environment"
done
cd "$copy" || exit 3
unset BUILD MAKEFLAGS
make > "$work/logs/build" 2>&1 || { tail -n 20 "$work/logs/build"; exit 3; }
"$@" > "$work/logs/none" 2>&1 || { tail -n 20 "$work/logs/none"; echo "the tests fail without any fault"; exit 3; }

found=0 missed=0 refused=0 number=$first
while [ $((found + missed)) -lt "$count" ]; do
    fault=$(python3 "$clean/scripts/mutate.py" "$copy" "$number") || exit 3
    file=${fault%%:*}
    if ! make > "$work/logs/$number" 2>&1; then
        refused=$((refused + 1))
    elif "$@" >> "$work/logs/$number" 2>&1; then
        missed=$((missed + 1))
        echo "missed $number $fault"
    else
        found=$((found + 1))
        echo "found  $number $fault"
        printf '    by '
        grep -aEm 1 'FAILED|\*\*\*(Failed|Timeout|Exception)' "$work/logs/$number" || tail -n 1 "$work/logs/$number"
    fi
    cp "$clean/$file" "$copy/$file"
    number=$((number + 1))
done
echo "$found of $count faults found, $missed missed; $refused more did not compile"
[ $missed = 0 ]
