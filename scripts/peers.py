#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other tools take on a Cortex-M4: their figures in README.md and docs/explanation/benchmarks.md, and a way to
measure again the one that PyPI has.

    peers.py [--lathe FILE] [--models DIR] [--python FILE] [--networks vww,ic,kws,ad]

figures.py writes the rows of PEERS into the pages. Run alone, this measures emx-onnx-cgen, which --python has (`pip
install emx-onnx-cgen`): its C code for MLPerf Tiny's quantized networks becomes a firmware with the start-up code of
`lathe compile --example`, and runs in QEMU. It prints the figures beside those of PEERS, and fails where one is more
than 2 % off. Without that package, the models or an emulator it ends with 77."""
import argparse
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETWORKS = {"vww": "visual wake words", "ic": "image classification", "kws": "keyword spotting",
            "ad": "anomaly detection"}  # in the order of the columns in benchmarks.md
TOOLS = "arm-none-eabi-gcc", "qemu-system-arm"
ROOM = 0.02

# Tool -> instructions of one inference, bytes of RAM, bytes of flash, as far as the page has rows. Measured in August
# 2026 with GCC 12.2 and QEMU 7.2, as the page's section "How" says; the memory of microTVM is that of its submission.
# RAM is what the tool's code has. ram() adds the arrays that the caller gives for input and output.
PEERS = {
    "TensorFlow Lite Micro, CMSIS-NN": ((24.10e6, 29.86e6, 7.70e6, 0.583e6), (100708, 54996, 22820, 2580),
                                        (389020, 151640, 109668, 309084)),
    "microTVM, CMSIS-NN": ((24.09e6, 29.86e6, 8.29e6, 0.605e6), (64800, 66112, 17232, 1160)),
    "onnx2c": ((80.3e6, 240.0e6, 27.2e6, 3.30e6), (1174312, 571176, 176176, 1066656), (266284, 90592, 37768, 273880)),
    "emx-onnx-cgen": ((100.3e6, 251.3e6, 33.9e6, 4.15e6), (3069978, 1371586, 743766, 1076584),
                      (268777, 92331, 38853, 274788)),
}
ELEMENTS = (27648 + 2, 3072 + 10, 490 + 12, 640 + 640)  # of input and output
# Tool -> bytes of an element in the caller's arrays. The arena of TensorFlow Lite Micro holds input and output; the
# other three read and write arrays of the caller, of bytes (.tflite) or of floats (ONNX).
CALLER = {"TensorFlow Lite Micro, CMSIS-NN": 0, "microTVM, CMSIS-NN": 1, "onnx2c": 4, "emx-onnx-cgen": 4}
HELIUM = (6.56e6, 4.91e6, 1.82e6, 0.286e6)  # TensorFlow Lite Micro, CMSIS-NN: instructions on a Cortex-M55

# The firmware: memory of malloc() lies in the board's PSRAM and is counted, the stack is painted below the caller.
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "board.h"

extern void model(const void *in, void *out);
static float in[%(inputs)d], out[%(outputs)d];
static char *next = &__arena_start;

void *peer_malloc(size_t bytes)
{
    char *const got = next;
    next += (bytes + 7) & ~(size_t)7;
    if (next > &__arena_end)
        board_exit(3);
    return got;
}

void peer_free(void *p) { (void)p; }

int main(void)
{
    char text[96], *const here = __builtin_frame_address(0), *low;
    for (low = &__stack_limit; low < here - 512; low++)
        *(volatile char *)low = 0x5a;
    for (int i = 0; i < %(inputs)d; i++)
        in[i] = (float)(i * 37 %% 101) / 101;
    const uint64_t start = board_instructions();
    model(in, out);
    const uint64_t end = board_instructions();
    for (low = &__stack_limit; *(volatile char *)low == 0x5a; low++) {}
    (void)snprintf(text, sizeof text, "%%lu %%lu %%lu\\n", (unsigned long)(end - start),
                   (unsigned long)(next - &__arena_start), (unsigned long)(here - low));
    (void)board_call(4, text);
    return 0;
}
"""


def ram(tool):
    """Bytes of RAM for each network, with input and output."""
    return [of + CALLER[tool] * n for of, n in zip(PEERS[tool][1], ELEMENTS)]


def elements(argument):
    """Of an argument of the C function: the product of its extents."""
    return math.prod(map(int, re.findall(r"\[(?:restrict )?(\d+)\]", argument)))


def measure_emx(emx, lathe, model, folder):
    """Instructions, bytes of RAM without the arrays of the caller, bytes of flash."""
    code = os.path.join(folder, "emx.c")
    subprocess.run([emx, "compile", model, code, "--large-weight-threshold", "0"], check=True, capture_output=True)
    subprocess.run([lathe, "compile", model, "--target", "cortex-m4", "--example", "-q", "-o", f"{folder}/own"],
                   check=True)
    example = os.path.join(folder, "own", "example")
    with open(os.path.join(example, "Makefile"), encoding="utf-8") as f:
        makefile = f.read()
    flags = re.search(r"-mcpu=.*?hard", makefile).group(0).split()
    with open(code, encoding="utf-8") as f:
        ends = re.search(r"^void model\((.*?)\) \{", f.read(), re.M | re.S).group(1).split(", ")
    with open(os.path.join(example, "main.c"), "w", encoding="utf-8") as f:
        f.write(MAIN % {"inputs": elements(ends[0]), "outputs": elements(ends[1])})
    tool = ["arm-none-eabi-gcc", "-std=gnu11", "-O2", "-w", *flags, f"-I{example}"]
    subprocess.run([*tool, "-Dmalloc=peer_malloc", "-Dfree=peer_free", "-c", code, "-o", f"{folder}/emx.o"], check=True)
    with open(os.path.join(example, "mps2.ld"), encoding="utf-8") as f:
        script = f.read().replace("__stack_bytes = 32K", "__stack_bytes = 512K")
    with open(os.path.join(folder, "peer.ld"), "w", encoding="utf-8") as f:
        f.write(script)
    sources = [f"{example}/{name}" for name in ("main.c", "startup_mps2.c", "semihost.c")]
    subprocess.run([*tool, "-T", f"{folder}/peer.ld", *sources, f"{folder}/emx.o", "-nostartfiles",
                    "--specs=nano.specs", "--specs=nosys.specs", "-lm", "-o", f"{folder}/emx.elf"], check=True)
    emulator = re.search(r"^RUN \?= (.*)", makefile, re.M).group(1).split()
    run = subprocess.run([*emulator, f"{folder}/emx.elf"], capture_output=True, text=True, check=True)
    instructions, heap, stack = map(int, (run.stdout + run.stderr).split())
    size = subprocess.run(["arm-none-eabi-size", f"{folder}/emx.o"], capture_output=True, text=True, check=True)
    text, data, bss = map(int, size.stdout.splitlines()[1].split()[:3])
    return instructions, heap + stack + data + bss, text + data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--models", default=os.path.join(TOP, "..", "shared", "models", "mlperf-tiny"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    args = parser.parse_args()
    emx = os.path.join(os.path.dirname(args.python), "emx-onnx-cgen")
    if not os.path.exists(emx) or not os.path.isdir(args.models) or not all(map(shutil.which, TOOLS)):
        print("peers: no emx-onnx-cgen, no models, or no emulator\n0 passed, 0 failed, 1 skipped")
        return 77
    far = count = 0
    for name in args.networks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found = measure_emx(emx, args.lathe, os.path.join(args.models, name + "_qdq.onnx"), folder)
        for what, got, row in zip(("instructions", "RAM", "flash"), found, PEERS["emx-onnx-cgen"]):
            known = row[list(NETWORKS).index(name)]
            off = abs(got - known) > ROOM * known
            print(f"{'FAILED ' if off else ''}emx-onnx-cgen, {name}: {what} {got:,}, in PEERS {known:,.0f}")
            far, count = far + off, count + 1
    print(f"peers: {count - far} passed, {far} failed")
    return far > 0


if __name__ == "__main__":
    sys.exit(main())
