#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every layer of a quantized network against onnxruntime, bit for bit: layer_bits.py MODEL LATHE [ARGS...]

MODEL has i8 activations with zero point 0, and layers of the form DequantizeLinear, Conv or Gemm or Add, maybe Relu or
Clip, QuantizeLinear, as `lathe quantize --for` writes them. `LATHE run MODEL ARGS` gives all quantized values of the
network. Each layer is then run by onnxruntime alone, as QLinearConv or a sum of floats, on the values that Lathe gave
that layer. The whole network cannot be compared: onnxruntime runs Conv with Relu in floats on x86, which differs by
one step where a sum is near a tie, and later layers make more of it."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def lathe_values(model, command):
    """Name of each quantized value -> what Lathe computed for it, by a run on random inputs."""
    known = {o.name for o in model.graph.output}
    values = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    for name in values:
        if name not in known:
            model.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.INT8, None))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "all.onnx")
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        run = subprocess.run([command[0], "run", path, *command[1:], "--output-dir", folder], capture_output=True,
                             text=True)
        if run.returncode != 0:
            sys.exit(run.stderr)
        return {name: np.load(os.path.join(folder, name + ".npy")) for name in values}


class Network:
    def __init__(self, model, values):
        self.constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        self.makers = {o: n for n in model.graph.node for o in n.output}
        self.values = values

    def stored(self, name):
        """A quantized value by the name of its DequantizeLinear's output: (elements, scale)."""
        node = self.makers[name]
        elements = self.values.get(node.input[0], self.constants.get(node.input[0]))
        return elements, self.constants[node.input[1]]


def run_alone(op_type, inputs, attributes):
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    graph = helper.make_graph([node], "layer", [], [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, None)],
                              [numpy_helper.from_array(np.asarray(v), n) for v, n in zip(inputs, names)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, {})[0]


def product(network, node, scale):
    """Gemm is a 1x1 convolution, since QLinearMatMul has no bias."""
    (x, sx), (w, sw), (b, _) = (network.stored(i) for i in node.input)
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    zero = np.int8(0)
    if node.op_type == "Conv":
        return run_alone("QLinearConv", [x, sx, zero, w, sw, zero, scale, zero, b], attributes)
    w = w if attributes.get("transB") else w.T
    y = run_alone("QLinearConv", [x[:, :, None, None], sx, zero, np.ascontiguousarray(w)[:, :, None, None], sw, zero,
                                  scale, zero, b], {})
    return y[:, :, 0, 0]


def total(network, node, scale):
    (a, sa), (b, sb) = (network.stored(i) for i in node.input)
    y = a.astype(np.float32) * sa + b.astype(np.float32) * sb
    return np.clip(np.rint(y / scale), -128, 127).astype(np.int8)


def limits(network, node, scale):
    """What Relu or Clip leaves, in quantized numbers: quantization keeps the order of numbers."""
    if node.op_type == "Relu":
        return 0, 127
    least, most = (np.rint(network.constants[i] / scale) for i in node.input[1:3])
    return max(int(least), -128), min(int(most), 127)


def main():
    model = onnx.load(sys.argv[1])
    network = Network(model, lathe_values(model, sys.argv[2:]))
    layers = elements = wrong = 0
    for name, value in network.values.items():
        last = network.makers[name]
        node = network.makers.get(last.input[0])
        scale = network.constants[last.input[1]]
        least, most = -128, 127
        if node is not None and node.op_type in ("Relu", "Clip"):
            least, most = limits(network, node, scale)
            node = network.makers[node.input[0]]
        if node is None or node.op_type not in ("Conv", "Gemm", "Add"):
            continue
        expected = total(network, node, scale) if node.op_type == "Add" else product(network, node, scale)
        expected = np.clip(expected, least, most)
        differ = int((expected != value).sum())
        if differ:
            print(f"FAILED {name} ({node.op_type}): {differ} of {value.size} elements differ")
        layers, elements, wrong = layers + 1, elements + value.size, wrong + differ
    print(f"{layers} layers, {elements} elements, {wrong} differ")
    sys.exit(1 if wrong or not layers else 0)


main()
