#!/usr/bin/env bash
# Remote devices by the command line: the commands of docs/how-to/rpc.md, what they refuse, and what is left when they
# end. Not in `make check`: servers start and end for ten seconds; unit/test_rpc has the protocol.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
cd "$top" || exit 3
mkdir "$work/tmp"
servers=()
trap 'kill "${servers[@]}" 2> /dev/null; wait; rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp

# start NAME ARGUMENTS...: a verb that listens; its port in $port, its process in $pid.
start() {
    local name=$1 line
    shift
    "$lathe" "$@" > "$work/$name" 2> "$work/$name.log" &
    pid=$!
    servers+=("$pid")
    until line=$(grep -s 'listens on' "$work/$name"); do
        kill -0 "$pid" 2> /dev/null || { bad "$*: $(cat "$work/$name.log")"; return 1; }
        sleep 0.05
    done
    port=${line##*:}
}

stop() {
    kill "$1"
    wait "$1" || bad "a server ends with $?"
}

same() {
    if timeout "$limit" "$@" --seed 3 > "$work/got" 2> "$work/log" && diff "$work/want" "$work/got" > /dev/null; then good
    else bad "$*: $(cat "$work/got" "$work/log")"; fi
}

# Every command of the document is run here, with its own ports.
cp demo/digits.onnx "$work/model.onnx"
"$lathe" run "$work/model.onnx" --emit module --target my_device --seed 3 > "$work/want" 2> /dev/null || bad "no module runs here"
start tracker rpc-tracker --port 0 && tracker=$port tracker_pid=$pid
start server rpc-server --port 0 --key board && server=$port server_pid=$pid
start offered rpc-server --port 0 --key board --tracker "127.0.0.1:$tracker" && offered_pid=$pid
"$lathe" bench "$work/model.onnx" --repeat 1 > /dev/null 2>&1 || bad "nothing is measured here"
documented=0
while read -r line; do
    documented=$((documented + 1))
    line=${line%%#*} line=${line//model.onnx/$work/model.onnx}
    line=${line//127.0.0.1:9090/127.0.0.1:$server} line=${line//127.0.0.1:9190/127.0.0.1:$tracker}
    read -ra words <<< "$line"
    case $line in
    *rpc-server*|*rpc-tracker*)
        line=$(sed -E 's/--port [0-9]+/--port 0/' <<< "$line")
        read -ra words <<< "$line"
        start "documented$documented" "${words[@]:1}" && stop "$pid" && good ;;
    *' run '*) same "$lathe" "${words[@]:1:${#words[@]}-3}" ;; # without its picture
    *' bench '*)
        if "$lathe" "${words[@]:1}" --repeat 2 2> "$work/log" | grep -q 'median'; then good
        else bad "$line: $(cat "$work/log")"; fi ;;
    *' tune '*)
        line=${line//-o tuned/-o $work/tuned}
        read -ra words <<< "${line//x86-64-v3/x86-64-v2}" # which every machine has
        if "$lathe" "${words[@]:1}" --candidates 1 2> "$work/log" | grep -q '0 could not be measured'; then good
        else bad "$line: $(cat "$work/log")"; fi ;;
    *) bad "docs/how-to/rpc.md: a command that this test does not know: $line" ;;
    esac
done < <(sed -n '/^```sh/,/^```/p' docs/how-to/rpc.md | grep '^lathe ')
[ "$documented" = 6 ] || bad "docs/how-to/rpc.md has $documented commands"

# A module that is compiled already; several outputs go to files.
"$lathe" compile "$work/model.onnx" --emit module -q -o "$work/model.so" || bad "no module"
same "$lathe" run "$work/model.so" --remote "127.0.0.1:$server" --key board
same "$lathe" run "$work/model.onnx" --tracker "127.0.0.1:$tracker" --key board

# What is refused, and says how it goes.
expect 3 'another key or token; no key was given' run "$work/model.onnx" --remote "127.0.0.1:$server"
expect 3 "another key than 'desk'" run "$work/model.onnx" --remote "127.0.0.1:$server" --key desk
expect 3 'hint: .*--key and --token-file' run "$work/model.onnx" --remote "127.0.0.1:$server" --key desk
expect 3 'is not a tracker' run "$work/model.onnx" --tracker "127.0.0.1:$server" --key board
expect 3 'closed the connection' run "$work/model.onnx" --remote "127.0.0.1:$tracker" --key board
expect 3 'Connection refused' run "$work/model.onnx" --remote 127.0.0.1:1
expect 2 'is not a HOST:PORT' run "$work/model.onnx" --remote 9090
expect 2 'is not a HOST:PORT' run "$work/model.onnx" --remote 127.0.0.1:70000
expect 2 'is for runs on this machine' bench "$work/model.onnx" --remote 127.0.0.1:1 --against onnxruntime
expect 2 'a remote device runs modules' run "$work/model.onnx" --remote 127.0.0.1:1 --emit c
expect 2 'is a package' run "$work" --remote 127.0.0.1:1
expect 2 'a server, and --tracker' run "$work/model.onnx" --remote 127.0.0.1:1 --tracker 127.0.0.1:2
expect 2 'needs --target' tune "$work/model.onnx" -o "$work/no.log" --remote 127.0.0.1:1
expect 2 'both choose the machine' tune "$work/model.onnx" -o "$work/no.log" --remote 127.0.0.1:1 --measure x --target aarch64
expect 3 'Connection refused' tune "$work/model.onnx" -o "$work/no.log" --remote 127.0.0.1:1 --target x86-64-v2
[ ! -e "$work/no.log" ] && good || bad "a file of records without a server: $(cat "$work/no.log")"
expect 2 'for a remote device' run "$work/model.onnx" --key board
expect 2 'takes no argument' rpc-server here
expect 2 'one word' rpc-server --port 0 --key 'two words'
expect 2 'by their key' rpc-server --port 0 --tracker "127.0.0.1:$tracker"
expect 2 'is not a number from 0 to 65535' rpc-server --port 70000
expect 2 'sessions of' rpc-server --port 0 --cores 1024
expect 3 'in use' rpc-server --port "$server"
: > "$work/empty"
expect 1 'must be a token' rpc-server --port 0 --token-file "$work/empty"

# A server that nobody offers is waited for aloud.
"$lathe" run "$work/model.onnx" --tracker "127.0.0.1:$tracker" --key nosuch > "$work/out" 2> "$work/waits" &
pid=$!
until grep -qs "^waiting for a server with key 'nosuch' at 127.0.0.1:$tracker\$" "$work/waits"; do
    kill -0 "$pid" 2> /dev/null || { bad "nothing says that it waits: $(cat "$work/waits")"; break; }
    sleep 0.05
done
kill "$pid" 2> /dev/null && good
wait "$pid"

# A token, for a server and for a tracker.
echo 's3cret' > "$work/token"
start closed rpc-server --port 0 --key board --token-file "$work/token" --cores 1 --sessions 1 && closed_pid=$pid
expect 3 'asks for another token' run "$work/model.onnx" --remote "127.0.0.1:$port" --key board
same "$lathe" run "$work/model.onnx" --remote "127.0.0.1:$port" --key board --token-file "$work/token"
if grep -q s3cret "$work"/*.log; then bad "a log has the token"; else good; fi

# All of them end when they are asked to, and nothing stays.
for pid in "$offered_pid" "$server_pid" "$closed_pid" "$tracker_pid"; do stop "$pid"; done
servers=()
left=$(ls "$TMPDIR")
[ -z "$left" ] && good || bad "left behind: $left"
finish
