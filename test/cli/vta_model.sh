#!/usr/bin/env bash
# Only in `make test-long`.
# Quantised models with --offload vta: simulated, in packages, in modules: the CPU's bits each time; devices of another
# configuration are refused.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
export LATHE_CACHE="$work/cache"
net=net.txt

# A residual network with a first layer of 3 channels, pools and a product; the slice between is the CPU's.
numbers() {
    awk -v n="$1" -v m="$2" \
        'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? ", " : "", i * 37 % m - int(m / 2) }'
}
cat > $net << END
func @main(%x: i8[1, 3, 9, 9]) {
  %w = constant i8[20, 3, 3, 3] dense [$(numbers 540 101)]
  %b = constant i32[20, 1, 1] dense [$(numbers 20 900)]
  %v = constant i8[20, 20, 3, 3] dense [$(numbers 3600 61)]
  %k = constant i8[20, 5] dense [$(numbers 100 99)]
  %one = constant f32[] dense [1.0]
  %half = constant f32[] dense [0.5]
  %fine = constant f32[] dense [0.0009765625]
  %c = qnn.conv2d(%x, %w) {pads = [1, 1, 1, 1]}
  %a = add(%c, %b)
  %q = qnn.requantize(%a, %fine, %half) {rounding = "half_up", out_dtype = i8}
  %r = nn.relu(%q)
  %p = nn.max_pool2d(%r) {pool_size = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
  %d = qnn.conv2d(%p, %v) {pads = [1, 1, 1, 1]}
  %e = qnn.requantize(%d, %fine, %one) {rounding = "half_up", out_dtype = i8}
  %s = qnn.add(%e, %one, %p, %half, %one) {rounding = "half_up"}
  %from = constant i64[2] dense [0, 1]
  %to = constant i64[2] dense [5, 5]
  %axes = constant i64[2] dense [2, 3]
  %cut = strided_slice(%s, %from, %to, %axes)
  %g = qnn.global_avg_pool2d(%cut, %one, %half) {rounding = "half_up"}
  %shape = constant i64[2] dense [1, 20]
  %f = reshape(%g, %shape)
  %m = qnn.matmul(%f, %k)
  %y = qnn.requantize(%m, %fine, %half) {rounding = "half_up", out_dtype = i8}
  return %y, %s
}
END

for i in $(seq 0 242); do printf "\\x$(printf %02x $((i * 67 % 256)))"; done > x.bin
expect 0 '' run "$net" --input x=x.bin --output-dir cpu
check "the data are numbers of all kinds" test "$(od -An -tx1 -v cpu/s.npy | tr ' ' '\n' | sort -u | wc -l)" -gt 40
for config in 1x16_i8w8a32_15_15_18_17 2x16_i8w8a32_15_15_18_17 4x8_i8w8a32_15_16_16_18; do
    expect 0 '2 regions on VTA, all outputs equal' vta model "$net" --offload vta --vta-config $config
    expect 0 '' run "$net" --input x=x.bin --offload vta --vta-config $config --output-dir package
    check "package on $config: the CPU's bits" diff -r cpu package
    expect 0 '' compile "$net" --offload vta --vta-config $config --emit module --target native -o $config.so
    check "$config: nothing is said of --vta-config" sh -c '! grep -q "has no effect" stderr'
    check "its report says what lies on the device" \
        test "$(grep -a -A 4 '"storage": "device"' $config.so | grep -c '"memory": "ext_dev"')" = 4
    expect 0 '' run $config.so --input x=x.bin --output-dir module
    check "module on $config: the CPU's bits" diff -r cpu module
    rm -rf package module
done
expect 0 ': ok' verify "$net" --offload vta --against interpreter --rtol 0 --atol 0

# --- what a layer takes
expect 0 '^\| the model \| [1-9]' vta model "$net" --offload vta --cycle --timeline time.svg
check "a picture" grep -q '<svg' time.svg
whole=$(awk -F'|' '/^. the model/ { print $3 + 0 }' stdout)
layers=$(awk -F'|' '/^[|] [^lt]/ { n += $3 } END { print n + 0 }' stdout)
check "layers take what the model takes" test "$whole" = "$layers"
check "and the picture is of all regions" grep -q ">$whole cycles<" time.svg
check "whose layers have names" test "$(grep -c '<title>.*: [0-9]* cycles, [0-9]* to' time.svg)" \
    = "$(grep -c '^| [^lt]' stdout)"
expect 0 '"cycles": '"$whole"', "regions"' vta model "$net" --offload vta --json --timeline time.json
check "no column of the table is lost" grep -q '"wait_token": {"load_to_compute": [0-9]*, "compute_to_load"' stdout
check "the trace has layers, too" grep -q '"cat":"layer"' time.json
expect 0 'all outputs equal, [1-9]' vta model "$net" --offload vta --cycle --profile hls --bus-bits 32 --latency 90
check "a slower memory takes longer" test "$(awk -F'|' '/^. the model/ { print $3 + 0 }' stdout)" -gt "$whole"
expect_error 2 'bus-bits' vta model "$net" --offload vta --cycle --bus-bits 3
expect_error 2 'are for the cycle model' vta model "$net" --offload vta --latency 90

# --- blocks of channels and rows that neither 2 nor 3, 5 or 7 divides: two virtual threads share most of the blocks
cat > odd.txt << END
func @main(%x: i8[1, 32, 11, 11]) {
  %k = constant i8[176, 32, 3, 3] dense [$(numbers $((176 * 32 * 9)) 61)]
  %b = constant i32[176, 1, 1] dense [$(numbers 176 61)]
  %1 = constant f32[] dense [0.00390625]
  %2 = constant f32[] dense [1.0]
  %v = qnn.conv2d(%x, %k) {pads = [1, 1, 1, 1]}
  %a = add(%v, %b)
  %y = qnn.requantize(%a, %1, %2) {rounding = "half_up", out_dtype = i8}
  return %y
}
END
expect 0 'y, the last channels' vta model odd.txt --offload vta --cycle
check "compute is busy" test "$(awk -F'|' '/^. the model/ { print ($6 > 70) }' stdout)" = 1

# --- nothing for the accelerator: what to do is said
cat > u8.txt << END
func @main(%x: u8[1, 16, 4, 4]) {
  %y = nn.relu(%x)
  return %y
}
END
expect 0 'lathe quantize MODEL --for vta' inspect u8.txt --offload vta
expect 0 'lathe quantize MODEL --for vta' compile u8.txt --offload vta -o u8

# --- files for a test bench: a folder for each region, whose results are those of the run
mkdir vectors
expect 0 'all outputs equal' vta model "$net" --offload vta --dump-vectors vectors
for region in vectors/*; do
    check "$region: a stream" test -s "$region/instructions.bin" -a -s "$region/micro_ops.bin"
    check "$region: results" sh -c "! cmp -s $region/*_out_0.before.bin $region/*_out_0.after.bin"
    for file in "$region"/*.before.bin; do
        name=$(basename "$file" .before.bin)
        check "$region: $name has an address" grep -q "\"name\": \"$name\", \"address\": [0-9]" "$region/vectors.json"
    done
done
expect_error 3 'cannot make the folder' vta model "$net" --offload vta --dump-vectors no/such

# --- one matrix for two products, in one of them the other way round
cat > tied.txt << END
func @main(%x: i8[1, 20]) {
  %w = constant i8[20, 20] dense [$(numbers 400 61)]
  %1 = constant f32[] dense [0.0625]
  %2 = constant f32[] dense [1.0]
  %m = qnn.matmul(%x, %w)
  %y = qnn.requantize(%m, %1, %2) {rounding = "half_up", out_dtype = i8}
  %n = qnn.matmul(%y, %w) {transpose_b = 1}
  %z = qnn.requantize(%n, %1, %2) {rounding = "half_up", out_dtype = i8}
  return %z
}
END
expect 0 '1 region on VTA, all outputs equal' vta model tied.txt --offload vta

# --- another device
VTA_CONFIG=2x16_i8w8a32_15_15_18_17 expect_error 1 'is for a device 1x16.*this one is 2x16' \
    run 1x16_i8w8a32_15_15_18_17.so
expect_error 2 "'lathe vta model' needs a model" vta model
expect_error 2 'no part of it runs on VTA.*' vta model "$net"
check "and what to do" grep -q -e '--offload vta gives' stderr
expect_error 1 'no part of it runs on VTA' vta model "$top/demo/residual.onnx" --offload vta
check "and what model it takes" grep -q -e '--for vta; lathe inspect' stderr

# --- docs/explanation/vta.md, "Whole models": its commands
mkdir bin
ln -s "$lathe" bin/lathe
ln -s "$top/demo" demo
awk '/^## / { on = /Whole models/ } /^```/ { code = on && /sh$/; next } code' "$top/docs/explanation/vta.md" > commands
while read -r line; do
    check "docs: $line" env PATH="$work/bin:$PATH" sh -c "$line"
done < commands
check "there were commands" test "$(grep -c '^lathe' commands)" -ge 8
# --- a thread with a device of its own: values and kernels lie on that one
cat > own.c << 'C'
#include <stdio.h>
#include <stdlib.h>

#include "lathe_vm.h"
#include "vta.h"
#include "vta_runtime.h"

int main(int argc, char **argv)
{
    static signed char data[3 * 81];
    const vta_sim_options options = {.seed = 1};
    const int64_t shape[4] = {1, 3, 9, 9};
    vta_config config;
    vta_sim *sim;
    vta_context *c;
    lathe_runtime *rt = NULL;
    lathe_value library = {0}, vm = {0}, run = {0}, out = {0};
    lathe_dltensor x = {data, {LATHE_CPU, 0}, 4, {0, 8, 1}, (int64_t *)shape, NULL, 0};
    lathe_value in = {.type = LATHE_DLTENSOR};
    lathe_error e = {0};

    in.u.v_tensor = &x;
    if (argc < 2 || vta_config_preset("1x16_i8w8a32_15_15_18_17", &config, NULL) != VTA_OK ||
        vta_sim_create(&config, &options, &sim, NULL) != VTA_OK)
        return 1;
    vta_device d = vta_sim_device(sim);
    const size_t bytes = vta_context_bytes(&d, NULL);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (vta_context_init(memory, bytes, &d, NULL, &c, NULL) != VTA_OK)
        return 1;
    vta_make_current(c);
    if (lathe_runtime_create(NULL, &rt, &e) || lathe_LoadFromFile(rt, argv[1], &library, &e) ||
        lathe_start(&library, &vm, &e) || lathe_GetFunction(&vm, "main", &run, &e) ||
        lathe_call(&run, &in, 1, &out, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    lathe_release(&out);
    lathe_release(&run);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
    vta_make_current(NULL);
    vta_context_destroy(c);
    vta_device_destroy(&d);
    free(memory);
    puts("ran");
    return 0;
}
C
cc=${CC:-cc} libraries=$(cd "$(dirname "$lathe")" && pwd)/runtime
flags=-std=c11
# Where a build has only the archives, the linker would take those, and lack what they need.
check "the shared libraries are built" cmake --build "$(dirname "$libraries")" --target lathe_vm_shared vta_shared
nm -D "$libraries/vta/libvta.so" | grep -q __asan_init && flags="$flags -fsanitize=address,undefined"
check "a program with a device of its own builds" "$cc" $flags -I"$top/runtime/vm" -I"$top/runtime/vta" \
    -I"$top/include/abi" own.c -L"$libraries/vm" -L"$libraries/vta" -llathe_vm -lvta -o own
check "and runs a module on it" env LD_LIBRARY_PATH="$libraries/vm:$libraries/vta" ./own 1x16_i8w8a32_15_15_18_17.so
expect_error 1 'cannot be interpreted' compile "$net" --offload vta --emit module --with-interpreter -o no.so
[ ! -e no.so ] && good || bad 'a module that was refused is there'
finish
