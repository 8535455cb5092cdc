#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Portable modules where there is no C compiler: those that hold their loops run, and give what compiled kernels give;
# the others say what is missing.
# Not in `make check`.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
python=$top/build/venv/bin/python
[ -x "$python" ] || { echo "no build/venv"; exit 77; }
digits=$top/demo/digits.onnx
slow='note: .*: no C compiler: the kernels are interpreted, which is slow'

# near A B: the same files, numbers within the tolerance, of the same types and shapes.
cat > near.py << 'END'
import os, sys
import numpy as np
a, b = sys.argv[1:]
assert sorted(os.listdir(a)) == sorted(os.listdir(b)) != [], (os.listdir(a), os.listdir(b))
for name in os.listdir(a):
    x, y = (np.load(os.path.join(folder, name)) for folder in (a, b))
    assert x.dtype == y.dtype and x.shape == y.shape, (name, x.shape, y.shape)
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6, err_msg=name)
END
# both WHAT MODULE ARGS...: compiled, and without a compiler.
both() {
    local what=$1 module=$2
    shift 2
    rm -rf fast slow
    expect 0 '' run "$module" --output-dir fast "$@"
    CC=/nonexistent XDG_CACHE_HOME=$work/empty expect 0 "$slow" run "$module" --output-dir slow "$@"
    check "$what" "$python" near.py fast slow
}

# --- the demo's network; one line says that it is slow; the option changes nothing else
expect 0 '' compile "$digits" --emit module --widths 32,16 -o plain.so
expect 0 '' compile "$digits" --emit module --widths 32,16 --with-interpreter -o digits.so
expect 0 '' compile "$digits" --emit module --widths 32,16 --with-interpreter -o again.so
check "the same bytes again" cmp digits.so again.so
check "loops travel on request only" sh -c 'grep -q primfn digits.so && ! grep -q primfn plain.so && ! grep -q lathe_loops plain.so'
both "digits" digits.so
for bytes in 32 16; do
    LATHE_VECTOR_BYTES=$bytes both "digits, as for vectors of $bytes bytes" digits.so
done
CC=/nonexistent XDG_CACHE_HOME=$work/empty expect 0 '^call: v' run digits.so --trace
check "the trace says it once" [ "$(grep -c 'no C compiler: the kernels are interpreted' stderr)" = 1 ]
expect 0 'no_jit forbids compiling: the kernels are interpreted' run digits.so --no-jit
CC=/nonexistent XDG_CACHE_HOME=$work/empty expect 0 '^lathe        median' bench digits.so --repeat 1
CC=/nonexistent XDG_CACHE_HOME=$work/empty expect 0 'nn.softmax' inspect digits.so
LATHE_PYTHON=$python CC=/nonexistent XDG_CACHE_HOME=$work/empty expect 0 '' \
    verify digits.so --against onnxruntime --model "$digits"
cat > labels.py << 'END'
import onnx
from onnx import TensorProto, helper
node = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", intercepts=[0., 1.],
                        coefficients=[1., 2., -1., 0.], classlabels_strings=["cat", "dog"])
value = helper.make_tensor_value_info
graph = helper.make_graph([node], "g", [value("x", TensorProto.FLOAT, [4, 2])],
                          [value("label", TensorProto.STRING, [4]), value("scores", TensorProto.FLOAT, [4, 2])])
sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=9), "labels.onnx")
END
"$python" labels.py
LATHE_PYTHON=$python expect 0 '^label: .*ok' verify labels.onnx --interpret --against onnxruntime

# --- branches and loops
cat > flow.txt << 'END'
func @main(%x: f32[2, 3], %n: i64[], %b: bool[]) {
  %y, %rows = loop(%n, _, %x) {body = @step, carried = 1} : f32[2, 3], f32[most, 2, 3] where most <= 7
  %z = if(%b, %y) {then_branch = @softmax, else_branch = @double}
  return %z, %rows
}
func @step(%i: i64[], %p: f32[2, 3]) {
  %on = constant bool[] dense [1]
  %half = constant f32[] dense [0.5]
  %a = multiply(%p, %half)
  %c = add(%a, %half)
  return %on, %c, %a
}
func @softmax(%x: f32[2, 3]) {
  %y = nn.softmax(%x)
  return %y
}
func @double(%x: f32[2, 3]) {
  %y = add(%x, %x)
  return %y
}
END
sed -i 's/ : f32\[2, 3\], f32\[most, 2, 3\] where most <= 7//' flow.txt
"$python" -c '
import numpy as np
np.save("n.npy", np.int64(5)); np.save("yes.npy", np.bool_(True)); np.save("no.npy", np.bool_(False))'
expect 0 '' compile flow.txt --emit module --widths 16 --with-interpreter -o flow.so
for branch in yes no; do
    both "branches and loops, $branch" flow.so --input n=n.npy --input b=$branch.npy
done

# rows of a loop that are declared, and are not as many as its rounds
sed 's/carried = 1}/& : f32[2, 3], f32[7, 2, 3]/' flow.txt > declared.txt
expect 0 '' compile declared.txt --emit module --widths 16 --with-interpreter -o declared.so
for how in --workers=1 --no-jit; do
    expect 1 'loop_extent.* status -10' run declared.so --input n=n.npy --input b=no.npy $how
done
expect 1 'loop_extent.* status -10' run declared.txt --input n=n.npy --input b=no.npy

# --- open extents, with bounds and without; a bound that the data exceeds is said as the compiled kernel says it
cat > open.txt << 'END'
func @main(%x: f32[n, 3]) where n <= 9, found <= 5 {
  %a = nonzero(%x) : ? declared i64[2, found]
  %t = transpose(%a)
  %y = nn.softmax(%x)
  return %t, %y
}
END
expect 0 '' compile open.txt --emit module --widths 16 --with-interpreter -o open.so
"$python" -c '
import numpy as np
x = np.zeros((4, 3), "f4"); x[1, 2] = x[3, 0] = x[3, 1] = 2
np.save("few.npy", x); np.save("many.npy", x + 1)'
both "extents with bounds" open.so --input x=few.npy
for how in --workers=1 --no-jit; do
    expect_error 1 'fused_nonzero .*ended with status -10: a run-time shape exceeds its declared bound' \
        run open.so --input x=many.npy $how
done
sed 's/ where .* {/ {/; s/ : ? declared .*//' open.txt > unbounded.txt
expect 0 '' compile unbounded.txt --emit module --widths 16 --with-interpreter -o unbounded.so
for file in few many; do
    both "extents without bounds, $file" unbounded.so --input x=$file.npy
done

# --- what is refused: no loops; a compiler that fails is no missing compiler; loops that say nonsense
CC=/nonexistent XDG_CACHE_HOME=$work/empty expect_error 3 "no compiler '/nonexistent'" run plain.so
expect_error 2 'no_jit forbids compiling' run plain.so --no-jit
printf '#!/bin/sh\nexit 1\n' > broken && chmod +x broken
CC=$work/broken XDG_CACHE_HOME=$work/empty expect_error 3 "compiler '.*/broken' failed" run digits.so
expect_error 2 'with-interpreter is for modules' compile "$digits" --with-interpreter -o package
sed 's/primfn(/primfm(/' digits.so > syntax.so
expect_error 1 "the module's loops:1:1" run syntax.so --no-jit
sed 's/Buffer(float32, \[1, 10\])/Buffer(float32, [9, 90])/g' digits.so > larger.so
check "the file was changed" sh -c '! cmp -s digits.so larger.so'
expect_error 1 'outside|verify|larger' run larger.so --no-jit
sed 's/"global_symbol": "v/"global_symbol": "w/g' digits.so > names.so
expect_error 1 'no loops for the kernel v' run names.so --no-jit
finish
