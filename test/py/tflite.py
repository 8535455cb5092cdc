#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--requant tflite` gives TensorFlow Lite Micro's numbers, and `fast` those of one rounding.

    tflite.py [--lathe FILE] [--seed N] [--count N] [--target TARGET] [--models FOLDER] [--runs N]

Layers: random convolutions, fully connected layers, sums, products and average pools as QDQ models, against a model of
TensorFlow Lite's published formula in integers of Python (a multiplier of 31 bits, a doubling high product rounded to
the nearest, a shift rounded half away from zero), of which nothing is shared with the compiler.

Models: int8 networks of TensorFlow Lite in FOLDER (NAME_int8.tflite) are written again as QDQ models of ONNX, up to the
softmax, and run on N inputs. The results have to be those of TensorFlow Lite Micro (the package tflite-micro), element
by element. Its kernels and those of LiteRT, the TensorFlow Lite of larger machines (the package ai-edge-litert, its
reference kernels), are the same but for fully connected layers, which LiteRT rounds once, in double: where that package
is here, a network without them is compared with it under `tflite`, one of nothing else under `fast`, others up to the
first. A layer that was stored with the results of both (cases/fc_tflite beside FOLDER) has to be TensorFlow Lite
Micro's, and differ from LiteRT's. What is not here is left out, with a word.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# --- the formula, by numbers of Python

def fixed(real):
    """A real number as multiplier * 2^(shift - 31)."""
    if real <= 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = math.floor(fraction * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def scaled_twice(x, multiplier, shift):
    high = (x * 2**max(shift, 0) * multiplier + 2**30) >> 31
    right = max(-shift, 0)
    rest, half = high & (2**right - 1), (2**right - 1) >> 1
    return (high >> right) + (rest > half + (high < 0))


def scaled_once(x, multiplier, shift):
    total = 31 - shift
    return (x * multiplier + (1 << (total - 1))) >> total


def rescaled(x, real, zero, how):
    m, s = fixed(real)
    flat = [min(max(how(int(v), m, s) + zero, -128), 127) for v in np.asarray(x).reshape(-1)]
    return np.array(flat, np.int8).reshape(np.asarray(x).shape)


# --- QDQ models

class Model:
    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs, self.feed, self.want = [], [], [], [], {}, []

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def requantized(self, value, scale, zero):
        params = [self.constant(np.float32(scale)), self.constant(np.int8(zero))]
        q = self.node("QuantizeLinear", [value] + params)
        return self.node("DequantizeLinear", [q] + params)

    def dequantized(self, codes, scale, axis=0):
        zero = np.zeros(np.shape(scale), codes.dtype)
        return self.node("DequantizeLinear", [self.constant(codes), self.constant(np.float32(scale)),
                                              self.constant(zero)], axis=axis)

    def input(self, codes, scale, zero):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, codes.shape))
        self.feed[name] = (codes.astype(np.float32) - np.float32(zero)) * np.float32(scale)
        return self.requantized(name, scale, zero)

    def output(self, value, scale, zero, want, quantised=False):
        if not quantised:
            value = self.requantized(value, scale, zero)
        self.outputs.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, None))
        self.want.append((value, np.float32(scale), int(zero), want))

    def run(self, args, method):
        """The number of elements, and of those that differ."""
        elements = wrong = 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            graph = helper.make_graph(self.nodes, "tflite", self.inputs, self.outputs, self.weights)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
            onnx.save(onnx.shape_inference.infer_shapes(model), path)
            command = [args.lathe, "run", path, "--requant", method, "--output-dir", folder]
            command += ["--target", args.target] if args.target else []
            for name, value in self.feed.items():
                np.save(os.path.join(folder, name + ".npy"), np.ascontiguousarray(value))
                command += ["--input", f"{name}={folder}/{name}.npy"]
            env = dict(os.environ, CFLAGS="-O1 -ffp-contract=fast")
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)
            if done.returncode != 0:
                sys.exit(f"tflite.py: {done.stderr.strip()[:500]}")
            for name, scale, zero, want in self.want:
                got = np.rint(np.load(os.path.join(folder, name + ".npy")) / scale) + zero
                elements += want.size
                wrong += int(np.count_nonzero(got.reshape(-1) != want.reshape(-1)))
        return elements, wrong


# --- layers

def params(rng, span):
    return np.float32(span / 255 * rng.uniform(0.5, 1.5)), int(rng.integers(-128, 128))


def codes(rng, shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def add_product(m, rng, how, is_conv):
    k, n, rows = int(rng.integers(1, 70)), int(rng.integers(1, 30)), int(rng.integers(1, 60))
    per_channel = is_conv and rng.integers(0, 2)
    x, w, b = codes(rng, [rows, k]), codes(rng, [n, k]), rng.integers(-3000, 3000, n).astype(np.int32)
    (xs, xz), (ys, yz) = params(rng, 12), params(rng, 40)
    ws = np.float32(rng.uniform(0.002, 0.02, n if per_channel else None))
    acc = (x.astype(np.int64) - xz) @ w.astype(np.int64).T + b
    scales = np.broadcast_to(np.asarray(ws), n)
    reals = [float(xs) * float(s) / float(ys) for s in scales]
    want = np.stack([rescaled(acc[:, i], reals[i], yz, how) for i in range(n)], 1)
    product = np.float32(xs) * np.asarray(ws)
    bias = m.dequantized(b, np.broadcast_to(product, n).astype(np.float32))
    if is_conv:  # rows are the positions of a picture
        data = m.input(x.T.reshape(1, k, rows, 1), xs, xz)
        y = m.node("Conv", [data, m.dequantized(w.reshape(n, k, 1, 1), ws), bias])
        m.output(y, ys, yz, want.T)
    else:
        y = m.node("Gemm", [m.input(x, xs, xz), m.dequantized(w, ws), bias], transB=1)
        m.output(y, ys, yz, want)


def add_sum(m, rng, how):
    (sa, za), (sb, zb), (sy, zy) = params(rng, 12), params(rng, 7), params(rng, 15)
    a, b = codes(rng, [1, 3, 40, 9]), codes(rng, [1, 3, 40, 9])
    top = 2 * max(float(sa), float(sb))
    (ma, ea), (mb, eb) = fixed(float(sa) / top), fixed(float(sb) / top)
    total = [how((int(p) - za) << 20, ma, ea) + how((int(q) - zb) << 20, mb, eb)
             for p, q in zip(a.reshape(-1), b.reshape(-1))]
    want = rescaled(np.array(total), top / (2**20 * float(sy)), zy, how)
    m.output(m.node("Add", [m.input(a, sa, za), m.input(b, sb, zb)]), sy, zy, want)


def add_multiplied(m, rng, how):
    (sa, za), (sb, zb), (sy, zy) = params(rng, 12), params(rng, 7), params(rng, 60)
    a, b = codes(rng, [1, 3, 40, 9]), codes(rng, [1, 3, 40, 9])
    product = (a.astype(np.int64) - za) * (b.astype(np.int64) - zb)
    want = rescaled(product, float(sa) * float(sb) / float(sy), zy, how)
    m.output(m.node("Mul", [m.input(a, sa, za), m.input(b, sb, zb)]), sy, zy, want)


def add_average(m, rng):
    scale, zero = params(rng, 12)
    x = codes(rng, [1, 3, 12, 10])
    want = np.zeros([1, 3, 6, 5], np.int8)
    for c, i, k in np.ndindex(3, 6, 5):
        total = int(x[0, c, 2 * i:2 * i + 2, 2 * k:2 * k + 2].sum(dtype=np.int64))
        want[0, c, i, k] = (total + 2) // 4 if total > 0 else -((-total + 2) // 4)
    m.output(m.node("AveragePool", [m.input(x, scale, zero)], kernel_shape=[2, 2], strides=[2, 2]), scale, zero, want)


def layers(seed, how):
    rng, m = np.random.default_rng(seed), Model()
    for is_conv in (True, True, False, False):
        add_product(m, rng, how, is_conv)
    add_sum(m, rng, how)
    add_multiplied(m, rng, how)
    add_average(m, rng)
    return m


# --- models of TensorFlow Lite

class Network:
    """The operators of a network as nodes of ONNX, in NCHW; activations lie in the ranges of the results."""

    def __init__(self, model, schema):
        self.model, self.graph, self.schema = model, model.subgraphs[0], schema
        self.m, self.values = Model(), {}
        first = self.graph.inputs[0]
        self.values[first] = self.m.input(self.turned(np.zeros(self.shape(first), np.int8)), *self.params(first))

    def turned(self, x):
        return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if x.ndim == 4 else x

    def params(self, t):
        q = self.graph.tensors[t].quantization
        scales = np.asarray(q.scale, np.float32)
        return (scales if len(scales) > 1 else scales[0]), int(q.zeroPoint[0])

    def shape(self, t):
        return [int(s) for s in self.graph.tensors[t].shape]

    def constant(self, t, kind):
        return np.frombuffer(bytes(self.model.buffers[self.graph.tensors[t].buffer].data), kind).reshape(self.shape(t))

    def operator(self, op):
        code = self.model.operatorCodes[op.opcodeIndex]
        code = max(code.builtinCode, code.deprecatedBuiltinCode)
        return next(name for name, value in vars(self.schema.BuiltinOperator).items() if value == code)

    def window(self, x, y, options, kernel):
        """Borders of SAME: what does not divide is at the end."""
        strides, begin, end = [options.strideH, options.strideW], [], []
        for size, out, k, stride in zip(self.shape(x)[1:3], self.shape(y)[1:3], kernel, strides):
            same = options.padding == self.schema.Padding.SAME
            pad = max((out - 1) * stride + k - size, 0) if same else 0
            begin, end = begin + [pad // 2], end + [pad - pad // 2]
        return {"strides": strides, "pads": begin + end, "kernel_shape": [int(k) for k in kernel]}

    def weights(self, x, w, b, depthwise):
        numbers, (scale, _) = self.constant(w, np.int8), self.params(w)
        if numbers.ndim == 4:
            numbers = numbers.transpose(3, 0, 1, 2) if depthwise else numbers.transpose(0, 3, 1, 2)
        product = np.float32(self.params(x)[0]) * np.asarray(scale, np.float32)
        bias = self.constant(b, np.int32)
        product = np.broadcast_to(product, bias.shape).astype(np.float32)
        return [self.m.dequantized(np.ascontiguousarray(numbers), scale), self.m.dequantized(bias, product)]

    def step(self, op):
        name, ins, out = self.operator(op), [int(i) for i in op.inputs if i >= 0], int(op.outputs[0])
        x, m = self.values[ins[0]], self.m
        if name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            depthwise = name != "CONV_2D"
            kernel = self.shape(ins[1])[1:3]
            y = m.node("Conv", [x] + self.weights(*ins, depthwise), group=self.shape(out)[3] if depthwise else 1,
                       **self.window(ins[0], out, op.builtinOptions, kernel))
        elif name == "FULLY_CONNECTED":
            y = m.node("Gemm", [x] + self.weights(*ins, False), transB=1)
        elif name == "ADD":
            y = m.node("Add", [x, self.values[ins[1]]])
        elif name == "AVERAGE_POOL_2D":
            kernel = [op.builtinOptions.filterHeight, op.builtinOptions.filterWidth]
            y = m.node("AveragePool", [x], **self.window(ins[0], out, op.builtinOptions, kernel))
        elif name == "RESHAPE":
            assert len(self.shape(ins[0])) == 2 or math.prod(self.shape(ins[0])[1:3]) == 1 or not ins[0]
            self.values[out] = m.node("Reshape", [x, m.constant(np.array(self.shape(out), np.int64))])
            return
        else:
            raise ValueError(name)
        scale, zero = self.params(out)
        self.values[out] = m.requantized(y, scale, zero)


def parsed(path, schema):
    with open(path, "rb") as f:
        return schema.ModelT.InitFromObj(schema.Model.GetRootAs(f.read(), 0))


def cut(model, count):
    """The file of a model of its first operators."""
    import flatbuffers
    graph = model.subgraphs[0]
    graph.operators = graph.operators[:count]
    graph.outputs = [graph.operators[-1].outputs[0]]
    model.signatureDefs = None
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def by_micro(file, inputs, micro):
    run = micro.Interpreter.from_bytes(file, arena_size=1 << 20)
    for x in inputs:
        run.set_input(x, 0)
        run.invoke()
        yield run.get_output(0).copy()


def by_litert(file, inputs, litert):
    run = litert.Interpreter(model_content=file, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    run.allocate_tensors()
    for x in inputs:
        run.set_tensor(run.get_input_details()[0]["index"], x)
        run.invoke()
        yield run.get_tensor(run.get_output_details()[0]["index"])


def differing(args, network, out, inputs, results, method):
    """The network, built once, on all inputs: what `lathe verify` says where it does not give these results."""
    first = network.graph.inputs[0]
    m = network.m
    m.outputs = [helper.make_tensor_value_info(network.values[out], TensorProto.FLOAT, None)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        graph = helper.make_graph(m.nodes, "tflite", m.inputs, m.outputs, m.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        for k, codes_of in enumerate(zip(inputs, results)):
            os.mkdir(os.path.join(folder, f"test_data_set_{k}"))
            for name, t, numbers in zip(("input_0.pb", "output_0.pb"), (first, out), codes_of):
                scale, zero = network.params(t)
                value = (network.turned(numbers).astype(np.float32) - np.float32(zero)) * np.float32(scale)
                with open(os.path.join(folder, f"test_data_set_{k}", name), "wb") as f:
                    f.write(numpy_helper.from_array(value).SerializeToString())
        command = [args.lathe, "verify", path, "--requant", method, "--data", folder, "--json"]
        command += ["--target", args.target] if args.target else []
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ, CFLAGS="-O1"))
        result = json.loads(done.stdout or "{}").get("result")
        if done.returncode not in (0, 1) or not result:
            return done.stderr.strip()[:500]
        says = result["outputs"][0]
        if says["samples"] == len(inputs) and says["max_abs"] == 0 and done.returncode == 0:
            return None
        return f"not equal, up to {says['max_abs']:g} ({says['worst']})"


def check_model(args, path, micro, schema, litert):
    """What is wrong, and the number of comparisons."""
    model = parsed(path, schema)
    first, operators = model.subgraphs[0].inputs[0], model.subgraphs[0].operators
    rng = np.random.default_rng(args.seed)
    inputs = [codes(rng, model.subgraphs[0].tensors[first].shape) for _ in range(args.runs)]
    network = Network(model, schema)
    kinds = [network.operator(op) for op in operators]
    count = kinds.index("SOFTMAX") if "SOFTMAX" in kinds else len(kinds)
    connected = kinds[:count].count("FULLY_CONNECTED")
    ways = [("TensorFlow Lite Micro", by_micro, micro, count, "tflite")]
    if litert:
        until = count if connected in (0, count) else kinds.index("FULLY_CONNECTED")
        until -= kinds[until - 1] == "RESHAPE"
        ways.append(("LiteRT", by_litert, litert, until, "fast" if connected == count else "tflite"))
    wrong = []
    for name, how, runtime, until, method in ways:
        model = parsed(path, schema)
        results = list(how(cut(model, until), inputs, runtime))
        network = Network(model, schema)
        for op in model.subgraphs[0].operators:
            network.step(op)
        why = differing(args, network, model.subgraphs[0].outputs[0], inputs, results, method)
        if why:
            wrong.append(f"{os.path.basename(path)}, {method}, against {name}: {why}")
    return wrong, len(ways)


def check_stored(args, folder):
    """A fully connected layer, of which the results of both kinds of kernels are stored."""
    with tempfile.TemporaryDirectory() as out:
        command = [args.lathe, "run", os.path.join(folder, "fc1.onnx"), "--requant", "tflite", "--integers",
                   "--shape", "input_1=40x640", "--input", f"input_1={folder}/x.npy", "--output-dir", out]
        command += ["--target", args.target] if args.target else []
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ, CFLAGS="-O1"))
        if done.returncode != 0:
            return done.stderr.strip()[:500]
        got = np.load(os.path.join(out, os.listdir(out)[0]))
    micro, litert = (np.count_nonzero(got != np.load(os.path.join(folder, f"fc1_{n}.npy"))) for n in ("tflm", "litert"))
    return None if micro == 0 and litert == 6 else f"{micro} and {litert} elements differ, 0 and 6 are right"


def check_models(args):
    """How many passed and failed, how many were left out."""
    files = sorted(glob.glob(os.path.join(args.models, "*_int8.tflite")))
    stored = os.path.join(args.models, "..", "..", "cases", "fc_tflite")
    micro = litert = None
    try:
        from tflite_micro.python.tflite_micro import runtime as micro
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema
        import ai_edge_litert.interpreter as litert
    except ImportError as e:
        print(f"tflite: {'LiteRT' if micro else 'models'} left out:", e)
    passed, failed, skipped = 0, 0, int(not micro)
    if not files:
        print("tflite: models left out: there are none in", args.models)
        return 0, 0, 1
    for path in files if micro else []:
        wrong, compared = check_model(args, path, micro, schema, litert)
        passed += compared - len(wrong)
        failed += len(wrong)
        for line in wrong:
            print("FAILED", line)
    if os.path.isdir(stored):
        why = check_stored(args, stored)
        passed += why is None
        failed += why is not None
        if why:
            print("FAILED fc_tflite:", why)
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--target", default="")
    parser.add_argument("--models", default=os.path.join(os.environ.get("LATHE_ZOO", os.path.join(TOP, "..", "shared")),
                                                         "models", "mlperf-tiny"))
    parser.add_argument("--runs", type=int, default=200, help="inputs of each model; 0: no models")
    args = parser.parse_args()
    passed, failed, skipped = check_models(args) if args.runs else (0, 0, 0)
    total = 0
    for seed in range(args.seed, args.seed + args.count):
        for method, how in (("tflite", scaled_twice), ("fast", scaled_once)):
            elements, wrong = layers(seed, how).run(args, method)
            total += elements
            passed += wrong == 0
            failed += wrong != 0
            if wrong:
                print(f"seed {seed}, {method}: {wrong} of {elements} elements differ")
    print(f"tflite: {passed} passed, {failed} failed, {skipped} skipped; {total} elements, {args.runs} inputs "
          "of each model")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
