#!/usr/bin/env bash
# clang-format over the C sources, in place. Tables (.def) keep their columns by hand. Rules of dashes in section
# comments are shortened first, because reflowing would break them in two.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -eu
cd "$(dirname "$0")/.."
command -v clang-format-19 > /dev/null || { # before the first change
    echo "fmt.sh: clang-format-19 is missing: apt-get install clang-format-19" >&2
    exit 3
}
mapfile -t files < <(find src include runtime tools test demo cmake -name '*.[ch]' 2> /dev/null | LC_ALL=C sort)
sed -E -i '/^.{118,}$/s|^(/\* -+ .*[^-]) -{4,} \*/$|\1 --- */|' "${files[@]}"
clang-format-19 -i "${files[@]}"
