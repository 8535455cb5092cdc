#!/usr/bin/env bash
# Parts of a model on targets from outside the tree: who runs what, why the rest stayed, a target's own hand on its
# regions, and the same numbers as without.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
cat > targets.c << 'END'
#include "offload_target.h"

bool lathe_register_ops(compiler *c, int api)
{
    return api == LATHE_OP_API && target_register(c, &acme) && target_register(c, &brand);
}
END
library() { # NAME FLAGS...
    local name=$1
    shift
    "${CC:-cc}" -std=c11 -shared -fPIC -I"$top/include" -I"$top/src" -I"$top/test/cli" "$@" targets.c -o "$name.so"
}
check "a library of targets is built" library targets
cat > net.txt << 'TEXT'
func @main(%x: f32[8], %z: f32[100]) {
  %three = constant f32[] dense [3.0]
  %a = multiply(%x, %three) loc("net.onnx", 0, "scaled", "Mul")
  %b = sin(%a) loc("net.onnx", 1, "wave", "Sin")
  %c = add(%a, %b) loc("net.onnx", 2, "sum", "Add")
  %d = multiply(%z, %three) loc("net.onnx", 3, "long", "Mul")
  %e = exp(%c) loc("net.onnx", 4, "growth", "Exp")
  %r = nn.relu(%e) loc("net.onnx", 5, "positive", "Relu")
  %l = log(%x) loc("net.onnx", 6, "small", "Log")
  return %r, %d, %e, %l
}
TEXT
both="--load-ops ./targets.so --offload acme,brand"

# --- who runs what, and why not
expect 0 '' inspect net.txt $both
said=$(tr -s ' ' < stdout)
says() { if grep -Fq -- "$1" <<< "$said"; then good; else bad "inspect does not say '$1': $said"; fi; }
says 'acme_0 on acme: acme.scale; 1 nodes, work 8'
says 'acme multiply scaled'
says '; acme declines it: it cannot compile these nodes'
says 'sin (wave): no pattern of acme or brand takes it'
says 'multiply (long): acme.scale: 100 elements are more than 64'
says 'exp (growth): brand.exp_relu: %e is used outside of the pattern, too'
says 'nn.relu (positive): brand.exp_relu: %e is used outside of the pattern, too'
says 'log (small): brand: the region is too small: work 8 is less than 10 (--offload-least)'
echo 'pattern acme.log(%x) { %y = log(%x) return %y }' > log.pat
expect 0 'log \(small\): acme: the region' inspect net.txt --load-ops ./targets.so --offload acme --offload-least 9 \
    --patterns log.pat
expect 0 'brand_[0-9] on .*: brand.log' inspect net.txt $both --offload-least 0
expect 0 '"why": "acme.scale: 100 elements are more than 64"' inspect net.txt $both --json
# A target that runs nothing: a warning has what it takes, and the nearest reason. One for another kind of machine, too.
echo 'func @main(%x: i8[1, 2, 4, 4]) { %y = nn.max_pool2d(%x) {pool_size = [2, 2]} return %y }' > bytes.txt
expect 0 "no part of 'bytes.txt' runs on xnnpack, which takes nn.conv2d, .*nn.max_pool2d" \
    compile bytes.txt -q --offload xnnpack -o unused
expect 0 "hint: '.*' stays \(xnnpack.nn.max_pool2d: %x is i8.*, and has to be f32.*\); lathe inspect --offload xnnpack says why" \
    compile bytes.txt -q --offload xnnpack -o unused
expect 0 'runs on cutlass, which takes .*' inspect net.txt --load-ops ./targets.so --offload acme,cutlass
check "acme runs some" sh -c '! grep -q "runs on acme" stderr'
expect 0 'no part of .* runs on vta.*' compile net.txt -q --offload vta -o unused
expect 0 'hint: vta takes quantized layers of i8' compile net.txt -q --offload vta -o unused
sed 's/i8/f32/' bytes.txt > pool.txt
expect 0 'warning: --offload xnnpack: its library needs threads .*, and cortex-m4 is a microcontroller' \
    compile pool.txt -q --offload xnnpack --target cortex-m4 --port baremetal -o unused
expect 0 '' compile pool.txt -q --offload xnnpack -o unused
check "nothing to warn of" test ! -s stderr
rm -r unused
"$lathe" inspect net.txt $both --json > report.json
check "the report is JSON, and names the runner" python3 - << 'END'
import json
r = json.load(open("report.json"))["result"]
assert [x["on"] for x in r["operators"] if "on" in x].count("acme") == 1, r["operators"]
assert r["offload"]["regions"][0] == {"name": "acme_0", "target": "acme", "on": "acme", "operations": "acme.scale",
                                      "nodes": 1, "work": 8}, r["offload"]
assert {x["node"] for x in r["offload"]["stayed"]} == {"wave", "long", "growth", "positive", "small"}
END
expect 0 'offload    regions 1, nodes 1, declined regions 1, nodes that stayed 5' compile net.txt $both -o out

# --- a target's own hand: the table that its hook makes becomes a parameter, types are known again
"$lathe" compile net.txt $both --emit graph > graph.txt
check "the table is a constant of the caller" grep -q '^  %table = constant f32\[8\] splat 3.0\|^  %table = constant f32\[8\] dense' graph.txt
check "the region takes it" grep -q '^func @acme_0(%x: f32\[8\], %table: f32\[8\]) \[compiler = "acme"' graph.txt
check "its result has a type" grep -q '^  %product = multiply(%x, %table) : f32\[8\]' graph.txt
"$lathe" compile net.txt $both --emit tir > loops.txt
check "the loops are the target's" [ "$(grep -c lowered_by_acme loops.txt)" = 1 ]
"$lathe" compile net.txt --load-ops ./targets.so --offload acme --bind-constants --emit graph > bound.txt
check "bound, it stays inside" grep -q '^func @acme_0(%x: f32\[8\]) \[compiler = "acme"' bound.txt

# Tables that are bound, of a region that its target declines, and of one that it writes: the same numbers.
awk 'BEGIN {
    for (i = 0; i < 1200; i++) list = list (i ? ", " : "") (i * 7 % 19 - 9) "." i % 10
    print "func @main(%x: f32[1, 300]) {\n  %w = constant f32[300, 4] dense [" list "]"
    print "  %m = nn.matmul(%x, %w)\n  %l = log(%m)\n  return %l\n}" }' > table.txt
echo 'pattern brand.product(%x, %w: constant) { %y = nn.matmul(%x, %w) return %y }' > product.pat
bound="--load-ops ./targets.so --offload brand --patterns product.pat --offload-least 0 --bind-constants"
"$lathe" compile table.txt $bound --emit graph > bound.txt
check "the table is inside" grep -q '^func @brand_0(%x: f32\[1, 300\]) ' bound.txt
expect 0 'ok$' verify table.txt $bound --against interpreter
expect 0 'ok$' verify table.txt $bound --against interpreter --emit module
expect 0 'brand_0 on .*; brand declines it' inspect table.txt $bound

# The same as text, a pass at a time.
cat > scale.txt << 'TEXT'
func @main(%x: f32[4]) {
  %two = constant f32[] dense [2.0]
  %y = multiply(%x, %two) : f32[4]
  %z = sin(%y) : f32[4]
  return %z
}
TEXT
cat > want << 'TEXT'
func @main(%x: f32[4]) {
  %y = call(%x) {callee = @acme_0} : f32[4]
  %z = sin(%y) : f32[4]
  return %z
}

func @acme_0(%x: f32[4]) [compiler = "acme", global_symbol = "acme_0"] {
  %table = constant f32[4] dense [2.0, 2.0, 2.0, 2.0]
  %product = multiply(%x, %table) : f32[4]
  return %product
}
TEXT
cat > want2 << 'TEXT'
func @main(%x: f32[4]) {
  %table = constant f32[4] dense [2.0, 2.0, 2.0, 2.0]
  %y = call(%x, %table) {callee = @acme_0} : f32[4]
  %z = sin(%y) : f32[4]
  return %z
}

func @acme_0(%x: f32[4], %table: f32[4]) [compiler = "acme", global_symbol = "acme_0"] {
  %product = multiply(%x, %table) : f32[4]
  return %product
}
TEXT
cat > want3 << 'TEXT'
primfn(x: handle, table: handle, product: handle) -> ()
  attr = {"global_symbol": "acme_0", "inputs": 2}
  buffers = {x: Buffer(float32, [4]),
             table: Buffer(float32, [4]),
             product: Buffer(float32, [4])} {
  attr [acme] "lowered_by_acme" = 1;
  for (i: int64, 0, 4) {
    product[i] = ((float32*)x[i]*(float32*)table[i])
  }
}

TEXT
acme="--load-ops ./targets.so --offload acme"
"$lathe" opt scale.txt $acme --passes MergeComposite,AnnotateTarget,MergeCompilerRegions,PartitionGraph > part1.txt
"$lathe" opt part1.txt $acme --passes RelayToTIRTargetHook > part2.txt
check "the hook's text" diff want part2.txt
"$lathe" opt part2.txt $acme --passes ExtractPrimFuncConstants > part3.txt
check "the extracted constant" diff want2 part3.txt
check "the hook's loops" diff want3 <("$lathe" compile part3.txt $acme --emit tir | head -n 11)

# --- the same numbers as by the operators' definitions, as package and as module
expect 0 'equal|pass|ok' verify net.txt $both --against interpreter
expect 0 '' run net.txt $both --output-dir with
expect 0 '' run net.txt --output-dir without
for o in r d e l; do check "output $o is the same" cmp with/$o.npy without/$o.npy; done
expect 0 '' run net.txt $both --emit module --output-dir module
for o in r d e l; do check "output $o of the module is the same" cmp module/$o.npy without/$o.npy; done
expect 0 'acme' inspect out

echo 'pattern acme.square(%x: f32[n, 3, n, *]) { %y = sin(%x) return %y }' > square.pat
expect 0 'acme.square: %x is f32\[8\], and has to be f32\[n, 3, n, \*\]' inspect net.txt $both --patterns square.pat

# --- what is not known is said
expect_error 2 "'acme' is unknown" compile net.txt --offload acme -o none
expect_error 2 'did you mean vta\? it takes .*xnnpack' compile net.txt --offload vat -o none
expect_error 2 'did you mean brand\? it takes .*acme' compile net.txt $both,brnad -o none
expect_error 2 "did you mean vta\? 'lathe targets' lists all" compile net.txt --target vat -o none
expect_error 2 'cannot take parts of a model' compile net.txt --offload generic -o none
expect_error 2 'given twice' compile net.txt --load-ops ./targets.so --offload acme,acme -o none
expect_error 2 'names no target' compile net.txt --offload '' -o none
expect_error 2 "a name is missing in 'acme,,brand'" compile net.txt --load-ops ./targets.so --offload acme,,brand -o none
expect_error 2 "a name is missing in 'acme,'" compile net.txt --load-ops ./targets.so --offload acme, -o none
expect_error 2 "a name is missing in ',acme'" compile net.txt --load-ops ./targets.so --offload ,acme -o none
expect_error 2 'name at least one target' compile net.txt --patterns x.pat -o none
expect_error 1 'x.pat' compile net.txt $both --patterns x.pat -o none
echo 'pattern acme.exp(%x) { %y = expp(%x) return %y }' > bad.pat
expect_error 1 "bad.pat:1:29: unknown operator 'expp'" compile net.txt $both --patterns bad.pat -o none
echo 'pattern acme.exp(%x) { %y = exp(%x) return %y } where shirt(%x)' > bad.pat
expect_error 1 "did you mean short" compile net.txt $both --patterns bad.pat -o none
echo 'pattern acme.exp(%x) { %y = exp(%x) return %y } where tiny(%x)' > bad.pat # another target's
expect_error 1 "there is no check 'tiny'" compile net.txt $both --patterns bad.pat -o none
check "nothing is left behind" [ ! -e none ]
cat > two.pat << 'END'
pattern acme.exp(%x) { %y = exp(%x) return %y } where short(%x)
pattern brand.sin(%x) { %y = sin(%x) return %y } where tiny(%x)
pattern nobody.sin(%x) { %y = sin(%x) return %y } pattern nobody.log(%x) { %y = log(%x) return %y }
END
expect 0 "warning: two.pat:3:9: --patterns: 'nobody.sin' is of target nobody, which --offload does not name" \
    inspect net.txt $both --patterns two.pat --offload-least 0
check "once" [ "$(grep -c nobody stderr)" = 1 ]
check "each target has its own checks" sh -c 'grep -q "acme.exp" stdout && grep -q "brand.sin" stdout'
library broken -DBROKEN
expect_error 1 'acme: no room for @acme_0' compile net.txt --load-ops ./broken.so --offload acme -o none
finish
