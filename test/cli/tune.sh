#!/usr/bin/env bash
# Only in `make test-long`.
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
expect_error 2 'no file for the schedules' tune model.txt
expect_error 2 'is not a part' tune model.txt -o t.log --shard 3/2
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
grep -q 'going on' stdout && bad "it goes on with nothing: $(cat stdout)" || good
cp t.log before.log
expect 0 'tuned 0 kernels, 2 were in the file already' tune model.txt -o t.log
grep -q '^continuing t.log: 2 records found, 0 kernels left$' stdout && good || bad "it says: $(cat stdout)"
check 'nothing changed' cmp t.log before.log

head -1 before.log > half.log
expect 0 'tuned 1 kernels, 1 were in the file already' tune model.txt -o half.log --candidates 2
[ "$(head -1 stdout)" = 'continuing half.log: 1 record found, 1 kernel left' ] && good || bad "it says: $(cat stdout)"
[ "$(wc -l < half.log)" = 2 ] && [ "$(head -1 half.log)" = "$(head -1 before.log)" ] && good || bad "$(cat half.log)"

# records are schedules: for this compile, as text, and merged by concatenation, of which the faster one counts
expect 0 'schedules  2 of 2' compile model.txt --target native -o p --schedules t.log
expect 0 '' verify model.txt --schedules t.log --against interpreter
expect 0 'schedules +0 of 2' compile model.txt --target generic -o p2 --schedules t.log
grep -q 'is for generic: they are for' stderr && good || bad "schedules of another processor: $(cat stderr)"
[ -s stderr ] && grep -c '^warning' stderr | grep -qx 1 && good || bad "more than one warning: $(cat stderr)"
expect 0 '' schedule model.txt --schedules t.log -o t.schedules
expect 0 'schedules  [23] of 3' compile model.txt --target native -o q --schedules t.schedules
check 'the text gives the same package' diff -r p/src q/src
# a tuner's file may have records of other models; that it has no other ones is told
printf '%s\n' 'func @main(%x: f32[4, 24], %w: f32[24, 40]) {' '  %y = nn.matmul(%x, %w)' '  return %y' '}' > other.txt
expect 0 'schedules  0 of 2' compile other.txt --target native -o q --schedules t.log
grep -q '^warning: t.log:.*: 2 of 2 schedules fit no kernel of the model' stderr && good || bad "it says: $(cat stderr)"
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
{ cat 1.log; head -c 100 2.log; } > cut.log
expect_error 1 'cut.log:2:1: .*the file ends within it' compile model.txt -o q --target native --schedules cut.log
grep -q "^ *hint: 'lathe tune -o cut.log' drops it" stderr && good || bad "no hint: $(cat stderr)"
expect 0 'tuned 1 kernels, 1 were' tune model.txt -o cut.log --candidates 2
grep -q 'not written to its end' stderr && good || bad "it says: $(cat stderr)"
[ "$(wc -l < cut.log)" = 2 ] && good || bad "a record behind half of one: $(cat cut.log)"
cat 1.log 2.log > both.log
expect 0 'tuned 0 kernels, 2 were in the file already' tune model.txt -o both.log

# both networks in turns
expect 0 'lathe\+schedules .*median.*' bench model.txt --target native --schedules t.log --against lathe --repeat 1 --workers 1

# the other side: a program that speaks so, one that dies, one that says no, one that talks nonsense, none at all
expect 0 'tuned 2 kernels' tune model.txt -o other.log --measure "$lathe measure" --candidates 2
printf '#!/bin/sh\nexit 3\n' > dies.sh
printf '#!/bin/sh\nsed -u "/^end$/q" > log.in; echo "{\\"failed\\": \\"no room\\"}"\n' > refuses.sh
printf '#!/bin/sh\nsed -u "/^end$/q" > log.in; echo hello\n' > raves.sh
chmod +x ./*.sh
expect_error 3 'none of 2 kernels could be measured' tune model.txt -o no.log --measure ./dies.sh
grep -q '^ *hint: --measure: .*dies.sh. has to answer as' stderr && good || bad "no hint: $(cat stderr)"
grep -q 'not measured: the measuring program ended with status 3' stdout && good || bad "it says: $(cat stdout)"
expect_error 3 'none of 2 kernels could be measured' tune model.txt -o no.log --measure ./refuses.sh
grep -q 'not measured: no room' stdout && good || bad "it says: $(cat stdout)"
expect_error 3 "answered 'hello'" tune model.txt -o no.log --measure ./raves.sh
expect_error 3 "there is no program './nosuch'" tune model.txt -o no.log --measure ./nosuch
sed '/%v/s/, %v: f32\[48, 48\]//; /%c =/d; s/softmax(%c)/softmax(%b)/' model.txt > one.txt
# a candidate that comes back wrong is said so, and is never the best
printf '#!/bin/sh\nsed -u "/^end$/q" > log.in; echo "{\\"compiler\\": \\"1\\", \\"seconds\\": [2, 2, -1, -1, -1]}"\n' > wrong.sh
chmod +x wrong.sh
"$lathe" tune one.txt -o wrong.log --measure ./wrong.sh --candidates 4 > stdout 2> stderr
grep -q ': 2000 ms by rule, 2000 ms tuned, 1 candidate, 3 WRONG$' stdout && good || bad "it says: $(cat stdout stderr)"
# one that hangs is stopped, with what it started
printf '#!/bin/sh\nsleep 600 &\necho $! > sleeper\nwait\n' > hangs.sh
chmod +x hangs.sh
expect_error 3 'none of 1 kernels could be measured' tune one.txt -o no.log --measure "$work/hangs.sh" --limit 1
grep -q 'not measured: the measuring program took too long' stdout && good || bad "it says: $(cat stdout)"
state=$(grep '^State:' "/proc/$(cat sleeper)/status" 2> log)
case $state in '' | *Z* | *X*) good ;; *) bad "what hung goes on: $state" ;; esac
[ ! -e no.log ] && good || bad "no.log holds $(cat no.log)"
CC=./nosuch-cc expect_error 3 'none of 2 kernels' tune model.txt -o no.log --candidates 2
grep -q 'not measured: .*nosuch-cc' stdout && good || bad "it says: $(cat stdout)"
grep -q '^ *hint: CC names .*--remote HOST:PORT or --measure COMMAND' stderr && good || bad "no hint: $(cat stderr)"
head -1 t.log > half.log
expect 0 'tuned 0 kernels, 1 were in the file already, 1 could not be measured' tune model.txt -o half.log --measure false

# forms of operators: what a pass takes by its estimate, a record may say
three_convolutions > conv.txt
expect 0 'network: .* by rule, .* tuned' tune conv.txt -o c.log --candidates 2
check 'a form is recorded with the network it was measured in' python3 - c.log << 'PY'
import json, sys
forms = [r for r in map(json.loads, open(sys.argv[1])) if "node" in r and not r["node"].startswith("workers of ")]
assert forms, "no record of a form"
for r in forms:
    assert r["node"].startswith("nn.conv2d(f32[1, ") and r["model"] == "conv.txt" and r["compiler"], r
    assert r["seconds"] > 0 and r["rule_seconds"] >= r["seconds"] and r["threads"] > 0, r
layout = next(r for r in forms if "f32[128, 32, 1, 1]" in r["node"])
assert layout["form"] in ("planes", "blocks"), layout
for form in ("planes", "blocks", "heaps"):
    with open(form + ".log", "w") as f:
        f.write(json.dumps(dict(layout, form=form)) + "\n")
PY
cp c.log before.log
expect 0 'tuned 0 kernels' tune conv.txt -o c.log
check 'forms are not measured again' cmp c.log before.log
grep -q '^continuing c.log: [0-9]* records found, 0 kernels left$' stdout && good || bad "it says: $(cat stdout)"
grep -v '"node"' before.log > kernels.log
expect 0 '^continuing kernels.log: [0-9]+ records found, [0-9]+ kernels? left; after that, other forms are tried' \
    tune conv.txt -o kernels.log --candidates 2 --budget 1
expect 0 'forms +1 of 1' compile conv.txt --target native -o planes --schedules planes.log
expect 0 'forms +1 of 1' compile conv.txt --target native -o blocks --schedules blocks.log
expect 0 'forms +0 of 1' compile conv.txt --target native -o by_rule --schedules heaps.log
check 'the rule takes blocks here' diff -r by_rule/src blocks/src
diff -r planes/src blocks/src > log && bad 'both forms are one package' || good
expect 0 '' verify conv.txt --schedules planes.log --against interpreter
# how many workers share a small kernel is a form, too
printf '%s\n' 'func @main(%x: f32[64, 1024]) {' '  %y = nn.softmax(%x) : f32[64, 1024]' '  return %y' '}' > share.txt
for workers in 2 4; do
    expect 0 'tuned 0 kernels' tune share.txt -o "share$workers.log" --workers $workers --target x86-64-v3 --candidates 2
    check "its record for $workers workers" grep -q '"threads": '$workers'.*"workers of nn.softmax(f32\[64, 1024\]) : f32\[64, 1024\]"' \
        "share$workers.log"
    for form in all half one; do
        sed 's/"form": "[a-z]*"/"form": "'$form'"/' "share$workers.log" > $form.log
        "$lathe" compile share.txt --target x86-64-v3 --workers $workers --schedules $form.log -o $form.$workers -q
    done
done
# tasks FORM WORKERS
tasks() { grep -o '"tasks": *[0-9]*' "$1.$2/report.json" | tail -1 | tr -dc 0-9; }
check "one worker: one task" test "$(tasks one 2) $(tasks one 4)" = "1 1"
check "half of them" test "$(tasks half 4)" = 2
check "all of them: more" test "$(tasks all 4)" -ge 4 -a "$(tasks all 2)" -ge 2
check "of two there is no half" test "$(tasks half 2)" = "$(tasks all 2)"
# Whichever forms win, one call leaves nothing for the next.
measuring="python3 $top/test/cli/measuring.py"
# chosen WINS [no]
chosen() {
    "$lathe" tune conv.txt -o chosen.log --target x86-64-v3 --workers 2 --candidates 3 --measure "$measuring $*" \
        > stdout 2> stderr
}
for wins in 0 1 3 5 63; do
    rm -f chosen.log
    check "with wins $wins" chosen $wins
    # the last pair is the rules' network and the tuned one
    case $wins in
    0) grep -q '^network: .* ms tuned (no gain: ' stdout && good || bad "slower than by rule: $(tail -1 stdout)" ;;
    63) grep -q '^network: .* ms tuned, ' stdout && good || bad "faster than by rule: $(tail -1 stdout)" ;;
    esac
    cp chosen.log "wins$wins.log"
    expect 0 'tuned 0 kernels, 3 were in the file already, 0 could' tune conv.txt -o chosen.log --target x86-64-v3 \
        --workers 2 --candidates 9 --budget 1000 --measure "$measuring $wins"
    check "nothing is left with wins $wins" cmp chosen.log "wins$wins.log"
done
grep -q '"nn.conv2d(f32\[1, 128, ' wins0.log && bad 'the second layer has a choice behind blocks' || good
check 'behind planes it has one, which is tried in the same call' grep -q '"nn.conv2d(f32\[1, 128, ' wins1.log
check 'one record for each' python3 - wins*.log << 'PY'
import json, sys
for name in sys.argv[1:]:
    keys = [r.get("node") or r["computation"] for r in map(json.loads, open(name))]
    assert len(keys) == len(set(keys)), (name, sorted(keys))
PY
# what could not be measured is tried once in a call, has no record, and is there for the next call
rm -f chosen.log
chosen 0 no
check 'kernels without networks' test "$(grep -c computation chosen.log) $(grep -c node chosen.log)" = "5 0"
check 'each network once' test "$(grep -c 'was not measured' stderr)" = 4
chosen 1
chosen 1
check 'then all' cmp <(sort chosen.log) <(sort wins1.log)
sed 's/"threads": [0-9]*/"threads": 0/' planes.log > broken.log
expect_error 1 'broken.log:1:1: .*a field is missing' compile conv.txt -o q --schedules broken.log

# files that are not the tuner's stay
echo 'my notes' > notes.txt
expect_error 2 'is not a file of lathe tune' tune model.txt -o notes.txt
[ "$(cat notes.txt)" = 'my notes' ] && good || bad 'notes.txt was replaced'
sed 's/"seconds": [^,]*,//' t.log > broken.log
expect_error 1 'broken.log:1:1: .*a field is missing' compile model.txt -o q --schedules broken.log
{ cat t.log; echo '{"computation": '; } > broken.log
expect_error 1 'broken.log:3:1: .*not a record' compile model.txt -o q --schedules broken.log

# the measuring side takes packages, and nothing else
measure() { printf "$1" | timeout "$limit" "$lathe" measure > stdout 2> stderr; }
measure '' && good || bad 'no package is not an error'
measure 'hello\n' && bad 'it took hello' || good
measure 'package 9\nfile 3 ../x\nabc\nend\n' && bad 'it took a path that leads out' || good
grep -q 'is broken' stdout && good || bad "it says: $(cat stdout)"
measure 'package 9\nfile 3 /tmp/x\nabc\nend\n' && bad 'it took a path from the root' || good
measure 'package 9\nfile 99 a\nabc' && bad 'it took a file that ends' || good
measure 'networks 9\nend\n' && bad 'one package is not a pair' || good
measure 'package 9\nend\n' && good || bad 'an empty package is an answer'
grep -q '"failed"' stdout && good || bad "it says: $(cat stdout)"
finish
