#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The law of the folders, and what goes with it: check_layers.sh [BUILD]
#   1. a folder of src includes only what stands to its left; src/target/NAME is seen by driver and api alone;
#   2. compiler and runtime meet only in include/abi, and runtime/vta and runtime/vm know only themselves and that; tools may
#      use them, runtime/ext_dev and runtime/rpc their public headers, the driver what is public of them, and src/target/vta/code vta.h; kernels know only each other, and nothing includes them;
#   3. no mutable global in any object of the compiler, nor of runtime/vm, runtime/rpc, nor of runtime/vta, the default devices in vta_runtime.c and vta_host.c
#      and the number of contexts made in context.c (it makes their handles differ) excepted, nor of bindings, the
#      table of sessions, the machine and its modules, the host's functions and what belongs to one thread excepted
#      (BUILD: where they were built; bindings: where bindings/test.sh has built them, else left out);
#   4. no allocator in any object of runtime/tvmrt, nor of what libvta_replay is made of;
#   5. in no folder do files use each other in a circle (circles.sh);
#   6. the code of a layer names no processor and no accelerator (names_allowed.txt has what is left, with reasons);
#   7. of the C that packages and modules are made of, no two files define one function or type: both may stand in one.
set -u
cd "$(dirname "$0")/.." || exit 3
build=${1:-build}
passed=0 failed=0
fail() { failed=$((failed + 1)); echo "FAILED $*"; }

# What each folder of src may include, besides include/abi and include/lathe. tir does not see graph; of the middle
# layers only te and prog know both IRs; frontend ends at the graph.
allowed() {
    case $1 in
    base) echo base ;;
    type) echo base type ;;
    graph) echo base type graph ;;
    frontend) echo base type graph frontend ;;
    tir) echo base type tir ;;
    te) echo base type graph tir te ;;
    prog) echo base type graph tir te prog ;;
    plan) echo base type tir prog plan ;;
    codegen) echo base type tir prog plan codegen ;;
    tune) echo base type graph tir te prog tune ;;
    quantize) echo base type graph frontend quantize ;;
    driver) echo base type graph frontend tir te prog plan codegen target driver ;;
    api) echo base type graph frontend tir te prog plan codegen tune quantize target driver api ;;
    *) echo unknown ;;
    esac
}

# Sets `target` to the file that `#include "$2"` in file $1 names, as a path from the top; empty for what the tree does
# not have. No process is started: there are 2,000 of them.
resolve() {
    local dir
    target=$2 # of kernels, from the top
    case $2 in kernel/*) [ -f "$2" ] && return ;; esac
    for dir in "${1%/*}" src include include/abi runtime/tvmrt runtime/vta runtime/vm runtime/ext_dev runtime/rpc; do
        target=$dir/$2
        [ -f "$target" ] || continue
        while [[ $target =~ ^(.*/)?[^/]+/\.\./(.*)$ ]]; do target=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
        return
    done
    target=
}

check_include() {
    local file=$1 target=$2 from to own
    case $file:$target in src/tir/interp_call.c:kernel/image/*|src/tir/interp_call.c:kernel/text/*) return 0 ;; esac # plain C, of which there is one
    case $file in
    src/*)
        from=${file#src/} from=${from%%/*} to=${target#src/} to=${to%%/*}
        case $target in
        include/*) return 0 ;;
        runtime/vta/vta.h) case $file in src/target/vta/code/*|src/driver/*) return 0 ;; esac; return 1 ;;
        src/target/targets.def) return 0 ;; # names of folders, and no code: each layer makes its tables of them
        runtime/vm/lathe_vm.h|runtime/rpc/lathe_rpc.h) # the driver runs modules, here and elsewhere
            case $file in src/driver/*) return 0 ;; esac; return 1 ;;
        runtime/vm/lathe_tensor.h) case $file in src/api/*) return 0 ;; esac; return 1 ;;
        src/codegen/*/*)
            # Back ends do not see each other, but that a module holds the kernels of the C back end, whose writer VTA's uses.
            case $file in
            src/codegen/byoc/*) case $target in src/codegen/byoc/*) return 0 ;; esac; return 1 ;;
            src/codegen/module/*) case $target in src/codegen/module/*|src/codegen/c/*) return 0 ;; esac; return 1 ;;
            src/target/*/code/*) case $target in src/codegen/c/*) return 0 ;; esac; return 1 ;;
            "${target%/*}"/*|src/driver/*) return 0 ;;
            src/codegen/*/*) return 1 ;;
            src/codegen/*) return 0 ;;
            esac ;;
        src/graph/*) case $file in src/codegen/byoc/*) return 0 ;; esac ;; # generators walk functions of the graph
        src/*) ;;
        *) return 1 ;;
        esac
        case $file in src/target/*) # its own folder, and what the layer may that the file belongs to
            own=${file#src/target/} own=src/target/${own%%/*}
            case $target in "$own"/*) return 0 ;; src/target/*/*) return 1 ;; src/target/*) return 0 ;; esac
            case $file in
            src/target/*/graph/*) from=graph ;;
            src/target/*/rule/*) from=te ;;
            src/target/*/code/*) from=codegen ;;
            *) from=tir ;; # rows that lower layers read, and passes on loops (pass/)
            esac ;;
        esac
        case " $(allowed "$from") " in *" $to "*) return 0 ;; esac
        return 1 ;;
    runtime/vta/*) case $target in runtime/vta/*|include/abi/*) return 0 ;; esac; return 1 ;;
    runtime/vm/*) case $target in runtime/vm/*|include/abi/*) return 0 ;; esac; return 1 ;;
    runtime/ext_dev/*)
        case $target in runtime/ext_dev/*|include/abi/*|runtime/vm/lathe_vm.h|runtime/vta/vta_runtime.h) return 0 ;; esac
        return 1 ;;
    runtime/rpc/*)
        case $target in
        runtime/rpc/*|runtime/ext_dev/ext_dev.h|include/abi/*|runtime/vm/lathe_vm.h|runtime/vta/vta.h|runtime/vta/vta_runtime.h) return 0 ;;
        esac
        return 1 ;;
    runtime/*) case $target in "${file%/*}"/*|runtime/tvmrt/*|include/abi/*) return 0 ;; esac; return 1 ;;
    kernel/*) case $target in kernel/*) return 0 ;; esac; return 1 ;;
    include/abi/*) case $target in include/abi/*) return 0 ;; esac; return 1 ;;
    include/*)
        case $target in include/*|src/base/*|src/type/*|src/graph/*|src/te/*|src/tir/*|runtime/vm/lathe_tensor.h) return 0 ;; esac
        return 1 ;;
    bindings/*) case $target in bindings/*|runtime/vta/*|runtime/vm/*|include/abi/*) return 0 ;; esac; return 1 ;;
    tools/*) case $target in runtime/vta/*|runtime/vm/*|runtime/rpc/lathe_rpc.h) return 0 ;; runtime/*) return 1 ;; esac; return 0 ;;
    esac
}

includes() {
    local file name target
    while IFS=: read -r file name; do
        resolve "$file" "$name"
        [ -n "$target" ] || continue
        if check_include "$file" "$target"; then passed=$((passed + 1)); else fail "$file must not include $target"; fi
    done < <(find src include runtime kernel bindings tools -name '*.[ch]' -o -name '*.def' -o -name '*.inc' 2> /dev/null | LC_ALL=C sort \
        | xargs grep -EHo '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[^"]+"' 2>/dev/null \
        | sed -E 's/:[^"]*"/:/; s/"$//')
}

# Kernels and other texts that the compiler names, in strings; a % stands for a part of the name.
kernels() {
    local name
    while read -r name; do
        # shellcheck disable=SC2086
        if [ -n "$(compgen -G "${name//%[su]/*}")" ]; then passed=$((passed + 1)); else fail "src names $name, which is not there"; fi
    done < <(grep -Eoh '"(kernel/[a-z0-9_/%]+\.h|src/[a-z0-9_/%.]+\.in)"' -r src --include='*.[ch]' | tr -d '"' | LC_ALL=C sort -u)
}

# globals core|vta|vm|ext_dev|rpc|vta_ffi|lathe_ffi: symbols that live in a writable section. Tables of pointers lie in .data.rel.ro, which the loader makes read-only.
globals() {
    local dir=$build/CMakeFiles/lathe_core.dir/src objects bad
    [ "$1" != vta ] || dir=$build/runtime/vta/CMakeFiles/vta_objects.dir
    [ "$1" != vm ] || dir=$build/runtime/vm/CMakeFiles/vm_objects.dir
    [ "$1" != ext_dev ] || dir=$build/runtime/ext_dev/CMakeFiles/ext_dev_objects.dir
    [ "$1" != rpc ] || dir=$build/runtime/rpc/CMakeFiles/rpc_objects.dir
    [ "$1" != vta_ffi ] || dir=$build/bindings/cmake/bindings/ffi/CMakeFiles/vta_ffi.dir
    [ "$1" != lathe_ffi ] || dir=$build/bindings/cmake/bindings/vm/CMakeFiles/lathe_ffi.dir
    case $1 in *_ffi)
        if [ ! -d "$dir" ]; then
            echo "note: $1 is not built (bindings/test.sh $build): its globals and circles are not looked at"
            return
        fi ;;
    esac
    [ -d "$dir" ] || { fail "no objects below $dir: build first"; return; }
    mapfile -t objects < <(find "$dir" -name '*.o' ! -name 'vta_runtime.c.o' ! -name 'vta_host.c.o' ! -path '*/__/*' | LC_ALL=C sort)
    bad=$(objdump -t "${objects[@]}" | awk -v dir="$dir/" '
        /^[^ ].*: +file format/ { o = substr($1, length(dir) + 1); sub(/:$/, "", o) }
        /[ \t](\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && !/\.data\.rel\.ro/ && / [gluU!]+ *O / { print o ": " $NF }' \
        | grep -vxE -e 'context.c.o: made' -e 'tvm_abi.c.o: thread' \
        -e '(args.c.o: last_error|session.c.o: (table|table_lock|default_lock|last_handle|current)|tvm_ffi_api.c.o: (lock|api|found)|vta_ffi.c.o: (recorder|recorder_raised))(\.[0-9]+)?' \
        -e 'lathe_ffi.c.o: (lock|runtime)' -e 'loader.c.o: (lock|all|host_wrap|looked)' -e 'values.c.o: module_type')
    if [ -z "$bad" ]; then passed=$((passed + 1)); else fail "mutable globals in $1:"; echo "$bad"; fi
}

allocators() {
    local work source undefined port
    local banned='malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|valloc|sbrk|mmap|strdup|alloca'
    work=$(mktemp -d)
    for source in runtime/tvmrt/*.c runtime/vta/{replay,status,config_check,mmio}.c; do
        [ -f "$source" ] || continue
        port=()
        case $source in # the objects of FreeRTOS' stand-in are larger than the real ones
        *_freertos.c) port=(-DTVMRT_PORT_FREERTOS -DTVMRT_MUTEX_BYTES=160 -DTVMRT_COND_BYTES=160 -DTVMRT_THREAD_BYTES=4864) ;;
        *_zephyr.c) port=(-DTVMRT_PORT_ZEPHYR -Itest/runtime/zephyr_stub) ;;
        *_cmsis_rtos2.c) port=(-DTVMRT_PORT_CMSIS_RTOS2 -Itest/runtime/cmsis_stub) ;;
        *_dualcore.c) port=(-DTVMRT_PORT_DUALCORE) ;;
        esac
        cc -std=c99 -O2 -D_POSIX_C_SOURCE=200809L "${port[@]}" -Iruntime/tvmrt -Iruntime/vta -Iinclude/abi -Itest/runtime/freertos_stub -Iinclude \
            -c "$source" -o "$work/o.o" 2> "$work/log" \
            || { fail "$source does not compile: $(head -n 1 "$work/log")"; continue; }
        undefined=$(nm -u "$work/o.o" | grep -Ew "$banned")
        if [ -z "$undefined" ]; then passed=$((passed + 1)); else fail "$source uses an allocator: $undefined"; fi
    done
    rm -rf "$work"
}

circles() {
    local found
    found=$(bash scripts/circles.sh "$build" $(find src tools runtime/vta runtime/vm runtime/ext_dev runtime/rpc bindings/ffi bindings/vm -type d | LC_ALL=C sort))
    if [ -z "$found" ]; then passed=$((passed + 1))
    else fail "files that use each other in a circle (scripts/circles.sh --why $build FOLDER):"; echo "$found"; fi
}

# "FILE LINES" of code that names a folder of src/target, or an instruction set of one. Comments are left out, and
# capabilities (TARGET_...), which every layer may ask for.
names() {
    local words
    words=$(find src/target -mindepth 1 -maxdepth 1 -type d ! -name generic -printf '%f|' | sed 's/cortex_m/cortex/')
    awk -v words="${words}neon|mve|helium|rvv|amx" '
        BEGIN { pattern = "(^|[^a-z])(" words ")([^a-z]|$)" }
        FNR == 1 { comment = 0 }
        {
            line = tolower($0)
            if (comment) { if (sub(/^.*\*\//, "", line)) comment = 0; else next }
            while (match(line, /\/\*/)) {
                head = substr(line, 1, RSTART - 1); rest = substr(line, RSTART + 2)
                if (match(rest, /\*\//)) line = head " " substr(rest, RSTART + 2)
                else { line = head; comment = 1 }
            }
            gsub(/target_[a-z0-9_]+/, "", line)
            if (line ~ pattern) count[FILENAME]++
        }
        END { for (file in count) print file, count[file] }' "$@" | LC_ALL=C sort
}

check_names() {
    local file found allowed
    while read -r file found allowed; do
        if [ "$found" = "$allowed" ]; then passed=$((passed + 1))
        elif [ "$found" -gt "$allowed" ]; then fail "$file: $found lines name a processor or an accelerator, where $allowed may; what is theirs is in src/target"
        else passed=$((passed + 1)); echo "note: $file: $found lines name a processor or an accelerator; scripts/names_allowed.txt says $allowed"; fi
    done < <(LC_ALL=C join -a 1 -a 2 -e 0 -o 0,1.2,2.2 \
        <(mapfile -t c < <(find src/base src/type src/graph src/tir src/te src/prog src/plan src/codegen/c src/codegen/*.[chd]* \
            -name '*.[ch]' -o -name '*.def'); names "${c[@]}") \
        <(grep -v '^#' scripts/names_allowed.txt | LC_ALL=C sort))
}

# Rows are found by what they do, and no code asks for one by its name. Of instructions no text outside of their tables
# and of the selections that put them has a name; with targets and rules for schedules nothing is compared.
rows() {
    local instructions others found
    [ -x "$build/lathe" ] || { fail "no $build/lathe: build first"; return; }
    instructions=$(printf 'placeholder A: int32[4]\ncompute B: int32[i: 4] = (int32*)A[i]\nreturn B\n--- schedule\ntensorize B.i no_row\n' \
        | "$build/lathe" compile - --emit tir 2>&1 | sed -n 's/.*intrinsics are: //p' | sed 's/, /|/g')
    others=$( ("$build/lathe" targets | sed -n '2,/^native/s/ .*//p'
        sed -n '/^static const te_rule rows/,/^};/s/^    {"\([^"]*\)".*/\1/p' src/te/rule/*.c src/target/*/rule/*.c) \
        | grep . | LC_ALL=C sort -u | paste -sd '|' -)
    [ -n "$instructions" ] && [ -n "$others" ] || { fail "no rows are known"; return; }
    found=$(grep -nE "\"($instructions)\"" -r src --include='*.[ch]' \
        | grep -vE '^src/(target/.*|tir/intrin(_dot|_round)?\.c|tir/pass/select_(any|round)\.c|type/dot\.c|te/rule/moves\.c):'
        grep -nE "str(n|case)?cmp\([^;]*\"($instructions|$others)\"" -r src --include='*.[ch]' | grep -v 'op->name\|row->target\|"native"')
    if [ -z "$found" ]; then passed=$((passed + 1)); else fail "a row is asked for by its name:"; echo "$found"; fi
}

# "FILE NAME" of each function and type of the C that is written into packages and modules.
defined() {
    git ls-files -co --exclude-standard 'kernel/*.h' 'kernel/*.inc' 'src/*.c.in' |
        xargs sed -nE '/^(static|typedef) /{F;s/^[^;{(=]*[ *](lathe_[a-z0-9_]+)( __attribute__.*|[;=([].*)$/\1/p}' |
        awk '/\// { file = $0; next } /^lathe_/ { print file, $0 }'
}

one_definition() {
    local found
    found=$(defined | sort -u | awk '{ files[$2] = files[$2] " " $1; if (seen[$2]++) twice[$2] = 1 }
                                     END { for (name in twice) print name ":" files[name] }')
    if [ -z "$found" ]; then passed=$((passed + 1)); else fail "a function or type that two files define:"; echo "$found"; fi
}

includes
kernels
one_definition
check_names
rows
circles
globals core
globals vta
globals vm
globals ext_dev
globals rpc
globals vta_ffi
globals lathe_ffi
allocators
echo "layers: $passed passed, $failed failed"
[ $failed = 0 ]
