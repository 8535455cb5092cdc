/* SPDX-License-Identifier: Apache-2.0 */
/* Other runtimes as a reference, onnxruntime first of all: a Python child reads the same inputs and either stores its
 * outputs once, or runs when told to and answers with its time. onnxruntime's worker threads spin for some 40 ms after
 * a run, in the way of whoever is measured next: with several threads both sides begin when all have gone to sleep.
 * The first run after that is not timed.
 *
 * Where outputs are compared, its sums of 8-bit products are asked to be exact, which they are not on processors that
 * add pairs of them in 16 bits; and a quantised model runs as it stands, because its optimiser replaces the arithmetic
 * between dequantised values by integer kernels, which round otherwise: those are for models in integers. What it
 * computes in floats even there has other bits than exact sums of integers where a result is half-way between two
 * steps: weights of 4 bits become bytes, for which it has integer kernels, and where it has none both steps count as
 * right.
 * Where it is timed, it has its defaults.
 *
 * Node by node, its optimiser is off, and the model's own values are added to its outputs: as text of the wire, a
 * second piece of the graph behind the model, which readers merge with the first. */
#include "api/session.h"
#include "codegen/c/package.h"
#include "driver/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_out.h"

/* What is handed over quantised (lines of write_ends): the reference has it as floats, which the scale makes of the
 * numbers without a rounding that matters. */
static const char ends_script[] = "def handed_over(lines):\n"
                                  "    ends = [line.split(' ', 4) for line in lines]\n"
                                  "    return {(e[0], e[4]): (e[1], np.float32(e[2]), int(e[3])) for e in ends}\n"
                                  "def as_floats(ends, feed):\n"
                                  "    for n, v in feed.items():\n"
                                  "        if ('in', n) in ends:\n"
                                  "            kind, scale, zero = ends['in', n]\n"
                                  "            feed[n] = scale * (v.astype('int32') - zero).astype('float32')\n"
                                  "def as_numbers(ends, outputs, results):\n"
                                  "    for i, r in enumerate(outputs):\n"
                                  "        if ('out', r.name) in ends:\n"
                                  "            kind, scale, zero = ends['out', r.name]\n"
                                  "            results[i] = (np.rint(results[i] / scale) + zero).astype(kind)\n";
/* Names of classes, which are strings, and maps from classes to scores, as what Lathe makes of them: the number of the
 * class, and the scores in the order of the classes. */
static const char labels_script[] =
    "def as_tensors(labels, lists, texts, outputs, results):\n"
    "    for i, r in enumerate(outputs):\n"
    "        if any(l['name'] == r.name for l in lists): continue\n"
    "        v, names = results[i], labels.get(r.name); maps = isinstance(v, list)\n"
    "        if not maps and np.asarray(v).dtype.kind not in 'OUS': continue\n"
    "        if names is None and r.name in texts: results[i] = as_bytes(v); continue\n"
    "        if names is None:\n"
    "            kind = 'maps' if maps else 'strings'\n"
    "            raise ValueError(f\"output '{r.name}' consists of {kind}, and what runs has no table for \"\n"
    "                             \"its labels; verify the model's file, not a package or a module of it\")\n"
    "        if maps:\n"
    "            results[i] = np.array([[row[n] for n in names] for row in v], 'float32')\n"
    "            continue\n"
    "        at = {n: k for k, n in reversed(list(enumerate(names)))}\n"
    "        numbers = [at.get(str(n), -1) for n in np.asarray(v).reshape(-1)]\n"
    "        results[i] = np.array(numbers, 'int64').reshape(np.shape(v))\n";
/* Sequences, optionals and maps: the elements that Lathe takes as lists, keys and values as dictionaries, and the
 * elements of results one behind the other. */
static const char lists_script[] =
    "def as_map(*columns):\n"
    "    own = [np.char.decode(c, 'utf-8', 'replace') if c.dtype.kind == 'S' else c for c in columns]\n"
    "    return dict(zip(*[c.tolist() for c in own]))\n"
    "def as_lists(lists, feed):\n"
    "    for l in lists:\n"
    "        if l['of'] != 'inputs': continue\n"
    "        if l['kind'] == 'map': feed[l['name']] = as_map(*[feed.pop(p['name']) for p in l['parts']]); continue\n"
    "        own = [feed.pop(p['name']) for p in l['parts']]\n"
    "        feed[l['name']] = None if l.get('none') else own[0] if l['kind'] == 'optional' else own\n"
    "def as_elements(lists, outputs, results):\n"
    "    kinds = {l['name']: l['kind'] for l in lists if l['of'] == 'outputs'}; out = []\n"
    "    for r, v in zip(outputs, results):\n"
    "        kind = kinds.get(r.name)\n"
    "        out += [v] if kind in (None, 'optional') and v is not None else v or []\n"
    "    if kinds and len(out) != len(listed('wanted')):\n"
    "        raise ValueError(f\"it gives {len(out)} tensors and elements together, {len(listed('wanted'))} are \"\n"
    "                         'compared')\n"
    "    return out\n";
/* Strings: bytes, padded with zeros (NumPy's kind S), as this program has them in files. Objects there. */
static const char strings_script[] =
    "def as_objects(known, feed):\n"
    "    for n, v in feed.items():\n"
    "        if n in known and known[n].type == 'tensor(string)':\n"
    "            feed[n] = np.char.decode(v, 'utf-8', 'replace').astype(object)\n"
    "def as_bytes(v):\n"
    "    return np.char.encode(np.asarray(v).astype(str), 'utf-8') if np.size(v) else np.zeros(np.shape(v), 'S1')\n";
/* States, a line each for the output, the input, and its type and shape; before them, whether samples are steps. */
static const char states_script[] =
    "def states_of(lines):\n"
    "    first = {}; states = {}\n"
    "    for out, name, kind in zip(lines[1::3], lines[2::3], lines[3::3]):\n"
    "        kind, *shape = kind.split(); states[out] = name\n"
    "        first[name] = np.zeros([int(n) for n in shape], kind)\n"
    "    return lines[0] == 'steps', first, states\n";
/* The wire of ONNX files: messages are read and written piece by piece, so that no package for them is needed. */
static const char wire_script[] =
    "import math, os\n"
    "def varint(b, i):\n"
    "    v = shift = 0\n"
    "    while True:\n"
    "        x = b[i]; i += 1; v |= (x & 127) << shift; shift += 7\n"
    "        if x < 128: return v, i\n"
    "def pieces(b):\n" /* of a message: number, contents, and all of it */
    "    i = 0\n"
    "    while i < len(b):\n"
    "        start = i; tag, i = varint(b, i); v = None\n"
    "        if tag & 7 == 2: n, i = varint(b, i); v = b[i:i + n]; i += n\n"
    "        elif tag & 7 == 0: v, i = varint(b, i)\n"
    "        else: i += 8 if tag & 7 == 1 else 4\n"
    "        yield tag >> 3, v, b[start:i]\n"
    "def fields(b): return ((n, v) for n, v, _ in pieces(b) if v is not None)\n"
    "def field(n, b):\n"
    "    out, size = bytes([n << 3 | 2]), len(b)\n"
    "    while size > 127: out += bytes([size & 127 | 128]); size >>= 7\n"
    "    return out + bytes([size]) + b\n"
    "def read(path): return memoryview(open(path, 'rb').read())\n"
    "def graphs(data): return (g for n, g in fields(data) if n == 7)\n"
    "def shown(data, wanted):\n" /* the model with those of its values as outputs, too */
    "    made = set(); given = set()\n"
    "    for graph in graphs(data):\n"
    "        for n, part in fields(graph):\n"
    "            if n == 1: made |= {bytes(o).decode() for k, o in fields(part) if k == 2}\n"
    "            if n == 5: made |= {bytes(o).decode() for k, o in fields(part) if k == 8}\n"
    "            if n == 12: given |= {bytes(o).decode() for k, o in fields(part) if k == 1}\n"
    "    more = [w for w in dict.fromkeys(wanted) if w in made and w not in given]\n"
    "    return bytes(data) + field(7, b''.join(field(12, field(1, w.encode())) for w in more))\n"
    "def ints(values):\n" /* repeated integers, packed or not */
    "    out = []\n"
    "    for v in values:\n"
    "        i = 0\n"
    "        if isinstance(v, int): out.append(v); continue\n"
    "        while i < len(v): x, i = varint(v, i); out.append(x)\n"
    "    return out\n"
    "def text(b): return bytes(b).decode()\n"
    "def outside(entries, folder):\n" /* what a tensor has in a file beside the model */
    "    at = {text(dict(fields(e))[1]): text(dict(fields(e))[2]) for e in entries}\n"
    "    with open(os.path.join(folder, at['location']), 'rb') as f:\n"
    "        f.seek(int(at.get('offset', 0))); return f.read(int(at.get('length', -1)))\n";

/* Weights of 4 bits (types 21 and 22) as the same numbers of 8 (2 and 3), from which onnxruntime makes the integer
 * kernels that it has not for 4 bits. */
static const char widen_script[] =
    "def widened(data, folder):\n"
    "    changed = 0\n"
    "    def tensor(t):\n"
    "        nonlocal changed\n"
    "        of = lambda k: [v for n, v in fields(t) if n == k]\n"
    "        kind = (of(2) or [0])[-1]\n"
    "        if kind not in (21, 22): return bytes(t)\n"
    "        changed += 1\n"
    "        data = bytes(of(9)[0]) if of(9) else outside(of(13), folder) if of(13) else bytes(ints(of(5)))\n"
    "        codes = np.frombuffer(data, 'u1'); codes = np.stack([codes & 15, codes >> 4], -1)\n"
    "        codes = codes.reshape(-1)[:math.prod(ints(of(1)))]\n"
    "        codes = (codes ^ 8) - 8 if kind == 22 else codes\n"
    "        kept = b''.join(bytes(w) for n, _, w in pieces(t) if n not in (2, 5, 9, 13, 14))\n"
    "        return kept + bytes([16, kind - 19]) + field(9, codes.astype('u1').tobytes())\n"
    "    def inside(b, path):\n" /* numbers of fields, down to tensors */
    "        if not path: return tensor(b)\n"
    "        return b''.join(field(n, inside(v, path[1:])) if n == path[0] else bytes(w) for n, v, w in pieces(b))\n"
    "    for path in ([7, 5], [7, 1, 5, 5]): data = memoryview(inside(data, path))\n"
    "    if not changed: raise ValueError('it has no weights of 4 bits')\n"
    "    return bytes(data)\n";

/* Where onnxruntime computes in floats what becomes integers at an output, a float that is half-way between two steps,
 * as nearly as sums in f32 can tell, allows both: other_N.npy has the second one. Of the model as it stands, where all
 * is computed so, that holds where it has no integer kernels (values of 16 bits; behind a transposed convolution) and
 * for a package in floats. */
static const char ties_script[] =
    "def rounded(data, all_of_them):\n" /* outputs: names of the float, its scale, its zero point; dequantised */
    "    made = {}; found = []\n"
    "    for graph in graphs(data):\n"
    "        for n, part in fields(graph):\n"
    "            if n != 1: continue\n"
    "            of = lambda k: [text(v) for n, v in fields(part) if n == k]\n"
    "            for o in of(2): made[o] = (of(4)[0], of(1))\n"
    "    for graph in graphs(data):\n"
    "        for i, o in enumerate(v for n, v in fields(graph) if n == 12):\n"
    "            kind, names = made.get(text(dict(fields(o))[1]), ('', []))\n"
    "            back = kind == 'DequantizeLinear'\n"
    "            if back: kind, names = made.get(names[0], ('', []))\n"
    "            behind = made.get(names[0], ('', []))[0] if names else ''\n"
    "            if kind == 'QuantizeLinear' and len(names) > 2 and names[2]:\n"
    "                found.append((i, names, back, all_of_them or behind == 'ConvTranspose'))\n"
    "    return found\n"
    "def other(v, scale, zero, back, allowed, result):\n"
    "    if scale.size != 1 or v.dtype != np.float32 or zero.dtype.kind not in 'iu': return None\n"
    "    if not allowed and zero.dtype.itemsize == 1: return None\n"
    "    low, high = np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max\n"
    "    t = v.astype('f8') / scale.astype('f8').reshape(()); z = int(zero.reshape(()))\n"
    "    near = abs(t - np.floor(t) - 0.5) <= 16 * (high - low) * 2.0 ** -24\n"
    "    code = np.rint(v / scale.reshape(()))\n" /* as onnxruntime rounds it */
    "    code = np.where(near, np.floor(t) + np.ceil(t) - code, 0) + z\n"
    "    code = np.clip(code, low, high).astype(zero.dtype)\n"
    "    code = (code.astype('i4') - z).astype('f4') * scale.reshape(()) if back else code\n"
    "    return np.where(near, code, result)\n";
/* Of an optimised model that holds where it still rounds a float that one of its nodes makes: the session runs once
 * more with this value of the model, and what it is rounded by, as outputs, and has to give the same results. */
static const char optimised_script[] =
    "def quantizes(data):\n"
    "    nodes = (part for g in graphs(data) for n, part in fields(g) if n == 1)\n"
    "    return any(text(v) == 'QuantizeLinear' for node in nodes for n, v in fields(node) if n == 4)\n"
    "def in_floats(data):\n" /* what is made in floats, and rounded, in an optimised model */
    "    made = {}; read = set()\n"
    "    for part in (part for g in graphs(data) for n, part in fields(g) if n == 1):\n"
    "        of = lambda k: [text(v) for n, v in fields(part) if n == k]\n"
    "        kind = of(4)[0]; made.update((o, kind) for o in of(2))\n"
    "        if kind == 'QuantizeLinear': read.add(of(1)[0])\n"
    "    return {n for n in read if made.get(n, 'DequantizeLinear') != 'DequantizeLinear'}\n"
    "def optimized_ties(model, whole, optimized, o, folder, folder_of, feed, results):\n"
    "    floats = in_floats(read(optimized))\n"
    "    if floats: open(folder + '/in_floats', 'w').close()\n"
    "    ties = rounded(read(model), True); made = {}\n"
    "    for part in (part for g in graphs(read(model)) for n, part in fields(g) if n == 1):\n"
    "        of = lambda k: [text(v) for n, v in fields(part) if n == k]\n"
    "        if of(4)[0] in ('Relu', 'Clip'): made.update((o, of(1)[0]) for o in of(2))\n"
    "    for i, names, *_ in ties:\n" /* one that the type's range implies is gone */
    "        while names[0] in made and names[0] not in floats: names[0] = made[names[0]]\n"
    "    ties = [tie for tie in ties if tie[1][0] in floats]\n"
    "    if not ties: return [], {}\n"
    "    whole = read(model) if whole is model else memoryview(whole)\n"
    "    o.optimized_model_filepath = ''\n"
    "    place = 'session.model_external_initializers_file_folder_path'\n"
    "    try: o.get_session_config_entry(place)\n" /* it warns of what is said twice */
    "    except RuntimeError: o.add_session_config_entry(place, folder_of)\n"
    "    whole = shown(whole, [n for tie in ties for n in tie[1]])\n"
    "    s = ort.InferenceSession(whole, o, providers=['CPUExecutionProvider'])\n"
    "    values = dict(zip([r.name for r in s.get_outputs()], s.run(None, feed)))\n"
    "    same = all(r.tobytes() == v.tobytes() for r, v in zip(results, values.values()))\n"
    "    return (ties, values) if same else ([], {})\n";
/* All numbers of i8 between quantize and dequantize as u8: onnxruntime leaves those i8 that several read, and what
 * reads both kinds in floats. So convolutions and products are sums of integers, and what its session leaves in
 * floats of sums, products of two values and pools stays there. */
static const char integers_script[] =
    "def as_u8(data, floats):\n"
    "    changed = set()\n"
    "    def graph(g):\n"
    "        zeros = {}; readers = {}; nodes = []; results = set()\n"
    "        for n, part in fields(g):\n"
    "            of = lambda k: [v for m, v in fields(part) if m == k]\n"
    "            if n == 12: results |= {text(v) for v in of(1)}\n"
    "            if n == 5 and of(2) == [3] and math.prod(ints(of(1))) == 1: zeros[text(of(8)[0])] = part\n"
    "            if n != 1: continue\n"
    "            node = (text(of(4)[0]), [text(v) for v in of(1)], [text(v) for v in of(2)])\n"
    "            for v in node[1]: readers.setdefault(v, []).append(node)\n"
    "            nodes.append(node)\n"
    "        for kind, ins, outs in nodes:\n"
    "            fits = kind == 'QuantizeLinear' and len(ins) > 2 and ins[2] in zeros and outs[0] not in results\n"
    "            if fits and all(r[0] == 'DequantizeLinear' for r in readers.get(outs[0], [])): changed.add(outs[0])\n"
    "        def zero(name):\n"
    "            t = zeros[name]; raw = [v for n, v in fields(t) if n == 9]\n"
    "            z = bytes(raw[0])[0] if raw else ints([v for n, v in fields(t) if n == 5])[0]\n"
    "            kept = b''.join(bytes(w) for n, _, w in pieces(t) if n == 1)\n"
    "            return field(5, kept + bytes([16, 2]) + field(8, (name + '_as_u8').encode()) +\n"
    "                         field(9, bytes([z + 128 & 255])))\n"
    "        def again(part):\n"
    "            ins, outs = ([text(v) for n, v in fields(part) if n == k] for k in (1, 2))\n"
    "            if not (outs and outs[0] in changed or ins and ins[0] in changed): return bytes(part)\n"
    "            made = b''; at = 0\n"
    "            for n, v, w in pieces(part):\n"
    "                at += n == 1; used.add(ins[2])\n"
    "                made += field(1, (ins[2] + '_as_u8').encode()) if n == 1 and at == 3 else bytes(w)\n"
    "            return made\n"
    "        used = set(); whole = b''\n"
    "        for n, v, w in pieces(g):\n"
    "            if n == 13 and text(dict(fields(v))[1]) in changed: continue\n"
    "            whole += field(1, again(v)) if n == 1 else bytes(w)\n"
    "        whole += b''.join(zero(name) for name in sorted(used))\n"
    "        return whole + b''.join(field(12, field(1, f.encode())) for f in floats)\n"
    "    whole = b''.join(field(7, graph(v)) if n == 7 else bytes(w) for n, v, w in pieces(data))\n"
    "    if not changed: raise ValueError('it has no values of i8')\n"
    "    return whole\n"
    "def left_in_floats(model, path):\n"
    "    p = ort.SessionOptions(); p.log_severity_level = 3; p.optimized_model_filepath = path\n"
    "    p.add_session_config_entry('session.x64quantprecision', '1')\n"
    "    ort.InferenceSession(model, p, providers=['CPUExecutionProvider']); left = []\n"
    "    for part in (part for g in graphs(read(path)) for n, part in fields(g) if n == 1):\n"
    "        of = lambda k: [text(v) for n, v in fields(part) if n == k]\n"
    "        if of(4)[0] in ('Add', 'Mul', 'AveragePool'): left.append(of(2)[0])\n"
    "    made = {text(v) for g in graphs(read(model)) for n, part in fields(g) if n == 1 for k, v in fields(part)\n"
    "            if k == 2}\n"
    "    given = {text(dict(fields(part))[1]) for g in graphs(read(model)) for n, part in fields(g) if n == 12}\n"
    "    return [v for v in left if v in made and v not in given]\n"
    "def keep(at, results, others, both):\n"
    "    for i, r in enumerate(results):\n"
    "        np.save('%s/ref_%s_%d.npy' % (at, options, i), np.asarray(r, order='C'))\n"
    "        name = '%s/other_%s_%d.npy' % (at, options, i)\n"
    "        if i in both: np.save(name, np.asarray(others[i], order='C'))\n";
static const char setup_script[] = "import json, os, sys, time\n"
                             "try:\n"
                             "    import numpy as np, onnxruntime as ort\n"
                             "    np.seterr(all='ignore')\n"
                             "except ImportError as e:\n"
                             "    print('missing', e, flush=True); sys.exit(1)\n"
                             "model, folder, mode, threads, options = sys.argv[1:6]\n"
                             "def lines(name):\n"
                             "    return [l.rstrip('\\n') for l in open(folder + '/' + name)]\n"
                             "def listed(name): return json.load(open(folder + '/' + name, encoding='utf-8'))\n"
                             "def cut(t): return t if len(t) <= 300 else t[:300].rsplit(' ', 1)[0] + ' ...'\n"
                             "o = ort.SessionOptions()\n"
                             "o.intra_op_num_threads = max(1, int(threads)); o.log_severity_level = 3\n"
                             "if mode != 'bench':\n"
                             "    o.add_session_config_entry('session.x64quantprecision', '1')\n"
                             "    o.add_session_config_entry('session.qdq_matmulnbits_accuracy_level', '1')\n"
                             "folder_of = os.path.dirname(os.path.abspath(model))\n"
                             "if mode == 'nodes' or options in ('plain', 'floats') or 'bytes' in options or \\\n"
                             "        options == 'integers':\n"
                             "    o.add_session_config_entry('session.model_external_initializers_file_folder_path',\n"
                             "                               folder_of)\n"
                             "if 'int8' in options:\n"
                             "    o.add_session_config_entry('session.qdqisint8allowed', '1')\n"
                             "if options in ('plain', 'floats'):\n"
                             "    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL\n";
static const char script[] = "try:\n"
                             "    wanted = listed('wanted') if mode == 'nodes' else []\n"
                             "    at_ties = []\n"
                             "    if mode == 'once' and options in ('plain', 'floats'):\n"
                             "        at_ties = rounded(read(model), options == 'floats')\n"
                             "        wanted = [n for tie in at_ties for n in tie[1]]\n"
                             "    whole = shown(read(model), wanted) if wanted else model\n"
                             "    whole = widened(read(model), folder_of) if 'bytes' in options else whole\n"
                             "    if options == 'integers':\n"
                             "        whole = as_u8(read(model), left_in_floats(model, folder + '/default.onnx'))\n"
                             "    optimized = folder + '/optimized.onnx'; s = None\n"
                             "    fuses = mode == 'once' and options not in ('plain', 'floats')\n"
                             "    if fuses and quantizes(read(model)):\n"
                             "        o.optimized_model_filepath = optimized\n"
                             "        try: s = ort.InferenceSession(whole, o, providers=['CPUExecutionProvider'])\n"
                             "        except Exception: o.optimized_model_filepath = ''\n" /* too large a file */
                             "    s = s or ort.InferenceSession(whole, o, providers=['CPUExecutionProvider'])\n"
                             "    names = listed('names')\n"
                             "    known = {i.name: i for i in s.get_inputs()}\n"
                             "    types = {'float': 'f4', 'double': 'f8', 'float16': 'f2', 'bool': '?'}\n"
                             "    fused = bool(o.optimized_model_filepath)\n"
                             "    goes_on, first, states = states_of(lines('states')); carried = dict(first)\n"
                             "    for at in lines('samples'):\n"
                             "        if not goes_on: carried = dict(first)\n"
                             "        feed = {n: np.load('%s/in_%d.npy' % (at, i)) for i, n in enumerate(names)}\n"
                             "        lists = json.load(open(folder + '/lists')); as_lists(lists, feed)\n"
                             "        feed = {n: v for n, v in feed.items() if n in known}\n"
                             "        as_objects(known, feed)\n"
                             "        sizes = {d: e for n in feed if hasattr(feed[n], 'shape')\n"
                             "                 for d, e in zip(known[n].shape, feed[n].shape)}\n"
                             "        for line in lines('binds'):\n" /* inputs that are constants of ours */
                             "            n, values = line.rsplit('=', 1); kind = known[n].type[7:-1]\n"
                             "            number = int if 'int' in kind else float\n"
                             "            values = np.array([number(v) for v in values.split(',')])\n"
                             "            values = values.astype(types.get(kind, kind))\n"
                             "            shape = [sizes.get(d, d) for d in known[n].shape]\n"
                             "            feed[n] = np.resize(values, shape) if shape else values.reshape(())\n"
                             "        ends = handed_over(lines('ends')); as_floats(ends, feed)\n"
                             "        feed.update(carried)\n"
                             "        results = s.run(None, feed)\n"
                             "        carried.update({states[r.name]: v for r, v in zip(s.get_outputs(), results)\n"
                             "                        if r.name in states})\n"
                             "        values = {**feed, **dict(zip([r.name for r in s.get_outputs()], results))}\n"
                             "        if fused:\n"
                             "            at_ties, more = optimized_ties(model, whole, optimized, o, folder,\n"
                             "                                           folder_of, feed, results)\n"
                             "            values.update(more)\n"
                             "        others = list(results); both = set()\n"
                             "        for i, tied, back, allowed in at_ties:\n"
                             "            one = other(*(values[n] for n in tied), back, allowed, results[i])\n"
                             "            if one is not None: others[i] = one; both.add(i)\n"
                             "        labels = json.load(open(folder + '/labels'))\n"
                             "        for r in (results, others):\n"
                             "            if mode != 'bench':\n"
                             "                as_tensors(labels, lists, listed('texts'), s.get_outputs(), r)\n"
                             "        as_numbers(ends, s.get_outputs(), results)\n"
                             "        as_numbers(ends, s.get_outputs(), others)\n"
                             "        ours = [i for i, r in enumerate(s.get_outputs()) if r.name not in states]\n"
                             "        if mode == 'once' and lists:\n"
                             "            results = as_elements(lists, s.get_outputs(), results)\n"
                             "            keep(at, results, results, set())\n"
                             "        elif mode == 'once':\n"
                             "            keep(at, *([all_of[i] for i in ours] for all_of in (results, others)),\n"
                             "                 {k for k, i in enumerate(ours) if i in both})\n"
                             "except Exception as e:\n"
                             "    print('failed', cut(str(e).replace('\\n', ' ')), flush=True); sys.exit(1)\n";
static const char answer_script[] =
    "if mode == 'nodes':\n"
    "    results = dict(zip([r.name for r in s.get_outputs()], results))\n"
    "    for i, w in enumerate(wanted):\n"
    "        if w in results:\n"
    "            r = np.asarray(results[w], order='C')\n"
    "            np.save('%s/ref_%s_%d.npy' % (folder, options, i), r)\n"
    "    print('ready', flush=True); sys.exit(0)\n"
    "if mode == 'once': print('ready', flush=True); sys.exit(0)\n"
    "def again(): s.run(None, feed)\n";
/* For what says mode, threads and again(): answers each line, "CALLS PAUSE", with the seconds of a call. */
static const char timing_script[] =
    "print('ready', flush=True)\n"
    "now = time.perf_counter\n"
    "for line in sys.stdin:\n"
    "    n, gap = map(int, line.split()); rest = 0.1 if int(threads) > 1 else 0\n"
    "    time.sleep(rest); again(); t = now()\n"
    "    for _ in range(n):\n"
    "        b = now()\n"
    "        if gap: time.sleep(1e-6 * gap); t += now() - b\n"
    "        again()\n"
    "    t = (now() - t) / n\n"
    "    time.sleep(rest)\n"
    "    print('%.9f' % t, flush=True)\n";

/* TensorFlow Lite Micro knows inputs and outputs by their numbers, and wants to be told how much memory it may take;
 * its standard error tells why it does not take a model. */
static const char micro_script[] =
    "import json, os, sys, tempfile\n"
    "try:\n"
    "    import numpy as np\n"
    "    from tflite_micro.python.tflite_micro import runtime\n"
    "except ImportError as e:\n"
    "    print('missing', e, flush=True); sys.exit(1)\n"
    "model, folder = sys.argv[1:3]\n"
    "def lines(name): return [l.rstrip('\\n') for l in open(folder + '/' + name)]\n"
    "def listed(name): return json.load(open(folder + '/' + name, encoding='utf-8'))\n"
    "said = tempfile.TemporaryFile(); os.dup2(said.fileno(), 2)\n"
    "def load():\n"
    "    for bits in (22, 25, 28):\n"
    "        try: return runtime.Interpreter.from_bytes(data, arena_size=1 << bits)\n"
    "        except RuntimeError as e: why = e\n"
    "    raise why\n"
    "try:\n"
    "    data = open(model, 'rb').read(); s = load()\n"
    "    goes_on = lines('states')[0] == 'steps'\n"
    "    for k, at in enumerate(lines('samples')):\n"
    "        print('sample', k + 1, flush=True)\n"
    "        if k and not goes_on: s = load()\n" /* a reset does not run CALL_ONCE again */
    "        for i in range(len(listed('names'))): s.set_input(np.load('%s/in_%d.npy' % (at, i)), i)\n"
    "        s.invoke()\n"
    "        for i in range(len(listed('wanted'))):\n"
    "            np.save('%s/ref_tflm_%d.npy' % (at, i), np.asarray(s.get_output(i), order='C'))\n"
    "    print('ready', flush=True); sys.exit(0)\n"
    "except Exception as e:\n"
    "    said.seek(0); told = said.read().decode(errors='replace').split('\\n')\n"
    "    told = [t.strip() for t in told if t.strip()][:2]\n"
    "    print('failed', ('; '.join([str(e)] + told)).replace('\\n', ' ')[:300], flush=True); sys.exit(1)\n";

/* LiteRT: its reference kernels, which do not depend on the machine, and its fast ones where time is asked for. Some
 * models end the process: the status tells. */
static const char litert_script[] =
    "import json, os, sys, tempfile, time\n"
    "try:\n"
    "    import numpy as np\n"
    "    from ai_edge_litert.interpreter import Interpreter, OpResolverType\n"
    "except ImportError as e:\n"
    "    print('missing', e, flush=True); sys.exit(1)\n"
    "model, folder, mode, threads = sys.argv[1:5]\n"
    "def lines(name): return [l.rstrip('\\n') for l in open(folder + '/' + name)]\n"
    "def listed(name): return json.load(open(folder + '/' + name, encoding='utf-8'))\n"
    "said = tempfile.TemporaryFile(); os.dup2(said.fileno(), 2)\n"
    "kernels = OpResolverType.AUTO if mode == 'bench' else OpResolverType.BUILTIN_REF\n"
    "goes_on, key = lines('states')[0] == 'steps', ''.join(lines('signature'))\n"
    "names, wanted = listed('names'), listed('wanted')\n"
    "def load():\n" /* what runs a sample, and what runs the last one again */
    "    s = Interpreter(model_path=model, num_threads=max(1, int(threads)), experimental_op_resolver_type=kernels)\n"
    "    if key:\n"
    "        one = s.get_signature_runner(key)\n"
    "        def by_name(x): made = one(**dict(zip(names, x))); return [made[n] for n in wanted]\n"
    "        return by_name, lambda: by_name(x)\n"
    "    ins, outs, shapes = s.get_input_details(), s.get_output_details(), []\n"
    "    def by_number(x):\n"
    "        if shapes != [v.shape for v in x]:\n"
    "            shapes[:] = [v.shape for v in x]\n"
    "            for d, v in zip(ins, x): s.resize_tensor_input(d['index'], v.shape)\n"
    "            s.allocate_tensors()\n"
    "        for d, v in zip(ins, x): s.set_tensor(d['index'], v)\n"
    "        s.invoke(); return [s.get_tensor(d['index']) for d in outs]\n"
    "    return by_number, s.invoke\n"
    "try:\n"
    "    for k, at in enumerate(lines('samples')):\n"
    "        if mode != 'bench': print('sample', k + 1, flush=True)\n"
    "        if k == 0 or not goes_on: step, again = load()\n" /* a new one: variables have no reset that is enough */
    "        x = [np.load('%s/in_%d.npy' % (at, i)) for i in range(len(names))]\n"
    "        for i, v in enumerate(step(x)[:len(wanted)]):\n"
    "            np.save('%s/ref_litert_%d.npy' % (at, i), np.asarray(v, order='C'))\n"
    "except Exception as e:\n"
    "    print('failed', str(e).replace('\\n', ' ')[:300], flush=True); sys.exit(1)\n"
    "if mode != 'bench': print('ready', flush=True); sys.exit(0)\n";

#define EXACT "session.x64quantprecision=1"
#define AS_BYTES "weights of 4 bits as bytes, because its integer kernels are for bytes"

/* The oracles, each with what the child is told and what the user is told. Integers are compared with its integer
 * kernels; with those that stay i8 where its optimiser would make u8 of them first; with both where weights of 4 bits
 * are bytes; with those of u8 for all values; and with the model as it stands. Floats are compared with the last. */
enum { DEFAULT, INT8, BYTES, BYTES_INT8, INTEGERS, PLAIN, FLOATS, MICRO, LITERT };
static const struct {
    const char *option, *text;
} oracles[] = {
    [DEFAULT] = {"default", EXACT},
    [INT8] = {"int8", EXACT ", session.qdqisint8allowed=1"},
    [BYTES] = {"bytes", EXACT ", " AS_BYTES},
    [BYTES_INT8] = {"bytes-int8", EXACT ", session.qdqisint8allowed=1, " AS_BYTES},
    [INTEGERS] = {"integers", EXACT ", values of i8 as u8, because it sums in floats what reads both"},
    [PLAIN] = {"plain", EXACT ", graph optimizations off"},
    [FLOATS] = {"floats", EXACT ", graph optimizations off"},
    [MICRO] = {"tflm", "its reference kernels"},
    [LITERT] = {"litert", "its reference kernels"},
};

/* Runtimes that a Python child runs: what --against and messages call them; packages of Python that they need; the
 * runtime that its format names in driver/format.def, whose numbers such models stand for; its script, NULL for
 * several; what runs a model that it does not; its oracle, where it has one; whether it shows what every operator
 * makes. */
static const struct runtime {
    const char *name, *title, *packages, *format, *script, *instead;
    uint32_t oracle;
    bool per_node;
} runtimes[] = {
    {"onnxruntime", "onnxruntime", "onnxruntime numpy", "onnxruntime", NULL, "--against interpreter", 0, true},
    {"tflm", "TensorFlow Lite Micro", "tflite-micro numpy", "tflm", micro_script, "--against litert", MICRO, false},
    {"litert", "LiteRT", "ai-edge-litert numpy", "tflm", litert_script, "--against interpreter", LITERT, false},
};

static const struct runtime *runtime_of(const ask *x)
{
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (reference_is(x, runtimes[i].name))
            return &runtimes[i];
    return NULL;
}

/* Not one of onnxruntime's many. */
static bool has_one_oracle(const ask *x)
{
    const struct runtime *child = runtime_of(x);
    return child && child->script;
}

const char *reference_title(const ask *x)
{
    return runtime_of(x) ? runtime_of(x)->title : NULL;
}

/* It computes in floats, which only the model as it stands does, too. */
static bool in_floats(const session *s)
{
    return s->result.quantised && (!s->result.integers || s->result.half_up);
}

uint32_t reference_oracles(const session *s)
{
    const bool unknown = !s->result.graph; /* a package or a module does not say how it computes */
    const bool refused = s->refused && !in_floats(s);
    if (has_one_oracle(s->x))
        return 1;
    return (s->result.integers || unknown || refused) && !s->options.show_values ? PLAIN + 1 : 1;
}

static uint32_t oracle_of(const session *s, const char *mode)
{
    if (has_one_oracle(s->x))
        return runtime_of(s->x)->oracle;
    if (strcmp(mode, "nodes") == 0 || (strcmp(mode, "once") == 0 && in_floats(s)))
        return s->result.integers ? PLAIN : FLOATS;
    return strcmp(mode, "once") == 0 ? s->oracle : DEFAULT;
}

static uint32_t oracle_now(const session *s)
{
    return oracle_of(s, s->options.show_values ? "nodes" : "once");
}

const char *reference_bench_options(const session *s)
{
    return reference_is(s->x, REFERENCE_EXACT) ? oracles[0].text
           : has_one_oracle(s->x) || s->result.quantised ? "its defaults" : NULL;
}

const char *reference_options(const session *s)
{
    return oracles[oracle_now(s)].text;
}

/* Each oracle has files of its own: a file that was read once is not read again. */
static const char *stored(const session *s, const char *kind, uint32_t oracle, uint32_t i)
{
    return arena_printf(&s->x->c->mem, "%s/%s_%s_%u.npy", s->sample_dir ? s->sample_dir : s->scratch, kind,
                        oracles[oracle].option, i);
}

const char *reference_output(const session *s, uint32_t i)
{
    return stored(s, "ref", oracle_now(s), i);
}

const char *reference_other(const session *s, uint32_t i)
{
    const char *path = stored(s, "other", oracle_now(s), i);
    return file_exists(path) ? path : NULL;
}

bool reference_has_ties(const session *s)
{
    for (uint32_t i = 0; i < s->model.n_outputs; i++)
        if (file_exists(stored(s, "other", PLAIN, i)) || file_exists(stored(s, "other", FLOATS, i)))
            return true;
    return file_exists(path_join(&s->x->c->mem, s->scratch, "in_floats"));
}

/* A line: in or out, type, scale, zero point, name. */
static bool write_ends(session *s)
{
    const graph_module *g = s->result.graph;
    writer w;
    writer_init(&w, &s->x->c->mem);
    for (uint32_t i = 0; g && i < g->ends.len; i++) {
        const model_end *e = &g->ends.data[i];
        const run_tensor *t = e->is_input ? s->model.inputs : s->model.outputs;
        const uint32_t n = e->is_input ? s->model.n_inputs : s->model.n_outputs;
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(t[k].name, e->name) == 0)
                w_fmt(&w, "%s %s %.9g %lld %s\n", e->is_input ? "in" : "out", dtype_full_name(t[k].dt), e->scale,
                      (long long)e->zero_point, e->name);
    }
    return compiler_write_file(s->x->c, path_join(&s->x->c->mem, s->scratch, "ends"), w.data ? w.data : "", w.len);
}

/* What the numbers or the columns of outputs are called: a list for each name. */
static bool write_labels(session *s)
{
    const graph_module *g = s->result.graph;
    writer w;
    writer_init(&w, &s->x->c->mem);
    json_out j = json_out_begin(&w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    for (uint32_t i = 0; g && i < g->labels.len; i++)
        report_labels(&j, g->labels.data[i].name, &g->labels.data[i]);
    json_out_end(&j);
    return compiler_write_file(s->x->c, path_join(&s->x->c->mem, s->scratch, "labels"), w.data, w.len);
}

/* As in report.json, of what runs. */
static bool write_lists(session *s)
{
    writer w;
    writer_init(&w, &s->x->c->mem);
    json_out j = json_out_begin(&w, JSON_OUT_LINE);
    json_out_array(&j, NULL);
    for (uint32_t i = 0; i < s->model.n_lists; i++)
        report_list(&j, &s->model.lists[i]);
    json_out_end(&j);
    return compiler_write_file(s->x->c, path_join(&s->x->c->mem, s->scratch, "lists"), w.data, w.len);
}

bool reference_keep_inputs(session *s)
{
    compiler *c = s->x->c;
    const char *dir = s->sample_dir ? s->sample_dir : s->scratch;
    for (uint32_t i = 0; i < s->model.n_inputs; i++)
        if (!tensor_file_write_npy(c, arena_printf(&c->mem, "%s/in_%u.npy", dir, i), &s->model.inputs[i]))
            return false;
    return true;
}

static bool write_states(session *s)
{
    writer w;
    writer_init(&w, &s->x->c->mem);
    w_line(&w, "%s", s->steps ? "steps" : "samples");
    for (uint32_t i = 0; i < s->result.n_states; i++) {
        const state_pair *p = &s->result.states[i];
        w_fmt(&w, "%s\n%s\n%s", p->out, p->in, dtype_full_name(p->of.dt));
        for (int32_t k = 0; k < p->of.shape.rank; k++)
            w_fmt(&w, " %lld", (long long)dim_bound(p->of.shape.dims[k]));
        w_str(&w, "\n");
    }
    return compiler_write_file(s->x->c, path_join(&s->x->c->mem, s->scratch, "states"), w.data, w.len);
}

/* Names as a list of JSON: there may be ends of lines in them. */
static bool write_names(session *s, const char *file, const run_tensor *v, uint32_t n, bool only_text)
{
    writer w;
    writer_init(&w, &s->x->c->mem);
    json_out j = json_out_begin(&w, JSON_OUT_LINE);
    json_out_array(&j, NULL);
    for (uint32_t i = 0; i < n; i++)
        if (v[i].is_text || !only_text)
            json_out_text(&j, NULL, v[i].name);
    json_out_end(&j);
    return compiler_write_file(s->x->c, path_join(&s->x->c->mem, s->scratch, file), w.data, w.len);
}

static bool write_inputs(session *s)
{
    compiler *c = s->x->c;
    const run_model *m = &s->model;
    writer binds, program;
    writer_init(&program, &c->mem);
    static const char *const of_onnx[] = {wire_script, widen_script,    ties_script, optimised_script,
                                          ends_script, strings_script, labels_script, lists_script,
                                          states_script, integers_script,
                                          setup_script, script, answer_script};
    for (size_t i = 0; i < sizeof of_onnx / sizeof *of_onnx && !has_one_oracle(s->x); i++)
        w_str(&program, of_onnx[i]);
    if (has_one_oracle(s->x))
        w_str(&program, runtime_of(s->x)->script);
    w_str(&program, timing_script);
    writer_init(&binds, &c->mem);
    for (uint32_t i = 0; i < s->options.n_binds; i++)
        w_fmt(&binds, "%s=%s\n", s->options.binds[i].name, s->options.binds[i].numbers);
    if (!s->sample_list && !reference_keep_inputs(s))
        return false;
    const char *samples = s->sample_list ? s->sample_list : s->sample_dir ? s->sample_dir : s->scratch;
    const char *signature = ask_get(s->x, OPT_SIGNATURE, "");
    return write_ends(s) && write_labels(s) && write_lists(s) && write_states(s) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "signature"), signature, strlen(signature)) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "samples"), samples, strlen(samples)) &&
           write_names(s, "texts", m->outputs, m->n_outputs, true) &&
           write_names(s, "wanted", m->outputs, m->n_outputs, false) &&
           write_names(s, "names", m->inputs, m->n_inputs, false) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "binds"), binds.data ? binds.data : "", binds.len) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "reference.py"), program.data, program.len);
}

/* What an answer says behind its first word; NULL: it begins otherwise. */
static const char *after(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 ? line + n : NULL;
}

bool reference_is(const ask *x, const char *name)
{
    const char *given = ask_get(x, OPT_AGAINST, "");
    return strcmp(given, name) == 0 || (strcmp(name, "onnxruntime") == 0 && strcmp(given, REFERENCE_EXACT) == 0);
}

static bool is_package(const ask *x, const char *path)
{
    return file_exists(path_join(&x->c->mem, path, "report.json"));
}

/* The runtimes for a format that the verb takes: "tflm, litert". */
static const char *named_for(const ask *x, const char *format)
{
    const char *names = "";
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (strcmp(runtimes[i].format, format) == 0 && strstr(ask_values(OPT_AGAINST, x->verb), runtimes[i].name))
            names = arena_printf(&x->c->mem, "%s%s%s", names, *names ? ", " : "", runtimes[i].name);
    return *names ? names : format;
}

/* A runtime runs the models of its own format. */
static bool check_format(const ask *x, const struct runtime *child, const char *path)
{
    const frontend *f = format_frontend_of(x->c, path);
    const char *other = strstr(ask_values(OPT_AGAINST, x->verb), "interpreter") ? "interpreter" : "lathe";
    return !f || strcmp(f->reference, child->format) == 0 ||
           ask_usage_error(x, arena_printf(&x->c->mem, "give --against %s or %s", named_for(x, f->reference), other),
                           "%s cannot run %s", child->title, f->name);
}

bool reference_check(const ask *x)
{
    if (ask_has(x, OPT_MODEL) && !(ask_has(x, OPT_AGAINST) && runtime_of(x)))
        return ask_usage_error(x, "add --against onnxruntime, or leave it out",
                               "--model is the file for another runtime, but no --against names one");
    if (!ask_has(x, OPT_AGAINST))
        return true;
    if (ask_has(x, OPT_SIGNATURE) && reference_is(x, "tflm"))
        return ask_usage_error(x, "give --against litert or interpreter",
                               "--signature: TensorFlow Lite Micro runs the main graph of a model");
    int which = ask_choice(x, OPT_AGAINST, ask_values(OPT_AGAINST, x->verb), "onnxruntime");
    if (which < 0)
        return false;
    const struct runtime *child = runtime_of(x);
    const bool packaged = x->args.len == 1 && is_package(x, x->args.data[0]);
    bool module = false;
    if (x->args.len == 1 && !format_is_object(x->c, x->args.data[0], &module))
        return false;
    if (child && x->args.len == 1 && !check_format(x, child, ask_get(x, OPT_MODEL, x->args.data[0])))
        return false;
    if (child && !child->per_node && ask_has(x, OPT_PER_NODE))
        return ask_usage_error(x, "give --against interpreter", "--per-node: %s has no results of single operators",
                               child->title);
    if ((!packaged && !module) || (child && ask_has(x, OPT_MODEL)))
        return true;
    return ask_usage_error(x, child ? "name the model's file with --model, or give it instead"
                                    : "give the model's file instead",
                           "%s cannot run a %s",
                           child                  ? child->title
                           : reference_is(x, "c") ? "C without schedules"
                                                  : "the interpreter",
                           module ? "module" : "package");
}

/* The child's answer. Before it, the child may say at which sample it is. */
static bool hear_answer(const session *s, const struct runtime *child, const process *p, char *line, size_t size)
{
    const char *at;
    compiler *c = s->x->c;
    bool heard = process_hear(p, line, size);
    while (heard && (at = after(line, "sample ")) != NULL) {
        if (!compiler_progress(c, arena_printf(&c->mem, "running %s: sample", child->title),
                               (uint32_t)strtoul(at, NULL, 10), s->samples))
            return false;
        heard = process_hear(p, line, size);
    }
    return heard;
}

static bool start(session *s, const char *mode, uint32_t oracle, long threads, process *out)
{
    compiler *c = s->x->c;
    const struct runtime *child = runtime_of(s->x);
    char line[2048]; /* of `cut`, in any script */
    const char *argv[] = {process_python(),
                          path_join(&c->mem, s->scratch, "reference.py"),
                          ask_get(s->x, OPT_MODEL, s->path),
                          s->scratch,
                          mode,
                          arena_printf(&c->mem, "%ld", threads),
                          oracles[oracle].option,
                          NULL};
    if (!compiler_progress(c, arena_printf(&c->mem, "running %s", child->title), 0, 0) || !write_inputs(s) ||
        !process_start(c, argv, s->scratch, out))
        return false;
    bool heard = hear_answer(s, child, out, line, sizeof line);
    if (heard && strcmp(line, "ready") == 0)
        return true;
    int status = c->cancelled ? process_stop(out) : process_end(out);
    if (c->cancelled)
        return false;
    const char *failed = after(line, "failed "), *missing = after(line, "missing ");
    s->refused |= failed != NULL;
    if (failed) {
        diag_error(&c->diags, DIAG_DATA, src_loc_none(), "%s: %s", child->title, failed);
        diag_hint(&c->diags, "if it does not run the model, compare with another one: %s", child->instead);
        return false;
    }
    if (missing)
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s cannot run %s: %s", argv[0], child->title,
                   missing);
    else if (status == PROCESS_NOT_FOUND)
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "there is no program '%s', to run %s", argv[0],
                   child->title);
    else
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                   "%s, which runs %s, ended with status %d and said '%s'", argv[0], child->title, status,
                   line);
    diag_hint(&c->diags, "pip install %s, and name that Python in the environment variable LATHE_PYTHON",
              child->packages);
    return false;
}

bool reference_start(session *s, const char *mode, long threads, process *out)
{
    return start(s, mode, oracle_of(s, mode), threads, out);
}

/* PLAIN and FLOATS are one session. */
static bool is_now(const session *s, uint32_t oracle)
{
    const uint32_t now = oracle_now(s);
    return oracle == now || (oracle == PLAIN && now == FLOATS);
}

const char *reference_own(session *s, uint32_t which, uint32_t i, const char **out_options)
{
    static const uint32_t own[] = {DEFAULT, INT8, PLAIN};
    if (which >= sizeof own / sizeof *own || has_one_oracle(s->x))
        return NULL;
    const char *path = stored(s, "ref", own[which], i);
    *out_options = oracles[own[which]].text;
    if (is_now(s, own[which]))
        return "";
    diags *d = &s->x->c->diags;
    const diags_mark mark = diags_get_mark(d);
    process p;
    if (!file_exists(path) && start(s, "once", own[which], 1, &p))
        process_end(&p);
    diags_reset(d, mark); /* not every model runs in all of them */
    return file_exists(path) ? path : "";
}
