#!/bin/bash
# Builds a generated package (port baremetal) for a Cortex-M4, runs it in QEMU on the package's fixed input pattern and
# prints its outputs, the instructions of the run, and the flash and RAM that model and runtime take.
# The package's own Makefile says with which flags; sections that nobody uses are left out.
#   run_m4.sh PACKAGE_DIR [BUILD_DIR]        with MACHINE=mps2-an386 (default)
# Exit: 0 done, 1 the package does not build or its program fails, 3 (or $SKIP) a tool is missing.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
board=$here/../../runtime/board
package=${1:?usage: run_m4.sh PACKAGE_DIR [BUILD_DIR]}
build=${2:-}
if [ -z "$build" ]; then
    build=$(mktemp -d) && trap 'rm -rf "$build"' EXIT
fi
for tool in arm-none-eabi-gcc arm-none-eabi-size qemu-system-arm; do
    command -v $tool > /dev/null && continue
    echo "run_m4: $tool is missing: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm" >&2
    exit "${SKIP:-3}"
done
refuse() { echo "run_m4: $package: $*" >&2; exit 1; }
[ -f "$package/src/main.c" ] || refuse "not a package (no src/main.c)"
[ -f "$package/src/tvmrt_port_baremetal.c" ] || refuse "compiled for another port; use --port baremetal"
mkdir -p "$build" || exit 1

cpu="-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"
rm -rf "$build/package" && cp -r "$package" "$build/package" || exit 1
make -s -C "$build/package" lib build/main.o CC=arm-none-eabi-gcc AR=arm-none-eabi-ar \
    CPU="$cpu -ffunction-sections -fdata-sections" || exit 1

# The run functions of the package's modules, wrapped by the linker so that the count is of the run alone.
wrap=()
echo '#include <stdint.h>
extern uint64_t board_instructions(void);
extern void board_set_count(uint64_t);
#define WRAP(run) extern int32_t __real_##run(void *, void *, void *); int32_t __wrap_##run(void *, void *, void *); \
int32_t __wrap_##run(void *a, void *b, void *c) { uint64_t start = board_instructions(); \
int32_t status = __real_##run(a, b, c); board_set_count(board_instructions() - start); \
return status; }' > "$build/count.c"
for header in "$package"/include/tvmgen_*.h; do
    name=$(basename "$header" .h)
    case $name in *_instance) continue ;; esac
    for run in "${name}_run" "${name}_run_instance"; do
        grep -qw "$run" "$header" || continue
        wrap+=("-Wl,--wrap=$run")
        echo "WRAP($run)" >> "$build/count.c"
    done
done

main=$build/package/build/main.o model=()
for object in "$build"/package/build/*.o; do
    [ "$object" = "$main" ] || model+=("$object")
done
objects=("$main" "${model[@]}")
for source in "$board/startup_mps2.c" "$board/semihost.c" "$build/count.c"; do
    object=$build/$(basename "$source" .c).o
    # shellcheck disable=SC2086
    arm-none-eabi-gcc $cpu -std=gnu99 -O2 -c "$source" -o "$object" || exit 1
    objects+=("$object")
done
# shellcheck disable=SC2086
arm-none-eabi-gcc $cpu -T "$board/mps2.ld" -nostartfiles --specs=nano.specs --specs=nosys.specs -u _printf_float \
    -Wl,--gc-sections -Wl,--no-warnings "${wrap[@]}" "${objects[@]}" -lm -o "$build/image.elf" 2> "$build/link.log" ||
    { cat "$build/link.log" >&2; exit 1; }

timeout "$(< "$here/../time_limit")" qemu-system-arm -M "${MACHINE:-mps2-an386}" -display none -serial null -monitor none \
    -chardev stdio,id=console -semihosting-config enable=on,target=native,chardev=console \
    -icount shift=0 -kernel "$build/image.elf" < /dev/null
status=$?
[ $status -eq 0 ] || { echo "run_m4: the program ended with status $status" >&2; exit 1; }

# Model and runtime alone: what their objects hold, unused sections removed, the C library left out.
# shellcheck disable=SC2086
arm-none-eabi-gcc $cpu -nostdlib -r -Wl,--gc-sections,-e,main,-u,main "$main" "${model[@]}" \
    -o "$build/model.o" 2>> "$build/link.log" ||
    { cat "$build/link.log" >&2; exit 1; }
sizes() { arm-none-eabi-size "$1" | awk 'NR == 2 { print $1 + $2, $2 + $3 }'; }
read -r all_flash all_ram < <(sizes "$build/model.o")
read -r main_flash main_ram < <(sizes "$main")
read -r image_flash image_ram < <(sizes "$build/image.elf")
# RAM: workspace, instance and runtime. The image adds main with its inputs and outputs, the C library, 32 KB of stack
# and 16 KB of heap for printf.
echo "flash $((all_flash - main_flash)) bytes, RAM $((all_ram - main_ram)) bytes (model and runtime)"
echo "flash $image_flash bytes, RAM $image_ram bytes (whole image)"
