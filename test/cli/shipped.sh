#!/usr/bin/env bash
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
# The tuned schedules that come with lathe, and scripts/tuned.py, which makes them: each record says all that
# docs/how-to/tuning.md promises, gains, and its schedule still fits its computation; each file has its row in the
# table; and where the networks are at hand, they still take every record.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
python=${LATHE_PYTHON:-$top/build/venv/bin/python}

# records FOLDER: every file of it, and its table
records() {
    local file k files=0 schedules=0
    for file in "$1"/*.schedules; do
        [ -e "$file" ] || continue
        files=$((files + 1))
        rm -f k.*
        check "$(basename "$file"): its records" python3 - "$file" << 'PY'
import json, os, sys
network, target = os.path.basename(sys.argv[1]).removesuffix(".schedules").split(".", 1)
lines = open(sys.argv[1]).read().splitlines()
assert lines, "empty"
seen = set()
for n, line in enumerate(lines):
    r = json.loads(line)
    assert r["target"] == target and r["compiler"] and 0 < r["seconds"] < r["rule_seconds"], (n, r)
    assert r.get("node", r.get("computation")) not in seen, (n, r)
    seen.add(r.get("node", r.get("computation")))
    if "form" in r:
        assert r["model"] == network + ".onnx" and r["node"] and r["threads"] >= 1, (n, r)
        continue
    with open(f"k.{n}.te", "w") as out:
        out.write(r["computation"])
    with open(f"k.{n}.sched", "w") as out:
        out.write(r["schedule"])
PY
        for k in k.*.te; do
            [ -e "$k" ] || continue
            schedules=$((schedules + 1))
            expect 0 '^primfn' opt "$k" --schedule "${k%.te}.sched"
        done
    done
    check "$1: its table" python3 - "$1" << 'PY'
import os, sys
rows = [x.split("|")[1:-1] for x in open(sys.argv[1] + "/README.md") if x.startswith("| ") and ".schedules" in x]
for name, machine, compiler, count, gain in ([f.strip() for f in r] for r in rows):
    path = os.path.join(sys.argv[1], name)
    if count == "no file":
        assert not os.path.exists(path), name
    else:
        lines = [x for x in open(path)]
        assert machine and int(count) == len(lines) and float(gain) >= 1.01, name
        assert all(compiler in x for x in lines), name
files = {x for x in os.listdir(sys.argv[1]) if x.endswith(".schedules")}
assert files <= {r[0].strip() for r in rows}, files
PY
    echo "$(basename "$1"): $files files, $schedules schedules"
}

# The script, with chosen times: a lathe that measures by measuring.py, and says how fast networks are.
mkdir models
three_convolutions > models/conv.onnx
cp models/conv.onnx models/slow.onnx
cat > lathe.sh << SH
#!/bin/sh
echo "\$1" >> calls
case \$1 in
tune) exec "$lathe" "\$@" --measure "python3 $top/test/cli/measuring.py 1" ;;
bench) case \$2 in */slow.onnx) echo '{"result": {"ratio": 1.001}}' ;; *) echo '{"result": {"ratio": 1.25}}' ;; esac ;;
*) exec "$lathe" "\$@" ;;
esac
SH
chmod +x lathe.sh
# tuned ARGS...
tuned() {
    python3 "$top/scripts/tuned.py" models --lathe ./lathe.sh --targets x86-64-v3 --networks conv,slow --candidates 3 \
        --out made --machine 'a machine' "$@"
}
check 'it makes what gains' tuned --state state
grep -q '^conv.x86-64-v3.schedules: [1-9][0-9]* records, 1.250 times' log && good || bad "it says: $(cat log)"
grep -q '^slow.*1.001: the rules are as good, no file$' log && good || bad "it says: $(cat log)"
check 'and no other file' test "$(ls made)" = "$(printf 'README.md\nconv.x86-64-v3.schedules')"
records "$work/made" > log
cat log
grep -q 'made: 1 files, [1-9]' log && good || bad "it looked at: $(cat log)"
grep -q '"form": "planes"' made/conv.x86-64-v3.schedules && good || bad 'the form that won is not in it'
check 'all of them are taken' tuned --check --untimed
grep -q 'takes \([0-9]*\) of \1 records$' log && good || bad "it says: $(cat log)"
# stopped and called again: what is done is not done again, nothing is measured twice
cp -r made before
rm calls state/slow.x86-64-v3.schedules.done
check 'it goes on' tuned --state state
grep -q '^conv.x86-64-v3.schedules: is done$' log && good || bad "it says: $(cat log)"
check 'with one network' test "$(grep -c tune calls)" = 1
check 'to the same end' diff -r made before
# another machine begins anew; a folder of other things stays
rm calls
check 'another machine' tuned --state state --machine another
check 'begins anew' test "$(grep -c tune calls)" = 2
grep -q '| another | 1 |' made/README.md && good || bad "the table: $(cat made/README.md)"
mkdir notes
echo mine > notes/file
tuned --state notes > log 2>&1 && bad 'it took a folder of other things' || good
check 'which stays' grep -q mine notes/file
# a record that nothing takes is told
sed -i 's/28, 28/28, 29/g' made/conv.x86-64-v3.schedules
tuned --check --untimed > log 2>&1 && bad "records that no kernel takes: $(cat log)" || good
# there is nothing to check
mkdir empty
for none in '--out empty' '--networks nosuch'; do
    # shellcheck disable=SC2086
    tuned --check --untimed $none > log 2>&1 && bad "$none: nothing is as it should be" || good
    grep -q 'NETWORK.TARGET.schedules' log && good || bad "$none: it says: $(cat log)"
done
# a file in a folder's place
for wrong in "$top/README.md --check" "models --check --out $top/README.md" "models --out $top/README.md"; do
    # shellcheck disable=SC2086
    python3 "$top/scripts/tuned.py" $wrong --lathe ./lathe.sh > log 2>&1 && bad "$wrong: it took a file" || good
    [ "$(cat log)" = "$(grep 'README.md is no folder$' log)" ] && [ -s log ] && good || bad "$wrong: it says: $(cat log)"
done
# a network that cannot be compiled stops no other one
rm -r state made
echo '?' > models/conv.onnx
tuned --state state > log 2>&1 && bad 'no model' || good
grep -q 'slow.*the rules are as good' log && good || bad "it says: $(cat log)"

# Those that come with lathe
records "$top/schedules"
script=$(find "${LATHE_ZOO:-$top/../shared}" -name gen_models.py 2> log | head -n 1)
if [ -z "$script" ] || [ ! -x "$python" ] || [ -n "${LATHE_SANITIZE:-}" ]; then
    echo "networks: no gen_models.py in LATHE_ZOO, or a build with sanitizers: whether they take every record is not looked at"
else
    for file in "$top"/schedules/*.schedules; do
        [ -e "$file" ] || continue
        network=$(basename "$file" | cut -d. -f1)
        [ -e "models/$network.onnx" ] || check "$network" "$python" "$script" models "$network"
    done
    check 'every record is taken' python3 "$top/scripts/tuned.py" models --lathe "$lathe" --check --untimed
fi
finish
