#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators on strings against onnxruntime: random models of many nodes, by the interpreter and as packages; what is
refused.

    strings.py [--lathe FILE] [--count N] [--seed N] [--filter GLOB] [-v]

--count: models of each family. Their inputs have empty strings, strings as long as an input takes, and UTF-8."""
import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
S, B, I64, F32 = TensorProto.STRING, TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT
WIDTH = 12
onnxruntime.set_default_logger_severity(4)


class Batch:
    """A model of many nodes, with inputs of their own."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.constants, self.feed = [], [], [], [], {}

    def input(self, array):
        name = f"x{len(self.feed)}"
        kind = S if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        self.feed[name] = array
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        array = np.asarray(array)
        if array.dtype.kind in "OU":
            flat = [str(s).encode() for s in array.reshape(-1)]
            self.constants.append(helper.make_tensor(name, S, array.shape, flat))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator, inputs, kinds, domain="", **attributes):
        names = [f"y{len(self.outputs) + k}" for k in range(len(kinds))]
        self.outputs += [helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names

    def model(self):
        graph = helper.make_graph(self.nodes, "strings", self.inputs, self.outputs, self.constants)
        sets = [helper.make_opsetid(d, v) for d, v in (("", 21), ("ai.onnx.ml", 4), ("com.microsoft", 1))]
        return helper.make_model(graph, opset_imports=sets, ir_version=10)


def cut(text):
    while len(text.encode()) > WIDTH:
        text = text[:-1]
    return text


def strings(rng, shape, letters="abAB .-é"):
    def one():
        n = int(rng.choice([0, 1, 2, 3, 5, 8, WIDTH]))
        return cut("".join(rng.choice(list(letters), n)))
    return np.array([one() for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)


def some_shape(rng, least=0):
    return tuple(int(n) for n in rng.choice([0, 1, 2, 3, 4], int(rng.integers(least, 4)), p=[.05, .2, .25, .25, .25]))


# --- families ---


def equal_and_concat(rng):
    b = Batch()
    for k in range(12):
        shape = some_shape(rng)
        other = tuple(1 if rng.random() < .3 else n for n in shape[int(rng.integers(0, len(shape) + 1)):])
        x, y = strings(rng, shape, "ab"), strings(rng, other, "ab")
        names = [b.input(x), b.input(y) if k % 3 else b.constant(y)]
        names = names[::-1] if k % 2 else names
        if k % 3 or y.size:
            b.node("Equal", names, [B])
            both = b.node("StringConcat", names, [S])
            if k % 4 == 0:
                b.node("StringConcat", [both[0], names[0]], [S])
    return b


def movers(rng):
    b = Batch()
    x = strings(rng, (3, 4, 2))
    a, many = b.input(x), b.input(strings(rng, (3, 4, 2)))
    words = b.constant(strings(rng, (3, 1, 2)))
    at = rng.integers(-4, 4, (2, 3)).astype(np.int64)
    b.node("Identity", [a], [S])
    b.node("Reshape", [a, b.constant(np.array([-1, 0, 2][:2]) if rng.random() < .5 else np.array([4, -1]))], [S])
    b.node("Transpose", [a], [S], perm=[int(i) for i in rng.permutation(3)])
    b.node("Gather", [a, b.constant(at % 2) if rng.random() < .5 else b.input(at % 2)], [S],
           axis=2) # onnxruntime 1.31 loses strings along other axes

    b.node("Slice", [a, b.constant(np.array([-1])), b.constant(np.array([-9])), b.constant(np.array([-2])),
                     b.constant(np.array([-2]))], [S])
    b.node("Concat", [a, words, many, a], [S], axis=-2)
    b.node("Where", [b.input(rng.random((3, 1, 2)) < .5), a, words], [S])
    b.node("Split", [a], [S, S], axis=-2, num_outputs=2)
    b.node("Expand", [b.input(strings(rng, (3, 1, 2))), b.constant(np.array([2, 1, 3, 2]))], [S])
    b.node("Tile", [a, b.constant(np.array([1, 2, 2]))], [S])
    b.node("Unsqueeze", [a, b.constant(np.array([-1, 0]))], [S])
    b.node("Squeeze", [b.input(strings(rng, (1, 3, 1))), b.constant(np.array([-1]))], [S])
    b.node("Flatten", [a], [S], axis=2)
    b.node("Shape", [a], [I64])
    b.node("Size", [a], [I64])
    b.node("Compress", [a, b.input(rng.random(4) < .5)], [S], axis=1)
    b.node("GatherElements", [a, b.input(rng.integers(-3, 3, (2, 4, 2)).astype(np.int64))], [S], axis=0)
    b.node("GatherND", [a, b.input(rng.integers(-3, 3, (2, 2)).astype(np.int64))], [S])
    b.node("ScatterElements", [a, b.constant(np.array([[[2, 0]]])), b.input(strings(rng, (1, 1, 2)))], [S], axis=1)
    b.node("Concat", [b.input(strings(rng, (2, 0))), b.input(strings(rng, (2, 2)))], [S], axis=1)
    return b


def bodies(rng):
    """If and Loop whose bodies move strings of the graph around them."""
    b = Batch()
    a, word, flag = b.input(strings(rng, (3,))), b.constant(strings(rng, (3,))), b.input(np.array(rng.random() < .5))
    info = helper.make_tensor_value_info
    yes = helper.make_graph([helper.make_node("Identity", [a], ["yes"])], "yes", [], [info("yes", S, [3])])
    no = helper.make_graph([helper.make_node("StringConcat", [word, word], ["no"])], "no", [], [info("no", S, [3])])
    b.node("If", [flag], [S], then_branch=yes, else_branch=no)
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Gather", [a, "round"], ["row"]),
         helper.make_node("Where", ["go", "row", "kept"], ["now"]), helper.make_node("Identity", ["now"], ["next"])],
        "body", [info("round", I64, []), info("go", B, []), info("kept", S, [])],
        [info("on", B, []), info("next", S, []), info("row", S, [])])
    b.node("Loop", [b.constant(np.array(3)), "", b.input(strings(rng, ()))], [S, S], body=body)
    return b


def normalizer(rng):
    b = Batch()
    letters = "abAB ÉéßÄäŽžΩωЖжяЯσς中"
    for k in range(12):
        n = int(rng.integers(1, 7))
        x = strings(rng, (n,) if k % 2 else (1, n), letters if k % 3 else "abAB")
        words = [w for w in strings(rng, (5,), letters if k % 3 else "abAB") if w] + [str(x.reshape(-1)[0]) or "a"]
        b.node("StringNormalizer", [b.input(x)], [S], case_change_action=["NONE", "LOWER", "UPPER"][k % 3],
               is_case_sensitive=int(rng.integers(0, 2)), locale=["C", "C.UTF-8"][k // 2 % 2],
               **({"stopwords": words} if k % 5 else {}))
    return b


def split(rng):
    b = Batch()
    delimiters = ["", " ", "-", "--", "ab", "aba", "é", "aab"]
    for k in range(16):
        x = strings(rng, some_shape(rng), "ab  --é" if k % 2 else "ab -")
        more = {} if k % 4 == 0 else {"maxsplit": int(rng.integers(0, 5))}
        if k:
            more["delimiter"] = delimiters[k % 8]
        b.node("StringSplit", [b.input(x)], [S, I64], **more)
    return b


def tokens(rng):
    b = Batch()
    for k, how in enumerate(({"tokenexp": "[a-c]+"}, {"tokenexp": r"\w+"}, {"tokenexp": "[a-b]{2,}"},
                             {"tokenexp": "a+"}, {"separators": [" "]}, {"separators": ["-", " +"]},
                             {"tokenexp": "."}, {"tokenexp": "[^a]"}, {"tokenexp": "[a-b ]"})):
        x = strings(rng, (3,) if k % 2 else (2, 2), "ab  -c" if "tokenexp" in how and k < 4 else "ab  -é\n")
        x.reshape(-1)[0] = "ab a-abc"
        b.node("Tokenizer", [b.input(x)], [S], "com.microsoft", mark=0, mincharnum=[1, 3, 1, 2, 1, 1, 1, 1, 1][k],
               pad_value=["", "#", "none"][k % 3], **how)
    return b


PATTERNS = [
    r"www\.[\w.-]+\.\bcom\b", r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "a*b?", "(a|b|AB)*", "[^a-]+", ".{2,4}",
    "", "(?i)aB+.*", r"\d+|\w\s?.*", "[[:alpha:]]+[[:^digit:]]*", "[é-ž]+", "(?:ab){2}.*", r"(?s).*\x41.*", r"\Qa.b\E",
    r"\bab\b.*", r".*\Bb", "(?P<x>a)+(?i:b)*", "^$", "a{2,}?b*", "[^[:space:]é]*", r"(?m)^a.*$", "(|a|b)*", "[\\]a]+",
    r"\x{e9}*.", "((a?){5}b)*", "[a-c\\d.]*", "(?U)a+.+", "(?i)é+", "[^\\W]+", "a|", "(?i)[k-s]+",
    r"\pL+", r"\p{Lu}*\p{Ll}*.*", r"\PL+", r"[\p{^L}b]*", r"[^\pN\p{Zs}]+", r"(?i)\p{Lu}+", r"\C{3}",
    r"[\101\0142]+\040*", r"\p{Any}*", r"\pP*\pS+",
]


def regex(rng):
    b = Batch()
    x = np.concatenate([strings(rng, (20,), "abAB"), strings(rng, (20,), "ab .-é1@\n"),
                        np.array(["", "a@gmail.com", "www.a-b.com", "Kſ", "\u212a", "😀é", "日本", "٣x", "€+", "Éé"],
                                 dtype=object)])
    name = b.input(np.array([cut(s) for s in x], dtype=object))
    for pattern in PATTERNS:
        b.node("RegexFullMatch", [name], [B], pattern=pattern)
    return b


def encoders(rng):
    b, ml = Batch(), "ai.onnx.ml"
    keys = list(dict.fromkeys(strings(rng, (9,), "ab é"))) or ["a"]
    n = len(keys)
    x = np.array([str(rng.choice(keys)) if rng.random() < .7 else "no" for _ in range(8)], dtype=object)
    name, table = b.input(x.reshape(2, 4)), b.input(x)
    b.node("LabelEncoder", [name], [I64], ml, keys_strings=keys, values_int64s=[int(v) for v in range(n)],
           default_int64=-7)
    b.node("LabelEncoder", [name], [F32], ml, keys_strings=keys, values_floats=[v / 2 for v in range(n)])
    tensor = helper.make_tensor
    b.node("LabelEncoder", [name], [I64], ml, keys_tensor=tensor("k", S, [n], [k.encode() for k in keys]),
           values_tensor=tensor("v", I64, [n], list(range(n))), default_tensor=tensor("d", I64, [1], [99]))
    b.node("CategoryMapper", [table], [I64], ml, cats_strings=keys, cats_int64s=list(range(n)), default_int64=3)
    b.node("OneHotEncoder", [table], [F32], ml, cats_strings=keys)
    return b


def tfidf(rng):
    b = Batch()
    for k in range(9):
        pool = [str(s) for s in strings(rng, (4 + 2 * 3,), "ab")]
        pool = [s + chr(ord("c") + i) * 0 for i, s in enumerate(pool)]
        ones = list(dict.fromkeys(pool[:4]))
        pairs = list(dict.fromkeys(zip(pool[4::2], pool[5::2])))
        flat = ones + [w for p in pairs for w in p]
        count = len(ones) + len(pairs)
        words = np.array(flat + ["zz"], dtype=object)
        x = rng.choice(words, (int(rng.integers(2, 9)),) if k % 2 else (2, int(rng.integers(2, 7)))).astype(object)
        b.node("TfIdfVectorizer", [b.input(x)], [F32], mode=["TF", "IDF", "TFIDF"][k % 3], min_gram_length=1,
               max_gram_length=2, max_skip_count=int(rng.integers(0, 3)), pool_strings=flat,
               ngram_counts=[0, len(ones)], ngram_indexes=[int(v) for v in rng.permutation(count)],
               weights=[float(w) for w in rng.integers(1, 9, count)])
    return b


def unique(rng):
    b = Batch()
    for k in range(4):
        x = b.input(strings(rng, (int(rng.integers(1, 9)),) if k % 2 else (2, 3), "ab"))
        b.node("Unique", [x], [S, I64, I64, I64], sorted=k // 2 % 2)
    return b


def casts(rng):
    """Numbers as strings, of every type; and strings as numbers, with what stands around a number in files."""
    b, kinds = Batch(), (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
    bits = rng.integers(0, 2 ** 64, 200, dtype=np.uint64)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-4, 9.9999995e-5, 1e8, 99999995.0, 5e-324, 0.1, 2.5, 123456785.0]
    floats = np.concatenate([odd, bits.view(np.float64)[:100],
                             rng.standard_normal(50) * 10.0 ** rng.integers(-9, 9, 50)])
    with np.errstate(all="ignore"):
        for dtype in (np.float64, np.float32, np.float16):
            b.node("Cast", [b.input(floats.astype(dtype).reshape(1, -1))], [S], to=S)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, bool):
        b.node("Cast", [b.input(np.concatenate([[0, 2**63], bits[:20]]).astype(np.uint64).astype(dtype))], [S], to=S)
    def written():
        v = float(rng.standard_normal() * 10.0 ** rng.integers(-9, 9))
        s = [f"{v:.3g}", f"{v:e}"[:WIDTH], f"{v:.4f}"[:WIDTH], str(int(v)), f"{int(v)}."][int(rng.integers(5))]
        return cut([s, " " + s, "\t+" + s.lstrip("-"), s + "x", s + " 1", s.upper()][int(rng.integers(6))])
    texts = [written() for _ in range(60)] + ["inf", "-INF", "NaN", "infinity", "nan(1)", "0", "-0", ".5", "5.", "1e",
                                              "1e+", "007"]
    x = b.input(np.array(texts, dtype=object))
    for kind in kinds:
        b.node("Cast", [x], [kind], to=kind)
    whole = [str(int(v)) + str(rng.choice(["", ".7", "e3", " ", "é"]))
             for v in rng.integers(-2**31, 2**31, 20)] + ["0", "-0", " 8", "+9", "010", "0x1", "300", "-129", "70000"]
    x = b.input(np.array([cut(s) for s in whole], dtype=object))
    for kind in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL"):
        b.node("Cast", [x], [getattr(TensorProto, kind)], to=getattr(TensorProto, kind))
    same = b.node("Cast", [b.node("Cast", [b.input(np.array([1.5, -2.25], np.float32))], [S], to=S)[0]], [F32], to=F32)
    b.node("CastLike", [b.input(np.array(["4", "-5.5"], dtype=object)), same[0]], [F32])
    return b


def hashes(rng):
    b = Batch()
    wide = np.array([0, -1, 2**31, -2**62, 5])
    for k, x in enumerate((strings(rng, (2, 5), "ab é"), strings(rng, (9,), "xyz"), wide, wide.astype(np.int32),
                           wide.astype(np.uint32))):
        for positive in (0, 1):
            b.node("MurmurHash3", [b.input(x)], [[TensorProto.INT32, TensorProto.UINT32][positive]], "com.microsoft",
                   positive=positive, seed=[0, 7, 2**31 + 5 - 2**32][k % 3])
    return b


def sequences(rng):
    b = Batch()
    x, y = b.input(strings(rng, (3, 2))), b.input(strings(rng, (2, 2)))
    words = b.constant(strings(rng, (1, 2)))

    def at(least, most):
        k = np.array(rng.integers(least, most), np.int64)
        return b.constant(k) if rng.random() < .3 else b.input(k)

    def made(operator, inputs, **attributes):
        name = f"s{len(b.nodes)}"
        b.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    for _ in range(3):
        whole = made("SequenceConstruct", [x, words, y])
        more = made("SequenceInsert", [whole, y, at(-3, 4)])
        less = made("SequenceErase", [more, at(-4, 4)])
        for s, n in (whole, 3), (more, 4), (less, 3):
            b.node("SequenceAt", [s, at(-n, n)], [S])
            b.node("ConcatFromSequence", [s], [S], axis=int(rng.choice([0, -2])))
            b.node("SequenceLength", [s], [I64])
    stacked = made("SequenceConstruct", [y, b.constant(strings(rng, (2, 2))), y])
    b.node("ConcatFromSequence", [stacked], [S], axis=int(rng.integers(-3, 3)), new_axis=1)
    parts = made("SplitToSequence", [x, at(1, 3)], axis=int(rng.choice([0, -2])))
    b.node("SequenceAt", [parts, at(-2, 2)], [S])
    parts = made("SplitToSequence", [x, b.constant(np.array([2, 1]))])
    b.node("SequenceAt", [parts, at(-2, 2)], [S])
    entries = made("SplitToSequence", [x], axis=-1, keepdims=0)
    b.node("SequenceAt", [entries, at(-2, 2)], [S])
    return b


FAMILIES = {f.__name__: f for f in (equal_and_concat, movers, bodies, normalizer, split, tokens, regex, encoders, tfidf,
                                    unique, casts, hashes, sequences)}


# --- refusals: a node that must end with an error, and a part of its message ---

REFUSED = [
    (helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=p), B, why) for p, why in (
        (r"\p{Greek}", "character 0: of classes of Unicode"), (r"ab(", "character 2: the group is not closed"),
        ("a**", "character 2: a repeat of a repeat"), ("[b-a]", "character 1: the range ends"), (r"x\1", "character 1"),
        ("*a", "character 0: there is nothing"), ("a{1001}", "out of range"), ("(((a{99}){99}){99})", "too large"),
        ("[[:no:]]", "not known"), ("(a|b)*a(a|b){14}", "too many states"))
] + [(helper.make_node("Relu", ["x"], ["y"]), F32, "input 0 is strings"),
     *[(helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mincharnum=1, pad_value="", mark=0, **how),
        S, why) for how, why in (({"tokenexp": "[a-z]+?"}, "is not a run"), ({"tokenexp": "ab+"}, "is not a run"),
                                 ({"tokenexp": "a("}, "character 1"), ({}, "is missing"))]]


# --- running ---


def save_feed(folder, feed):
    given = []
    for name, array in feed.items():
        path = os.path.join(folder, name + (".pb" if array.dtype == object else ".npy"))
        if array.dtype == object:
            flat = [s.encode() for s in array.reshape(-1)]
            with open(path, "wb") as f:
                f.write(helper.make_tensor(name, S, array.shape, flat).SerializeToString())
        else:
            np.save(path, array)
        given += ["--input", f"{name}={path}"]
    return given


def differences(batch, want, folder):
    for name, expected in want.items():
        got, expected = np.load(os.path.join(folder, name + ".npy")), np.asarray(expected)
        if expected.dtype.kind in "OU":
            text = np.frompyfunc(lambda s: str(s).encode(), 1, 1)(expected) if expected.size else expected
            expected = np.array(text, dtype=object).astype("S") if expected.size else np.zeros(expected.shape, "S1")
        if got.shape != expected.shape or not np.array_equal(got, expected, equal_nan=expected.dtype.kind == "f"):
            node = next(n for n in batch.nodes if name in n.output)
            yield f"{name} of {node.op_type}: {got.tolist()}, not {expected.tolist()}\n{helper.printable_node(node)}"


def run_batch(lathe, batch, how):
    with tempfile.TemporaryDirectory() as folder:
        model = batch.model()
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        want = dict(zip([o.name for o in session.get_outputs()], session.run(None, batch.feed)))
        path = os.path.join(folder, "m.onnx")
        onnx.save(model, path)
        command = [lathe, "run", path, "--output-dir", folder, "--string-bytes", str(WIDTH), *how]
        done = subprocess.run(command + save_feed(folder, batch.feed), capture_output=True, text=True, timeout=600)
        if done.returncode:
            return [done.stderr]
        return list(differences(batch, want, folder))


def refusals(lathe):
    failed = 0
    for node, kind, why in REFUSED:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", S, [2])],
                                      [helper.make_tensor_value_info("y", kind, None)])
            sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
            onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
            command = [lathe, "compile", path, "-o", os.path.join(folder, "out")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            if done.returncode == 0 or why not in done.stderr:
                failed += 1
                print(f"FAILED refusal of {node.op_type}: {done.stderr or 'accepted'}, not '{why}'")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="*")
    parser.add_argument("-v", action="store_true")
    o = parser.parse_args()
    passed = failed = 0
    os.environ.update(package.environment(os.environ.get("CFLAGS") or package.QUICK))
    for number, (name, family) in enumerate(FAMILIES.items()):
        for k in range(o.count if fnmatch.fnmatch(name, o.filter) else 0):
            for how in ["--interpret"], ["--workers", "0", "-O1"]:
                if how[0] != "--interpret" and (k > 0 or number % 2 != o.seed % 2 and o.count == 1):
                    continue # the C compiler takes most of the time
                rng = np.random.default_rng([o.seed, number, k])
                wrong = run_batch(o.lathe, family(rng), how)
                failed += bool(wrong)
                passed += not wrong
                if wrong or o.v:
                    print("FAILED" if wrong else "passed", name, k, *how, flush=True)
                    print(*(f"  {w}\n" for w in wrong[:3]), sep="", end="", flush=True)
    if o.filter == "*":
        wrong = refusals(o.lathe)
        failed += wrong
        passed += len(REFUSED) - wrong
    print(f"strings: {passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
