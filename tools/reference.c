/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime as a reference: a Python child reads the same inputs and either stores its outputs once, or runs when
 * told to and answers with its time. Its worker threads spin for some 40 ms after a run, in the way of whoever is
 * measured next: with several threads both sides begin when all have gone to sleep. The first run after that is not
 * timed.
 *
 * Where outputs are compared, its sums of 8-bit products are asked to be exact, which they are not on processors that
 * add pairs of them in 16 bits; and a quantised model runs as it stands, because its optimiser replaces the arithmetic
 * between dequantised values by integer kernels, which round otherwise. Where it is timed, it has its defaults.
 *
 * Node by node, its optimiser is off, and the model's own values are added to its outputs: as text of the wire, a
 * second piece of the graph behind the model, which readers merge with the first. */
#include "session.h"
#include "driver/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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
static const char script[] = "import os, sys, time\n"
                             "try:\n"
                             "    import numpy as np, onnxruntime as ort\n"
                             "except ImportError as e:\n"
                             "    print('missing', e, flush=True); sys.exit(1)\n"
                             "model, folder, mode, threads, options = sys.argv[1:6]\n"
                             "def lines(name):\n"
                             "    return [l.rstrip('\\n') for l in open(folder + '/' + name)]\n"
                             "def fields(b):\n" /* of a message: number and contents */
                             "    i = 0\n"
                             "    def number():\n"
                             "        nonlocal i\n"
                             "        v = shift = 0\n"
                             "        while True:\n"
                             "            x = b[i]; i += 1; v |= (x & 127) << shift; shift += 7\n"
                             "            if x < 128: return v\n"
                             "    while i < len(b):\n"
                             "        tag = number(); kind = tag & 7\n"
                             "        if kind == 2: n = number(); yield tag >> 3, b[i:i + n]; i += n\n"
                             "        elif kind == 0: yield tag >> 3, number()\n"
                             "        else: i += 8 if kind == 1 else 4\n"
                             "def field(n, b):\n"
                             "    out, size = bytes([n << 3 | 2]), len(b)\n"
                             "    while size > 127: out += bytes([size & 127 | 128]); size >>= 7\n"
                             "    return out + bytes([size]) + b\n"
                             "def shown(path, wanted):\n" /* the model with those of its values as outputs, too */
                             "    data = open(path, 'rb').read(); made = set(); given = set()\n"
                             "    for graph in (g for n, g in fields(memoryview(data)) if n == 7):\n"
                             "        for n, part in fields(graph):\n"
                             "            if n == 1: made |= {bytes(o).decode() for k, o in fields(part) if k == 2}\n"
                             "            if n == 12: given |= {bytes(o).decode() for k, o in fields(part) if k == 1}\n"
                             "    more = [w for w in dict.fromkeys(wanted) if w in made and w not in given]\n"
                             "    return data + field(7, b''.join(field(12, field(1, w.encode())) for w in more))\n"
                             "o = ort.SessionOptions()\n"
                             "o.intra_op_num_threads = max(1, int(threads)); o.log_severity_level = 3\n"
                             "if mode != 'bench':\n"
                             "    o.add_session_config_entry('session.x64quantprecision', '1')\n"
                             "    o.add_session_config_entry('session.qdq_matmulnbits_accuracy_level', '1')\n"
                             "if mode == 'nodes':\n"
                             "    o.add_session_config_entry('session.model_external_initializers_file_folder_path',\n"
                             "                               os.path.dirname(os.path.abspath(model)))\n"
                             "if options == 'int8':\n"
                             "    o.add_session_config_entry('session.qdqisint8allowed', '1')\n"
                             "if options == 'plain':\n"
                             "    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
                             "try:\n"
                             "    wanted = lines('wanted') if mode == 'nodes' else []\n"
                             "    s = ort.InferenceSession(shown(model, wanted) if wanted else model, o,\n"
                             "                             providers=['CPUExecutionProvider'])\n"
                             "    names = lines('names')\n"
                             "    feed = {n: np.load('%s/in_%d.npy' % (folder, i)) for i, n in enumerate(names)}\n"
                             "    known = {i.name: i for i in s.get_inputs()}\n"
                             "    feed = {n: v for n, v in feed.items() if n in known}\n"
                             "    sizes = {d: e for n in feed for d, e in zip(known[n].shape, feed[n].shape)}\n"
                             "    types = {'float': 'f4', 'double': 'f8', 'float16': 'f2', 'bool': '?'}\n"
                             "    for line in lines('binds'):\n" /* inputs that are constants of ours */
                             "        n, values = line.rsplit('=', 1); kind = known[n].type[7:-1]\n"
                             "        read = int if 'int' in kind else float\n"
                             "        values = np.array([read(v) for v in values.split(',')])\n"
                             "        values = values.astype(types.get(kind, kind))\n"
                             "        shape = [sizes.get(d, d) for d in known[n].shape]\n"
                             "        feed[n] = np.resize(values, shape) if shape else values.reshape(())\n"
                             "    ends = handed_over(lines('ends')); as_floats(ends, feed)\n"
                             "    results = s.run(None, feed)\n"
                             "    as_numbers(ends, s.get_outputs(), results)\n"
                             "except Exception as e:\n"
                             "    print('failed', str(e).replace('\\n', ' ')[:300], flush=True); sys.exit(1)\n"
                             "if mode == 'nodes':\n"
                             "    results = dict(zip([r.name for r in s.get_outputs()], results))\n"
                             "    for i, w in enumerate(wanted):\n"
                             "        if w in results:\n"
                             "            np.save('%s/ref_%d.npy' % (folder, i), np.asarray(results[w], order='C'))\n"
                             "    print('ready', flush=True); sys.exit(0)\n"
                             "if mode == 'once':\n"
                             "    for i, r in enumerate(results):\n"
                             "        np.save('%s/ref_%d.npy' % (folder, i), np.asarray(r, order='C'))\n"
                             "    print('ready', flush=True); sys.exit(0)\n"
                             "print('ready', flush=True)\n"
                             "now = time.perf_counter\n"
                             "for line in sys.stdin:\n"
                             "    n, gap = map(int, line.split()); rest = 0.1 if int(threads) > 1 else 0\n"
                             "    time.sleep(rest); s.run(None, feed); t = now()\n"
                             "    for _ in range(n):\n"
                             "        b = now()\n"
                             "        if gap: time.sleep(1e-6 * gap); t += now() - b\n"
                             "        s.run(None, feed)\n"
                             "    t = (now() - t) / n\n"
                             "    time.sleep(rest)\n"
                             "    print('%.9f' % t, flush=True)\n";

const char *reference_output(const session *s, uint32_t i)
{
    return arena_printf(&s->x->c->mem, "%s/ref_%u.npy", s->scratch, i);
}

/* The oracles, each with what the child is told and what the user is told. Integers are compared with its integer
 * kernels; with those that stay i8 where its optimiser would make u8 of them first; and with the model as it stands. */
static const struct {
    const char *option, *text;
} oracles[] = {
    {"default", "session.x64quantprecision=1"},
    {"int8", "session.x64quantprecision=1, session.qdqisint8allowed=1"},
    {"plain", "session.x64quantprecision=1, graph optimizations off"},
};
#define PLAIN 2

uint32_t reference_oracles(const session *s)
{
    return s->result.integers && !s->options.show_values ? PLAIN + 1 : 1;
}

static uint32_t oracle_of(const session *s, const char *mode)
{
    const bool floats = s->result.quantised && (!s->result.integers || s->result.half_up);
    if (strcmp(mode, "nodes") == 0 || (strcmp(mode, "once") == 0 && floats))
        return PLAIN;
    return strcmp(mode, "once") == 0 ? s->oracle : 0;
}

const char *reference_options(const session *s)
{
    return oracles[oracle_of(s, s->options.show_values ? "nodes" : "once")].text;
}

/* A line: in or out, type, scale, zero point, name. */
static bool write_ends(session *s)
{
    const codegen_unit *u = &s->result.unit;
    writer w;
    writer_init(&w, &s->x->c->mem);
    for (uint32_t i = 0; i < u->n_ends; i++) {
        const codegen_end *e = &u->ends[i];
        const run_tensor *t = e->is_input ? s->model.inputs : s->model.outputs;
        const uint32_t n = e->is_input ? s->model.n_inputs : s->model.n_outputs;
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(t[k].name, e->name) == 0)
                w_fmt(&w, "%s %s %.9g %lld %s\n", e->is_input ? "in" : "out", dtype_full_name(t[k].dt), e->scale,
                      (long long)e->zero_point, e->name);
    }
    return compiler_write_file(s->x->c, path_join(&s->x->c->mem, s->scratch, "ends"), w.data ? w.data : "", w.len);
}

static bool write_inputs(session *s)
{
    compiler *c = s->x->c;
    writer names, wanted, binds, program;
    writer_init(&program, &c->mem);
    w_str(&program, ends_script);
    w_str(&program, script);
    writer_init(&names, &c->mem);
    writer_init(&binds, &c->mem);
    for (uint32_t i = 0; i < s->options.n_binds; i++)
        w_fmt(&binds, "%s=%s\n", s->options.binds[i].name, s->options.binds[i].numbers);
    writer_init(&wanted, &c->mem);
    for (uint32_t i = 0; i < s->model.n_outputs; i++)
        w_fmt(&wanted, "%s\n", s->model.outputs[i].name);
    for (uint32_t i = 0; i < s->model.n_inputs; i++) {
        const run_tensor *t = &s->model.inputs[i];
        w_fmt(&names, "%s\n", t->name);
        if (!tensor_file_write_npy(c, arena_printf(&c->mem, "%s/in_%u.npy", s->scratch, i), t))
            return false;
    }
    return write_ends(s) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "wanted"), wanted.data ? wanted.data : "",
                               wanted.len) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "binds"), binds.data ? binds.data : "", binds.len) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "names"), names.data ? names.data : "", names.len) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "reference.py"), program.data, program.len);
}

/* What an answer says behind its first word; NULL: it begins otherwise. */
static const char *after(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 ? line + n : NULL;
}

bool reference_is(const cli *x, const char *name)
{
    return strcmp(cli_get(x, OPT_AGAINST, ""), name) == 0;
}

static bool is_package(const cli *x, const char *path)
{
    return file_exists(path_join(&x->c->mem, path, "report.json"));
}

bool reference_check(const cli *x, const char *known)
{
    if (!cli_has(x, OPT_AGAINST))
        return true;
    int which = cli_choice(x, OPT_AGAINST, known, "onnxruntime");
    if (which < 0)
        return false;
    const bool onnx = which == 0, package = x->args.len == 1 && is_package(x, x->args.data[0]);
    bool module = false;
    if (x->args.len == 1 && !format_is_object(x->c, x->args.data[0], &module))
        return false;
    if ((!package && !module) || (onnx && cli_has(x, OPT_MODEL)))
        return true;
    return cli_usage_error(x, onnx ? "name the ONNX file too, with --model, or instead" : "name the ONNX file instead",
                           "%s cannot run a %s",
                           onnx                   ? "onnxruntime"
                           : reference_is(x, "c") ? "C without schedules"
                                                  : "the interpreter",
                           module ? "module" : "package");
}

bool reference_start(session *s, const char *mode, long threads, process *out)
{
    compiler *c = s->x->c;
    char line[512];
    const char *argv[] = {process_python(),
                          path_join(&c->mem, s->scratch, "reference.py"),
                          cli_get(s->x, OPT_MODEL, s->path),
                          s->scratch,
                          mode,
                          arena_printf(&c->mem, "%ld", threads),
                          oracles[oracle_of(s, mode)].option,
                          NULL};
    if (!write_inputs(s) || !process_start(c, argv, s->scratch, out))
        return false;
    compiler_progress(c, "running onnxruntime", 0, 0);
    bool heard = process_hear(out, line, sizeof line);
    if (heard && strcmp(line, "ready") == 0)
        return true;
    int status = process_end(out);
    const char *failed = after(line, "failed "), *missing = after(line, "missing ");
    if (failed)
        return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "onnxruntime: %s", failed);
    if (missing)
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s has no onnxruntime and numpy: %s", argv[0],
                   missing);
    else if (status == PROCESS_NOT_FOUND)
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "there is no program '%s', to run onnxruntime",
                   argv[0]);
    else
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                   "%s, which is to run onnxruntime, ended with status %d "
                   "after saying '%s'",
                   argv[0], status, line);
    diag_hint(&c->diags,
              "pip install onnxruntime numpy, and name that Python in the environment variable LATHE_PYTHON");
    return false;
}
