#!/usr/bin/env bash
# Every verb explains itself with examples; the man page and the completion are made from the same tables, and the
# document of operators from theirs.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
verbs="compile run verify bench inspect opt vta"
for verb in $verbs; do
    expect 0 "^  lathe $verb .*" "$verb" --help
    expect 0 'exit status: 0 done' "$verb" -h
    expect 0 "^  lathe $verb .*" help "$verb"
    expect 0 "^  $verb " --help
done
expect 0 '^lathe [0-9]+\.[0-9]+' --version
expect 0 '^lathe [0-9]+\.[0-9]+' version
"$lathe" completion bash > "$work/completion"
check "completion is valid bash" bash -n "$work/completion"
for verb in $verbs; do
    check "completion knows $verb" grep -q "$verb) words=" "$work/completion"
done
expect 2 'bash, zsh and fish' completion tcsh
for shell in zsh fish; do
    "$lathe" completion "$shell" > "$work/completion"
    for verb in $verbs; do
        check "completion of $shell knows $verb" grep -q "$verb" "$work/completion"
    done
    check "completion of $shell has the values of --emit" grep -q 'c module graph' "$work/completion"
    if command -v "$shell" > /dev/null; then
        check "completion is valid $shell" "$shell" -n "$work/completion"
    fi
done
# common options first; the others by topic
expect 0 '^  memory +--ram, --minimize' compile --help
check "no more than two screens" test "$("$lathe" compile --help | wc -l)" -le 48
expect 0 '^  --ram BYTES .*RAM.*' compile --help memory
expect 0 'row by row' compile --help=memory
check "a topic alone" sh -c "! grep -q 'exit status' '$work/stdout'"
expect 0 '^memory: ' help compile memory
expect 0 '^  --emit c\|module ' run --help
expect 0 '^  --against interpreter\|c ' run --help
expect_error 2 'did you mean memory\?' compile --help=memry
expect_error 2 'did you mean memory\?' compile "$top/demo/digits.onnx" --help memry
expect 0 '^  lathe compile ' compile --help "$top/demo/digits.onnx"
expect 0 '^cortex-m4 .*arm-none-eabi-gcc' targets
expect 0 '"name": "cortex-m4"' targets --json
expect 2 'no argument' targets extra
digits=$top/demo/digits.onnx
expect_error 2 "did you mean qemu-m4\? 'lathe targets' lists all" verify "$digits" --target qemu-n4 --against interpreter
expect_error 2 "'lathe targets' lists all targets and emulators; of a microcontroller, name the core" compile "$digits" --target zzzzzzzz -o "$work/none"
boards=$("$lathe" targets | grep -o 'qemu-[a-z0-9]*' | sort -u)
check "emulators are listed" test "$(wc -l <<< "$boards")" -ge 8
for board in $boards; do
    check "cli.md names $board" grep -q "^| .$board. " "$top/docs/reference/cli.md"
done
expect 0 'the folder or file to write' tune --help
for verb in $("$lathe" --help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    case $verb in lathe | completion | man) continue ;; esac
    check "cli.md has $verb" grep -Eq "^\| .*\`(lathe )?$verb[ \`]" "$top/docs/reference/cli.md"
done
"$lathe" man > "$work/lathe.1"
check "the man page begins with its title" grep -q '^\.TH LATHE 1' "$work/lathe.1"
if command -v groff > /dev/null; then
    check "the man page is sound troff" sh -c "! groff -man -Tascii -ww -z '$work/lathe.1' 2>&1 | grep ."
fi
# every option that a verb's help lists is in the man page
"$lathe" compile --help all | grep -Eo -- '--[a-z-]+' | sort -u > "$work/options"
while read -r option; do
    check "the man page has $option" grep -qF -- "$(printf %s "$option" | sed 's/-/\\-/g')" "$work/lathe.1"
done < "$work/options"
# lines as wide as the terminal, or 100; commands of the examples stay in one piece
for verb in $verbs completion man targets; do
    "$lathe" $verb --help all | grep -Ev '^  lathe |^usage:' > "$work/text"
    check "lines of '$verb --help' fit" sh -c "! grep -E '^.{101}' '$work/text'"
done
bash "$top/scripts/list_operators.sh" "$work/operators.md"
check "the pages of the front ends have the operators that these read" bash "$top/scripts/front_end_operators.sh" --check
check "docs/reference/operators.md is what scripts/list_operators.sh makes of the table" diff "$work/operators.md" "$top/docs/reference/operators.md"
# docs/index.md and mkdocs.yml list all pages, and each page once
listed() { grep -oE "$1" "$2" | grep -oE '[a-z/-]+\.md' | sort; }
(cd "$top/docs" && ls -- *.md tutorials/*.md how-to/*.md reference/*.md explanation/*.md notes/*.md) | grep -v '^index\.md$' | sort > "$work/pages"
listed '\]\([a-z/-]+\.md' "$top/docs/index.md" | sort -u > "$work/listed"
check "docs/index.md lists all pages" diff "$work/pages" "$work/listed"
listed '[a-z/-]+\.md$' "$top/mkdocs.yml" | while read -r page; do
    [ ! -e "$top/docs/$page" ] || [ "$page" = index.md ] || echo "$page"
done > "$work/listed"
check "the site has each page once" diff "$work/pages" "$work/listed"
if command -v script > /dev/null; then
    script -qec "stty cols 60; $lathe compile --help" "$work/narrow" > /dev/null < /dev/null
    tr -d '\r' < "$work/narrow" | grep -Ev '^  lathe |^usage:|^Script' > "$work/text"
    check "lines fit a narrow terminal" sh -c "grep -q workers '$work/text' && ! grep -E '^.{61}' '$work/text'"
fi
finish
