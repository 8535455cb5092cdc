#!/usr/bin/env bash
# cppcheck's MISRA addon on packages of all kinds: no required or mandatory rule of MISRA C:2012 is broken but those that
# src/codegen/c/misra.def gives a reason for, which the report repeats, and each of these in the files that it names.
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
command -v cppcheck > /dev/null || { echo 'no cppcheck'; exit 77; }
cd "$work" || exit 3
# advisory rules, of which nothing is said
advisory=' 1.2 2.3 2.4 2.5 2.6 2.7 4.2 5.9 8.7 8.9 8.11 8.13 10.5 11.4 11.5 12.1 12.3 12.4 13.3 15.1 15.4 15.5 17.5 17.8 18.4 18.5 19.2 20.1 20.5 20.10 21.12 '
dsp='-D__thumb2__ -D__ARM_FEATURE_DSP -D__ARM_FEATURE_UNALIGNED -D__ARM_FEATURE_FMA -D__ARM_FP=4 -D__OPTIMIZE__'
mve="$dsp -D__ARM_FEATURE_MVE=3"
avx='-D__x86_64__ -D__SSE__ -D__SSE2__ -D__SSSE3__ -D__SSE4_1__ -D__AVX__ -D__AVX2__ -D__OPTIMIZE__'
tiny=$top/../shared/models/mlperf-tiny # where a checkout has them

# look PACKAGE FILES FLAGS...: lines "RULE PLACE" of what these files break, read with these macros, behind those that
# PACKAGE.rules has. A place is ops.c, main.c, tvmrt (its files and ports) or tables (all others).
look() {
    local package=$1 files=$2
    shift 2
    # shellcheck disable=SC2086
    cppcheck --addon=misra --std=c99 --enable=style -q --template='{file} {id}' -D_POSIX_C_SOURCE=200809L -D__GNUC__=12 \
        -D__GCC_ATOMIC_INT_LOCK_FREE=2 "$@" -I"$package/src" -I"$package/include" \
        $(cd "$package" && ls -d $files | sed "s|^|$package/|") 2>&1 |
        sed -nE 's/^(.*\/)?([^ \/]*) misra-c2012-([0-9.]+)$/\3 \2/p' |
        sed -E 's/ tvmrt.*/ tvmrt/; / (ops\.c|main\.c|tvmrt)$/! s/ .*/ tables/' >> "$package.rules"
}

# package NAME FLAGS ARGS...: compiles into NAME; FLAGS are macros of all its files, "ops.c" in front of them: of that alone.
package() {
    local name=$1 flags=$2
    shift 2
    expect 0 '' compile "$@" -o "$name" -q
    names+=("$name")
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    case $flags in
        # shellcheck disable=SC2086
        ops.c*) look "$name" src/ops.c -DTVMRT_NUM_WORKERS=0 -DTVMRT_HOOKS=0 ${flags#ops.c} & ;;
        # shellcheck disable=SC2086
        *) look "$name" 'src/*.c' $flags & ;;
    esac
}

alone='-DTVMRT_NUM_WORKERS=0 -DTVMRT_HOOKS=0'
names=()
for type in u8 i8 i16; do python3 "$top/test/cli/network.py" $type > $type.txt; done
six_operators > six.txt
printf '%s\n' 'qspi rom 8M .qspi 20' 'dtcm ram 16K .dtcm_bss 1' 'flash rom 64K - 4' > memory.txt
package vectors '-DTVMRT_NUM_WORKERS=4 -DTVMRT_HOOKS=1' "$top/demo/digits.onnx" --target x86-64-v3
package board "$alone" "$top/demo/digits.onnx" --target cortex-m4 --port baremetal
package six "$alone" six.txt -O0 --constants c --module-name six
package m0plus "$alone -DTVMRT_SMALL=1" u8.txt --target cortex-m0plus --port baremetal
package hooks '-DTVMRT_NUM_WORKERS=0 -DTVMRT_HOOKS=1' i8.txt --target cortex-m4 --port baremetal --memory memory.txt --names short
package m4 "ops.c $dsp" u8.txt --target cortex-m4
package m4_streamed "ops.c" i8.txt --target cortex-m4 --minimize ram
package m4_wide "ops.c $dsp" i16.txt --target cortex-m4
package m33_fast "ops.c $dsp" u8.txt --target cortex-m33 --requant fast --minimize ram
package m55 "ops.c $mve" i8.txt --target cortex-m55
package m55_plain ops.c u8.txt --target cortex-m55 --requant tflite
package rv32 ops.c i8.txt --target rv32imc --requant tflite --names short
package rv32_wide ops.c i16.txt --target rv32imc --minimize ram
package host "ops.c $avx" u8.txt --target x86-64-v3 --workers 2
package plain ops.c i8.txt --target aarch64-i8mm --integers --workers 2
if [ -d "$tiny" ]; then
    package kws ops.c "$tiny/kws_qdq.onnx" --target cortex-m0plus
    package ad ops.c "$tiny/ad_qdq.onnx" --target rv32imc
    package ic "ops.c $dsp" "$tiny/ic_qdq.onnx" --target cortex-m4 --minimize ram
    package vww "ops.c $mve" "$tiny/vww_qdq.onnx" --target cortex-m55
fi
wait
listed() { # REPORT: lines "RULE PLACE" of its deviations
    python3 -c 'import json, sys
for row in json.load(open(sys.argv[1]))["proof"]["misra_c_2012"]["required_rules_deviated_from"]:
    for place in row["places"]:
        print(row["rule"], place)' "$1" | sort
}
for name in "${names[@]}"; do
    sort -u "$name.rules" | while read -r rule place; do
        case $advisory in *" $rule "*) ;; *) echo "$rule $place" ;; esac
    done > "$name.found"
    check "$name: the addon is at work" grep -q ' ops.c$' "$name.found"
    listed "$name/report.json" > "$name.listed"
    check "$name: a reason for each" test -z "$(comm -23 "$name.found" "$name.listed")"
    comm -23 "$name.found" "$name.listed" | sed "s/^/    $name: no reason for /"
done
cat -- *.found | sort -u > found
check 'nothing is listed that is not found' cmp <(cat -- *.listed | sort -u) found
comm -13 found <(cat -- *.listed | sort -u) | sed 's/^/    listed, not found: /'
finish
