#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In place of `lathe measure`, with times that a test chooses: measuring.py WINS [no]

Of kernels, the first schedule that is not the rule's is the fastest. Of pairs of networks, the second is the faster one
in pair number i where bit i of WINS is set; `no`: networks are not measured."""
import sys
wins, n = int(sys.argv[1]), 0
def package():
    while (line := sys.stdin.buffer.readline()) not in (b"end\n", b""):
        sys.stdin.buffer.read(int(line.split()[1]))
while line := sys.stdin.buffer.readline():
    networks = line.startswith(b"networks")
    for _ in range(1 + networks):
        package()
    if networks and len(sys.argv) > 2:
        print('{"failed": "no room"}', flush=True)
    elif networks:
        print('{"compiler": "1", "seconds": [2, %d]}' % (1 if wins >> n & 1 else 3), flush=True)
        n += 1
    else:
        print('{"compiler": "1", "seconds": [3, 3, 2%s]}' % (", 3" * 40), flush=True)
