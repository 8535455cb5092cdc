#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regenerates the small ONNX models that tests keep: seeds of the fuzzer (test/fuzz/corpus/onnx, from the official
cases) and the models of test/golden/onnx and test/golden/error/onnx. Run it with the Python of the test environment."""
import argparse
import os
import shutil

import onnx
from onnx import TensorProto, helper

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
SEEDS = ["test_add_bcast", "test_conv_with_autopad_same", "test_gemm_all_attributes", "test_if", "test_if_opt",
         "test_constant", "test_reshape_reordered_all_dims", "test_maxpool_with_argmax_2d_precomputed_strides",
         "test_layer_normalization_2d_axis0_expanded", "test_split_variable_parts_1d_opset13", "test_qlinearconv",
         "test_lstm_with_peepholes", "test_slice_neg_steps", "test_resize_upsample_sizes_nearest", "test_einsum_sum",
         "test_reduce_sum_keepdims_random", "test_attention_4d_gqa", "test_scatter_elements_with_axis", "test_topk",
         "test_sce_mean_weight_ii_4d_log_prob_expanded", "test_loop11", "test_loop13_seq", "test_loop16_seq_none",
         "test_scan9_sum", "test_scan_sum", "test_sequence_map_add_1_sequence_1_tensor", "test_sequence_insert_at_back",
         "test_split_to_sequence_2", "test_optional_get_element_optional_sequence",
         "test_optional_has_element_empty_optional_input", "test_cast_FLOAT_to_FLOAT8E4M3FN",
         "test_cast_FLOAT8E5M2FNUZ_to_FLOAT16", "test_cast_e8m0_FLOAT8E8M0_to_FLOAT", "test_cast_FLOAT4E2M1_to_FLOAT",
         "test_cast_FLOAT_to_UINT2", "test_cast_INT4_to_INT8", "test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2_expanded",
         "test_quantizelinear_e4m3fn", "test_quantizelinear_float4e2m1", "test_quantizelinear_int2",
         "test_dequantizelinear_uint4", "test_dequantizelinear_blocked"]
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def f32(name, shape):
    return helper.make_tensor_value_info(name, F32, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, ir=8, functions=(), value_info=(), imports=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), value_info=list(value_info))
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports], functions=list(functions))
    m.ir_version = ir
    m.producer_name = ""
    return m


def node(op, inputs, outputs, name="", **attributes):
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def ints(name, values):
    return helper.make_tensor(name, I64, [len(values)], values)


def conv():
    """auto_pad resolved, bias as an add, padding of an odd total at the end."""
    nodes = [node("Conv", ["x", "w", "b"], ["c"], "conv", auto_pad="SAME_UPPER", strides=[2, 2]),
             node("Relu", ["c"], ["r"], "relu"),
             node("GlobalAveragePool", ["r"], ["p"], "pool"),
             node("Flatten", ["p"], ["y"], "flat")]
    weights = helper.make_tensor("w", F32, [2, 1, 3, 3], [0.5] * 18)
    bias = helper.make_tensor("b", F32, [2], [1.0, -1.0])
    return model(nodes, [f32("x", [1, 1, 4, 4])], [f32("y", [1, 2])], [weights, bias])


def function():
    """Two nested model-local functions; an attribute passed by reference, one by default."""
    domain = "local"
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    ref = onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    leaky.attribute.append(ref)
    inner = helper.make_function(domain, "inner", ["a"], ["b"], [leaky], opsets[:1], attributes=["slope"])
    call = helper.make_node("inner", ["u"], ["t"], domain=domain)
    call.attribute.append(onnx.AttributeProto(name="slope", type=onnx.AttributeProto.FLOAT, ref_attr_name="s"))
    outer = helper.make_function(domain, "outer", ["u", "w"], ["v"], [call, helper.make_node("Add", ["t", "w"], ["v"])],
                                 opsets, attribute_protos=[helper.make_attribute("s", 0.25)])
    nodes = [helper.make_node("outer", ["x", "x"], ["m"], domain=domain),
             helper.make_node("outer", ["m", "x"], ["y"], domain=domain, s=0.5)]
    return model(nodes, [f32("x", [2])], [f32("y", [2])], functions=[inner, outer], ir=9, imports=[opsets[1]])


def branch():
    """If on a run-time condition: closed regions, captures as operands, a captured constant made again inside."""
    then = helper.make_graph([node("Add", ["x", "k"], ["t"])], "then", [], [f32("t", [2])])
    other = helper.make_graph([node("Mul", ["x", "z"], ["e"])], "else", [], [f32("e", [2])])
    nodes = [node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)]
    inputs = [helper.make_tensor_value_info("c", BOOL, []), f32("x", [2]), f32("z", [2])]
    return model(nodes, inputs, [f32("y", [2])], [helper.make_tensor("k", F32, [2], [1, 2])])


def old_forms():
    """Attributes that later became operands, and softmax over flattened axes."""
    nodes = [node("Unsqueeze", ["x"], ["u"], axes=[0]),
             node("Slice", ["u"], ["s"], starts=[0], ends=[2], axes=[1]),
             node("Pad", ["s"], ["p"], pads=[0, 1, 0, 0, 0, 0], value=2.0),
             node("ReduceSum", ["p"], ["r"], axes=[2], keepdims=1),
             node("Softmax", ["r"], ["m"], axis=1),
             node("Clip", ["m"], ["y"], min=0.25)]
    return model(nodes, [f32("x", [3, 4])], [f32("y", [1, 3, 1])], opset=9, ir=4)


def dynamic():
    """A batch of unknown extent, fixed by --dim; an initializer that is also an input; an output that is an input."""
    nodes = [node("MatMul", ["x", "w"], ["y"], "mm"), node("Identity", ["x"], ["z"])]
    weights = helper.make_tensor("w", F32, [3, 2], [1, 2, 3, 4, 5, 6])
    outputs = [f32("y", ["batch", 2]), f32("z", ["batch", 3])]
    return model(nodes, [f32("x", ["batch", 3]), f32("w", [3, 2])], outputs, [weights])


def run_time_axes():
    """Axes fed at run time: two sets fit the declared shape, both are computed; the second result tells by itself, from
    the shape declared beyond a cast."""
    nodes = [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0), node("ReduceMax", ["x", "axes"], ["m"], keepdims=1),
             node("Cast", ["m"], ["z"], to=TensorProto.DOUBLE)]
    inputs = [f32("x", [3, 2, 2]), helper.make_tensor_value_info("axes", I64, [1])]
    outputs = [f32("y", [3, 2]), helper.make_tensor_value_info("z", TensorProto.DOUBLE, [1, 2, 2])]
    return model(nodes, inputs, outputs, opset=18)


def constants_twice():
    """Equal constants of one name count once: two nodes behind another one, two initializers, a node beside one."""
    def k(name, values):
        return node("Constant", [], [name], value=helper.make_tensor("", F32, [2], values))
    nodes = [node("Neg", ["x"], ["z"]), k("a", [1, 2]), k("a", [1, 2]), k("c", [5, 6]),
             node("Sum", ["z", "a", "b", "c"], ["y"])]
    twice = [helper.make_tensor(n, F32, [2], v) for n, v in (("b", [3, 4]), ("b", [3, 4]), ("c", [5, 6]))]
    return model(nodes, [f32("x", [2])], [f32("y", [2])], twice)


def own_names():
    """Results of a body under the names of the node's own results, and inner names that the graph has too."""
    then = helper.make_graph([node("Add", ["x", "x"], ["t"]), node("Neg", ["t"], ["y"])], "then", [], [f32("y", [2])])
    other = helper.make_graph([node("Mul", ["x", "t"], ["y"])], "else", [], [f32("y", [2])])
    taken = helper.make_graph([node("Exp", ["y"], ["z"])], "taken", [], [f32("z", [2])])
    nodes = [node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other), node("Relu", ["x"], ["t"], "relu"),
             node("If", ["yes"], ["z"], "known", then_branch=taken, else_branch=taken)]
    inputs = [helper.make_tensor_value_info("c", BOOL, []), f32("x", [2])]
    return model(nodes, inputs, [f32("z", [2])], [helper.make_tensor("yes", BOOL, [], [1])])


def early_operators():
    """Operators of the default domain that onnxruntime runs although the operator set does not have them (yet)."""
    nodes = [node("LayerNormalization", ["x", "s"], ["n"], axis=-1),
             node("SimplifiedLayerNormalization", ["n", "s"], ["r"]),
             node("MeanVarianceNormalization", ["r"], ["m"], normalize_variance=0),
             node("ThresholdedRelu", ["m"], ["t"], alpha=0.5), node("Affine", ["t"], ["a"], alpha=2.0, beta=1.0),
             node("ScaledTanh", ["a"], ["h"], alpha=2.0, beta=0.5), node("ParametricSoftplus", ["h"], ["p"], alpha=3.0),
             node("ImageScaler", ["p"], ["i"], scale=2.0, bias=[1.0, 2.0]), node("Scale", ["i"], ["c"], scale=0.5),
             node("Crop", ["c"], ["y"], border=[1, 0, 1, 2])]
    scale = helper.make_tensor("s", F32, [4], [1.0, 2.0, 3.0, 4.0])
    return model(nodes, [f32("x", [1, 2, 4, 4])], [f32("y", [1, 2, 2, 2])], [scale], opset=8)


def many_parts():
    """A split into more parts than a kernel has results: slices, of the extents that are given."""
    parts = [1 + i % 2 for i in range(65)]
    nodes = [node("Split", ["x"], [f"y{i}" for i in range(65)], axis=-1, split=parts)]
    return model(nodes, [f32("x", [2, sum(parts)])], [f32(f"y{i}", [2, n]) for i, n in enumerate(parts)], opset=11)


def passed_through():
    """An output that is an input keeps its name."""
    return model([node("Relu", ["x"], ["y"])], [f32("x", [2])], [f32("y", [2]), f32("x", [2])])


def missing():
    nodes = [node("Twirl", ["x"], ["a"], "first"), node("Twirl", ["x"], ["b"], "second"),
             node("Rellu", ["x"], ["c"], "misspelt"), node("Gelu", ["x"], ["d"], "too new"),
             node("Frobnicate", ["x"], ["y"], "odd", domain="com.example")]
    return model(nodes, [f32("x", [2])], [f32("y", [2])], imports=[helper.make_opsetid("com.example", 1)])


def cycle():
    nodes = [node("Add", ["x", "b"], ["a"], "one"), node("Neg", ["a"], ["b"], "two")]
    return model(nodes, [f32("x", [2])], [f32("b", [2])])


def unknown_input():
    return model([node("Add", ["x", "nobody"], ["y"], "plus")], [f32("x", [2])], [f32("y", [2])])


def wrong_type():
    inputs = [f32("x", [2, 3]), f32("w", [4, 5])]
    nodes = [node("MatMul", ["x", "w"], ["y"], "mm"), node("Gather", ["x", "x"], ["z"], "pick")]
    return model(nodes, inputs, [f32("y", [2, 5]), f32("z", [2])])


def constants_differ():
    def k(values):
        return node("Constant", [], ["k"], value=helper.make_tensor("", F32, [2], values))
    return model([k([1, 2]), k([1, 3]), node("Add", ["x", "k"], ["y"])], [f32("x", [2])], [f32("y", [2])])


def known_sets():
    """Sets that onnxruntime has need no import; their operators may be missing all the same."""
    nodes = [helper.make_node("Frobnicate", ["x"], ["y"], domain="com.microsoft"),
             helper.make_node("Binarizer", ["x"], ["z"], domain="ai.onnx.ml", threshold=0.5)]
    return model(nodes, [f32("x", [2])], [f32("y", [2]), f32("z", [2])])


def sets():
    """One message for each set that is not imported."""
    calls = [("Foo", "com.foo"), ("Bar", "com.foo"), ("Foo", "org.x"), ("Foo", "com.foo")]
    nodes = [helper.make_node(op, [v], [r], domain=d) for (op, d), v, r in zip(calls, "xabc", "abcy")]
    return model(nodes, [f32("x", [2])], [f32("y", [2])])


def symbols():
    """What a language model's export looks like: open extents, and shapes computed from them."""
    nodes = [node("Gather", ["table", "input_ids"], ["e"]), node("Cast", ["mask"], ["f"], to=1),
             node("Unsqueeze", ["f", "last"], ["u"]), node("Mul", ["e", "u"], ["h"]), node("Shape", ["h"], ["s"]),
             node("Reshape", ["h", "s"], ["y"])]
    inputs = [helper.make_tensor_value_info(n, I64, ["batch", "seq"]) for n in ("input_ids", "mask")]
    table = helper.make_tensor("table", F32, [10, 4], [0.25] * 40)
    return model(nodes, inputs, [f32("y", ["batch", "seq", 4])], [table, ints("last", [2])])


def declared_extent():
    """A shape operand of the run: the extent that the model declares is a symbol of no input."""
    inputs = [f32("x", [2, 6]), helper.make_tensor_value_info("s", I64, [2])]
    return model([node("Reshape", ["x", "s"], ["output"], "rows")], inputs, [f32("output", [None, 4])])


def dimension_names():
    """Dimensions whose names are expressions, as exporters write them, and names that are not."""
    names = ["2*((n - 1)//16) + 2", "floor(h/2 - 1/2) + 1", "ceiling(2.0*h/3)", "Max(1, n, h)", "n*h**2", "n/2 + n/2",
             "FloorDiv(n + 3, 4)", "CeilToInt(IntTrueDiv(n, 2))", "Mod(n, 4) + n % 3", "n - 5",
             "n/2", "0.5*n", "n+", "-n", "n-m", "n // 0", "(" * 30 + "n" + ")" * 30, "n**9", "sqrt(n)"]
    nodes = [node("Reshape", ["x", "s"], [f"y{i}"]) for i in range(len(names))]
    inputs = [f32("x", ["n", "h", 4]), f32("m", ["n + h"]), helper.make_tensor_value_info("s", I64, [2])]
    return model(nodes, inputs, [f32(f"y{i}", [name, 4]) for i, name in enumerate(names)])


def two_rates():
    """An input decides between branches, of which one does not fit the data: a model for two rates of samples."""
    result = [f32("b", [2, 6])]
    yes = helper.make_graph([node("Add", ["x", "x"], ["b"])], "yes", [], result)
    no = helper.make_graph([node("Reshape", ["x", "wrong"], ["w"], "odd"), node("Relu", ["w"], ["b"])], "no", [],
                           result)
    nodes = [node("Equal", ["rate", "k"], ["c"]), node("If", ["c"], ["y"], "rates", then_branch=yes, else_branch=no)]
    inputs = [f32("x", [2, 6]), helper.make_tensor_value_info("rate", I64, [])]
    return model(nodes, inputs, [f32("y", [2, 6])], [helper.make_tensor("k", I64, [], [16000]), ints("wrong", [5, 7])])


def non_zero():
    nodes = [node("NonZero", ["x"], ["n"], "nz"), node("Cast", ["n"], ["y"], to=1)]
    return model(nodes, [f32("x", ["n", 4])], [f32("y", [2, "k"])])


def found_rows():
    """Results that say how many elements a sample had."""
    zero = helper.make_tensor("zero", F32, [], [0.0])
    nodes = [node("Greater", ["x", "zero"], ["c"]), node("NonZero", ["c"], ["found"], "nz"),
             node("Compress", ["x", "c"], ["kept"], "keep"), node("Neg", ["kept"], ["y"])]
    outputs = [helper.make_tensor_value_info("found", I64, [1, 2]), f32("kept", [2]), f32("y", [2])]
    return model(nodes, [f32("x", [8])], outputs, [zero])


def open_pools():
    """Windows in ceil mode that reach beyond the end of what only a run knows."""
    nodes = [node("AveragePool", ["x"], ["a"], kernel_shape=[3], strides=[2], ceil_mode=1),
             node("MaxPool", ["x"], ["m"], kernel_shape=[2], strides=[3], pads=[0, 1], ceil_mode=1)]
    return model(nodes, [f32("x", [1, 1, "n"])], [f32("a", None), f32("m", None)])


def maps():
    """Maps that come into the model: their keys and values are inputs, with a common extent."""
    def held(name, keys, values):
        return helper.make_value_info(name, helper.make_map_type_proto(keys, helper.make_tensor_type_proto(values, [])))
    nodes = [helper.make_node("DictVectorizer", ["words"], ["row"], "dict", domain="ai.onnx.ml",
                              string_vocabulary=["heat", "light", "heat"]),
             helper.make_node("CastMap", ["places"], ["sparse"], "cast", domain="ai.onnx.ml", map_form="SPARSE",
                              max_map=3, cast_to="TO_INT64"),
             helper.make_node("CastMap", ["places"], ["dense"], "sort", domain="ai.onnx.ml", cast_to="TO_STRING")]
    inputs = [held("words", TensorProto.STRING, TensorProto.FLOAT), held("places", I64, TensorProto.FLOAT)]
    outputs = [helper.make_tensor_value_info(n, k, None)
               for n, k in (("row", TensorProto.FLOAT), ("sparse", TensorProto.INT64), ("dense", TensorProto.STRING))]
    return model(nodes, inputs, outputs, imports=[helper.make_opsetid("ai.onnx.ml", 1)])


def zip_map():
    """A classifier as skl2onnx exports it, with names of classes: the labels are numbers, the scores a matrix."""
    trees = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "scores"], "trees", domain="ai.onnx.ml",
        classlabels_strings=["a", "b", "c"], post_transform="NONE", nodes_treeids=[0] * 5,
        nodes_nodeids=[0, 1, 2, 3, 4],
        nodes_featureids=[2, 0, 0, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.5, 0.0, 1.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 3, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 0],
        class_treeids=[0] * 9, class_nodeids=[1, 1, 1, 3, 3, 3, 4, 4, 4], class_ids=[0, 1, 2] * 3,
        class_weights=[1.0, 0.0, 0.0, 0.25, 0.75, 0.0, 1.0, 0.0, 0.0])
    nodes = [trees, helper.make_node("Identity", ["label"], ["named"]),
             helper.make_node("ZipMap", ["scores"], ["probabilities"], "zip", domain="ai.onnx.ml",
                              classlabels_strings=["a", "b", "c"])]
    outputs = [helper.make_tensor_value_info("named", TensorProto.STRING, [None]), f32("probabilities", [None])]
    return model(nodes, [f32("X", [None, 4])], outputs, imports=[helper.make_opsetid("ai.onnx.ml", 3)])


def ml_rows():
    """Scalers, encoders and linear models of ai.onnx.ml, and trees of one target."""
    def ml(op, ins, outs, **attributes):
        return helper.make_node(op, ins, outs, domain="ai.onnx.ml", **attributes)
    nodes = [ml("Scaler", ["x"], ["s"], offset=[1.0, 2.0], scale=[0.5, 2.0]),
             ml("Normalizer", ["s"], ["n"], norm="L2"),
             ml("Imputer", ["n"], ["i"], imputed_value_floats=[7.0], replaced_value_float=float("nan")),
             ml("LinearClassifier", ["i"], ["a", "b"], coefficients=[1.0, -1.0], intercepts=[0.5],
                classlabels_ints=[4, 9], post_transform="LOGISTIC"),
             ml("LabelEncoder", ["a"], ["l"], keys_int64s=[9, 4], values_int64s=[1, 2]),
             ml("OneHotEncoder", ["k"], ["h"], cats_int64s=[3, 1]),
             ml("FeatureVectorizer", ["x", "i"], ["v"], inputdimensions=[1, 3]),
             ml("TreeEnsembleRegressor", ["v"], ["t"], n_targets=1, base_values=[0.5], nodes_treeids=[0, 0, 0, 1],
                nodes_nodeids=[0, 1, 2, 0], nodes_featureids=[3, 0, 0, 0],
                nodes_modes=["BRANCH_LT", "LEAF", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0, 0.0],
                nodes_missing_value_tracks_true=[1, 0, 0, 0], nodes_truenodeids=[1, 0, 0, 0],
                nodes_falsenodeids=[2, 0, 0, 0], target_treeids=[0, 0, 1], target_nodeids=[1, 2, 0],
                target_ids=[0, 0, 0], target_weights=[1.0, 2.0, 3.0])]
    inputs = [f32("x", [2, 2]), helper.make_tensor_value_info("k", I64, [2])]
    outputs = [helper.make_tensor_value_info("l", I64, [2]), f32("b", [2, 2]), f32("h", [2, 2]), f32("t", [2, 1])]
    return model(nodes, inputs, outputs, imports=[helper.make_opsetid("ai.onnx.ml", 3)])


def of_kind(name, *kinds):
    """An input or output whose type is one inside the other: a sequence of a tensor, an optional of one."""
    made = helper.make_tensor_type_proto(*kinds[-1])
    for wrap in reversed(kinds[:-1]):
        made = wrap(made)
    return helper.make_value_info(name, made)


def lists():
    """Sequences and optionals as inputs and outputs, chosen by a branch, changed at a position that a run decides."""
    sequence, optional = helper.make_sequence_type_proto, helper.make_optional_type_proto
    more = helper.make_graph([node("SequenceInsert", ["xs", "x", "p"], ["more"])], "more", [],
                             [of_kind("more", sequence, (F32, None))])
    same = helper.make_graph([node("Identity", ["xs"], ["same"])], "same", [],
                             [of_kind("same", sequence, (F32, None))])
    nodes = [node("If", ["c"], ["ys"], "choose", then_branch=more, else_branch=same),
             node("SequenceLength", ["ys"], ["n"], "count"),
             node("OptionalHasElement", ["o"], ["has"], "has"),
             node("Identity", ["o"], ["same_o"], "keep")]
    inputs = [of_kind("xs", sequence, (F32, ["m"])), f32("x", [2]), helper.make_tensor_value_info("p", I64, []),
              helper.make_tensor_value_info("c", BOOL, []), of_kind("o", optional, (F32, [2]))]
    outputs = [of_kind("ys", sequence, (F32, None)), helper.make_tensor_value_info("n", I64, []),
               helper.make_tensor_value_info("has", BOOL, []), of_kind("same_o", optional, (F32, [2]))]
    return model(nodes, inputs, outputs, opset=18)


def kept_rows(shape=("total",), **join):
    """A loop that appends to a sequence in rounds that data chooses, and joins what it has."""
    keep = helper.make_graph([node("SequenceInsert", ["before", "row"], ["kept"])], "keep", [],
                             [of_kind("kept", helper.make_sequence_type_proto, (F32, None))])
    skip = helper.make_graph([node("Identity", ["before"], ["skipped"])], "skip", [],
                             [of_kind("skipped", helper.make_sequence_type_proto, (F32, None))])
    nodes = [node("Slice", ["x", "zero", "lengths_i"], ["row"]),
             node("Greater", ["i", "one"], ["late"]),
             node("If", ["late"], ["behind"], then_branch=keep, else_branch=skip),
             node("Identity", ["go_on"], ["goes_on"])]
    nodes.insert(0, node("Gather", ["lengths", "i_row"], ["lengths_i"]))
    nodes.insert(0, node("Unsqueeze", ["i", "zero"], ["i_row"]))
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info("i", I64, []),
                                             helper.make_tensor_value_info("go_on", BOOL, []),
                                             of_kind("before", helper.make_sequence_type_proto, (F32, None))],
                             [helper.make_tensor_value_info("goes_on", BOOL, []),
                              of_kind("behind", helper.make_sequence_type_proto, (F32, None))])
    nodes = [node("SequenceEmpty", [], ["none"]), node("Loop", ["trips", "", "none"], ["rows"], "loop", body=body),
             node("ConcatFromSequence", ["rows"], ["y"], "join", axis=0, **join)]
    constants = [ints("zero", [0]), helper.make_tensor("one", I64, [], [1])]
    return model(nodes, [f32("x", [4]), helper.make_tensor_value_info("lengths", I64, [5]),
                         helper.make_tensor_value_info("trips", I64, [])],
                 [of_kind("rows", helper.make_sequence_type_proto, (F32, None)), f32("y", shape)], constants)


def stacked_rows():
    """The same, and the elements, whose size only a run knows, lie side by side along a new axis."""
    return kept_rows(("rows", "row"), new_axis=1)


def squeezed():
    """An axis that only the data tells, among those that Squeeze looks at."""
    nodes = [node("NonZero", ["x"], ["places"], "places"), node("Squeeze", ["places"], ["y"], "squeeze")]
    return model(nodes, [f32("x", [4])], [helper.make_tensor_value_info("y", I64, ["found"])])


def one_number():
    """A number in one branch, a vector of one in the other."""
    number = helper.make_graph([node("Constant", [], ["a"], value=helper.make_tensor("v", F32, [], [2.0]))], "number",
                               [], [f32("a", [])])
    vector = helper.make_graph([node("Slice", ["x", "zero", "one"], ["b"])], "vector", [], [f32("b", [1])])
    nodes = [node("If", ["c"], ["k"], "choose", then_branch=number, else_branch=vector),
             node("Mul", ["x", "k"], ["y"], "scale")]
    return model(nodes, [f32("x", [2]), helper.make_tensor_value_info("c", BOOL, [])], [f32("y", [2])],
                 [ints("zero", [0]), ints("one", [1])])


def two_ranks():
    """A condition at run time between a matrix and a cube, and one that is constant: the places that Compress takes."""
    cube = helper.make_graph([node("Unsqueeze", ["r", "one"], ["a"])], "cube", [], [f32("a", [])])
    cube.output[0].type.tensor_type.ClearField("shape")
    same = helper.make_graph([node("Identity", ["r"], ["b"])], "same", [], [f32("b", [])])
    same.output[0].type.tensor_type.ClearField("shape")
    nodes = [node("Reshape", ["x", "rows"], ["r"]),
             node("If", ["c"], ["k"], "choose", then_branch=cube, else_branch=same),
             node("Compress", ["k", "which"], ["y"], "some", axis=-1)]
    return model(nodes, [f32("x", [2]), helper.make_tensor_value_info("c", BOOL, [])], [f32("y", [1, 1])],
                 [ints("rows", [1, 2]), ints("one", [1]), helper.make_tensor("which", BOOL, [2], [False, True])])


def strings():
    """Strings that only a run knows, moved and joined."""
    info = helper.make_tensor_value_info
    nodes = [node("Transpose", ["x"], ["t"]), node("Shape", ["t"], ["s"]), node("StringConcat", ["t", "tail"], ["y"]),
             node("Equal", ["t", "tail"], ["same"])]
    tail = helper.make_tensor("tail", TensorProto.STRING, [1], [b".c"])
    return model(nodes, [info("x", TensorProto.STRING, [2, 3])],
                 [info("y", TensorProto.STRING, [3, 2]), info("s", I64, [2]), info("same", TensorProto.BOOL, [3, 2])],
                 [tail], opset=21, ir=10)


def pattern():
    ends = [helper.make_tensor_value_info(n, t, [2]) for n, t in (("x", TensorProto.STRING), ("y", TensorProto.BOOL))]
    return model([node("RegexFullMatch", ["x"], ["y"], pattern="a+(b\\p{Greek})")], ends[:1], ends[1:], opset=21, ir=10)


def labels_twice():
    """Two keys have one label, which keys that are not there have, too."""
    encoder = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[1, 2, 3],
                               values_strings=["a", "b", "a"], default_string="b")
    ends = [helper.make_tensor_value_info(n, t, [4]) for n, t in (("x", I64), ("y", TensorProto.STRING))]
    return model([encoder], ends[:1], ends[1:], imports=[helper.make_opsetid("ai.onnx.ml", 2)])


def texts():
    texts_of = [helper.make_tensor_value_info(n, TensorProto.STRING, [2]) for n in "xy"]
    tokenizer = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=0, pad_value="",
                                 mincharnum=1, separators=["ab+"])
    return model([tokenizer], texts_of[:1], texts_of[1:])


def run_time_branch():
    """If at run time, with what its branches lack."""
    u = [helper.make_tensor_value_info(n, I64, [1, "u"]) for n in "tey"]
    then = helper.make_graph([node("NonZero", ["x"], ["t"])], "then", [], u[:1])
    other = helper.make_graph([node("Frob", ["x"], ["e"])], "else", [], u[1:2])
    nodes = [node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other), node("Gelu", ["x"], ["z"], "gelu")]
    inputs = [helper.make_tensor_value_info("c", BOOL, []), f32("x", [2])]
    return model(nodes, inputs, [u[2], f32("z", [2])])


def out_of_step():
    """A loop whose two values begin with one extent, make the same one in the first round, and then differ."""
    v = [helper.make_tensor_value_info(n, I64, []) for n in "i"]
    c = [helper.make_tensor_value_info(n, BOOL, []) for n in ("c", "d")]
    body = helper.make_graph([node("Identity", ["c"], ["d"]), node("Concat", ["a", "b"], ["a1"], "double", axis=0),
                              node("Concat", ["b", "k"], ["b1"], "longer", axis=0)], "body",
                             [*v, c[0], f32("a", [None]), f32("b", [None])],
                             [c[1], f32("a1", [None]), f32("b1", [None])])
    nodes = [node("Loop", ["n", "", "x", "x"], ["y", "z"], "loop", body=body)]
    inputs = [helper.make_tensor_value_info("n", I64, []), f32("x", [2])]
    return model(nodes, inputs, [f32("y", ["p"]), f32("z", ["q"])], [helper.make_tensor("k", F32, [2], [1.0, 2.0])])


def contributed():
    """Quantised operators of com.microsoft: operands with the result's scale and zero point, and with others."""
    u8 = TensorProto.UINT8
    scales = [helper.make_tensor(n, F32, [], [v]) for n, v in (("s", 0.5), ("t", 0.25))]
    zeros = [helper.make_tensor(n, u8, [], [v]) for n, v in (("u", 7), ("v", 9), ("w", 0))]
    data = [helper.make_tensor_value_info(n, u8, [2, 3]) for n in "ab"]
    ms = lambda op, inputs, outputs, **attributes: helper.make_node(op, inputs, outputs, op, domain="com.microsoft",
                                                                    **attributes)
    same, scale, zero, none = ["s", "u"], ["t", "u"], ["s", "v"], ["s", ""]
    nodes, outputs = [], []

    def add(op, inputs, shape, **attributes):
        outputs.append(helper.make_tensor_value_info(f"y{len(outputs)}", u8, shape))
        nodes.append(ms(op, inputs, [outputs[-1].name], **attributes))

    for other in (same, scale, zero):
        add("QLinearConcat", [*same, "a", *same, "b", *other], [2, 6], axis=1)
        add("QLinearWhere", ["c", "a", *same, "b", *other, *same], [2, 3])
    add("QLinearConcat", [*none, "a", "s", "w", "b", *none], [4, 3], axis=0)
    add("QLinearAdd", ["a", *same, "b", *scale, *zero], [2, 3])
    add("QLinearMul", ["a", *same, "b", *zero, *scale], [2, 3])
    add("QLinearSigmoid", ["a", *same, *scale], [2, 3])
    add("QLinearLeakyRelu", ["a", *same, *zero], [2, 3], alpha=0.5)
    condition = helper.make_tensor_value_info("c", BOOL, [2, 1])
    return model(nodes, [*data, condition], outputs, scales + zeros, imports=[helper.make_opsetid("com.microsoft", 1)])


def lost_weights():
    weights = []
    for i in range(6):
        t = TensorProto(name=f"w{i}", data_type=F32, dims=[2], data_location=TensorProto.EXTERNAL)
        t.external_data.add(key="location", value=f"weights{i // 2}.bin")
        weights.append(t)
    nodes = [node("Sum", ["x"] + [t.name for t in weights], ["y"])]
    return model(nodes, [f32("x", [2])], [f32("y", [2])], weights)


def functions_double():
    """A function that calls another one twice, forty times over."""
    set_, opsets = "local", [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    call = lambda i, a, b: helper.make_node(f"f{i}", [a], [b], domain=set_)
    functions = [helper.make_function(set_, "f0", ["a"], ["b"], [node("Sin", ["a"], ["b"])], opsets[:1])]
    for i in range(40):
        body = [call(i, "a", "t"), call(i, "t", "b")]
        functions.append(helper.make_function(set_, f"f{i + 1}", ["a"], ["b"], body, opsets))
    return model([call(40, "x", "y")], [f32("x", [2])], [f32("y", [2])], functions=functions, ir=9,
                 imports=opsets[1:])


def quantised():
    """QDQ as quantisers write it, batch left open."""
    scale, zero = helper.make_tensor("s", F32, [], [0.5]), helper.make_tensor("z", TensorProto.UINT8, [], [128])
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    return model(nodes, [f32("x", ["batch_size", 4])], [f32("y", ["batch_size", 4])], [scale, zero])


def operand_rank():
    """Operands that say positions, shapes and axes, as matrices."""
    nodes = [node("Slice", ["x", "m", "m"], ["a"], "slice"), node("Pad", ["x", "m"], ["b"], "pad"),
             node("Reshape", ["x", "m"], ["c"], "reshape"), node("Expand", ["x", "m"], ["d"], "expand"),
             node("Tile", ["x", "m"], ["e"], "tile"), node("TopK", ["x", "m"], ["f", "g"], "topk"),
             node("Resize", ["x", "", "", "m"], ["h"], "resize"), node("CumSum", ["x", "m"], ["i"], "cumsum"),
             node("ConstantOfShape", ["m"], ["j"], "fill")]
    inputs = [f32("x", [4, 4]), helper.make_tensor_value_info("m", I64, [2, 2])]
    return model(nodes, inputs, [f32(n, [4, 4]) for n in "abcdehi"] + [f32("j", [2, 2])])


def operands_left_out():
    """Operands that must be there: blank, also where others are known at run time only, cut off, and one too many."""
    nodes = [node("Squeeze", ["", "m"], ["a"], "squeeze"), node("Unsqueeze", ["", "m"], ["b"], "unsqueeze"),
             node("AffineGrid", ["t", ""], ["c"], "grid"), node("Slice", ["x", "m"], ["d"], "slice"),
             node("Concat", ["x", "", "x"], ["e"], "concat", axis=0), node("Concat", [""], ["f"], "nothing", axis=0),
             node("Conv", ["x"], ["g"], "conv"), node("Relu", ["x", "", ""], ["h"], "relu"),
             node("Relu", ["x", "", "x"], ["i"], "relus"), node("LSTM", ["x", "", "x"], ["j"], "lstm"),
             node("Momentum", ["r", "s", "x", "", "x"], ["k", "l"], "momentum", domain="ai.onnx.preview.training")]
    inputs = [f32("x", [4, 4, 4]), f32("t", [1, 2, 3]), f32("r", []), helper.make_tensor_value_info("s", I64, []),
              helper.make_tensor_value_info("m", I64, [1])]
    return model(nodes, inputs, [f32(n, [4, 4, 4]) for n in "abcdefghijkl"], opset=20)


def function_without():
    """What a function's caller leaves out is missing where the function needs it."""
    set_, opsets = "local", [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    inner = helper.make_function(set_, "inner", ["a"], ["b"], [node("Sin", ["a"], ["b"])], opsets[:1])
    call = helper.make_node("inner", ["a"], ["b"], domain=set_)
    outer = helper.make_function(set_, "outer", ["a"], ["b"], [call], opsets)
    return model([helper.make_node("outer", [""], ["y"], domain=set_)], [f32("x", [2])], [f32("y", [2])],
                 functions=[inner, outer], ir=9, imports=opsets[1:])


def linear_heads():
    """Fewer elements than heads."""
    n = node("LinearAttention", ["q", "k", "q"], ["y", "s"], "heads", q_num_heads=4, kv_num_heads=4,
             update_rule="linear")
    return model([n], [f32("q", [2, 4, 32]), f32("k", [2, 4, 2])], [f32("y", [2, 4, 32]), f32("s", [2, 4, 1, 8])],
                 opset=27, ir=13)


def attention_heads():
    """Heads that do not divide the values, beside a mask, which then has no type to be of."""
    n = helper.make_node("MultiHeadAttention", ["q", "k", "v", "", "m"], ["y"], "heads", domain="com.microsoft",
                         num_heads=3)
    inputs = [f32("q", [1, 2, 4]), f32("k", [1, 2, 4]), f32("v", [1, 2, 4]), f32("m", [2, 2])]
    m = model([n], inputs, [f32("y", [1, 2, 4])])
    m.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return m


def outside():
    m = model([node("Add", ["x", "w"], ["y"])], [f32("x", [2])], [f32("y", [2])])
    t = TensorProto(name="w", data_type=F32, dims=[2], data_location=TensorProto.EXTERNAL)
    t.external_data.add(key="location", value="../secret.bin")
    m.graph.initializer.append(t)
    return m


GOLDEN = {"golden/string": [strings, pattern, labels_twice],
          "golden/onnx": [conv, function, branch, old_forms, dynamic, run_time_axes, constants_twice, own_names,
                          early_operators, passed_through, many_parts, out_of_step, contributed, zip_map, ml_rows,
                          maps],
          "golden/error/onnx": [missing, cycle, unknown_input, wrong_type, operand_rank, outside, constants_differ,
                                known_sets, sets, operands_left_out, attention_heads,
                                function_without, linear_heads],
          "golden/sequence": [lists, kept_rows, stacked_rows],
          "golden/message": [symbols, declared_extent, dimension_names, two_rates, non_zero, found_rows, open_pools,
                             squeezed, one_number, two_ranks, texts, run_time_branch, lost_weights, quantised,
                             functions_double]}


def values_of_lists():
    """Files for the inputs of `lists` and `kept_rows`, right and wrong."""
    import io
    from onnx import numpy_helper
    import numpy as np

    def array(name, value):
        file = io.BytesIO()
        np.save(file, value)
        return name + ".npy", file.getvalue()

    yield array("x", np.float32([7, 8]))
    yield array("first", np.int64(0))
    yield array("last", np.int64(-1))
    yield array("beyond", np.int64(3))
    yield array("yes", np.bool_(True))
    yield array("no", np.bool_(False))
    yield array("four", np.float32([1, 2, 3, 4]))
    yield array("lengths", np.int64([4, 4, 3, 0, 2]))
    yield array("equal", np.int64([1, 2, 3, 3, 3]))
    yield array("trips", np.int64(5))
    yield array("single", np.float32([0, 5, 0, 0]))
    two = numpy_helper.from_list([np.float32([1, 2, 3]), np.float32([4])], "xs")
    wrong = numpy_helper.from_list([np.int64([1, 2, 3]), np.int64([4])], "xs")
    yield "xs.pb", two.SerializeToString()
    yield "xs_one.pb", numpy_helper.from_list([np.float32([1, 2, 3])], "xs").SerializeToString()
    yield "xs_integers.pb", wrong.SerializeToString()
    yield "xs_cut.pb", two.SerializeToString()[:-3]
    yield "o.pb", numpy_helper.from_optional(np.float32([5, 6]), "o").SerializeToString()
    yield "o_none.pb", onnx.OptionalProto(name="o", elem_type=onnx.OptionalProto.TENSOR).SerializeToString()


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for name, data in values_of_lists():
        with open(os.path.join(TOP, "test", "golden", "sequence", name), "wb") as f:
            f.write(data)
    for folder, makers in GOLDEN.items():
        os.makedirs(os.path.join(TOP, "test", folder), exist_ok=True)
        for make in makers:
            with open(os.path.join(TOP, "test", folder, make.__name__ + ".onnx"), "wb") as f:
                f.write(make().SerializeToString(deterministic=True))
    corpus = os.path.join(TOP, "test", "fuzz", "corpus", "onnx")
    os.makedirs(corpus, exist_ok=True)
    for name in SEEDS:
        path = os.path.join(CASES, name, "model.onnx")
        if os.path.exists(path):
            shutil.copyfile(path, os.path.join(corpus, name + ".onnx"))
    for makers in GOLDEN.values():
        for make in makers:
            with open(os.path.join(corpus, make.__name__ + ".onnx"), "wb") as f:
                f.write(make().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
