#!/usr/bin/env bash
# Scripts that write into the tree say what they do when they are asked with --help, and write nothing then.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
mkdir -p "$work/test" && cp -R "$top/scripts" "$top/demo" "$work" && cp -R "$top/test/py" "$top/test/time_limit" "$work/test" || exit 3
cd "$work" || exit 3
export PYTHONDONTWRITEBYTECODE=1
before=$(find . -type f ! -name log -exec cksum {} + | LC_ALL=C sort)

for script in fmt front_end_operators list_operators coverage update_vta_cycle mutate op_names; do
    check "$script.sh --help" bash "scripts/$script.sh" --help
    grep -q '[a-z]' log || bad "$script.sh --help says nothing"
done
for script in test/py/make_onnx_fixtures test/py/make_tflite_fixtures demo/train demo/train_residual demo/digits_tflite; do
    "$python" "$script.py" --help > log 2>&1
    status=$?
    grep -q ModuleNotFoundError log && continue
    [ $status = 0 ] && grep -q usage: log && good || bad "$script.py --help: $(tail -n 1 log)"
done
check "nothing is written" [ "$before" = "$(find . -type f ! -name log -exec cksum {} + | LC_ALL=C sort)" ]
finish
