#!/usr/bin/env bash
# Runs that are stopped: at every step of writing a package the old one or the new one is whole; a child that ends early
# or says too little is an error. Not in `make check`; signals.sh is, which stops runs while a C compiler works.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
export CC="${CC:-cc}" TMPDIR="$work/tmp"
mkdir tmp
six_operators > six.txt

# script NAME: standard input becomes a program
script() { cat > "$1" && chmod +x "$1"; }
no_leftovers() { check "$1: nothing is left" test -z "$(ls -A tmp; ls -d ./*.tmp* 2> /dev/null)"; }

# --- what is said instead of an answer
python() {
    script python
    LATHE_PYTHON=./python expect_error 3 "$1" bench six.txt --against onnxruntime --repeat 2
    no_leftovers "$1"
}
python 'onnxruntime ended before it gave a time' << 'SH'
#!/bin/sh
exec <&-
echo ready
SH
python "gave 'soon' instead of a time" << 'SH'
#!/bin/sh
echo ready
read n && echo soon
SH
for word in failed missing fail '' 'failed\c' 'missing\c'; do
    python "ended with status 0 and said '${word%\\c}'" << SH
#!/bin/sh
echo '$word'
SH
done
python 'cannot run onnxruntime: No module' << 'SH'
#!/bin/sh
echo missing No module
SH
LATHE_PYTHON=/nowhere/python expect_error 3 "no program '/nowhere/python'" bench six.txt --against onnxruntime

# --- every step of a write; not with a sanitizer, which wants to be loaded first
[ -z "${LATHE_SANITIZE:-}" ] || finish
check "the step counter builds" "$CC" -std=gnu11 -shared -fPIC -o steps.so "$top/test/cli/steps.c" -ldl
"$lathe" compile -q six.txt -O0 -o old && "$lathe" compile -q six.txt -o new
is() { diff -r "$1" "$2" > /dev/null 2>&1; }

# steps SETTING...: how many there are
steps() {
    rm -rf out* && { [ $begin = none ] || cp -r old out; }
    env "$@" STEPS_COUNT=count LD_PRELOAD=./steps.so "$lathe" compile -q six.txt -o out
    cat count
}

# stop_at N SIGNAL SETTING...: a write over `old` is stopped before step N
stop_at() {
    local at=$1 signal=$2
    shift 2
    rm -rf out* && [ "$begin" = none ] || cp -r old out
    (env "$@" STEPS_AT="$at" STEPS_SIGNAL="$signal" LD_PRELOAD=./steps.so "$lathe" compile -q six.txt -o out; exit $?) > said 2>&1
    status=$?
}

# whole TEXT: old or new at its place, or (where there is no exchange) the old one beside it, and nothing unknown.
whole() {
    local beside
    for beside in out?*; do
        case $beside in
        out.tmp-lathe-*-old) ! is "$beside" old || [ -e out ] || { good; return; } ;;
        out.tmp-lathe-*|'out?*') ;;
        *) bad "$1: '$beside' cannot be told" ;;
        esac
    done
    if is out new || { [ "$begin" = old ] && is out old; } || { [ "$begin" = none ] && [ ! -e out ]; }; then
        good
    else
        bad "$1: neither the old nor the new package is whole: $(ls)"
    fi
}

sweep() { # sweep STRIDE SIGNAL SETTING...
    local stride=$1 signal=$2 i
    shift 2
    n=$(steps "$@")
    check "there are steps enough to stop at ($n)" test "$n" -ge 80
    for ((i = 1; i <= n; i += stride)); do
        stop_at "$i" "$signal" "$@"
        [ $status = $((128 + signal)) ] || bad "step $i was not reached: status $status"
        whole "signal $signal at step $i of $n, $*"
        [ "$signal" = 9 ] || [ -z "$(ls -d out?* 2> /dev/null)" ] || bad "signal $signal at step $i leaves $(ls -d out?*)"
    done
}

begin=old
sweep 1 9 STEPS_OLD=
check "at 100 steps at least" test "$n" -ge 100
sweep 3 9 STEPS_OLD=1
sweep 5 15 STEPS_OLD=
begin=none
sweep 7 9 STEPS_OLD=
begin=old

# --- what appears in the folder while it is replaced comes back
rm -rf out* && cp -r old out
(export STEPS_PUT=out/mine LD_PRELOAD=./steps.so && exec "$lathe" compile -q six.txt -o out) > said 2>&1
check "it is refused" grep -q 'left alone.*mine' said
rm -f out/mine && check "the folder came back" is out old
no_leftovers "a file that came meanwhile"

# --- a file system without exchange, where a rename fails
for at in 2 3 4; do
    rm -rf out* && cp -r old out
    (export STEPS_OLD=1 STEPS_RENAME=$at LD_PRELOAD=./steps.so && exec "$lathe" compile -q six.txt -o out) > said 2>&1
    [ $? = 3 ] && grep -q '^error: cannot make .*: Input/output error' said && good || bad "rename $at: $(cat said)"
    check "rename $at fails: the old package" is out old
    no_leftovers "rename $at"
done

# --- a model that shrinks while it is read; an old kernel
head -c 3000000 /dev/zero | tr '\0' ' ' > long.txt && cat six.txt >> long.txt
(export STEPS_CUT=long.txt LD_PRELOAD=./steps.so && exec "$lathe" inspect long.txt) > said 2>&1
check "a file that shrinks is an error" sh -c "test $? = 1 && grep -q 'changed while it was read' said"
mkdir -p ext/sub && sed 's|\.\./secret\.bin|sub/w0123.bin|' "$top/test/golden/error/onnx/outside.onnx" > ext/model.onnx
export STEPS_OLD=1
head -c 8 /dev/zero > ext/sub/w0123.bin
check "external data without openat2" env LD_PRELOAD=./steps.so "$lathe" inspect ext/model.onnx
: > ext/sub/f
for name in /secrets1.bin sub/f/w01.bin sub/w0123.bi/ sub/w012//bin; do # what both ways say
    sed "s|\.\./secret\.bin|$name|" "$top/test/golden/error/onnx/outside.onnx" > ext/odd.onnx
    env -u STEPS_OLD "$lathe" inspect ext/odd.onnx > with 2>&1
    LD_PRELOAD=./steps.so "$lathe" inspect ext/odd.onnx > without 2>&1
    [ -s with ] && cmp with without && good || bad "external data in $name without openat2: $(cat with without)"
done
mv ext/sub ext/other && ln -s other ext/sub
check "no links then" sh -c "! LD_PRELOAD=./steps.so '$lathe' inspect ext/model.onnx 2>&1 && LD_PRELOAD=./steps.so '$lathe' inspect ext/model.onnx 2>&1 | grep -q 'must be a file under'"
rm ext/sub && mkdir ext/sub && ln -s ../other/w0123.bin ext/sub/w0123.bin
check "nor at the end" sh -c "LD_PRELOAD=./steps.so '$lathe' inspect ext/model.onnx 2>&1 | grep -q 'must be a file under'"
finish
