#!/usr/bin/env bash
# Writes docs/reference/operators.md, the table of operators, from src/graph/graph_ops.def: list_operators.sh [FILE].
# The text after the table is written by hand, and stays.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -eu
cd "$(dirname "$0")/.."
out=${1:-docs/reference/operators.md}
by_hand=$(sed -n '/^<!-- end of the table -->$/,$p' docs/reference/operators.md)
{
    cat << 'TEXT'
# Operators

This page is for people who read or write graph texts and passes, and for those who want to know how Lathe computes: it lists the
operators of Lathe's graph, and says how they treat sums of floats, windows, masks and NaN. If you want to know whether Lathe
supports your model, see [the ONNX front end](onnx-front-end.md) or [TensorFlow Lite](tflite.md). One operator of a model may
become several of these.

`scripts/list_operators.sh` makes the table from `src/graph/graph_ops.def`. Its columns:

- **operands**: their names, and the types that they may have. `x?` may be left out, `x*` is any number of operands, `x+` one or more.
  `x:float` asks for a type, `y:~x` for the type of `x`, `x:[..,_]` for rank 1 or more, and `k:index(1)` for a single integer.
  [graph-ir.md](graph-ir.md#operator-rows) has the whole notation.
- **results**: their number. `n-` means n or more.
- **class**: which nodes Lathe may fuse with this operator ([graph-ir.md](graph-ir.md#operator-rows)).
- **attributes**: an attribute without `=` is required.

Most operators compute what the ONNX operator of that name computes, and have its attributes. [The second table](#operators-that-onnx-does-not-have)
explains those that ONNX does not have or calls by another name, and [the third one](#attributes-that-onnx-does-not-have) the attributes.

| operator | operands | results | class | attributes |
|---|---|---|---|---|
TEXT
    row='#define GRAPH_OP(id, name, ops, c, d, cls, effect, flags, infer, compute, sched, attrs)'
    printf '%s\n' "$row @@ name @ ops @ c @ d @ cls @ attrs" '#include "src/graph/graph_ops.def"' |
        ${CC:-cc} -E -P -I. -Isrc -x c - | tr '\n' ' ' | sed 's/@@/\n/g' | awk -F' *@ *' '
        function text(s) {
            gsub(/" +"/, "", s); gsub(/\\"/, "\001", s); gsub(/"/, "", s); gsub(/\001/, "\"", s)
            sub(/^ +/, "", s); sub(/ +$/, "", s); return s
        }
        function range(a, b) { gsub(/ /, "", b); return a == b ? a : b == "-1" ? a "-" : a "-" b }
        NF >= 6 {
            cls = tolower($5); sub(/class_/, "", cls); gsub(/_/, "-", cls)
            operands = text($2); if (operands != "") operands = "`" operands "`"
            attrs = text($6); if (attrs != "") attrs = "`" attrs "`"
            gsub(/\|/, "\\|", attrs)
            name = text($1)
            print "| `" name "` | " operands " | " range($3, $4) " | " cls " | " attrs " |"
        }'
    printf '%s\n' "$by_hand"
} > "$out"
