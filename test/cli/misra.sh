#!/usr/bin/env bash
# cppcheck's MISRA addon on packages: no required or mandatory rule of MISRA C:2012 is broken but those that
# src/codegen/c/misra.def gives a reason for, which the report repeats.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
command -v cppcheck > /dev/null || { echo 'no cppcheck'; exit 77; }
cd "$work" || exit 3
# advisory rules, of which nothing is said
advisory=' 1.2 2.3 2.4 2.5 2.6 2.7 4.2 5.9 8.7 8.9 8.11 8.13 10.5 11.4 11.5 12.1 12.3 12.4 13.3 15.1 15.4 15.5 17.5 17.8 18.4 18.5 19.2 20.1 20.5 20.10 21.12 '

found() { # FOLDER WORKERS HOOKS
    cppcheck --addon=misra --std=c99 --enable=style -q -DTVMRT_NUM_WORKERS="$2" -DTVMRT_HOOKS="$3" -D_POSIX_C_SOURCE=200809L \
        -D__GNUC__=12 -D__GCC_ATOMIC_INT_LOCK_FREE=2 -I"$1/src" -I"$1/include" "$1/src" 2>&1 | grep -oE 'misra-c2012-[0-9.]+' | sort -u
}

"$lathe" compile "$top/demo/digits.onnx" -o vectors -q --target x86-64-v3
"$lathe" compile "$top/demo/digits.onnx" -o board -q --target cortex-m4 --port baremetal
six_operators > six.txt
"$lathe" compile six.txt -o six -q -O0 --constants c --module-name six
{ found vectors 4 1; found six 0 0; } > rules.1 &
found board 0 0 > rules.2
wait
sort -u rules.1 rules.2 | sed 's/misra-c2012-//' > rules
check 'the addon is at work' grep -qx '15.6' rules
tr -d ' \n' < board/report.json > flat.json
while read -r rule; do
    case $advisory in *" $rule "*) continue ;; esac
    check "rule $rule has a reason in the report" grep -qF "{\"rule\":\"$rule\"" flat.json
done < rules
finish
