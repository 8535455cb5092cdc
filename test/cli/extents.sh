#!/usr/bin/env bash
# Open extents on the command line: bounds, the data's extents, those of a package's runs, inputs that are bound.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
cd "$work" || exit 3
"$python" "$top/test/py/dynamic_models.py" encoder model.onnx || { echo "no models without $python"; exit 77; }
"$python" - << 'E' || exit 3
import numpy as np
np.save("ids7.npy", np.arange(7).reshape(1, 7))
np.save("ids9.npy", np.arange(9).reshape(1, 9))
np.save("mask7.npy", np.ones((1, 7), np.int64))
np.save("ids40.npy", np.zeros((1, 40), np.int64))
import onnx.parser
onnx.save(onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
m (float[1, 3] x, int64[1] n) => (float[k, 3] y) {
    three = Constant <value_ints = [3]> ()  shape = Concat <axis = 0> (n, three)  e = Expand (x, shape)  y = Squeeze (e)
}"""), "squeeze.onnx")
E

# --- options
expect_error 1 "open dimensions: seq .* --dim seq=" compile model.onnx -o p
expect_error 2 "--dim: 'seq<=x' is not understood" compile model.onnx --dim 'seq<=x' -o p
expect_error 2 "no dimension 'sec'" compile model.onnx --dim 'sec<=8' -o p
expect_error 2 "not a shape; a bound is given by --dim" compile model.onnx --shape 'ids<=1x8' -o p
expect_error 2 "no result has the extent 'nothing'" compile model.onnx --dim 'seq<=8' --bound nothing=3 -o p
expect_error 2 "no input 'mas'" compile model.onnx --dim seq=4 --bind mas=1 -o p
expect_error 2 "'mask' has 4 elements; 3 numbers" compile model.onnx --dim seq=4 --bind mask=1,1,0 -o p
expect_error 1 "'e' has type f32\[expand_0, 3\], whose size has no upper bound" compile squeeze.onnx -o p
expect 0 'y: f32\[2, 3\]' run squeeze.onnx --bind n=2
"$python" -c "import numpy as np; np.save('four.npy', np.array([4]))"
expect 0 'y: f32\[4, 3\]' run squeeze.onnx --input n=four.npy
expect_error 2 "'1.5' is not a list of i64" compile model.onnx --dim seq=4 --bind mask=1.5 -o p
expect_error 2 "is not NAME=VALUE" compile model.onnx --bind mask -o p

# --- one package, several runs
expect 0 '' compile model.onnx --dim 'seq<=32' -o p
grep -q 'int64_t seq;' p/include/tvmgen_default.h && grep -q 'int64_t hidden_shape\[3\];' p/include/tvmgen_default.h &&
    good || bad "the structs have no extents"
expect 0 'hidden: f32\[1, 7, 64\]' run p --input ids=ids7.npy --input mask=mask7.npy
mv stdout seven
expect 0 'hidden: f32\[1, 7, 64\]' run model.onnx --dim 'seq<=32' --interpret --input ids=ids7.npy --input mask=mask7.npy
expect 0 'hidden: f32\[1, 5, 64\]' run p --dim seq=5
expect 0 'hidden: f32\[1, 32, 64\]' run p
expect 0 'hidden: f32\[1, 0, 64\]' run p --dim seq=0
expect_error 1 'seq is (9|7) in another input' run p --input ids=ids9.npy --input mask=mask7.npy
expect_error 1 'extent 40 at axis 1, but seq is at most 32' run p --input ids=ids40.npy
expect_error 2 "seq=33: the limit of this package is 32" run p --dim seq=33
expect_error 2 "has no open extent 'n'" run p --dim n=3

# --- a report that was changed
for change in 's/"most": 32/"most": 1000000000/' 's/"open_shape": \[1, "seq"\]/"open_shape": [1, 100000000]/' \
    's/"open_shape": \[1, "seq"\]/"open_shape": [1, -1]/'; do
    rm -rf q && cp -r p q && tr -d '\n' < p/report.json | sed -E 's/ +/ /g; s/\[ /[/g; s/ \]/]/g' | sed "$change" > q/report.json
    cmp -s <(tr -d ' \n' < p/report.json) <(tr -d ' \n' < q/report.json) && bad "nothing changed by $change"
    expect_error 1 'larger than its limit' run q
done

# --- an input that is a constant is none
expect 0 'hidden: f32\[1, 7, 64\]' run model.onnx --dim seq=7 --bind mask=1 --input ids=ids7.npy
grep -q 'random numbers' stderr && bad "an input is left: $(cat stderr)" || good
[ "$(cut -c1-40 stdout)" = "$(cut -c1-40 seven)" ] && good || bad "bound to ones, it differs: $(cat stdout seven)"

LATHE_PYTHON=$python expect 0 'hidden: .*ok' verify model.onnx --dim seq=7 --bind mask=1 --against onnxruntime

# --- the package's own program
check 'the package does not build' make -s -C p runner CFLAGS=-O1
p/runner seq=6 > out 2> err && grep -q 'hidden: float32 \[1, 6, 64\]' out && good || bad "runner seq=6: $(cat out err)"
p/runner seq=33 -h > out 2> err && grep -q '^usage' out && good || bad "runner seq=33 -h: $(cat out err)"
p/runner seq=33 > out 2> err
[ $? = 2 ] && grep -q 'seq must be a number from 0 to 32' err && good || bad "runner seq=33: $(cat out err)"
p/runner -h > out 2> err && grep -q 'EXTENT=N' out && grep -q '  seq, 0 to 32' out && good || bad "runner -h: $(cat out err)"
p/runner seq=6 ids=ids.bin > out 2> err
[ $? = 2 ] && grep -q 'cannot read ids.bin' err && good || bad "runner ids=ids.bin: $(cat out err)"
head -c 56 /dev/zero > ids.bin
p/runner seq=6 ids=ids.bin > out 2> err
[ $? = 2 ] && grep -q 'has 56 bytes; it must have raw bytes, not .npy, exactly 48 (int64 \[1, seq\]) at seq=6' err && grep -q 'the argument seq=N gives another size' err && good || bad "runner, 56 bytes: $(cat out err)"
for order in 'sec=6 ids=none' 'ids=none sec=6' 'sec=6 seq=99' 'seq=3 sec=6'; do
    # shellcheck disable=SC2086
    p/runner $order > out 2> err
    [ $? = 2 ] && grep -q "'sec=6' is neither NAME=FILE with the name of an input nor NAME=N" err && good ||
        bad "runner $order: $(cat out err)"
done

# --- a program that forgets an extent gets a status, and none by chance
cat > forgets.c <<'END'
#include "tvmgen_default.h"
#include <stdio.h>
static int64_t ids[32];
static float mask[32], hidden[32 * 64];
int main(void)
{
    static const int64_t stated[] = {0, 32, TVMGEN_DEFAULT_EMPTY, 1, -2, 33};
    size_t i;
    for (i = 0; i < sizeof stated / sizeof *stated; i++) {
        struct tvmgen_default_inputs in = {0};
        struct tvmgen_default_outputs out = {0};
        in.ids = ids, in.mask = mask, in.seq = stated[i], out.hidden = hidden;
        printf("%d ", (int)tvmgen_default_run(&in, &out));
    }
    return 0;
}
END
check 'the library does not build' make -s -C p lib CFLAGS=-O1
check 'forgets.c does not build' gcc -Ip/include forgets.c p/libtvmgen_default.a -lm -lpthread -o forgets
[ "$(./forgets)" = '-16 0 0 0 -10 -10 ' ] && good || bad "extents that are forgotten, or wrong: $(./forgets)"

# --- extents that the data decides: macros of their bounds, and the one that was exceeded
cat > found.txt << 'E'
func @main(%x: f32[n, 3], %w: f32[2]) where n <= 4, found <= 5 {
  %a = nonzero(%x) : ? declared i64[2, found]
  %t = transpose(%a)
  %b = nn.relu(%w)
  return %t, %b
}
E
expect 0 '' compile found.txt -o q2 --target generic
for line in 'NUM_INPUTS 3' 'NUM_OUTPUTS 3' 'NUM_INPUT_TENSORS 2' 'NUM_EXTENTS 1' 'NUM_OUTPUT_TENSORS 2' 'N_MAX 4 ' 'FOUND_MAX 5 '; do
    grep -q "^#define TVMGEN_DEFAULT_$line" q2/include/tvmgen_default.h && good || bad "the header has no '$line'"
done
grep -q 'exact, or with all extents at their bounds' q2/include/tvmgen_default.h &&
    grep -q 'set every one before each run' q2/include/tvmgen_default.h && good || bad "the header does not say what its numbers are"
"$python" -c 'import numpy; numpy.save("ones.npy", numpy.ones((4, 3), "f4")); numpy.ones((4, 3), "f4").tofile("ones.bin")'
expect_error 1 'fused_nonzero.* ended with status -10: .*; its data must give found <= 5' run q2 --input x=ones.npy
expect_error 1 'fused_nonzero.* ended with status -10: .*; found is 12, at most 5' run found.txt --interpret --input x=ones.npy
check 'the package does not build' make -s -C q2 runner CFLAGS=-O1
q2/runner x=ones.bin > out 2> err
[ $? = 1 ] && grep -q 'fused_nonzero; its data must give found <= 5' err && good || bad "runner x=ones.bin: $(cat out err)"
expect 0 'extent n <= 4 ' inspect found.txt
expect 0 'i64\[2, found\] +nonzero' inspect found.txt
grep -q cell stdout && bad "inspect prints what is the compiler's own: $(cat stdout)" || good

# --- an input that is a constant and has open extents is filled in each run
expect 0 '' compile model.onnx --dim 'seq<=16' --bind mask=1 -o q3 --target generic
expect 0 'hidden: f32\[1, 7, 64\]' run q3 --input ids=ids7.npy
[ "$(cut -c1-40 stdout)" = "$(cut -c1-40 seven)" ] && good || bad "filled with ones, it differs: $(cat stdout seven)"
LATHE_PYTHON=$python expect 0 'hidden: .*ok' verify model.onnx --dim 'seq<=16' --bind mask=1 --against onnxruntime --input ids=ids7.npy
expect_error 2 "'mask' has open extents, so it takes one number for all elements" compile model.onnx --dim 'seq<=16' --bind mask=1,1 -o q4
expect_error 2 "the extent seq of 'ids' is unknown" compile model.onnx --dim 'seq<=16' --bind mask=1 --bind ids=1 -o q4
grep -q -- '--dim seq=N' stderr && good || bad "no way out: $(cat stderr)"

# --- bounds: contradictions, extents of inputs, names that the model declares
expect_error 2 "'seq<=8' and 'seq=4' contradict each other" compile model.onnx --dim 'seq<=8' --dim seq=4 -o q4
expect_error 2 "'seq<=8' and 'seq<=9' contradict each other" compile model.onnx --dim 'seq<=8' --dim 'seq<=9' -o q4
expect_error 2 "'a=8' and 'a=9' contradict each other" compile model.onnx --bound a=8 --bound a=9 -o q4
expect_error 2 "'mask=1' and 'mask=0' contradict each other" compile model.onnx --bind mask=1 --bind mask=0 -o q4
expect_error 2 "'seq' is an extent of input 'ids'" compile model.onnx --dim 'seq<=8' --bound seq=4 -o q4
expect_error 2 "'n' is an extent of input 'x'" compile found.txt --bound n=2 -o q4
"$python" - << 'PY' || exit 3
import numpy
import onnx
from onnx import helper as h
F, I, B = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
info = h.make_tensor_value_info
nodes = [h.make_node("NonZero", ["x"], ["where"]), h.make_node("Transpose", ["where"], ["rows"]),
         h.make_node("Cast", ["rows"], ["y"], to=F)]
m = h.make_graph(nodes, "g", [info("x", F, [4, 3])], [info("y", F, ["boxes", 2])])
onnx.save(h.make_model(m, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "boxes.onnx")
body = h.make_graph([h.make_node("Add", ["s", "one"], ["t"]), h.make_node("Identity", ["go"], ["on"])], "body",
                    [info("i", I, []), info("go", B, []), info("s", I, [])], [info("on", B, []), info("t", I, [])])
m = h.make_graph([h.make_node("Loop", ["m", "yes", "zero"], ["n"], body=body), h.make_node("Add", ["v", "v"], ["w"])], "g",
                 [info("m", I, []), info("v", I, [])], [info("n", I, []), info("w", I, [])],
                 [h.make_tensor("one", I, [], [1]), h.make_tensor("zero", I, [], [0]), h.make_tensor("yes", B, [], [1])])
onnx.save(h.make_model(m, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "rounds.onnx")
# none or several rows and the first one: of no rows and one row there are none
nodes = [h.make_node("NonZero", ["x"], ["where"]), h.make_node("Slice", ["x", "from", "to"], ["first"]),
         h.make_node("Shape", ["first"], ["size"]), h.make_node("Expand", ["where", "size"], ["y"]),
         h.make_node("Cast", ["first"], ["start"], to=I), h.make_node("Add", ["where", "start"], ["z"])]
m = h.make_graph(nodes, "g", [info("x", F, ["n"])], [info("y", I, None), info("z", I, None)],
                 [h.make_tensor("from", I, [1], [0]), h.make_tensor("to", I, [1], [1])])
onnx.save(h.make_model(m, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "first.onnx")
for name, x in ("none", [0, 0]), ("one", [0, 3, 0]), ("several", [4, 0, 2, 1]), ("empty", []):
    numpy.save(f"{name}.npy", numpy.array(x, "f4"))
PY
for x in none one several empty; do
    LATHE_PYTHON=$python expect 0 'z: .*ok' verify first.onnx --dim 'n<=4' --against onnxruntime --input x=$x.npy
done
expect 0 '' compile boxes.onnx --bound boxes=5 -o q5 --target generic
grep -q 'Y_SIZE 40u' q5/include/tvmgen_default.h && good || bad "boxes has no bound: $(cat q5/include/tvmgen_default.h)"
expect_error 2 "no result has the extent 'boxen'" compile boxes.onnx --bound boxen=5 -o q6

# --- an extent keeps its name where a value inside of the model is called so, but not beside an output of that name
for result in y k; do
    cat > named.txt << TEXT
func @main(%b: f32[k, 4]) where k <= 14 {
  %k = nn.softmax(%b) {axis = 1} : f32[k, 4]
  %y = nn.softmax(%k) {axis = 0} : f32[k, 4]
  return %$result
}
TEXT
    expect 0 '' compile named.txt -o named_$result -q
done
check "the extent's own name" grep -q 'int64_t k; ' named_y/include/tvmgen_default.h
check "another name beside an output" grep -q 'int64_t k_1; ' named_k/include/tvmgen_default.h

# --- bench says at which extents it ran
expect 0 '\(1 rounds\) at seq=5$' bench q3 --dim seq=5 --repeat 1
expect 0 '"extents": \[\{"name": "seq", "value": 16\}\]' bench q3 --repeat 1 --json

# --- random numbers try loops out: the trip count goes beyond a bit, another number does not
for seed in 0 1 2 3 4 5 6 7; do
    "$lathe" run rounds.onnx --interpret --seed $seed 2> stderr | sed 's/.* //' | paste -s
done | sort -u > rounds
awk '$1 > 1 { more = 1 } $1 > 4 || $2 > 2 { wrong = 1 } END { exit !more || wrong }' rounds && good || bad "rounds by chance: $(cat rounds)"

# --- operators in the place of their operands, at several extents
cat > place.txt << 'E'
func @main(%x: f32[3, n], %w: f32[n, 7]) where n <= 40 {
  %a = exp(%x)
  %b = nn.relu(%a)
  %c = negative(%b)
  %y = tanh(%c)
  %e = exp(%w)
  %f = nn.relu(%e)
  %z = exp(%f)
  return %y, %z
}
E
"$python" -c "import numpy as n; r = n.random.default_rng(0)
for k in (0, 1, 7, 8, 9, 40): n.save(f'x{k}.npy', r.standard_normal((3, k), 'f4')); n.save(f'w{k}.npy', r.standard_normal((k, 7), 'f4'))"
for k in 0 1 7 8 9 40; do
    expect 0 'z: .*ok' verify place.txt -O0 --against interpreter --input x=x$k.npy --input w=w$k.npy
done

# --- a resize to the extents of another image, which no bound needs to be given for
"$python" - << 'PY' || exit 3
import numpy as np, onnx
from onnx import helper as h
F = onnx.TensorProto.FLOAT
info = h.make_tensor_value_info
nodes = [h.make_node("Shape", ["x"], ["outer"], end=2), h.make_node("Shape", ["y"], ["inner"], start=2),
         h.make_node("Concat", ["outer", "inner"], ["to"], axis=0),
         h.make_node("Resize", ["x", "", "", "to"], ["r"], mode="nearest"), h.make_node("Add", ["r", "y"], ["z"])]
m = h.make_graph(nodes, "g", [info("x", F, ["b", 3, "h", "w"]), info("y", F, ["b", 3, "p", "q"])],
                 [info("z", F, ["b", 3, "p", "q"])])
onnx.save(h.make_model(m, opset_imports=[h.make_opsetid("", 18)], ir_version=9), "pyramid.onnx")
r = np.random.default_rng(0)
for k, (b, hh, w, p, q) in enumerate([(2, 3, 4, 6, 8), (1, 5, 7, 11, 3)]):
    np.save(f"px{k}.npy", r.standard_normal((b, 3, hh, w), "f4"))
    np.save(f"py{k}.npy", r.standard_normal((b, 3, p, q), "f4"))
PY
open=(--dim 'b<=2' --dim 'h<=8' --dim 'w<=8' --dim 'p<=16' --dim 'q<=16')
for k in 0 1; do
    LATHE_PYTHON=$python expect 0 'z: .*ok' verify pyramid.onnx "${open[@]}" --input x=px$k.npy --input y=py$k.npy --against onnxruntime
done

# --- a convolution of rows of any length, of which there are always as many
"$python" - << 'PY' || exit 3
import numpy as np, onnx, onnx.parser
m = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
m (float[1, 32, 8, w] x) => (float[1, 32, 8, w] y) { y = Conv (x, k) }""")
r = np.random.default_rng(0)
m.graph.initializer.append(onnx.numpy_helper.from_array(r.standard_normal((32, 32, 1, 1), "f4"), "k"))
onnx.save(m, "rows.onnx")
np.save("rows.npy", r.standard_normal((1, 32, 8, 5), "f4"))
PY
LATHE_PYTHON=$python expect 0 'y: .*ok' verify rows.onnx --target x86-64-v3 --dim 'w<=9' --input x=rows.npy --against onnxruntime

# --- extents with two names that an operator needs to be one: a run with others must end, and read nothing
"$python" - << 'PY' || exit 3
import numpy as np, onnx
from onnx import TensorProto as T, helper as h
F, I, MS = T.FLOAT, T.INT64, "com.microsoft"
MODELS = {"MatMul": ([(F, [3, "a"]), (F, ["b", 5])], {}), "Einsum": ([(F, ["a", 4]), (F, ["b", 4])], {"equation": "ij,ij->i"}),
          "Conv": ([(F, [1, "a", 5, 5]), (F, [4, "b", 3, 3])], {}), "GatherND": ([(F, ["a", 3]), (I, ["b", 2, 1])], {"batch_dims": 1}),
          "GatherElements": ([(F, ["b", 3]), (I, ["a", 2])], {"axis": 1}), "LayerNormalization": ([(F, [2, "a"]), (F, ["b"])], {}),
          "ReverseSequence": ([(F, ["a", 3]), (I, ["b"])], {"batch_axis": 0, "time_axis": 1}),
          "ConvTranspose": ([(F, [1, "a", 5, 5]), (F, ["b", 2, 3, 3])], {}), "PRelu": ([(F, [2, "a"]), (F, ["b"])], {}),
          "ScatterND": ([(F, ["a", 4]), (I, [1, 1]), (F, [1, "b"])], {}), "DepthToSpace": ([(F, [1, "a", 2, 2])], {"blocksize": 2}),
          "RoiAlign": ([(F, [1, 1, 4, 4]), (F, ["a", 4]), (I, ["b"])], {}),
          "Attention": ([(F, ["a", 3, 8]), (F, [8, 24]), (F, [24]), (T.INT32, ["one"])], {"num_heads": 2, "domain": MS})}
for name, (inputs, attributes) in MODELS.items():
    declared = [h.make_tensor_value_info(f"x{i}", t, d) for i, (t, d) in enumerate(inputs)]
    node = h.make_node(name, [v.name for v in declared], ["y"], **attributes)
    graph = h.make_graph([node], "m", declared, [h.make_tensor_value_info("y", F, None)])
    sets = [h.make_opsetid("", 17), h.make_opsetid(MS, 1)]
    onnx.save(h.make_model(graph, opset_imports=sets, ir_version=8), f"two_{name}.onnx")
    for i, (t, dims) in enumerate(inputs):
        extents = [{"a": 3, "b": 2, "one": 1}.get(d, d) for d in dims]
        np.save(f"two_{name}{i}.npy", np.ones(extents, h.tensor_dtype_to_np_dtype(t)))

# Batches that broadcast, and axes of one letter: one of them may be 1.
letters = [h.make_tensor_value_info(n, F, d) for n, d in (("x", ["a", 3]), ("y", ["b", 3]))]
graph = h.make_graph([h.make_node("Einsum", ["x", "y"], ["z"], equation="ij,ij->ij")], "m", letters,
                     [h.make_tensor_value_info("z", F, None)])
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "letters.onnx")
for n, d in (("x", [1, 3]), ("y", [4, 3])):
    np.save(f"letters_{n}.npy", np.random.default_rng(0).standard_normal(d).astype("f4"))
one = [h.make_tensor_value_info(n, F, d) for n, d in (("x", ["a", 3, 4]), ("y", ["b", 3, 4]), ("v", ["a", 4, 5]))]
nodes = [h.make_node("Add", ["x", "y"], ["s"]), h.make_node("MatMul", ["s", "v"], ["z"])]
graph = h.make_graph(nodes, "m", one, [h.make_tensor_value_info("z", F, None)])
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "batches.onnx")
r = np.random.default_rng(0)
for n, d in (("x", [1, 3, 4]), ("y", [3, 3, 4]), ("v", [1, 4, 5])):
    np.save(f"batches_{n}.npy", r.standard_normal(d).astype("f4"))
PY
for two in MatMul Einsum Conv GatherND GatherElements LayerNormalization ReverseSequence ConvTranspose PRelu ScatterND \
    DepthToSpace RoiAlign Attention; do
    words=(--dim 'a<=4')
    case $two in
    DepthToSpace) ;;
    Attention) words+=(--dim 'one<=4') ;;
    *) words+=(--dim 'b<=4') ;;
    esac
    for file in two_${two}[0-9].npy; do
        words+=(--input "x${file//[!0-9]/}=$file")
    done
    expect 1 'ended with status -10: a run-time shape exceeds its declared bound or contradicts the model' \
        run two_$two.onnx "${words[@]}"
done
LATHE_PYTHON=$python expect 0 'z: .*ok' verify batches.onnx --dim 'a<=4' --dim 'b<=4' --input x=batches_x.npy \
    --input y=batches_y.npy --input v=batches_v.npy --against onnxruntime
LATHE_PYTHON=$python expect 0 'z: .*ok' verify letters.onnx --dim 'a<=4' --dim 'b<=4' --input x=letters_x.npy \
    --input y=letters_y.npy --against onnxruntime

# --- windows with strides and auto_pad, whose pads the extents of a run decide
"$python" - << 'PY' || exit 3
import numpy as np, onnx
from onnx import helper as h, numpy_helper
T, info, r = onnx.TensorProto, h.make_tensor_value_info, np.random.default_rng(0)
nodes, weights, results = [], [numpy_helper.from_array(np.array(7, np.uint8), "zero")], []
for op, data, typed, more in (("Conv", "x", T.FLOAT, {}), ("ConvInteger", "b", T.INT32, {}), ("MaxPool", "x", T.FLOAT, {}),
                              ("MaxPool", "b", T.UINT8, {}), ("AveragePool", "x", T.FLOAT, {}), ("LpPool", "x", T.FLOAT, {}),
                              ("AveragePool", "x", T.FLOAT, {"count_include_pad": 1})):
    for kernel, stride in ((3, 2), (4, 3), (1, 2), (2, 3)):
        if kernel < stride and not op.startswith("Conv"):
            continue  # onnxruntime has none
        for pad in ("SAME_UPPER", "SAME_LOWER"):
            name, names = f"y{len(nodes)}", [data]
            attributes = dict(more, strides=[stride] * 2, auto_pad=pad)
            if op.startswith("Conv"):
                w = r.integers(-4, 5, (2, 3, kernel, kernel)).astype(np.float32 if op == "Conv" else np.int8)
                weights.append(numpy_helper.from_array(w, "w" + name))
                names += ["w" + name] + (["zero"] if data == "b" else [])
            else:
                attributes["kernel_shape"] = [kernel] * 2
            nodes.append(h.make_node(op, names, [name], **attributes))
            results.append(info(name, typed, None))
g = h.make_graph(nodes, "g", [info("x", T.FLOAT, [1, 3, "h", "w"]), info("b", T.UINT8, [1, 3, "h", "w"])], results, weights)
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 19)], ir_version=9), "same.onnx")
for k, extents in enumerate([(1, 3, 13, 20), (1, 3, 8, 9), (1, 3, 1, 2)]):
    np.save(f"same_x{k}.npy", r.standard_normal(extents, "f4") - 2)
    np.save(f"same_b{k}.npy", r.integers(0, 255, extents).astype(np.uint8))
PY
for k in 0 1 2; do
    LATHE_PYTHON=$python expect 0 'y35: .*ok' verify same.onnx --dim 'h<=20' --dim 'w<=20' --input x=same_x$k.npy --input b=same_b$k.npy \
        --interpret --against onnxruntime
done
LATHE_PYTHON=$python expect 0 'y35: .*ok' verify same.onnx --dim 'h<=20' --dim 'w<=20' --input x=same_x1.npy --input b=same_b1.npy --against onnxruntime
finish
