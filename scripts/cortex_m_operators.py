#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single int8 operators on a Cortex-M4 beside CMSIS-NN: the table of docs/notes/cortex-m.md.

    cortex_m_operators.py [--lathe FILE] [--layers DIR] [--filter TEXT] [--write]

Instructions of each operator in QEMU, as `lathe verify` counts them; a copy of results into the order of an output is
left out. The last column is about a Cortex-M55: instructions, and whether the kernels have any for vectors. The models
are those of DIR/micro.py (default: ../shared/bench/layers); without it, or an emulator, the exit status is 77. --write
replaces the table on the page."""
import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "docs/notes/cortex-m.md")
BEGIN, END = "<!-- operators: scripts/cortex_m_operators.py -->", "<!-- end of operators -->"
COPY = "fused_transpose_transpose"
VECTORS = re.compile(r"\bq[0-7]\b")

# Name, model, units of work, unit, instructions of CMSIS-NN (None: it has no such kernel). These are of commit 99f736a
# (July 2026), gcc 12.2, the DSP extension, the second of two calls, in QEMU 7.2; where CMSIS-NN has no kernel, of the
# plain loop that TensorFlow Lite Micro runs, or of a table of 256 entries. The mean is arm_avgpool_s8, ReLU is
# arm_relu_q7 (in place, zero point 0).
OPERATORS = (
    ("conv 3x3 16->32 @32x32", "conv3x3_16_32", 4718592, "MAC", 10075120),
    ("conv 1x1 32->64 @16x16", "conv1x1_32_64", 524288, "MAC", 1417720),
    ("conv 3x3 13->27 @15x15", "conv3x3_13_27", 710775, "MAC", 1678080),
    ("conv 5x5 s2 3->16 @32x32", "conv5x5s2_3_16", 307200, "MAC", 1038240),
    ("depthwise 3x3 64 @16x16", "dw3x3_64", 147456, "MAC", 1269360),
    ("depthwise 3x3 37 @15x15", "dw3x3_37", 74925, "MAC", 672400),
    ("depthwise 5x5 s2 24 @24x24", "dw5x5s2_24", 86400, "MAC", 908720),
    ("conv 1-D k5 40->40 @100", "conv1d_k5_40_40", 800000, "MAC", 1572320),
    ("conv 1x5 40->40 @100", "conv1x5_40_40", 800000, "MAC", 1572360),
    ("transposed conv 2x2 s2 16->16 @16x16", "tconv2x2s2_16_16", 262144, "MAC", 1581560),
    ("fully connected 256->128", "fc_256_128", 32768, "MAC", 67920),
    ("fully connected 640->10", "fc_640_10", 6400, "MAC", 12680),
    ("max pool 2x2 32 @32x32", "maxpool2_32", 32768, "input", 317320),
    ("avg pool 3x3 s1 32 @16x16", "avgpool3_32", 8192, "output", 565520),
    ("global avg pool 64 @8x8", "gap_64", 4096, "input", 26600),
    ("mean over H, W 64 @8x8", "mean_hw", 4096, "input", 26600),
    ("softmax 1x10", "softmax_1x10", 10, "element", 5360),
    ("softmax 12x128", "softmax_12x128", 1536, "element", 786640),
    ("add 16x16x32", "add", 8192, "element", 665720),
    ("mul 16x16x32", "mul", 8192, "element", 296080),
    ("relu, same scale", "relu", 4096, "element", 10240),
    ("relu with rescaling", "relu_rescale", 4096, "element", 17440),
    ("leaky relu", "leaky", 4096, "element", 17440),
    ("sigmoid", "sigmoid", 4096, "element", 17440),
    ("tanh", "tanh", 4096, "element", 17440),
    ("hard swish", "hardswish", 4096, "element", 17440),
    ("concat 2x 16x16x16, two scales", "concat", 8192, "element", 62560),
    ("concat 2x 16x16x16, one scale", "concat_same", 8192, "element", 17480),
    ("pad 16x16x32 -> 18x18x32", "pad", 10368, "element", 7200),
    ("transpose NHWC->NCHW 16x16x32", "transpose", 8192, "element", 43400),
    ("resize nearest 2x 16@16x16, NHWC", "resize_nhwc", 16384, "output", 35120),
    ("resize nearest 2x 16@16x16, NCHW", "resize_nchw", 16384, "output", 35120),
    ("matmul of two activations 4x32x32x32", "matmul_4x32x32", 131072, "MAC", 483360),
    ("the same, B transposed", "matmul_nt_4x32x32", 131072, "MAC", 461200),
    ("LSTM 32 -> 32, 10 steps, floats", "lstm_float", 81920, "MAC", 333200),
    ("LSTM in QDQ form", "lstm_qdq", 81920, "MAC", 333200),
    ("LSTM, unrolled in QDQ form", "lstm_unrolled", 81920, "MAC", 333200),
    ("SVDF 40 -> 32, memory 8", "svdf", 1536, "MAC", 8080),
    ("conv 3x3 dilation 2, 16->32 @16x16", "m_conv3x3_dil2", 1179648, "MAC", 2521520),
    ("conv 3x3, 4 groups, 32->32 @16x16", "m_conv3x3_groups4", 589824, "MAC", 2052320),
    ("conv 1x1 s2 32->64 @16x16", "m_conv1x1_s2", 131072, "MAC", 420720),
    ("conv 3x3 1->8 @32x32", "m_conv3x3_1_8", 73728, "MAC", 1037840),
    ("conv 10x4 s2 1->64 @49x10", "m_conv10x4_1_64_s2", 320000, "MAC", 1111280),
    ("depthwise 3x3, 2 outputs a channel, 16->32 @16x16", "m_dw3x3_mult2", 73728, "MAC", 2073000),
    ("depthwise 3x3 dilation 2, 32 @16x16", "m_dw3x3_dil2", 73728, "MAC", 2271120),
    ("depthwise 1-D k9 40 @100", "m_dw1d_k9_40", 36000, "MAC", 472680),
    ("avg pool 2x2 s2 32 @32x32", "m_avgpool2s2", 8192, "output", 338520),
    ("max pool 3x3 s2 32 @32x32", "m_maxpool3s2", 8192, "output", 626400),
    ("matmul 12x64 by constant 64x64", "m_matmul_12x64_64", 49152, "MAC", 131320),
    ("add, second of 1x1x1x32", "m_add_channel", 8192, "element", None),
    ("mul, second of 1x1x1x32", "m_mul_channel", 8192, "element", None),
    ("sub 16x16x32", "m_sub", 8192, "element", None),
    ("clip, same scale", "m_clip", 4096, "element", None),
    ("mean over channels 16x16x32", "m_mean_c", 8192, "input", None),
    ("resize bilinear 2x 16@16x16, NCHW", "m_resize_bilinear_nchw", 16384, "output", None),
    ("conv 1x1 16->64 and DepthToSpace", "m_tconv_as_conv", 262144, "MAC", 1581560),
)


def verify(lathe, model, board):
    """Instructions; None: the results are not those of the interpreter."""
    done = subprocess.run([lathe, "verify", model, "--target", "qemu-" + board, "--workers", "0", "--against",
                           "interpreter", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{os.path.basename(model)}: {done.stderr.strip()[-200:]}", file=sys.stderr)
        return None
    operators = json.loads(done.stdout)["result"]["board"]["operators"]
    return sum(o["instructions"] for o in operators if not o["kernel"].startswith(COPY))


def has_vectors(lathe, model, folder):
    """Whether a kernel's object for a Cortex-M55 names a register of vectors."""
    out = os.path.join(folder, "package")
    shutil.rmtree(out, ignore_errors=True)
    for command in ([lathe, "compile", model, "-q", "-o", out, "--target", "cortex-m55", "--port", "baremetal"],
                    ["make", "-s", "-C", out, "build/ops.o", "CC=arm-none-eabi-gcc"]):
        subprocess.run(command, check=True, capture_output=True)
    text = subprocess.run(["arm-none-eabi-objdump", "-d", "-m", "armv8.1-m.main", "--no-show-raw-insn",
                           os.path.join(out, "build", "ops.o")], check=True, capture_output=True, text=True).stdout
    return bool(VECTORS.search(text))


def row(lathe, folder, operator):
    name, model, work, unit, other = operator
    file = os.path.join(folder, model + ".onnx")
    count, wide, vectors = verify(lathe, file, "m4"), verify(lathe, file, "m55"), has_vectors(lathe, file, folder)
    ratio = f"{other / count:.2f}" if other and count else "-"
    ratio = f"**{ratio}**" if other and count and other < count else ratio
    article = "an" if unit[0] in "aeio" else "a"
    each = f"{count:,} | {count / work:.2f} {article} {unit}" if count else "differs | -"
    return (f"| {name} | {each} | {f'{other:,}' if other else '-'} | {ratio} | "
            f"{f'{wide:,}' if wide else 'differs'}{'' if vectors else ', **no vectors**'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--layers", default=os.path.join(TOP, "..", "shared", "bench", "layers"))
    parser.add_argument("--filter", default="", help="only operators whose name has this text")
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    script = os.path.join(options.layers, "micro.py")
    missing = [t for t in ("arm-none-eabi-gcc", "qemu-system-arm") if not shutil.which(t)]
    if not os.path.exists(script) or missing:
        print(f"skipped: {', '.join(missing) or script + ' is not there'}")
        return 77
    spec = importlib.util.spec_from_file_location("micro", script)
    micro = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(micro)
    lines = ["| operator | Lathe | | CMSIS-NN | CMSIS-NN / Lathe | Cortex-M55 |", "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for model in (*micro.models(), *micro.more()):
            model.save(folder)
        for operator in OPERATORS:
            if options.filter in operator[0]:
                lines.append(row(os.path.abspath(options.lathe), folder, operator))
                print(lines[-1], flush=True)
    if options.write and not options.filter:
        with open(PAGE, encoding="utf-8") as f:
            text = f.read()
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text[:start] + "\n" + "\n".join(lines) + "\n" + text[end:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
