#!/bin/sh
# The demo on the accelerator: demo/residual_vta.onnx, a quantised network -> C package whose layers run on the simulated
# VTA -> program -> predictions; what each layer takes, and a picture of it. vta.sh LATHE FOLDER [RECORDS [OFFLOAD]]
# FOLDER receives the package (FOLDER/package), the program (FOLDER/digits) and FOLDER/timeline.svg. OFFLOAD "": all on
# the CPU. The network is demo/residual.onnx (demo/train_residual.py), quantised by `lathe quantize --for vta`.
# SPDX-License-Identifier: Apache-2.0
set -eu
demo=$(dirname "$0")
lathe=$1 out=$2 records=${3:-$demo/inputs/digits.bin} offload=${4-vta}
cc=${CC:-cc}
mkdir -p "$out"
say() { echo "\$ $*"; "$@"; }

heap=none
[ "$offload" != vta ] || heap="none but the simulator's; none with a board's own device"
set --
[ -z "$offload" ] || set -- --offload "$offload"
say "$lathe" compile "$demo/residual_vta.onnx" "$@" -o "$out/package" --workers 1
echo
say make -s -j2 -C "$out/package" CC="$cc" lib
say "$cc" -std=c99 -D_POSIX_C_SOURCE=199309L -O2 -DDEMO_WORKERS=1 -DDEMO_LOGITS "-DDEMO_HEAP=\"$heap\"" -I"$out/package/include" \
    "$demo/main.c" "$out/package/libtvmgen_default.a" -o "$out/digits" -lm -lpthread
"$out/digits" "$records"
[ -n "$offload" ] || exit 0
echo
echo "Each layer on the cycle model, and all of them, with a picture of who works when:"
say "$lathe" vta model "$demo/residual_vta.onnx" --offload "$offload" --cycle --timeline "$out/timeline.svg"
