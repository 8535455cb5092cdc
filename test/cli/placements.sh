#!/usr/bin/env bash
# The search for placements: problems that leave no byte to spare are solved, whatever the machine; see placements.py.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
for case in "20 1 1" "40 1 1" "40 3 1" "80 1 10" "80 3 10" "150 3 100"; do
    set -- $case
    python3 "$top/test/py/placements.py" "$@" > problem.plan || exit 77
    expect 0 'workspace 1048576 lower bound 1048576' opt problem.plan
    sed -i 's/^effort .*/effort 1000/' problem.plan # more effort, the same bytes
    expect 0 'workspace 1048576 lower bound 1048576' opt problem.plan
done
printf 'workers 1\neffort 0\n' > bad.plan
expect_error 1 'effort: 1 to 1000' opt bad.plan
expect_error 2 'plan-effort' inspect "$top/demo/digits.onnx" --plan-effort 0
expect 0 'workspace' inspect "$top/demo/digits.onnx" --plan-effort 20
finish
