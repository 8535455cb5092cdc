#!/usr/bin/env bash
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
# verify --against interpreter and --per-node: operators that are wrong on purpose, a back end's and a definition's, are
# named, and those behind them are not.
. "$(dirname "$0")/lib.bash"
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
"$python" -c 'import numpy, onnx, onnxruntime' 2> "$work/log" || { echo "no Python with onnxruntime"; exit 77; }
export LATHE_PYTHON=$python
cd "$work" || exit 1

# One operator behind the other; reshapes and softmax keep them apart.
"$python" - << 'PY' || exit 1
import onnx
from onnx import helper as h
info = lambda n, s: h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
nodes = [h.make_node("Softmax", ["x"], ["soft"], name="first"),
         h.make_node("Reshape", ["soft", "flat"], ["row"], name="to_row"),
         h.make_node("Relu", ["row"], ["kept"], name="second"),
         h.make_node("Reshape", ["kept", "box"], ["square"], name="to_square"),
         h.make_node("SampleOp", ["square"], ["same"], name="third", domain="com.microsoft"),
         h.make_node("Softmax", ["same"], ["y"], name="fourth")]
ints = lambda n, v: h.make_tensor(n, onnx.TensorProto.INT64, [len(v)], v)
graph = h.make_graph(nodes, "g", [info("x", [4, 4])], [info("y", [4, 4])], [ints("flat", [16]), ints("box", [4, 4])])
sets = [h.make_opsetid("", 13), h.make_opsetid("com.microsoft", 1)]
onnx.save(h.make_model(graph, opset_imports=sets, ir_version=8), "net.onnx")
PY

# The library: SampleOp, x * 1, by a definition; a target whose hook lowers relu of one dimension.
cat > ops.c << 'END'
#include "relu_hook.h"

static tir_expr_ref sample_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return tir_mul(g->c, tir_float(g->c, DT_F32, SLOPE), te_read(g, ctx, idx));
}

static bool compute_sample(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    (void)n;
    out[0] = te_compute(g, "same", in[0]->dt, in[0]->rank, in[0]->shape, sample_body, in[0]);
    return true;
}

static bool infer_sample(compiler *c, const graph_node *n, type *out) { return infer_same(c, n, out); }

static const te_op sample_te = {.compute = compute_sample, .schedule = te_schedule_default};

bool lathe_register_ops(compiler *c, int api)
{
    static const graph_op row = {.name = "com.microsoft.SampleOp", .operands = "x:float", .min_out = 1, .max_out = 1,
                                 .cls = CLASS_REDUCTION, .effect = EFFECT_PURE, .infer = infer_sample, .schema = "",
                                 .te = &sample_te};
    return api == LATHE_OP_API && graph_register_op(c, &row) && target_register(c, &demo);
}
END
library() { # NAME SLOPE LEAST
    cc -std=c11 -shared -fPIC -I"$top/include" -I"$top/src" -I"$top/test/cli" -DSLOPE="$2" -DLEAST="$3" ops.c -o "$1.so" || exit 1
}
library right 1.0 0
library wrong_loops 1.0 0.25
library wrong_meaning 1.5 0
net() { # LIBRARY OPTIONS...
    local library=$1
    shift
    echo "verify net.onnx --load-ops ./$library.so --target demo $*"
}

# all right
# shellcheck disable=SC2046
{
    expect 0 '^y: max abs .* ok$' $(net right --against interpreter)
    expect 0 '^y: max abs .* ok$' $(net right --against onnxruntime)
    expect 0 '^y: max abs .* ok$' $(net right --against c)
    expect 0 '^the results of 4 operators agree at -O3$' $(net right --against interpreter --per-node)
    expect 0 '^the results of 4 operators agree at -O0$' $(net right --against onnxruntime --per-node)
    expect 0 '"name": "kept", "operator": "fused_nn_relu \(node second\)".* "rms": 0\.[0-9]+' $(net right --against interpreter --per-node --json)
}

# loops that a target makes wrongly: the definition tells, and so does onnxruntime
relu='operator fused_nn_relu \(node second\) is the first wrong one \(right results before it: 1\): result .kept.: .* of 16'
# shellcheck disable=SC2046
{
    expect 1 "output 'y': .* outside of the tolerance" $(net wrong_loops --against interpreter)
    # the next command has the options of this one, and one sample
    expect 1 'lathe verify net.onnx --against interpreter --per-node --seed [34] --target demo --opt-level 2 --load-ops ./wrong_loops.so$' \
        $(net wrong_loops --against interpreter --seeds 2 --seed 3 -O2)
    expect 1 'net.onnx --against onnxruntime --per-node --target demo --requant fast --load-ops' \
        $(net wrong_meaning --against onnxruntime --requant fast)
    expect 1 "output 'y': .* outside of the tolerance" $(net wrong_loops --against c)
    expect 1 "$relu" $(net wrong_loops --against interpreter --per-node)
    expect 1 "$relu" $(net wrong_loops --against onnxruntime --per-node -O3)
    expect 1 "$relu" $(net wrong_loops --against onnxruntime --per-node)
}

# an operator that is defined wrongly: its loops do what it says, so only onnxruntime tells
sample='operator fused_com_microsoft_SampleOp \(node third\) is the first wrong one .*: result .same.'
# shellcheck disable=SC2046
{
    expect 0 'agree at -O3' $(net wrong_meaning --against interpreter --per-node)
    expect 1 "$sample" $(net wrong_meaning --against onnxruntime --per-node)
}

# what does not go together
expect 2 'nothing to compare with' verify net.onnx
expect 2 'data has no results of single operators' verify net.onnx --data . --per-node
expect 2 'compared with itself' verify net.onnx --against interpreter --interpret
expect 2 'is unknown' verify net.onnx --against nobody
expect 2 'is unknown' bench net.onnx --against interpreter
expect 0 '' compile "$top/demo/digits.onnx" -o package
expect 2 'the interpreter cannot run a package' verify package --against interpreter
expect 2 'C without schedules cannot run a package' verify package --against c
expect 2 'C has no results of single operators' verify net.onnx --against c --per-node
expect 2 'builds for this machine' verify net.onnx --against c --target aarch64 --emulator qemu-aarch64
expect 0 'ok$' verify "$top/demo/residual_vta.onnx" --against c --rtol 0 --atol 0

# the model's own names, and weights in files beside it
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h, numpy_helper
info = lambda n, s: h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
w = numpy_helper.from_array(np.arange(64, dtype=np.float32).reshape(8, 8) / 64, "w")
nodes = [h.make_node("MatMul", ["x", "w"], ["a"], name="mat"), h.make_node("Tanh", ["a"], ["b/c:0"], name="tanh"),
         h.make_node("MatMul", ["b/c:0", "w"], ["y"], name="mat2")]
m = h.make_model(h.make_graph(nodes, "g", [info("x", [2, 8])], [info("y", [2, 8])], [w]),
                 opset_imports=[h.make_opsetid("", 13)], ir_version=8)
onnx.save(m, "beside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
PY
expect 0 '^the results of 3 operators agree at -O0$' verify beside.onnx --against onnxruntime --per-node
expect 0 '^the results of [23] operators agree at -O3$' verify beside.onnx --against interpreter --per-node

# extents that a run decides, and a branch: their results are compared, and what is left out is counted
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h
F, I, B = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
info = h.make_tensor_value_info
sub = lambda op: h.make_graph([h.make_node("Add", ["soft", "soft"], [op + "_twice"], name=op + "_add"),
                               h.make_node(op, [op + "_twice"], [op + "_out"], name=op + "_node")], op, [],
                              [info(op + "_out", F, ["n", 4])])
nodes = [h.make_node("Softmax", ["x"], ["soft"], name="first"),
         h.make_node("If", ["flag"], ["chosen"], name="choice", then_branch=sub("Relu"), else_branch=sub("Tanh")),
         h.make_node("SampleOp", ["chosen"], ["same"], name="third", domain="com.microsoft"),
         h.make_node("NonZero", ["same"], ["where"], name="fourth"),
         h.make_node("Cast", ["where"], ["y"], name="fifth", to=F)]
graph = h.make_graph(nodes, "g", [info("x", F, ["n", 4]), info("flag", B, [])], [info("y", F, [2, "found"])])
sets = [h.make_opsetid("", 13), h.make_opsetid("com.microsoft", 1)]
onnx.save(h.make_model(graph, opset_imports=sets, ir_version=8), "open.onnx")
np.save("x3.npy", np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
PY
open() { # LIBRARY OPTIONS...
    local library=$1
    shift
    echo "verify open.onnx --load-ops ./$library.so --dim n<=5 --input x=x3.npy $*"
}
left='; not compared: [0-9]+ are made and carried by branches and loops, 1 are extents'
# shellcheck disable=SC2046
{
    expect 0 "^the results of 5 operators agree at -O0$left\$" $(open right --against onnxruntime --per-node)
    expect 0 "^the results of [45] operators agree at -O3$left\$" $(open right --against interpreter --per-node)
    expect 0 '"compared": \{"agree": 5, "not_the_models": 0, "inside_blocks": 4, "extents": 1\}' \
        $(open right --against onnxruntime --per-node --json)
    expect 1 "operator fused_com_microsoft_SampleOp \(node third\) is the first wrong one .*: 2\): result 'same': .* of 12" \
        $(open wrong_meaning --against onnxruntime --per-node)
}

# names of classes, and ZipMap's maps: compared as the numbers and the columns that Lathe makes of them
"$python" - << 'PY' || exit 1
import onnx
from onnx import TensorProto as T, helper as h
ml = lambda op, ins, outs, **attributes: h.make_node(op, ins, outs, domain="ai.onnx.ml", **attributes)
sets = [h.make_opsetid("", 13), h.make_opsetid("ai.onnx.ml", 3)]
for key, kind, names in (("strings", T.STRING, ["zebra", "ant", "cat"]), ("int64s", T.INT64, [7, -1, 3])):
    of = "classlabels_" + ("strings" if kind == T.STRING else "ints")
    nodes = [ml("LinearClassifier", ["x"], ["label", "scores"], coefficients=[.5, -1, 2, .25, -1, 1],
                intercepts=[0., .1, .2], post_transform="SOFTMAX", **{of: names}),
             ml("ZipMap", ["scores"], ["maps"], **{"classlabels_" + key: names})]
    entry = h.make_map_type_proto(kind, h.make_tensor_type_proto(T.FLOAT, []))
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [2, 2])],
                         [h.make_tensor_value_info("label", kind, [2]),
                          h.make_value_info("maps", h.make_sequence_type_proto(entry))])
    onnx.save(h.make_model(graph, opset_imports=sets, ir_version=8), f"{key}.onnx")
PY
for m in strings int64s; do
    expect 0 '^label: 9 samples, max abs 0, .*ok$' verify $m.onnx --against onnxruntime --seeds 9
    expect 0 '^maps: 9 samples, max abs .*ok$' verify $m.onnx --against onnxruntime --seeds 9
done
expect 0 '' compile strings.onnx -o named
expect 1 "output 'label' consists of strings, .*verify the model's file" verify named --against onnxruntime --model strings.onnx

# a package for another machine, in an emulator
expect 2 'needs --target' verify net.onnx --against interpreter --emulator qemu-aarch64
expect 2 'it runs here' run net.onnx --interpret --target generic --emulator qemu-aarch64
expect 2 'no command' run net.onnx --target generic --emulator ' '
# Many samples: seeds, and folders of data sets, of which one is wrong. Random inputs span what a model quantises.
"$python" - << 'PY' || exit 1
import numpy as np, onnx, os
from onnx import helper as h, numpy_helper as n
info = lambda name, kind: h.make_tensor_value_info(name, kind, [500])
numbers = [n.from_array(np.float32(0.5), "s"), n.from_array(np.int8(3), "z")]
nodes = [h.make_node("Reshape", ["x", "all"], ["r"]), h.make_node("QuantizeLinear", ["r", "s", "z"], ["y"])]
whole = h.make_graph(nodes, "g", [info("x", onnx.TensorProto.FLOAT)], [info("y", onnx.TensorProto.INT8)],
                     numbers + [n.from_array(np.array([500]), "all")])
onnx.save(h.make_model(whole, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "quantise.onnx")
for k in range(3):
    folder = f"sets/test_data_set_{k}"; os.makedirs(folder)
    x = np.linspace(k, 9, 500, dtype=np.float32); y = (np.rint(x * 2) + 3).astype(np.int8)
    y[7] += k == 1
    for name, value in (("input_0", x), ("output_0", y)):
        open(f"{folder}/{name}.pb", "wb").write(n.from_array(value, name).SerializeToString())
PY
expect 0 '^y: 4 samples, max abs 0, max rel 0, max ulp 0: ok$' verify quantise.onnx --seeds 4 --against interpreter
expect 0 '"samples": 4, "wrong_samples": 0' verify quantise.onnx --seeds 4 --json --seed 9 --against onnxruntime
expect 0 'input x is random \(seeds 9 to 12\)' verify quantise.onnx --seeds 4 --seed 9 --against c
expect 1 '1 of 3 samples are wrong; test_data_set_1, output .y.: 1 of 500 elements .* element 7 is' \
    verify quantise.onnx --data sets --atol 0 --rtol 0
expect 0 'max abs 0' verify quantise.onnx --data sets/test_data_set_2
expect 2 'use only one of them' verify quantise.onnx --data sets --seeds 2 --against c
"$python" -c 'import numpy as n; n.save("rows.npy", n.linspace(-60, 60, 1500, dtype="f4"))' # three times the first axis
expect 0 '^y: 3 samples, max abs 0, .*: ok$' verify quantise.onnx --data rows.npy --against onnxruntime
expect 0 '"samples": 3, .*"worst": "sample 0"' verify quantise.onnx --data rows.npy --against interpreter --json
expect 2 'has only inputs, and no outputs to compare with' verify quantise.onnx --data rows.npy
expect 2 'use only one of them' verify quantise.onnx --data rows.npy --seeds 2 --against c
expect 2 '.--per-node runs one sample' verify quantise.onnx --data rows.npy --per-node --against interpreter
expect 1 "'rows.npy' is a file, and 'lathe run' takes a test_data_set_" run quantise.onnx --data rows.npy
expect 2 '.--per-node runs one sample' verify quantise.onnx --seeds 2 --per-node --against interpreter
expect 2 '.--per-node runs one sample, --steps' verify quantise.onnx --steps 2 --per-node --against interpreter
expect 0 '' run quantise.onnx --output-dir spanned
"$python" -c 'import numpy as n; y = n.load("spanned/y.npy"); assert y.min() < -120 and y.max() > 120' ||
    bad "random inputs do not span what is quantised"

expect 3 "there is no program 'no-such-emulator'" run "$top/demo/digits.onnx" --target generic --emulator no-such-emulator
if command -v qemu-aarch64 > log && command -v aarch64-linux-gnu-gcc > log; then
    export CC="aarch64-linux-gnu-gcc -static"
    emulated="--emulator qemu-aarch64"
    # shellcheck disable=SC2046,SC2086
    {
        expect 0 '^the results of 4 operators agree at -O3$' $(net right --against interpreter --per-node) $emulated
        expect 1 "$relu" $(net wrong_loops --against interpreter --per-node) $emulated
        expect 1 "$relu" $(net wrong_loops --against onnxruntime --per-node) $emulated
        expect 0 "^the results of [45] operators agree at -O3$left\$" \
            $(open right --against interpreter --per-node) --target aarch64 $emulated
        expect 0 "^the results of 5 operators agree at -O0$left\$" \
            $(open right --against onnxruntime --per-node) --target aarch64 $emulated
        expect 0 'y: f32\[2, 12\]' run open.onnx --load-ops ./right.so --dim 'n<=5' --input x=x3.npy --target aarch64 $emulated
        expect 1 'fused_nonzero.* status -10: .*; its data must give nonzero_0 <= 7' run open.onnx --load-ops ./right.so \
            --dim 'n<=5' --bound nonzero_0=7 --input x=x3.npy --target aarch64 $emulated
    }
    expect 0 '' compile "$top/demo/digits.onnx" --target aarch64 --constants bin -o handed
    expect 0 '^probabilities: f32\[1, 10\]' run handed --emulator qemu-aarch64
    unset CC
    expect 3 'target aarch64 is not this machine' run handed --emulator qemu-aarch64
else
    echo "verify.sh: aarch64-linux-gnu-gcc and qemu-aarch64 are not here: nothing runs in an emulator"
fi
finish
