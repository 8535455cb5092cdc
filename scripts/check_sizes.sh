#!/usr/bin/env bash
# Lengths that STYLE.md sets: check_sizes.sh [--list]. Functions: none over 120 lines (except those named, with a
# reason, in scripts/sizes_allowed.txt), nine in ten under 50, median under 15; none with more than 12 && and ||. Files:
# under 800 lines, none over 1500 (.def tables excepted). Lines: 120 columns. Every source starts with its purpose and
# the licence line. C and assembly that the compiler writes are files (kernel, src/codegen), no strings of more than
# three lines; scripts/literals_allowed.txt has those that are left.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
list=${1:-}
passed=0 failed=0
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); echo "FAILED $*"; }
found() { find "$@" 2> /dev/null | LC_ALL=C sort; }
mapfile -t sources < <(found src include runtime kernel tools cmake demo bindings -name '*.[ch]' -o -name '*.def' -o -name '*.inc')
mapfile -t tests < <(found test -name '*.[ch]')
mapfile -t others < <(found scripts cmake test demo bindings -name '*.sh' -o -name '*.cmake' -o -name '*.py')

# "LENGTH FILE NAME BRANCHES" of every function: from the line with its name to the closing brace in column 0; how many
# && and || are in it.
functions() {
    awk '
        FNR == 1 { start = 0; open = 0 }
        !open && /^[A-Za-z_].*\(/ && !/^(typedef|struct [a-z_]+ \{|enum|union)/ && !/;[ \t]*$/ && !/= *\{?$/ {
            start = FNR; name = $0; sub(/ \(\*/, " ", name); sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); branches = 0 }
        start && !open && /;[ \t]*(\/\*.*)?$/ { start = 0 }
        start && /^\{|\{[ \t]*$/ { open = 1 }
        start && /&&|\|\|/ {
            line = $0; gsub(/"([^"\\]|\\.)*"/, "", line); sub(/\/\*.*/, "", line); branches += gsub(/&&|\|\|/, "", line) }
        /^\}/ { if (start && open && /^\}[ \t]*$/) print FNR - start + 1, FILENAME, name, branches; start = 0; open = 0 }' "$@"
}

check_functions() {
    local length file name branches count median ninety
    lengths=$(functions "$@" | sort -n)
    [ -n "$lengths" ] || return
    count=$(wc -l <<< "$lengths")
    median=$(awk -v n=$(((count + 1) / 2)) 'NR == n { print $1 }' <<< "$lengths")
    ninety=$(awk -v n=$(((count * 9 + 9) / 10)) 'NR == n { print $1 }' <<< "$lengths")
    echo "functions: $count, median $median lines, 90th percentile $ninety"
    if [ "$median" -lt 15 ]; then pass; else fail "the median function has $median lines; under 15 is asked"; fi
    if [ "$ninety" -lt 50 ]; then pass; else fail "one function in ten has $ninety lines or more; under 50 is asked"; fi
    while read -r length file name branches; do
        [ "$list" = --list ] && [ "$length" -ge 50 ] && echo "  $length $file $name"
        if [ "$length" -le 120 ] || grep -q "^$file $name " scripts/sizes_allowed.txt; then pass
        else fail "$file: $name has $length lines; 120 is the limit"; fi
        if [ "$branches" -le 12 ]; then pass
        else fail "$file: $name has $branches && and ||, where 12 are the limit"; fi
    done <<< "$lengths"
}

# "LINES FILE" of each file.
lengths() { awk '{ n[FILENAME] = FNR } END { for (file in n) print n[file], file }' "$@" | LC_ALL=C sort -k 2; }

check_files() {
    local file lines
    while read -r lines file; do
        [ "$lines" -lt 800 ] || [ "${file##*.}" = def ] || echo "note: $file has $lines lines; under 800 is the aim"
        if [ "$lines" -le 1500 ] || [ "${file##*.}" = def ]; then pass
        else fail "$file has $lines lines; 1500 is the limit"; fi
    done < <(lengths "$@")
}

# A line for each fault. Tables and command lines may be as wide as their columns. One awk reads all files: three
# processes for each took ten seconds.
faults_of_text() {
    LC_ALL=C awk '
        function finish() { if (file != "" && !licensed) print file ": no licence line in its head" }
        FNR == 1 { finish(); file = FILENAME; licensed = wide = 0; free = file ~ /\.(def|sh)$/ }
        FNR <= 12 && /SPDX-License-Identifier: Apache-2\.0/ { licensed = 1 }
        !free && !wide && length($0) > 120 {
            gsub(/[\200-\277]/, "") # the further bytes of a character
            if (length($0) > 120) { wide = 1; print file ":" FNR ": wider than 120 columns" }
        }
        END { finish() }' "$@"
}

check_text() {
    local faults=0 fault
    while read -r fault; do
        fail "$fault"
        faults=$((faults + 1))
    done < <(faults_of_text "$@")
    passed=$((passed + 2 * $# - faults))
}

# "FILE LITERALS" of those that have string literals of more than three lines with C or assembly in them; nests of loop
# IR and patterns of graphs are none.
literals() {
    awk '
        function finish() {
            if (n > 3 && text ~ /;\\n|\{\\n|\\n#|"#(if|define|el|endif)|__asm__/ && text !~ /primfn|Buffer\(|"(pattern|operator) /) count[file]++
            n = 0
            text = ""
        }
        FNR == 1 { finish(); file = FILENAME }
        {
            line = $0
            sub(/[ \t]*\\$/, "", line) # a macro that goes on
            sub(/[ \t]*\/\*.*\*\/[ \t]*$/, "", line)
            starts = line ~ /^[ \t]*([A-Z_]+ )?"/
            ends = line ~ /"([ ]*[A-Z_]+)?[ \t]*$/
            if (n > 0 && !starts) finish()
            if (n > 0) { n++; text = text line; if (!ends) finish() }
            else if (ends) { n = 1; text = line }
        }
        END { finish(); for (file in count) print file, count[file] }' "$@" | LC_ALL=C sort
}

check_literals() {
    local file found allowed
    while read -r file found allowed; do
        if [ "$found" = "$allowed" ]; then pass
        elif [ "$found" -gt "$allowed" ]; then fail "$file: C in $found long string literals, where $allowed are allowed; make it a file of kernel"
        else fail "$file: C in $found long string literals; say so in scripts/literals_allowed.txt instead of $allowed"; fi
    done < <(LC_ALL=C join -a 1 -a 2 -e 0 -o 0,1.2,2.2 <(mapfile -t c < <(found src -name "*.[ch]"); literals "${c[@]}") \
        <(grep -v '^#' scripts/literals_allowed.txt))
}

check_functions ${sources[@]+"${sources[@]}"}
check_files ${sources[@]+"${sources[@]}"} ${tests[@]+"${tests[@]}"}
check_text ${sources[@]+"${sources[@]}"} ${tests[@]+"${tests[@]}"} ${others[@]+"${others[@]}"}
check_literals
echo "sizes: $passed passed, $failed failed"
[ $failed = 0 ]
