#!/usr/bin/env bash
# The C compiler of tests that build many packages with `lathe run` and `lathe verify`: of the files that every package
# brings, tvmrt.c and tvmrt_port_posix.c, an object is kept for each set of flags, in the folder KEPT_OBJECTS. With -O3
# they take 0.7 s of the second that a package of one operator takes. KEPT_CC is the compiler.
# SPDX-License-Identifier: Apache-2.0
set -u
words=() flags=() own=() skip=
for word in "$@"; do
    if [ -n "$skip" ]; then
        skip=
    elif [[ $word == -o ]]; then
        skip=yes
    elif [[ $word == */tvmrt.c || $word == */tvmrt_port_posix.c ]]; then
        own+=("$word")
    elif [[ $word != *.[co] && $word != -l* && $word != -shared ]]; then
        flags+=("$word")
    fi
done
[ ${#own[@]} -gt 0 ] || exec $KEPT_CC "$@"
src=$(dirname "${own[0]}")
key=$({ printf '%s\n' "${flags[@]}" && cat "$src"/tvmrt*.[ch] "$src"/../include/tvmrt.h; } | md5sum)
for word in "$@"; do
    if [[ $word == */tvmrt.c || $word == */tvmrt_port_posix.c ]]; then
        object=$KEPT_OBJECTS/${key%% *}-$(basename "$word" .c).o
        if [ ! -e "$object" ]; then
            $KEPT_CC "${flags[@]}" -c "$word" -o "$object.$$" && mv "$object.$$" "$object" || exit 1
        fi
        word=$object
    fi
    words+=("$word")
done
exec $KEPT_CC "${words[@]}"
