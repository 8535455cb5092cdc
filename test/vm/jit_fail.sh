#!/usr/bin/env bash
# Every call of the system that the run-time compiler makes fails once: memory, files, folders, processes. Then it gives
# one error, or right numbers; nothing is left of what is temporary, and the cache serves the next one.
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
[ -z "${LATHE_SANITIZE:-}" ] || { echo "sanitizers replace the same calls"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc} passed=0 failed=0
limit=$(< test/time_limit)

$cc -std=c11 -O1 -Wall -Wextra -Werror -D_XOPEN_SOURCE=700 -DLATHE_NO_LIBFFI -Iruntime/vm -Iinclude \
    test/vm/jit/user.c runtime/vm/jit*.c runtime/vm/{elf,reader,error}.c -o "$work/user" -lpthread -ldl || exit 1
$cc -std=gnu11 -O1 -shared -fPIC -o "$work/fail_call.so" test/oom/fail_call.c -ldl || exit 1

# Compiles once, and then gives the same object again: what is tested is the caller.
cat > "$work/compiler" << END
#!/bin/sh
[ "\$1" != -v ] || { echo compiler 1; exit 0; }
last=
for word do [ "\$last" = -o ] && out=\$word; last=\$word; done
[ -f $work/object ] || { cc "\$@" && cp "\$out" $work/object.\$\$ && mv $work/object.\$\$ $work/object; } || exit 1
[ -f "\$out" ] || cp $work/object "\$out"
END
chmod +x "$work/compiler"
export TVM_RVV_COMPILER=$work/compiler TMPDIR=$work/tmp

# once FOLDER VARIABLE=VALUE...: a run with these variables leaves FOLDER/{out,status}; its cache is FOLDER/cache.
once() {
    local folder=$1
    shift
    timeout "$limit" env "$@" "$work/user" test/vm/jit/fma3.c "$folder/cache" > "$folder/out" 2>&1
    echo $? > "$folder/status"
}

# what_is_wrong CLASS FOLDER: says it.
what_is_wrong() {
    local status
    status=$(< "$2/status")
    case $status in
    0) grep -qx 'wrong: 0' "$2/out" || echo "status 0, and no right numbers" ;;
    1) [ "$(grep -c '^error: ..' "$2/out")" = 1 ] || echo "status 1, and no clean message" ;;
    *) echo "status $status" ;;
    esac
    [ "$1" = remove ] && return # what cannot be removed stays
    [ -z "$(ls -A "$TMPDIR")" ] || echo "left in TMPDIR: $(ls "$TMPDIR")"
    # A lock that cannot be taken stays as an empty file, until something else is compiled.
    case $1 in open | stat) rm -f "$2"/cache/*.lock ;; esac
    [ -z "$(find "$2/cache" -type f ! -name '*.so' 2> /dev/null)" ] || echo "left in the cache: $(ls "$2/cache")"
}

# sweep CLASS HOW hit|miss: the n-th call fails, for n = 1, 2, ... until there is none; with an entry in the
# cache or not.
sweep() {
    local n=0 wrong hits=0
    while n=$((n + 1)); do
        rm -rf "$work/place" "$TMPDIR"
        mkdir "$work/place" "$TMPDIR"
        [ "$3" = miss ] || cp -rp "$work/filled" "$work/place/cache"
        : > "$work/hit"
        once "$work/place" "LD_PRELOAD=$work/fail_call.so" "FAIL_CLASS=$1" \
            "FAIL_HOW=$2" "FAIL_AT=$n" "FAIL_HIT=$work/hit"
        [ -s "$work/hit" ] || break
        hits=$((hits + 1))
        wrong=$(what_is_wrong "$1" "$work/place")
        # Half reads and writes and interrupted calls change nothing.
        case $2 in
        EINTR | short) [ "$(< "$work/place/status")" = 0 ] || wrong="$wrong status $(< "$work/place/status")" ;;
        esac
        once "$work/place"
        grep -qx 'wrong: 0' "$work/place/out" || wrong="$wrong; the next run fails: $(tail -n 1 "$work/place/out")"
        if [ -z "$wrong" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED $1 $2 $3, call $n ($(< "$work/hit")): $wrong"
        fi
    done
    echo "$1 $2 $3: $hits calls"
}

mkdir "$work/first" "$TMPDIR"
once "$work/first"
grep -qx 'wrong: 0' "$work/first/out" || { cat "$work/first/out"; exit 1; }
cp -rp "$work/first/cache" "$work/filled"
for cache in miss hit; do
    for failure in 'alloc ENOMEM' 'open EMFILE' 'read EIO' 'read EINTR' 'read short' 'write ENOSPC' 'write EINTR' \
        'write short' 'list EIO' 'sync EIO' 'close EIO' 'make ENOSPC' 'rename EIO' 'remove EACCES' 'stat ENOMEM' \
        'wait EINTR'; do
        # shellcheck disable=SC2086
        sweep $failure $cache
    done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 100 ]
