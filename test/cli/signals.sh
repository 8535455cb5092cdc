#!/usr/bin/env bash
# Signals while a C compiler runs end lathe as they end every program, and leave neither temporary folders nor children.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
export TMPDIR="$work/tmp"
mkdir tmp
six_operators > six.txt

# script NAME: standard input becomes a program
script() { cat > "$1" && chmod +x "$1"; }
no_leftovers() { check "$1: nothing is left" test -z "$(ls -A tmp; ls -d ./*.tmp* 2> /dev/null)"; }

# --- signals while a C compiler runs
for signal in INT TERM HUP; do
    script cc << SH
#!/bin/sh
echo \$\$ > "$work/pid"
kill -$signal \$PPID
sleep 10
SH
    (CC=./cc timeout "$limit" "$lathe" run six.txt; exit $?) > said 2>&1
    check "SIG$signal ends lathe as it ends every program" test $? = $((128 + $(kill -l $signal)))
    no_leftovers "SIG$signal"
    check "SIG$signal: the compiler is gone" sh -c "! kill -0 $(cat pid)"
done
script cc << 'SH'
#!/bin/sh
kill -HUP $PPID
echo 'error: ignored' && exit 1
SH
(trap '' HUP && CC=./cc "$lathe" run six.txt > said 2>&1) # timeout would not hand that on
check "under nohup it goes on" test $? = 3
no_leftovers nohup

finish
