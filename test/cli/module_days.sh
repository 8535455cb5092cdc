#!/usr/bin/env bash
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
# Bad days of portable modules, through the command line: damaged files, other versions, compilers that fail, disks that
# are full, caches that are torn or another's, runs that are stopped. One clear error each, and nothing half written.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
mkdir tmp
export XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp
unset TVM_RVV_COMPILER LATHE_KEEP_SOURCES LATHE_COMPILE_SECONDS
cc=${CC:-cc}
digits=$top/demo/digits.onnx
"$lathe" compile -q "$digits" --emit module --widths 16 -o m.so || exit 1
"$lathe" run m.so > right 2> /dev/null || exit 1
size=$(stat -c %s m.so)

script() { cat > "$1" && chmod +x "$1"; }
clean() { check "$1: nothing is left in TMPDIR" test -z "$(ls -A tmp)"; }
# one_error STATUS PATTERN ARGS...: that, in one line, and no temporary file is left.
one_error() {
    expect "$@"
    [ "$(grep -c '^error: ' "$work/stderr")" = 1 ] || bad "not one error: $(grep '^error: ' "$work/stderr")"
    clean "$3 $4"
}
right_numbers() { # right_numbers TEXT COMMAND...: main's results are as ever
    local text=$1
    shift
    "$@" > said 2> err
    check "$text: $(grep -h '^error' err)" cmp said right
    clean "$text"
}

# --- damaged files
for n in 0 1 63 64 100 1000 $((size / 4)) $((size / 2)) $((size * 3 / 4)) $((size - 5000)); do
    head -c "$n" m.so > cut.so
    one_error 1 'cut.so' run cut.so
done
: > empty.so
one_error 1 'empty' run empty.so
# A byte is another one, at places all over the file but the source, which is code: a module like any other, or an error.
from=$(grep -abom 1 '/\* The kernels of module' m.so | cut -d : -f 1)
until=$((from + $("$lathe" compile "$digits" --emit module --widths 16 -o again.so | sed -n 's/.*of which C source \([0-9]*\).*/\1/p')))
changed=0
for ((at = 0; at < size; at += at < 6000 ? 251 : size / 40)); do
    if [ $at -ge "$from" ] && [ $at -lt $until ]; then continue; fi
    cp m.so bent.so
    for byte in '\377' '\001'; do
        printf "$byte" | dd of=bent.so bs=1 seek=$at conv=notrunc status=none
        timeout "$limit" "$lathe" run bent.so > said 2> err
        status=$?
        [ $status -le 3 ] || bad "byte $at is $byte: status $status"
        [ "$(grep -c '^error: ' err)" = $((status > 0)) ] || bad "byte $at is $byte: status $status, $(cat err)"
        changed=$((changed + 1))
    done
done
check "bytes were changed ($changed)" test $changed -gt 60
clean "changed bytes"

# --- another version of the interface; the text "0.14" behind the number that executables begin with
at=$(LC_ALL=C grep -abPom 1 '\x1e\x15\x14\x42\x2f\xde\x25\xd2' m.so | cut -d : -f 1)
cp m.so version.so
printf '9.99' | dd of=version.so bs=1 seek=$((at + 16)) conv=notrunc status=none
one_error 1 'an executable of version 9.99; 0.14 is supported' run version.so
cp m.so number.so
printf '\x1d\x15\x14\x42\x2f\xde\x25\x00' | dd of=number.so bs=1 seek="$at" conv=notrunc status=none
one_error 1 'number.so' run number.so

# --- compilers
export XDG_CACHE_HOME=$work/none # what they make is in no cache
compiler() { # compiler STATUS PATTERN: with the one on standard input
    script ccc
    CC=./ccc one_error "$@" run m.so
}
CC=/nonexistent one_error 3 "no compiler '/nonexistent': install one" run m.so
compiler 3 "ended without an error on 'm.so' but wrote nothing" <<< $'#!/bin/sh\nexit 0'
compiler 3 "failed on 'm.so': m.c:1: error: no such thing" <<< $'#!/bin/sh\necho "m.c:1: error: no such thing"\nexit 1'
compiler 3 "it said nothing" <<< $'#!/bin/sh\nexit 7'
compiler 3 'was killed by signal 9' <<< $'#!/bin/sh\n[ "$1" = -v ] || kill -9 $$'
compiler 3 'is not a whole 64-bit shared object' << 'END'
#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo something > "$2"; shift; done
END
LATHE_COMPILE_SECONDS=1 compiler 3 'took longer than 1 s' << 'END'
#!/bin/sh
[ "$1" = -v ] || sleep 1000
END
check "no cache of what failed" test -z "$(find none -name '*.so' 2> /dev/null)"

# --- stopped while compilers run: they go, and what they wrote
for signal in INT TERM HUP; do
    script ccc << END
#!/bin/sh
[ "\$1" = -v ] && exit 0
echo \$\$ >> "$work/pids"
kill -$signal \$PPID
sleep 1000
END
    : > pids
    (CC=./ccc timeout "$limit" "$lathe" run m.so; exit $?) > said 2>&1
    check "SIG$signal ends it as it ends every program" test $? = $((128 + $(kill -l $signal)))
    clean "SIG$signal"
    check "SIG$signal: there were compilers" test -s pids
    check "SIG$signal: they are gone" sh -c 'for p in $(cat pids); do ! kill -0 $p || exit 1; done'
done

# So does a run whose reader has had enough.
"$lathe" run m.so --trace 2>&1 > said | head -n 1 > first
check "the compiler's trace began" test -s first
clean "a closed pipe"

# --- places that cannot be used
TMPDIR=$work/nowhere one_error 3 "cannot make a temporary folder.*nowhere" run m.so
one_error 3 'cannot use the folder .*/proc/kept' run m.so --keep-sources /proc/kept
one_error 2 "would overwrite the module './m.so'" run m.so --keep-sources .
right_numbers "no HOME" env -u HOME -u XDG_CACHE_HOME "$lathe" run m.so
right_numbers "no place for a cache" env XDG_CACHE_HOME=/proc/nowhere "$lathe" run m.so
XDG_CACHE_HOME=/proc/nowhere expect 0 "^no cache: '/proc/nowhere/lathe'" run m.so --trace

# --- the cache
export XDG_CACHE_HOME=$work/cache
entry=$(echo cache/lathe/*.so)
[ -f "$entry" ] || bad "one entry: $entry"
damage() { # damage TEXT COMMAND...: afterwards it is made again
    local text=$1
    shift
    "$@" > /dev/null 2>&1
    right_numbers "an entry that is $text" "$lathe" run m.so
    expect 0 '^cache hit' run m.so --trace
}
damage "torn" truncate -s -100 "$entry"
damage "empty" truncate -s 0 "$entry"
damage "bent" sh -c "printf X | dd of='$entry' bs=1 seek=5000 conv=notrunc"
damage "gone" rm -f "$entry"
damage "longer" sh -c "echo more >> '$entry'"
chmod 755 cache/lathe
one_error 3 "is open to other users: chmod 700" run m.so
chmod 700 cache/lathe
mkdir -p file && : > file/lathe
XDG_CACHE_HOME=$work/file one_error 3 "file/lathe' is a link or a file" run m.so
if [ "$(id -u)" = 0 ]; then
    chown 65534 cache/lathe
    one_error 3 "belongs to another user: name another one by XDG_CACHE_HOME" run m.so
    chown 0 cache/lathe
fi

# --- a full disk, and other places for the module
check "the tool that fails a call builds" "$cc" -std=gnu11 -shared -fPIC -o fail_call.so "$top/test/oom/fail_call.c" -ldl
"$lathe" compile -q "$digits" --emit module --widths 32 -o old.so
if [ -z "${LATHE_SANITIZE:-}" ]; then # a sanitizer wants to be loaded first
    full() { FAIL_CLASS=write FAIL_HOW=ENOSPC FAIL_AT=$1 FAIL_HIT=$work/hit LD_PRELOAD=$work/fail_call.so "${@:2}"; }
    for ((n = 1; n < 50; n++)); do
        cp old.so out.so && : > hit
        full $n "$lathe" compile -q "$digits" --emit module --widths 16 -o out.so > said 2> err < /dev/null
        status=$?
        [ -s hit ] || break
        check "write $n fails: status $status, $(cat err)" test $status = 3
        check "write $n: one error" test "$(grep -c '^error: ' err)" = 1
        check "write $n: the old module is whole" cmp -s out.so old.so
        check "write $n: nothing lies beside it" test -z "$(ls out.so?* 2> /dev/null)"
    done
    check "writes failed ($n)" test $n -gt 1
    for ((n = 1; n < 50; n++)); do
        : > hit && rm -rf full
        XDG_CACHE_HOME=$work/full full $n "$lathe" run m.so --keep-sources kept > said 2> err < /dev/null
        status=$?
        [ -s hit ] || break
        # What cannot be cached runs all the same.
        if [ $status = 0 ]; then check "write $n of a run fails" cmp said right
        else check "write $n of a run: status $status, $(cat err)" test $status = 3; fi
        clean "write $n of a run"
        right_numbers "after write $n failed" env XDG_CACHE_HOME="$work/full" "$lathe" run m.so
    done
    check "writes of a run failed ($n)" test $n -gt 3
fi
# Stopped at every step of the writing, the old module or the new one is whole; a signal that can be caught leaves nothing.
if [ -z "${LATHE_SANITIZE:-}" ]; then
    check "the step counter builds" "$cc" -std=gnu11 -shared -fPIC -o steps.so "$top/test/cli/steps.c" -ldl
    STEPS_COUNT=count LD_PRELOAD=./steps.so "$lathe" compile -q "$digits" --emit module --widths 16 -o out.so
    check "there are steps ($(cat count))" test "$(cat count)" -ge 3
    for ((n = 1; n <= $(cat count); n++)); do
        for signal in 9 15; do
            rm -f out.so* && cp old.so out.so
            (STEPS_AT=$n STEPS_SIGNAL=$signal LD_PRELOAD=./steps.so "$lathe" compile -q "$digits" --emit module --widths 16 -o out.so
                exit $?) > said 2>&1
            check "step $n is reached" test $? = $((128 + signal))
            cmp -s out.so old.so || cmp -s out.so m.so && good || bad "signal $signal at step $n: neither module is whole"
            [ $signal = 9 ] || check "signal $signal at step $n leaves nothing" test -z "$(ls out.so?* 2> /dev/null)"
        done
    done
fi
one_error 3 '/dev/full: cannot write: No space left' compile "$digits" --emit module -o /dev/full
one_error 3 '/proc/m.so: cannot write' compile "$digits" --emit module -o /proc/m.so
mkdir folder
one_error 2 "'folder' is a folder" compile "$digits" --emit module -o folder
expect 0 '' compile "$digits" --emit module --widths 16 -o new/folder/m.so
check "a folder that was not there" cmp -s new/folder/m.so m.so
cp old.so out.so
expect 0 '' compile "$digits" --emit module --widths 16 -o out.so
check "over an existing file" cmp -s out.so m.so
if [ "$(id -u)" != 0 ]; then
    mkdir locked && cp old.so locked/m.so && chmod 500 locked
    one_error 3 'locked/m.so: cannot write' compile "$digits" --emit module -o locked/m.so
    check "the old module is whole" cmp -s locked/m.so old.so
fi
finish
