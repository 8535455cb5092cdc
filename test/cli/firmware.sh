#!/usr/bin/env bash
# compile --as: the folder for each build system of firmware: its sources without a warning by gcc, clang, and compilers
# for Arm and RISC-V, its example's main, its manifests as data, and runs: by CMake's own build, by Arduino's builder and
# in an emulator where these are here, and over stand-ins for headers that are not (Zephyr, FreeRTOS, Arduino, MLPerf
# Tiny). compile --example.
# Not in `make check`: it builds packages.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-gcc}
here=$top/test/cli/firmware runtime=$top/test/runtime
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
cd "$work" || exit 3
six_operators > six.txt # 0 -> 3
have() { command -v "$1" > /dev/null; }
strict=(-Wall -Wextra -Wconversion -Wshadow -Werror -O0)
mkdir -p esp/freertos
ln -s "$runtime"/freertos_stub/*.h esp/freertos

# library ECOSYSTEM FLAGS...: all sources of its package by each compiler; the host's objects stay
library() {
    local e=$1 f
    shift
    mkdir -p "obj/$e"
    for f in "$e"/src/*.c; do
        check "$e: $f" "$cc" -std=gnu11 "${strict[@]}" "$@" "-I$e/include" "-I$e/src" -c "$f" -o "obj/$e/$(basename "$f" .c).o"
    done
    check "$e: no main in the library" sh -c "! nm obj/$e/*.o | grep -q ' T main$'"
    ! have clang-19 || check "$e: clang" clang-19 -std=gnu11 "${strict[@]}" -fsyntax-only "$@" "-I$e/include" "-I$e/src" "$e"/src/*.c
    # shellcheck disable=SC2046
    ! have arm-none-eabi-gcc || check "$e: Cortex-M4" arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -std=gnu11 "${strict[@]}" \
        -fsyntax-only "$@" "-I$e/include" "-I$e/src" $(grep -L tvmrt_port_blocking.h "$e"/src/*.c)
    # shellcheck disable=SC2046
    ! have riscv64-unknown-elf-gcc || check "$e: RV32IMC" riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 --specs=picolibc.specs \
        -std=gnu11 "${strict[@]}" -fsyntax-only "$@" "-I$e/include" "-I$e/src" $(grep -L tvmrt_port_blocking.h "$e"/src/*.c)
}

# runs ECOSYSTEM MAIN FLAGS...: its example on this machine says status 0 and the right number
runs() {
    local e=$1 main=$2 by=$cc
    shift 2
    case $main in *.ino | *.cpp) by=${CXX:-g++} ;; esac
    check "$e: $main" "$by" "${strict[@]}" "$@" "-I$e/include" "-I$e/src" -c -x "$([ "$by" = "$cc" ] && echo c || echo c++)" "$main" -o "obj/$e/main.o"
    check "$e: links" "$by" "obj/$e"/*.o -lm -lpthread -o "obj/$e/program"
    check "$e: runs" sh -c "timeout $limit obj/$e/program > said && grep -q 'status 0' said && grep -Eq '(= 3|^3.00)$' said"
}

for e in zephyr esp-idf arduino platformio cmsis-pack cmake mlperf-tiny; do
    expect 0 "next: give $e to $e" compile six.txt --as "$e" --module-name kws -o "$e"
done
main=examples/tvmgen_kws
library zephyr "-I$runtime/zephyr_stub"
runs zephyr zephyr/samples/tvmgen_kws/src/main.c
library esp-idf -DESP_PLATFORM -Iesp -DTVMRT_MUTEX_BYTES=160 -DTVMRT_COND_BYTES=160 -DTVMRT_THREAD_BYTES=4864
printf 'void app_main(void);\nint main(void)\n{\n    app_main();\n    return 0;\n}\n' > start.c
"$cc" -c start.c -o obj/esp-idf/start.o
"$cc" "-I$runtime/freertos_stub" -c "$runtime/freertos_stub/freertos_stub.c" -o obj/esp-idf/stub.o
runs esp-idf esp-idf/$main/main/main.c -DTVMRT_MUTEX_BYTES=160 -DTVMRT_COND_BYTES=160 -DTVMRT_THREAD_BYTES=4864
library arduino
printf 'void setup();\nvoid loop();\nint main() {\n  setup();\n  loop();\n}\n' > sketch.cpp
${CXX:-g++} -c sketch.cpp -o obj/arduino/start.o
runs arduino arduino/$main/tvmgen_kws.ino -include "$here/arduino/Arduino.h"
# Arduino's own builder and its core for AVR, with 16-bit addresses, in QEMU. Debian's core lacks DECIMAL_DIG of its
# C library, and Debian's builder the pattern of ctags.
hardware=/usr/share/arduino/hardware
if have arduino-builder && have qemu-system-avr && [ -d $hardware/arduino/avr ]; then
    mkdir -p ino/libraries && cp -r arduino ino/libraries/tvmgen_kws
    builder=(arduino-builder -compile -hardware $hardware -tools /usr/share/arduino-builder -libraries ino/libraries
        -fqbn arduino:avr:mega:cpu=atmega2560 -build-path "$work/ino" -warnings all
        -prefs=compiler.cpp.extra_flags=-DDECIMAL_DIG=9 -prefs=runtime.tools.avr-gcc.path=/usr
        -prefs=tools.ctags.cmd.path=/usr/bin/arduino-ctags -prefs=tools.ctags.pattern='"{cmd.path}" -u --language-force=c++
        -f - --c++-kinds=svpf --fields=KSTtzns --line-directives "{source_file}"')
    check "arduino: builder" sh -c '"$@" > built 2>&1 || { cat built; exit 1; }' sh "${builder[@]}" arduino/$main/tvmgen_kws.ino
    check "arduino: no warning of the library" sh -c "! grep 'libraries/tvmgen_kws/.*warning' built"
    qemu-system-avr -machine mega2560 -bios ino/tvmgen_kws.ino.elf -nographic -monitor none < /dev/null > said 2> log &
    for _ in $(seq "$limit"); do grep -q '^[0-9]' said && break; sleep 1; done
    kill $! # the sketch repeats its run for ever
    check "arduino: runs on an ATmega2560" sh -c "grep -q 'status 0' said && grep -q '^3.00' said"
fi
library platformio
runs platformio platformio/$main/src/main.c
library cmsis-pack
runs cmsis-pack cmsis-pack/$main/main.c
expect 0 '' compile six.txt --as cmsis-pack --port threadx -o threadx
library threadx "-I$runtime/cmsis_stub"
check "a pack for an RTOS asks for it" grep -q 'Cgroup="RTOS2"' threadx/Lathe.tvmgen_default.pdsc

# MLPerf Tiny, by its own CMake over the stand-in of the harness
library mlperf-tiny
if have cmake; then
    check "mlperf-tiny: cmake" sh -c "cmake -S mlperf-tiny -B mlperf -DMLPERF_TINY=$here/mlperf -DTH_MODEL_VERSION=ad01 \
        -DCMAKE_CXX_FLAGS='-Wall -Wextra -Wconversion -Wshadow -Werror' -DCMAKE_BUILD_TYPE=Debug && cmake --build mlperf"
    check "mlperf-tiny: 10 -> 23, by which AD's error is 169" sh -c "mlperf/tvmgen_kws_mlperf_tiny | grep -q '^m-results-\[169.000\]'"
    # a library of CMake: installed, and found by a project that knows nothing else
    check "cmake: builds" sh -c "cmake -S cmake -B made -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS='-Wall -Wextra -Wconversion -Wshadow -Werror' && cmake --build made &&
        cmake --install made --prefix $work/root && made/examples/tvmgen_kws/tvmgen_kws_example | grep -q '= 3$'"
    cp -r cmake/$main fresh
    check "cmake: a fresh project" sh -c "cmake -S fresh -B fresh/build -DCMAKE_PREFIX_PATH=$work/root && cmake --build fresh/build &&
        fresh/build/tvmgen_kws_example | grep -q '= 3$'"
    # the usual package as a part of another build: no runner; and all its files in one folder with another main
    expect 0 '' compile six.txt -q -o plain
    mkdir -p outer
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(outer C)\nadd_subdirectory(../plain plain)\n' > outer/CMakeLists.txt
    check "a part of another build has no runner" sh -c "cmake -S outer -B outer/build && cmake --build outer/build && test ! -e outer/build/plain/runner"
fi
mkdir -p flat && cp plain/include/* flat && cp plain/src/*.c plain/src/*names.h plain/src/*.bin flat 2> log
cp plain/src/tvmrt_port_{blocking,common}.h flat
check "all files of a package beside another main" sh -c "cd flat && $cc -DARDUINO=1 -w *.c ../start.c -Dapp_main=tvmrt_engine_default -lm -lpthread -o ../flat.exe"

# manifests as data
"$python" - << 'PY' > said 2>&1
import json, sys, xml.etree.ElementTree as tree
import yaml
for f in ("arduino/library.json", "platformio/library.json"):
    with open(f) as text:
        about = json.load(text)
    assert about["name"] == "tvmgen_kws" and about["version"], f
pack = tree.parse("cmsis-pack/Lathe.tvmgen_kws.pdsc").getroot()
import os
for f in pack.iter("file"):
    assert os.path.exists(os.path.join("cmsis-pack", f.get("name"))), f.get("name")
names = {f.get("name") for f in pack.iter("file")}
assert all("src/" + f in names for f in os.listdir("cmsis-pack/src") if f.endswith(".c")), names
for e in pack.iter("example"):
    assert os.path.exists(os.path.join("cmsis-pack", e.get("folder"), e.find("project/environment").get("load")))
files = ["zephyr/zephyr/module.yml", "zephyr/samples/tvmgen_kws/sample.yaml", "esp-idf/idf_component.yml",
         "esp-idf/examples/tvmgen_kws/main/idf_component.yml", "cmsis-pack/examples/tvmgen_kws/tvmgen_kws.csolution.yml",
         "cmsis-pack/examples/tvmgen_kws/tvmgen_kws.cproject.yml"]
for f in files:
    with open(f) as text:
        assert isinstance(yaml.safe_load(text), dict), f
with open("arduino/library.properties") as text:
    keys = dict(line.rstrip("\n").split("=", 1) for line in text)
assert all(keys.get(k) for k in ("name", "version", "author", "maintainer", "sentence", "category", "architectures")), keys
print("read")
PY
check "manifests: $(tail -n 1 said)" grep -q '^read$' said

# a firmware of its own
if have arm-none-eabi-gcc && have qemu-system-arm; then
    expect 0 'make -C own/example run' compile six.txt --example --target cortex-m4 -o own
    check "the example runs in the emulator" sh -c "timeout $limit make -s -C own/example run > said 2>&1 && grep -q '^status 0, [0-9]* instructions' said &&
        grep -q '^y 3.000' said"
    # firmware of one's own: a copy of the example, which outlives the next compile
    cp -r own/example mine && echo '/* mine */' >> mine/main.c && cp mine/main.c own/example
    expect_error 2 'move the folder own/example elsewhere' compile six.txt --example --target cortex-m4 -o own
    rm -r own/example
    expect 0 '' compile six.txt --example --target cortex-m4 -q -o own
    make -C mine > said 2>&1; check "a copy wants to know the package" grep -q "'..' is not the package: make PACKAGE=FOLDER" said
    check "a copy runs, too" sh -c "timeout $limit make -s -C mine run PACKAGE=../own > said 2>&1 && grep -q '^y 3.000' said"
fi

# integers have their own types, and what does not fit is refused
printf 'func @main(%%x: i8[2, 3], %%y: i64[4]) {\n  %%a = negative(%%x)\n  %%b = negative(%%y)\n  return %%a, %%b\n}\n' > types.txt
expect 0 '' compile types.txt -q -o types
check "members have the type of the elements" sh -c "grep -q 'const int8_t \*x;' types/include/tvmgen_default.h && grep -q ' int64_t \*b;' types/include/tvmgen_default.h"
check "the usual main runs" make -s -C types run
expect_error 2 '--as is for packages, and --emit module makes none' compile six.txt --as cmake --emit module -o m.so
expect 0 'warning: --as arduino is for microcontrollers, and the code is for aarch64' \
    compile six.txt -q --as arduino --target aarch64 -o wide
expect_error 2 '--port freertos does not fit --as arduino, which takes baremetal' compile six.txt --as arduino --port freertos -o none
expect 0 'target cortex-m4, port baremetal' compile six.txt --as cmake --target cortex-m4 -o bare
expect_error 2 "--as: 'ardvino' is unknown" compile six.txt --as ardvino -o none
check "the nearest is offered" grep -q 'did you mean arduino' stderr
expect_error 2 'constants bin and --as zephyr cannot be combined' compile six.txt --as zephyr --constants bin -o none
expect_error 2 'constants incbin and --as zephyr cannot be combined' compile six.txt --as zephyr --constants incbin -o none
expect_error 2 'names and --as zephyr cannot be combined' compile six.txt --as zephyr --names short -o none
expect_error 2 'offload and --as zephyr cannot be combined' compile six.txt --as zephyr --offload vta -o none
expect_error 2 'has an example of its own' compile six.txt --as zephyr --example -o none
expect_error 2 '--example is for --port baremetal' compile six.txt --port freertos --example -o none
expect_error 2 'there is no emulator for the target x86-64-v3' compile six.txt --example --target x86-64-v3 -o none
check "refused, nothing is written" test ! -e none
finish
