#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks of Keras, as TensorFlow's converter writes them, against TensorFlow Lite Micro or LiteRT's reference
kernels: integers bit for bit, floats to 1e-5 of the largest number.

    tflite_keras.py [--lathe FILE] [--seed N] [--runs N] [--filter NAME] [--forms LIST] [--keep FOLDER]

Each network is converted in five forms: floats, weights of 16 bits (half), weights of 8 bits (dynamic), int8, and int16
with weights of 8 bits (int16). The weights are random. Micro is the oracle where it has all operators, else LiteRT.
Without the packages tensorflow, tflite_micro and ai_edge_litert the exit status is 77."""
import argparse
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np

import tflite_models as T

try:
    import tensorflow as tf
    from tensorflow import keras
    L = keras.layers
except ImportError:
    tf = None

FORMS = ("float", "half", "dynamic", "int8", "int16")
MODELS = {}


def network(*shapes, tokens=0):
    """A function of its inputs. tokens: inputs are numbers of words, below that."""
    def register(f):
        MODELS[f.__name__] = f, shapes, tokens
        return f
    return register


def convolved(x, depth, stride=1, kernel=3, act="relu6", wise=False):
    x = L.DepthwiseConv2D(kernel, stride, "same", use_bias=False)(x) if wise else \
        L.Conv2D(depth, kernel, stride, "same", use_bias=False)(x)
    x = L.BatchNormalization()(x)
    return L.Activation(act)(x) if act else x


@network((32, 32, 3))
def mobilenet_v1(x):
    x = convolved(x, 8, 2)
    for depth, stride in ((8, 1), (16, 2), (16, 1), (32, 2)):
        x = convolved(convolved(x, 0, stride, wise=True), depth, kernel=1)
    return L.Dense(10, "softmax")(L.GlobalAveragePooling2D()(x))


def inverted(x, depth, stride, act="relu6", squeeze=False, kernel=3):
    y = convolved(x, 3 * x.shape[-1], kernel=1, act=act)
    y = convolved(y, 0, stride, kernel, act=act, wise=True)
    if squeeze:
        s = L.GlobalAveragePooling2D(keepdims=True)(y)
        s = L.Conv2D(4, 1, activation="relu")(s)
        y = L.Multiply()([y, L.Conv2D(y.shape[-1], 1, activation="hard_sigmoid")(s)])
    y = convolved(y, depth, kernel=1, act=None)
    return L.Add()([x, y]) if stride == 1 and depth == x.shape[-1] else y


@network((33, 31, 3))
def mobilenet_v2(x):
    x = convolved(x, 8, 2)
    for depth, stride in ((8, 1), (12, 2), (12, 1), (16, 2)):
        x = inverted(x, depth, stride)
    return L.Dense(7)(L.GlobalAveragePooling2D()(L.Dropout(0.2)(x)))


@network((32, 32, 3))
def mobilenet_v3(x):
    x = convolved(x, 8, 2, act="hard_silu")
    for depth, stride, act, squeeze in ((8, 1, "relu", True), (12, 2, "hard_silu", False), (12, 1, "hard_silu", True)):
        x = inverted(x, depth, stride, act, squeeze, 5)
    x = L.Conv2D(20, 1, activation="hard_silu")(L.GlobalAveragePooling2D(keepdims=True)(x))
    return L.Flatten()(L.Conv2D(6, 1)(x))


@network((40, 40, 3))
def efficientnet_lite(x):
    x = convolved(L.Rescaling(1 / 2.5, offset=-0.1)(x), 8, 2)
    for depth, stride, kernel in ((8, 1, 3), (12, 2, 5), (12, 1, 5)):
        x = inverted(x, depth, stride, kernel=kernel)
    return L.Softmax()(L.Dense(10)(L.GlobalAveragePooling2D()(x)))


@network((32, 32, 3))
def resnet(x):
    x = convolved(x, 8, act="relu")
    for depth, stride in ((8, 1), (16, 2), (24, 2)):
        y = convolved(convolved(x, depth, stride, act="relu"), depth, act=None)
        x = L.ReLU()(L.Add()([L.Conv2D(depth, 1, stride)(x) if stride > 1 else x, y]))
    return L.Dense(10, "softmax")(L.Flatten()(L.AveragePooling2D(8)(x)))


@network((32, 32, 1))
def unet(x):
    a = L.Conv2D(6, 3, padding="same", activation="relu")(x)
    b = L.Conv2D(8, 3, padding="same", activation="relu")(L.MaxPooling2D()(a))
    c = L.Conv2D(12, 3, padding="same", activation="relu")(L.MaxPooling2D()(b))
    b = L.Concatenate()([b, L.Conv2DTranspose(8, 2, 2, padding="same")(c)])
    b = L.Conv2D(8, 3, padding="same", activation="relu")(b)
    a = L.Concatenate()([a, L.UpSampling2D(interpolation="bilinear")(b)])
    return L.Conv2D(2, 1, activation="sigmoid")(a)


@network((6, 5))
def lstm(x):
    return L.Dense(4)(L.LSTM(7)(x))


@network((5, 4))
def lstm_sequences(x):
    x = L.LSTM(6, return_sequences=True, unroll=True)(x)
    return L.TimeDistributed(L.Dense(3, "relu"))(x)


@network((6, 5))
def lstm_both_ways(x):
    return L.Dense(3, "softmax")(L.Bidirectional(L.LSTM(4))(x))


@network((6, 5))
def gru(x):
    return L.Dense(4)(L.GRU(6)(x))


@network((4, 5))
def gru_unrolled(x):
    return L.Dense(4)(L.GRU(6, unroll=True, reset_after=False)(x))


@network((6, 5))
def simple_rnn(x):
    return L.SimpleRNN(6)(x)


@network((3, 8, 8, 2))
def conv_lstm(x):
    return L.Dense(3)(L.Flatten()(L.ConvLSTM2D(4, 3, padding="same")(x)))


@network((3, 8, 8, 2))
def conv_lstm_unrolled(x):
    return L.GlobalMaxPooling2D()(L.ConvLSTM2D(4, 3, padding="same", unroll=True)(x))


@network((40, 4))
def tcn(x):
    for k in (1, 2, 4):
        y = L.Conv1D(6, 3, padding="causal", dilation_rate=k, activation="relu")(x)
        x = L.Add()([L.Conv1D(6, 1)(x) if k == 1 else x, y])
    return L.Dense(2)(x[:, -1, :])


@network((8, 12))
def transformer(x):
    y = L.MultiHeadAttention(2, 6)(x, x)
    x = L.LayerNormalization(epsilon=1e-5)(L.Add()([x, y]))
    y = L.Dense(12)(L.Dense(24, "gelu")(x))
    x = L.LayerNormalization(epsilon=1e-5)(L.Add()([x, y]))
    return L.Dense(3)(L.GlobalAveragePooling1D()(x))


@network((12,), tokens=30)
def words(x):
    return L.Dense(2, "softmax")(L.GlobalMaxPooling1D()(L.Conv1D(8, 3, activation="relu")(L.Embedding(30, 6)(x))))


@network((9,), tokens=20)
def words_lstm(x):
    return L.Dense(1, "sigmoid")(L.LSTM(5)(L.Embedding(20, 4)(x)))


@network((20,))
def autoencoder(x):
    for width in (16, 8, 4, 8, 16):
        x = L.ReLU()(L.BatchNormalization()(L.Dense(width)(x)))
    return L.Dense(20)(x)


@network((16, 16, 4))
def activations(x):
    for act in ("elu", "selu", "softplus", "silu", "tanh", "leaky_relu", "gelu", "relu"):
        x = L.Conv2D(5, 3, padding="same", activation=act)(x)
    return L.PReLU(shared_axes=[1, 2])(x)


@network((16, 16, 4))
def super_resolution(x):
    y = L.Conv2D(12, 3, padding="same", activation="relu")(x)
    return L.Lambda(lambda z: tf.nn.depth_to_space(z, 2))(L.Conv2D(12, 3, padding="same")(y))


@network((24, 24, 3))
def segmentation(x):
    y = L.Conv2D(8, 3, dilation_rate=2, padding="same", activation="relu")(x)
    z = L.Conv2D(8, 3, dilation_rate=4, padding="valid", activation="relu")(L.ZeroPadding2D(4)(x))
    w = L.UpSampling2D(24)(L.Conv2D(8, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(x)))
    y = L.Conv2D(4, 1)(L.Concatenate()([y, z, w]))
    return L.Lambda(lambda v: tf.argmax(v, -1, output_type=tf.int32))(L.Resizing(12, 12)(y))


@network((10,), (10,))
def two_inputs(x, y):
    a, b = L.Dense(6, "relu")(x), L.Dense(6, "relu")(y)
    a = L.Lambda(lambda v: tf.math.l2_normalize(v, -1))(a)
    return [L.Dot(1)([a, b]), L.Subtract()([a, b]), L.Maximum()([a, b]), L.Average()([a, b])]


@network((16, 16, 8))
def grouped(x):
    x = L.Conv2D(12, 3, groups=4, padding="same", activation="relu")(x)
    x = L.SeparableConv2D(10, 3, depth_multiplier=2)(x)
    x = L.Cropping2D(((1, 2), (0, 3)))(x)
    return L.Permute((3, 1, 2))(x)


@network((7, 9))
def statistics(x):
    m = L.Lambda(lambda v: tf.reduce_mean(v, 1, keepdims=True))(x)
    v = L.Lambda(lambda p: tf.reduce_mean(tf.math.squared_difference(p[0], p[1]), 1))([x, m])
    s = L.Lambda(lambda v: tf.sqrt(tf.nn.relu(v) + 1e-3))(v)
    return L.Dense(4)(L.Concatenate()([L.Flatten()(m), s, L.Lambda(lambda p: tf.reduce_max(p, 1))(x)]))


@network((6, 6, 6, 2))
def volumes(x):
    return L.GlobalAveragePooling3D()(L.Conv3D(4, 3, activation="relu")(x))


def model_of(name):
    make, shapes, tokens = MODELS[name]
    ins = [keras.Input(s, batch_size=1, dtype="int32" if tokens else "float32") for s in shapes]
    return keras.Model(ins, make(*ins))


def shaken(model, rng):
    """Statistics and offsets that are not 0 and 1."""
    for w in model.weights:
        a = w.numpy()
        a = a + rng.normal(0, 0.1, a.shape) if a.ndim < 2 else a
        w.assign(np.abs(a) + 0.2 if "variance" in w.path else a)


def converted(model, name, form, rng):
    _, shapes, tokens = MODELS[name]
    c = tf.lite.TFLiteConverter.from_keras_model(model)

    def samples():
        for _ in range(12):
            yield [rng.integers(0, tokens, (1, *s)).astype(np.int32) if tokens else
                   rng.uniform(-4, 4, (1, *s)).astype(np.float32) for s in shapes]
    if form != "float":
        c.optimizations = [tf.lite.Optimize.DEFAULT]
    if form == "half":
        c.target_spec.supported_types = [tf.float16]
    if form.startswith("int"):
        c.representative_dataset = samples
        sets = tf.lite.OpsSet
        c.target_spec.supported_ops = [
            sets.TFLITE_BUILTINS_INT8 if form == "int8" else
            sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
        if not tokens:
            c.inference_input_type = c.inference_output_type = tf.int8 if form == "int8" else tf.int16
    return c.convert()


class Fast(T.LiteRT):
    """LiteRT's other kernels, for operators that its reference lacks: their floats are as good."""
    def __init__(self, content):
        self.session = T.Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=(
            T.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES))
        self.session.allocate_tensors()


def oracle_of(content, form):
    """Micro, where it has all operators and the types of these. None: nobody has the numbers."""
    try:
        session = T.runtime.Interpreter.from_bytes(content, arena_size=T.ARENA)
        for i in range(len(T.Interpreter(model_content=content).get_input_details())):
            d = session.get_input_details(i)
            session.set_input(np.zeros(d["shape"], d["dtype"]), i)
        if session.invoke() == 0:
            return T.Micro
    except (RuntimeError, ValueError):
        pass
    for oracle in (T.LiteRT, Fast) if not form.startswith("int") else (T.LiteRT,):
        try:
            oracle(content)
            return oracle
        except (RuntimeError, ValueError):
            pass
    return None


def convert_all(args):
    """In a process of its own: the converter ends it for some networks."""
    name = args.convert
    keras.utils.set_random_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    model = model_of(name)
    shaken(model, rng)
    for form in args.forms.split(","):
        path = os.path.join(args.keep, f"{name}_{form}")
        try:
            content = converted(model, name, form, rng)
            with open(path + ".tflite", "wb") as f:
                f.write(content)
        except Exception as e:  # the converter has no such form of it
            with open(path + ".none", "w", encoding="utf-8") as f:
                f.write(f"{e!r}"[:150])


def models(args, folder):
    """Each model's name, form, and file or why there is none."""
    for name in [m for m in MODELS if args.filter in m]:
        forms = args.forms.split(",")
        while forms:
            subprocess.run([sys.executable, __file__, "--convert", name, "--forms", ",".join(forms), "--keep", folder,
                            "--seed", str(args.seed)], capture_output=True)
            there = [f for f in forms if any(os.path.exists(os.path.join(folder, f"{name}_{f}.{end}"))
                                             for end in ("tflite", "none"))]
            for form in there:
                path = os.path.join(folder, f"{name}_{form}")
                if os.path.exists(path + ".tflite"):
                    yield name, form, path + ".tflite", ""
                else:
                    with open(path + ".none", encoding="utf-8") as f:
                        yield name, form, None, f.read()
            forms = forms[len(there):]
            if forms:
                yield name, forms[0], None, "the converter ended"
                forms = forms[1:]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lathe", default=os.path.join(T.TOP, "build", "lathe"))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--filter", default="", help="networks with that in their name")
    p.add_argument("--forms", default=",".join(FORMS))
    p.add_argument("--keep", help="folder for the models")
    p.add_argument("--convert", help="a network: write it and do nothing else")
    p.add_argument("--target")
    p.add_argument("--cc", default="cc -O1")
    args = p.parse_args()
    if T.runtime is None or tf is None:
        print("tensorflow, tflite_micro or ai_edge_litert is not there")
        sys.exit(77)
    if args.convert:
        return convert_all(args)
    report, cases, none = T.Report(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, form, path, why in models(args, args.keep or folder):
            if not path:
                print(f"skipped {name} {form}: {why}", flush=True)
                none += 1
                continue
            with open(path, "rb") as f:
                content = f.read()
            tokens = MODELS[name][2]
            spans = {0: (0, tokens - 1)} if tokens else {}
            before = len(report.failures)
            oracle = oracle_of(content, form)
            if not oracle:
                print(f"skipped {name} {form}: no oracle has all of its operators", flush=True)
                none += 1
                continue
            T.check(args, report, f"{name} {form} by {oracle.name}", content, lambda i: f"output {i}", spans,
                    np.random.default_rng(args.seed), args.runs, oracle)
            cases += 1
            print("\n".join(report.failures[before:]) or f"{name} {form} by {oracle.name}", flush=True)
    print(f"{report.elements} elements, {report.wrong} differ")
    failed = len(report.failures)
    print(f"{max(cases - failed, 0)} passed, {failed} failed, {none} skipped")
    sys.exit(1 if failed or report.wrong else 0)


if __name__ == "__main__":
    main()
