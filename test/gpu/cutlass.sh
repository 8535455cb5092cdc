#!/usr/bin/env bash
# Regions of CUTLASS on a GPU, compared with the operators' definitions, in two steps that may be on two machines:
#     cutlass.sh prepare DIR [MODEL...]   here: packages, inputs and what the interpreter gives, all in DIR, with this script
#     cutlass.sh run DIR                  there: needs nvcc (NVCC), a C compiler, make, awk, od. CUTLASS_INCLUDE names the
#                                         headers of CUTLASS; without it our own kernel runs alone. CUDA_LIB: /usr/local/cuda/lib64
# The last line is "N passed, N failed".
# SPDX-License-Identifier: Apache-2.0
set -u
verb=${1:?prepare or run} dir=${2:?a folder}
shift 2

prepare() { # MODEL: DIR/NAME.{package,in,want}
    local name
    name=$(basename "${1%.*}")
    rm -rf "$dir/$name".*/
    "$lathe" compile "$1" --offload cutlass --workers 1 -o "$dir/$name.package" > "$dir/$name.log" || return
    mkdir -p "$dir/$name.in"
    python3 - "$dir/$name" << 'END' || return
import json, random, struct, sys
random.seed(1)
with open(sys.argv[1] + ".arguments", "w") as arguments:
    for t in json.load(open(sys.argv[1] + ".package/report.json"))["inputs"]:
        count = 1
        for n in t["shape"]:
            count *= n
        name = "".join(c if c.isalnum() else "_" for c in t["name"]) + ".bin"
        with open(sys.argv[1] + ".in/" + name, "wb") as f:
            f.write(struct.pack("<%df" % count, *(random.gauss(0, 1) for _ in range(count))))
        print(t["name"] + "=" + name, file=arguments)
END
    local options=()
    while IFS='=' read -r input file; do options+=(--input "$input=$dir/$name.in/$file"); done < "$dir/$name.arguments"
    "$lathe" run "$1" --interpret "${options[@]}" --output-dir "$dir/$name.want" > /dev/null
}

near() { # RAW NPY
    paste <(od -An -v -t f4 -w4 "$1") <(tail -c +129 "$2" | od -An -v -t f4 -w4) |
        awk '{ d = $1 - $2; d = d < 0 ? -d : d; m = $2 < 0 ? -$2 : $2; if (!(d <= 1e-4 + 1e-3 * m)) bad++ }
             END { exit !NR || bad > 0 }'
}

compare() { # NAME FLAGS WORDS: built with these flags of nvcc
    local name=$1 flags=$2 what=$3 arguments=() output
    while IFS='=' read -r input file; do arguments+=("$input=$dir/$name.in/$file"); done < "$dir/$name.arguments"
    if ! { make -s -C "$dir/$name.package" clean all NVCC="${NVCC:-nvcc}" NVCCFLAGS="-O3 $flags" \
             LDFLAGS="-L${CUDA_LIB:-/usr/local/cuda/lib64} -Wl,-rpath,${CUDA_LIB:-/usr/local/cuda/lib64}" &&
           "$dir/$name.package/runner" -o "$dir/$name.got" "${arguments[@]}"; } > "$dir/$name.run" 2>&1; then
        failed=$((failed + 1)) && echo "FAILED $name, $what: $(tail -n 2 "$dir/$name.run")"
        return
    fi
    for output in "$dir/$name.want"/*.npy; do
        if near "$dir/$name.got/$(basename "${output%.npy}").bin" "$output"; then
            passed=$((passed + 1)) && echo "ok $name, $what: $(basename "${output%.npy}")"
        else
            failed=$((failed + 1)) && echo "FAILED $name, $what: $(basename "${output%.npy}") has other numbers"
        fi
    done
}

mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 3
passed=0 failed=0
case $verb in
prepare)
    top=$(cd "$(dirname "$0")/../.." && pwd)
    lathe=${LATHE:-$top/build/lathe}
    source "$top/test/gpu/graphs.bash"
    graph > "$dir/net.txt"
    for model in "$dir/net.txt" "$top/demo/digits.onnx" "$@"; do
        prepare "$model" || { echo "cutlass.sh: $model cannot be prepared" && exit 1; }
    done
    cp "$0" "$dir/cutlass.sh"
    echo "prepared: bash $dir/cutlass.sh run $dir" ;;
run)
    for package in "$dir"/*.package; do
        name=$(basename "${package%.package}")
        compare "$name" -DLATHE_NO_CUTLASS "our own kernel"
        [ -z "${CUTLASS_INCLUDE:-}" ] || compare "$name" "-w -std=c++17 -I$CUTLASS_INCLUDE" "CUTLASS"
    done
    echo "$passed passed, $failed failed"
    [ $failed = 0 ] ;;
esac
