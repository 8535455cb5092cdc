#!/bin/bash
# The flags that a package's Makefile holds: the demo's network takes at most 60 % of the instructions of -O2 alone on a
# Cortex-M4, and gives the same to 5 digits.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
"${LATHE:-$root/build/lathe}" compile "$root/demo/digits.onnx" -o "$work/p" --target cortex-m --port baremetal > /dev/null || exit 1
SKIP=77 "$here/run_m4.sh" "$work/p" > "$work/own" || exit $?
CFLAGS=-O2 TARGET_FLAGS= "$here/run_m4.sh" "$work/p" > "$work/plain" || exit 1
of() { awk -v key="$2" '$1 == key { print $2 }' "$1"; }
own=$(of "$work/own" instructions) plain=$(of "$work/plain" instructions)
echo "instructions: $own, with -O2 alone $plain"
[ $((own * 100)) -le $((plain * 60)) ] || exit 1
digits() { grep '^probabilities' "$1" | grep -Eo '[0-9]\.[0-9]{5}'; }
diff <(digits "$work/own") <(digits "$work/plain")
