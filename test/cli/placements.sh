#!/usr/bin/env bash
# The search for placements: problems that leave no byte to spare are solved, whatever the machine; see placements.py.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
for case in "20 1 1" "40 1 1" "40 3 1" "80 1 1" "80 3 1"; do
    set -- $case
    python3 "$top/test/py/placements.py" "$@" > problem.plan || exit 77
    expect 0 'workspace ([0-9]+) lower bound \1 ' opt problem.plan
    sed -i 's/^effort .*/effort 1000/' problem.plan # more effort, the same bytes
    expect 0 'workspace ([0-9]+) lower bound \1 ' opt problem.plan
done
# Eleven of the size that is known as hard, 150 to 450 blocks: a minute each is their limit, a second is what they take.
for case in "150 1 10" "150 2 10" "170 11 10 0" "200 1 10" "200 3 10" "250 3 10" "250 4 10 0" "300 1 10 0" "350 3 10" \
    "400 3 10 0" "450 3 10 0"; do
    set -- $case
    python3 "$top/test/py/placements.py" "$@" > problem.plan || exit 77
    expect 0 'workspace ([0-9]+) lower bound \1 ' opt problem.plan
done
# Not to its bound, and near it: sizes above the peak are searched in both ways, too.
python3 "$top/test/py/placements.py" 400 3 10 0.05 > problem.plan || exit 77
"$lathe" opt problem.plan > out
bytes=$(sed -n 's/.*workspace \([0-9]*\) lower bound 1048576 .*/\1/p' out)
[ "${bytes:-9999999}" -le 1100000 ] && good || bad "workspace $bytes of 400 blocks"
printf 'workers 1\neffort 0\n' > bad.plan
expect_error 1 'effort: 1 to 1000' opt bad.plan
expect_error 2 'plan-effort' inspect "$top/demo/digits.onnx" --plan-effort 0
expect 0 'workspace' inspect "$top/demo/digits.onnx" --plan-effort 20
finish
