#!/usr/bin/env bash
# The words of pages, messages and comments: misspelt ones by codespell, and those that docs/words.txt refuses in pages,
# in public headers, from which the reference is made, and in string literals of C and of the Python packages, which
# the programs print and write. In pages code does not count: text between backticks and in fences.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
pages=(README.md ARCHITECTURE.md CONTRIBUTING.md STYLE.md CHANGELOG.md docs/*.md docs/*/*.md)
failed=0

# Names that look like words: te is a folder, the others are options and variables with a fault that tests want.
known=te,statics,targt,ssee,ot,coo,caf,verfiy,tey,simplfy,nd,hight,heigth,ake,bu,want\'s
if command -v codespell > /dev/null; then
    codespell -L "$known" "${pages[@]}" src runtime kernel include tools scripts demo examples bindings cmake test/cli test/py \
        test/unit 2> /dev/null && spelling=1 || spelling=0
    failed=$((failed + 1 - spelling))
else
    echo "skipped: there is no codespell"
fi

# "FILE:LINE: text" of all pages, without code
prose() {
    awk 'FNR == 1 { fence = 0 }
         /^ *```/ { fence = !fence; next }
         fence { next }
         { gsub(/`[^`]*`/, "`"); print FILENAME ":" FNR ": " $0 }' "${pages[@]}"
}
# the same of public headers
headers() {
    grep -nH '' include/lathe/*.h runtime/tvmrt/tvmrt.h runtime/vm/lathe_vm.h runtime/vm/lathe_tensor.h runtime/vta/vta.h \
        runtime/vta/vta_runtime.h runtime/vta/vta_replay.h runtime/rpc/lathe_rpc.h | sed 's/:/: /2'
}
# the same of string literals in C, and of those in the Python packages, docstrings included
literals() {
    git ls-files 'src/*.[ch]' 'src/*.def' 'tools/*.[ch]' 'runtime/*.[ch]' 'bindings/*.[ch]' 'bindings/*.def' \
        'bindings/python/src/*.py' | python3 -c '
import re, sys, tokenize
token = re.compile(r"""/\*.*?\*/|//[^\n]*|#include[^\n]*|\x27(?:[^\x27\\\n]|\\.)*\x27|"((?:[^"\\\n]|\\.)*)"|\n""", re.S)
for path in sys.stdin.read().split():
    if path.endswith(".py"):
        for t in tokenize.generate_tokens(open(path, encoding="utf-8").readline):
            if t.type == tokenize.STRING:
                for i, text in enumerate(t.string.split("\n")):
                    print(f"{path}:{t.start[0] + i}: {text}")
        continue
    line = 1
    for m in token.finditer(open(path, encoding="utf-8").read()):
        if m.group(1):
            print(f"{path}:{line}: {m.group(1)}")
        line += m.group(0).count("\n")'
}
rows() { grep -v '^#' docs/words.txt; }
while IFS= read -r hit; do
    failed=$((failed + 1))
    while IFS=$'\t' read -r pattern instead; do
        found=$(grep -oP -m 1 -- "$pattern" <<< "${hit#*: }" | head -n 1)
        [ -z "$found" ] || echo "FAILED ${hit%%: *}: \"$found\": $instead"
    done < <(rows)
done < <({ prose; headers; literals; } | grep -P -- "^[^ ]* .*($(rows | cut -f 1 | paste -sd '|'))")
passed=$((${#pages[@]} - (failed < ${#pages[@]} ? failed : ${#pages[@]})))
echo "words: $passed passed, $failed failed"
[ $failed = 0 ]
