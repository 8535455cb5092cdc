#!/usr/bin/env bash
# The accelerator of examples/gemmini: its model against the digests of the reference's functional model (70 random
# programs, where they are there), and against programs by hand. Only the second ones ask for faults: what the model must
# refuse, because hardware does not order it or does something else; the functional model takes most of that. Not in
# `make check`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
example=$top/examples/gemmini
vectors=$top/../shared/bench/gemmini/vectors.txt
cd "$work" || exit 1

# --- the model of the device
check "the model is built" gcc -std=c11 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
    "$example/device.c" "$example/replay.c" -o replay -lm
check "programs by hand" sh -c './replay --strict "$0/programs.txt" 2> by_hand' "$example"
check "26 of them" grep -qx '26 programs, 108 instructions, 38 digests: 0 wrong' by_hand
if [ -f "$vectors" ]; then
    check "programs of the reference" sh -c './replay "$0" 2> reference' "$vectors"
    check "all of them" grep -qx '70 programs, 8085 instructions, 4375 digests: 0 wrong' reference
else
    echo "skipped: the reference's programs ($vectors) are not there"
fi
sed 's/ dafad41be44f741f$/ dafad41be44f7410/; s/fault a window/fault no window/' "$example/programs.txt" > wrong.txt
check "wrong digests and faults are found" sh -c '! ./replay --strict wrong.txt 2> wrong.log && grep -q ": 2 wrong" wrong.log'

finish
