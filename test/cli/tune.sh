#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tuner: what it keeps, how it goes on, and what happens when the side that measures is slow, dies or lies. No time
# that it measures is looked at.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
cat > model.txt << 'TEXT'
func @main(%x: f32[8, 32], %w: f32[32, 48], %v: f32[48, 48]) {
  %a = nn.matmul(%x, %w) : f32[8, 48]
  %b = nn.relu(%a) : f32[8, 48]
  %c = nn.matmul(%b, %v) : f32[8, 48]
  %d = nn.softmax(%c) : f32[8, 48]
  return %d
}
TEXT
expect_error 2 'no file for the records' tune model.txt
expect_error 2 'is no part' tune model.txt -o t.log --shard 3/2
expect_error 2 'no command' tune model.txt -o t.log --measure ' '

# all of it, then nothing is left to do, and the file is as it was
expect 0 'tuned 2 kernels, 0 were in the file already, 0 could not be measured' tune model.txt -o t.log --candidates 4
[ "$(wc -l < t.log)" = 2 ] && good || bad "t.log: $(cat t.log)"
check 'each record says what it is of' python3 - t.log << 'PY'
import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    assert r["threads"] == 1 and r["seconds"] > 0 and r["rule_seconds"] >= r["seconds"] and r["compiler"], r
    assert 1 <= r["measured"] <= 4 and r["kernel"].startswith("fused_nn_matmul"), r
    assert r["computation"].startswith("placeholder p0") and "return" in r["computation"] and r["schedule"], r
PY
cp t.log before.log
expect 0 'tuned 0 kernels, 2 were in the file already' tune model.txt -o t.log
check 'nothing changed' cmp t.log before.log

head -1 before.log > half.log
expect 0 'tuned 1 kernels, 1 were in the file already' tune model.txt -o half.log --candidates 2
[ "$(wc -l < half.log)" = 2 ] && [ "$(head -1 half.log)" = "$(head -1 before.log)" ] && good || bad "$(cat half.log)"

# records are schedules: for this compile, as text, and merged by concatenation, of which the faster one counts
expect 0 'schedules  2 of 2' compile model.txt --target native -o p --schedules t.log
expect 0 '' verify model.txt --schedules t.log --against interpreter
expect 0 '' schedule model.txt --schedules t.log -o t.schedules
expect 0 'schedules  [23] of 3' compile model.txt --target native -o q --schedules t.schedules
check 'the text gives the same package' diff -r p/src q/src
check 'two records of one kernel' python3 - t.log << 'PY'
import json, sys
r = [json.loads(line) for line in open(sys.argv[1])]
r[0]["seconds"] *= 2
r[0]["schedule"] = ""
open("slow.log", "w").write(json.dumps(r[0]) + "\n")
r[0]["seconds"] /= 8
open("fast.log", "w").write(json.dumps(r[0]) + "\n")
PY
cat t.log slow.log > merged.log
expect 0 '' compile model.txt --target native -o q --schedules merged.log
check 'the faster record counts, though it stands first' diff -r p/src q/src
cat fast.log t.log > merged.log
expect 0 '' compile model.txt --target native -o q --schedules merged.log
diff -r p/src q/src > log && bad 'the faster record does not count' || good

# parts, for several machines
expect 0 'tuned 1 kernels' tune model.txt -o 1.log --shard 1/2 --candidates 2
expect 0 'tuned 1 kernels' tune model.txt -o 2.log --shard 2/2 --candidates 2
cp 1.log again.log
expect 0 'tuned 0 kernels, 1 were in the file already' tune model.txt -o again.log --shard 1/2
check 'a part stays that part' cmp 1.log again.log
printf %s "$(cat 1.log)" > cut.log
expect 0 'tuned 1 kernels, 1 were' tune model.txt -o cut.log --candidates 2
[ "$(wc -l < cut.log)" = 2 ] && good || bad "a record behind one without an end of line: $(cat cut.log)"
cat 1.log 2.log > both.log
expect 0 'tuned 0 kernels, 2 were in the file already' tune model.txt -o both.log

# the other side: a program that speaks so, one that dies, one that says no, one that talks nonsense, none at all
expect 0 'tuned 2 kernels' tune model.txt -o other.log --measure "$lathe measure" --candidates 2
printf '#!/bin/sh\nexit 3\n' > dies.sh
printf '#!/bin/sh\nsed -u "/^end$/q" > log.in; echo "{\\"failed\\": \\"no room\\"}"\n' > refuses.sh
printf '#!/bin/sh\nsed -u "/^end$/q" > log.in; echo hello\n' > raves.sh
chmod +x ./*.sh
expect 0 'tuned 0 kernels, 0 were in the file already, 2 could not be measured' tune model.txt -o no.log --measure ./dies.sh
expect 0 'not measured: no room' tune model.txt -o no.log --measure ./refuses.sh
expect_error 3 "answered 'hello'" tune model.txt -o no.log --measure ./raves.sh
expect 0 '2 could not be measured' tune model.txt -o no.log --measure ./nosuch
[ ! -e no.log ] && good || bad "no.log holds $(cat no.log)"
CC=./nosuch-cc expect 0 'not measured: .*nosuch-cc' tune model.txt -o no.log --candidates 2

# files that are not the tuner's stay
echo 'my notes' > notes.txt
expect_error 2 'holds no records of the tuner' tune model.txt -o notes.txt
[ "$(cat notes.txt)" = 'my notes' ] && good || bad 'notes.txt was replaced'
sed 's/"seconds": [^,]*,//' t.log > broken.log
expect_error 1 'broken.log:1:1: .*a field is missing' compile model.txt -o q --schedules broken.log
{ cat t.log; echo '{"computation": '; } > broken.log
expect_error 1 'broken.log:3:1: .*no record' compile model.txt -o q --schedules broken.log

# the measuring side takes packages, and nothing else
measure() { printf "$1" | timeout "$limit" "$lathe" measure > stdout 2> stderr; }
measure '' && good || bad 'no package is no error'
measure 'hello\n' && bad 'it took hello' || good
measure 'package 9\nfile 3 ../x\nabc\nend\n' && bad 'it took a path that leads out' || good
grep -q 'is broken' stdout && good || bad "it says: $(cat stdout)"
measure 'package 9\nfile 3 /tmp/x\nabc\nend\n' && bad 'it took a path from the root' || good
measure 'package 9\nfile 99 a\nabc' && bad 'it took a file that ends' || good
measure 'package 9\nend\n' && good || bad 'an empty package is an answer'
grep -q '"failed"' stdout && good || bad "it says: $(cat stdout)"
finish
