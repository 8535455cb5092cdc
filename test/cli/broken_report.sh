#!/usr/bin/env bash
# A package whose report.json somebody has changed: run and inspect name the file, whatever it holds.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
six_operators > six.txt
"$lathe" compile six.txt -o six || exit 1

# refused PATTERN TEXT: run and inspect refuse the package when report.json is TEXT
refused() {
    rm -rf p && cp -r six p
    printf '%s' "$2" > p/report.json
    for verb in run inspect; do expect_error 1 "$1" $verb p; done
}

# broken EDIT...: the same when one field is another; what sed changes must be there
broken() {
    local edit text
    for edit in "$@"; do
        text=$(sed "$edit" flat.json)
        [ "$text" != "$(cat flat.json)" ] || bad "nothing to edit: $edit"
        refused 'report.json. is broken' "$text"
    done
}

sed 's/^ *//; s/": /":/' six/report.json | tr -d '\n' > flat.json
cp -r six p && cp flat.json p/report.json
expect 0 '' run p
expect 0 '^workspace [0-9]+ bytes' inspect p

refused 'report.json' ''
refused 'report.json. is broken: ' '['
refused 'report.json. is broken' '[]'
broken 's/"inputs":/"input":/' 's/"name":"x"/"name":7/' 's/"module_name":"default",//' 's/"kind":"[^"]*"/"kind":null/' \
    's/"layer":0/"layer":"0"/' 's/"operators":\[/"operators":7,"o":[/' 's/"workers":[0-9]*/"workers":1000000/' \
    's/"constant_bytes":[0-9]*/"constant_bytes":-4/'
broken 's/float32/i4/' 's/float32/string/' 's/"dtype":"float32"/"dtype":1/' # i4 has no bytes of its own
broken 's/"shape":\[1\]/"shape":[2305843009213693952,2]/' 's/"shape":\[1\]/"shape":[4294967296,4294967296]/' \
    's/"shape":\[1\]/"shape":[-1]/' 's/"shape":\[1\]/"shape":["two"]/' 's/"shape":\[1\]/"shape":1/' \
    's/"shape":\[1\]/"shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]/'
sed 's/"posix"/"freertos"/' flat.json > p/report.json
expect_error 2 'another system' run p
finish
