#!/bin/sh
# Brings what a Debian machine lacks for one tier of work: setup.sh build|test|long|coverage|docs|fmt.
# Each row is a probe and the package that makes it succeed; nothing is asked of apt when all probes succeed.
# With neither root nor sudo it prints the one command to run and fails with status 3.
# SPDX-License-Identifier: Apache-2.0
set -u
top=$(cd "$(dirname "$0")/.." && pwd)

rows_build() {
    cat <<'ROWS'
command -v gcc | gcc
test -e /usr/include/stdio.h | libc6-dev
command -v cmake | cmake
command -v ninja | ninja-build
command -v pkg-config | pkg-config
test -e /usr/include/jansson.h | libjansson-dev
pkg-config --exists libffi | libffi-dev
ROWS
}

rows_test() {
    rows_build
    cat <<'ROWS'
command -v g++ | g++
command -v clang-19 | clang-19
ls /usr/lib/llvm-19/lib/clang/*/lib/linux/libclang_rt.fuzzer-* | libclang-rt-19-dev
test -e /usr/include/cmocka.h | libcmocka-dev
python3 -c 'import venv, ensurepip' | python3-venv
command -v arm-none-eabi-gcc | gcc-arm-none-eabi
test -e /usr/lib/arm-none-eabi/include/stdio.h -o -e /usr/include/newlib/stdio.h | libnewlib-arm-none-eabi
command -v qemu-system-arm | qemu-system-arm
command -v riscv64-unknown-elf-gcc | gcc-riscv64-unknown-elf
test -e /usr/lib/picolibc/riscv64-unknown-elf/include/stdio.h | picolibc-riscv64-unknown-elf
command -v qemu-system-riscv32 | qemu-system-misc
command -v aarch64-linux-gnu-gcc | gcc-aarch64-linux-gnu
test -e /usr/aarch64-linux-gnu/include/stdio.h | libc6-dev-arm64-cross
command -v riscv64-linux-gnu-gcc | gcc-riscv64-linux-gnu
test -e /usr/riscv64-linux-gnu/include/stdio.h | libc6-dev-riscv64-cross
command -v s390x-linux-gnu-gcc | gcc-s390x-linux-gnu
test -e /usr/s390x-linux-gnu/include/stdio.h | libc6-dev-s390x-cross
command -v tcc | tcc
pkg-config --exists libwebp | libwebp-dev
pkg-config --exists libopenjp2 | libopenjp2-7-dev
command -v cppcheck | cppcheck
command -v codespell | codespell
test -e /usr/include/xnnpack.h | libxnnpack-dev
test -e /usr/include/pthreadpool.h | libpthreadpool-dev
command -v qemu-s390x && command -v qemu-riscv64 && command -v qemu-aarch64 | qemu-user
ROWS
}

rows_long() {
    rows_test
    echo 'command -v valgrind | valgrind'
}

rows_coverage() {
    rows_test
    echo 'command -v gcovr | gcovr'
}

rows_docs() {
    echo 'python3 -c "import venv, ensurepip" | python3-venv'
    echo 'command -v doxygen | doxygen'
}

rows_fmt() {
    echo 'command -v clang-format-19 | clang-format-19'
}

# What work goes on without: dagre lays out the graphs of pages (cmake/embed.cmake), chromium shows them in a test, and
# Arduino's builder takes a library.
rows_wanted() {
    echo 'test -e /usr/lib/python3/dist-packages/xstatic/pkg/dagre/data/dagre.min.js | python3-xstatic-dagre'
}

rows_wanted_long() {
    rows_wanted
    cat << 'ROWS'
command -v chromium | chromium
command -v arduino-builder && command -v arduino-ctags | arduino-builder arduino-ctags
command -v avr-gcc && test -e /usr/lib/avr/include/stdio.h | gcc-avr avr-libc
test -e /usr/share/arduino/hardware/arduino/avr | arduino-core-avr
ROWS
}

# The packages of tier $1 whose probe fails.
missing() {
    "rows_$1" | while IFS='|' read -r probe package; do
        sh -c "$probe" > /dev/null 2>&1 || printf ' %s' "${package# }"
    done
}

install() {
    if [ "$(id -u)" = 0 ]; then
        as=
    elif command -v sudo > /dev/null 2>&1 && { sudo -n true 2> /dev/null || [ -t 0 ]; }; then
        as=sudo
    else
        as=none
    fi
    if [ "$as" = none ] || ! command -v apt-get > /dev/null 2>&1; then
        echo "Lathe needs packages that are not here. Run this once, then make again:" >&2
        echo "    sudo apt-get install -y --no-install-recommends$*" >&2
        exit 3
    fi
    echo "setup: installing$*"
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2048,SC2086
    if ! { $as apt-get update && $as apt-get install -y --no-install-recommends $*; } > "$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup: apt failed; the whole log is $log" >&2
        exit 3
    fi
    rm -f "$log"
}

# make_venv NAME LIST: the Python environment build/NAME with the packages of LIST, remade when LIST changes.
make_venv() {
    venv=$top/build/$1
    list=$top/$2
    cmp -s "$list" "$venv/installed.txt" && "$venv/bin/python" -c '' 2> /dev/null && return
    echo "setup: making the Python environment build/$1"
    mkdir -p "$top/build"
    rm -rf "$venv"
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$list"; }; then
        echo "setup: the Python environment could not be made; is PyPI reachable?" >&2
        exit 3
    fi
    cp "$list" "$venv/installed.txt"
}

# optional_venv NAME WHAT: an environment build/NAME of requirements_NAME.txt for tests that are skipped without it.
optional_venv() {
    venv=$top/build/$1
    list=$top/test/py/requirements_$1.txt
    cmp -s "$list" "$venv/installed.txt" && "$venv/bin/python" -c '' 2> /dev/null && return
    echo "setup: making the Python environment build/$1"
    rm -rf "$venv"
    if python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$list"; then
        cp "$list" "$venv/installed.txt"
    else
        echo "setup: no $2 for this machine: the tests that need it are skipped" >&2
    fi
}

# The node cases that the newest onnx has and the pinned one lacks, in build/onnx-newest. The packages of build/venv stay
# what they are: onnxruntime does not read what the newest onnx writes by default.
make_newest_cases() {
    newest=onnx==1.23.2
    place=$top/build/onnx-newest
    [ "$(cat "$place/installed.txt" 2> /dev/null)" = "$newest" ] && return
    echo "setup: making the cases of $newest"
    rm -rf "$place"
    mkdir -p "$place/node"
    if ! { "$top/build/venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$place/site" "$newest" &&
        "$top/build/venv/bin/python" "$top/test/py/newest_cases.py" "$place/site" "$place/node"; }; then
        echo "setup: the cases of $newest could not be made; is PyPI reachable?" >&2
        exit 3
    fi
    rm -rf "$place/site"
    echo "$newest" > "$place/installed.txt"
}

# libffi for the processors that tests emulate, unpacked into build/libffi, not installed: Debian 12 has none for riscv64,
# so they are Debian 13's. Known by their hashes, because not every machine can check apt's signatures. Without them the
# tests build the virtual machine without libffi.
libffi_packages() {
    cat <<'ROWS'
55f6d389cc954407cdba6e4ba5e7039dd2042d2ca8929d6f5eb49d6b97ba92de  libffi-dev_arm64.deb
740d2612eaded5751991427528260c2cb4b351461d779e550c466cf30e3f4ea5  libffi-dev_riscv64.deb
ROWS
}

make_libffi() {
    place=$top/build/libffi
    libffi_packages | cmp -s - "$place/installed.txt" && return
    echo "setup: unpacking libffi of other machines into build/libffi"
    rm -rf "$place"
    work=$(mktemp -d)
    mkdir -p "$place" "$work/lists/partial" "$work/archives/partial"
    echo 'deb [trusted=yes] http://deb.debian.org/debian trixie main' > "$work/sources.list"
    for architecture in arm64 riscv64; do
        (cd "$work" && set -- -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- \
            -o APT::Architecture=$architecture -o APT::Architectures=$architecture -o Dir::State="$work" \
            -o Dir::State::status=/dev/null -o Dir::Cache="$work" -o APT::Sandbox::User= &&
            apt-get "$@" update && apt-get "$@" download libffi-dev && mv libffi-dev_*_$architecture.deb libffi-dev_$architecture.deb)
    done > "$work/log" 2>&1
    if (cd "$work" && libffi_packages | sha256sum -c) >> "$work/log" 2>&1 &&
        dpkg-deb -x "$work/libffi-dev_arm64.deb" "$place/aarch64" &&
        dpkg-deb -x "$work/libffi-dev_riscv64.deb" "$place/riscv64"; then
        libffi_packages > "$place/installed.txt"
    else
        tail -n 3 "$work/log" >&2
        echo "setup: no libffi for other machines: tests build the virtual machine for those without it" >&2
    fi
    rm -rf "$work"
}

case "${1:-}" in
build|test|long|coverage|docs|fmt) ;;
*) echo "usage: setup.sh build|test|long|coverage|docs|fmt" >&2; exit 2 ;;
esac
lacking=$(missing "$1")
[ -z "$lacking" ] || install "$lacking"
lacking=$(missing "$1")
if [ -n "$lacking" ]; then
    echo "setup: still missing after installation:$lacking" >&2
    exit 3
fi
# Tried once: where it fails, the next `make` does not ask the network again.
case $1 in
long) wanted=wanted_long ;;
build | test | coverage) wanted=wanted ;;
*) wanted=none ;;
esac
lacking=$([ $wanted = none ] || missing $wanted)
if [ -n "$lacking" ] && [ ! -e "$top/build/without_$wanted" ]; then
    if ! (install "$lacking") 2> /dev/null; then
        mkdir -p "$top/build" && : > "$top/build/without_$wanted"
        echo "setup: going on without$lacking" >&2
    fi
fi
case $1 in
test | long | coverage) # 500 MB
    make_venv venv test/py/requirements.txt
    make_newest_cases
    optional_venv tvm "Apache TVM"
    make_libffi
    ;;
esac
case $1 in long) optional_venv torch PyTorch; optional_venv tensorflow TensorFlow ;; esac # some GB
case $1 in docs) make_venv docs-venv docs/requirements.txt ;; esac
