#!/usr/bin/env bash
# Every header compiles alone, twice included, as C11 and as C++17, without a warning: check_headers.sh [c++]. With c++
# only as C++17: what a header forgets to include is missing there, too, and the sources are C11. So do templates in
# lanes, with four of them (kernel/lanes/alone.h), by data of i8 and of u8 where they are for both. Where the compiler is
# built, include/lathe/op_names.h has to name the functions that the headers declare (scripts/op_names.sh).
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
export ONLY_CXX=${1:-}
export CFLAGS_HEADERS="-fsyntax-only -Wall -Wextra -Wpedantic -Werror -D_XOPEN_SOURCE=700
    -I. -Isrc -Iinclude -Iinclude/abi -Iruntime/tvmrt -Iruntime/vta -Iruntime/vm -Iruntime/ext_dev -Iruntime/rpc -Itest/runtime/freertos_stub"
# Warnings of C++ about plain C idioms are off: {0}, and an array without length at the end of a struct.
export CXXFLAGS_HEADERS="-Wno-missing-field-initializers -Wno-pedantic"

# Bindings need the headers of tvm-ffi: those that they were built with, if they were.
python=$(sed -n 's/^_\?Python3_EXECUTABLE:[A-Z]*=//p' "${BUILD:-build}/bindings/cmake/CMakeCache.txt" 2> /dev/null | head -n 1)
folders="src include runtime kernel"
if [ -n "$python" ] && ffi=$("$python" -m tvm_ffi.config --includedir) && dl=$("$python" -m tvm_ffi.config --dlpack-includedir); then
    CFLAGS_HEADERS="$CFLAGS_HEADERS -Ibindings/ffi -isystem $ffi -isystem $dl"
    folders="$folders bindings"
fi

one() {
    local header=$1 bytes=${2:-} text log
    text=$(printf '#include "%s"\ntypedef int not_empty;\n' "$PWD/$header")
    [ "${header##*.}" = inc ] || text=$(printf '#include "%s"\n%s' "$PWD/$header" "$text")
    # shellcheck disable=SC2086
    if [ -z "$ONLY_CXX" ] && ! log=$(gcc -std=c11 $CFLAGS_HEADERS $bytes -x c - <<< "$text" 2>&1); then
        echo "FAILED $header as C11: $(grep -m 1 error: <<< "$log")"
        return
    fi
    # shellcheck disable=SC2086
    if ! log=$(g++ -std=c++17 $CFLAGS_HEADERS $CXXFLAGS_HEADERS $bytes -x c++ - <<< "$text" 2>&1); then
        echo "FAILED $header as C++17: $(grep -m 1 error: <<< "$log")"
        return
    fi
    echo "ok $header"
}
export -f one

# shellcheck disable=SC2086
log=$({ find $folders -name '*.h' 2>/dev/null; grep -l 'kernel/lanes/alone.h"' kernel/*/*.inc
    grep -l LATHE_OF_INT kernel/*/*.inc | sed 's/$/ -DLATHE_ALONE_U8/'; } | LC_ALL=C sort \
    | xargs -r -P "${JOBS:-2}" -I{} bash -c 'out=$(one {}); printf "%s\n" "$out"')
if [ -e "${BUILD:-build}/liblathe_core.a" ] && ! bash scripts/op_names.sh --check "${BUILD:-build}"; then
    log+=$'\nFAILED include/lathe/op_names.h: not made from these headers; run scripts/op_names.sh'
fi
failed=$(grep -c '^FAILED' <<< "$log")
grep -v '^ok ' <<< "$log"
echo "headers: $(grep -c '^ok ' <<< "$log") passed, $failed failed"
[ "$failed" = 0 ]
