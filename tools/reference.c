/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime as a reference: a Python child reads the same inputs and either stores its outputs once, or runs when
 * told to and answers with its time. Its worker threads spin for some 40 ms after a run, in the way of whoever is
 * measured next: with several threads both sides begin when all have gone to sleep. The first run after that is not
 * timed.
 *
 * Where outputs are compared, its sums of 8-bit products are asked to be exact, which they are not on processors that
 * add pairs of them in 16 bits; and a quantised model runs as it stands, because its optimiser replaces the arithmetic
 * between dequantised values by integer kernels, which round otherwise. Where it is timed, it has its defaults. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char script[] = "import sys, time\n"
                             "try:\n"
                             "    import numpy as np, onnxruntime as ort\n"
                             "except ImportError as e:\n"
                             "    print('missing', e, flush=True); sys.exit(1)\n"
                             "model, folder, mode, threads, options = sys.argv[1:6]\n"
                             "o = ort.SessionOptions()\n"
                             "o.intra_op_num_threads = max(1, int(threads)); o.log_severity_level = 3\n"
                             "if mode == 'once':\n"
                             "    o.add_session_config_entry('session.x64quantprecision', '1')\n"
                             "if options == 'plain':\n"
                             "    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
                             "try:\n"
                             "    s = ort.InferenceSession(model, o, providers=['CPUExecutionProvider'])\n"
                             "    names = [l.rstrip('\\n') for l in open(folder + '/names')]\n"
                             "    feed = {n: np.load('%s/in_%d.npy' % (folder, i)) for i, n in enumerate(names)}\n"
                             "    known = {i.name for i in s.get_inputs()}\n"
                             "    feed = {n: v for n, v in feed.items() if n in known}\n"
                             "    results = s.run(None, feed)\n"
                             "except Exception as e:\n"
                             "    print('failed', str(e).replace('\\n', ' ')[:300], flush=True); sys.exit(1)\n"
                             "if mode == 'once':\n"
                             "    for i, r in enumerate(results):\n"
                             "        np.save('%s/ref_%d.npy' % (folder, i), np.asarray(r, order='C'))\n"
                             "    print('ready', flush=True); sys.exit(0)\n"
                             "print('ready', flush=True)\n"
                             "for line in sys.stdin:\n"
                             "    n = int(line); rest = 0.1 if int(threads) > 1 else 0\n"
                             "    time.sleep(rest); s.run(None, feed); t = time.perf_counter()\n"
                             "    for _ in range(n):\n"
                             "        s.run(None, feed)\n"
                             "    t = (time.perf_counter() - t) / n\n"
                             "    time.sleep(rest)\n"
                             "    print('%.9f' % t, flush=True)\n";

const char *reference_output(const session *s, uint32_t i)
{
    return arena_printf(&s->x->c->mem, "%s/ref_%u.npy", s->scratch, i);
}

static bool runs_plain(const session *s, const char *mode)
{
    return strcmp(mode, "once") == 0 && s->result.quantised;
}

const char *reference_options(const session *s)
{
    return runs_plain(s, "once") ? "session.x64quantprecision=1, graph optimizations off"
                                 : "session.x64quantprecision=1";
}

static bool write_inputs(session *s)
{
    compiler *c = s->x->c;
    writer names;
    writer_init(&names, &c->mem);
    for (uint32_t i = 0; i < s->model.n_inputs; i++) {
        const run_tensor *t = &s->model.inputs[i];
        w_fmt(&names, "%s\n", t->name);
        if (!tensor_file_write_npy(c, arena_printf(&c->mem, "%s/in_%u.npy", s->scratch, i), t))
            return false;
    }
    return compiler_write_file(c, path_join(&c->mem, s->scratch, "names"), names.data ? names.data : "", names.len) &&
           compiler_write_file(c, path_join(&c->mem, s->scratch, "reference.py"), script, sizeof script - 1);
}

/* What an answer says behind its first word; NULL: it begins otherwise. */
static const char *after(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 ? line + n : NULL;
}

bool reference_check(const cli *x)
{
    if (!cli_has(x, OPT_AGAINST))
        return true;
    if (cli_choice(x, OPT_AGAINST, NULL, "onnxruntime") < 0)
        return false;
    return x->args.len != 1 || !file_is_dir(x->args.data[0]) ||
           cli_usage_error(x, "name the ONNX file instead of the package", "onnxruntime cannot run a package");
}

bool reference_start(session *s, const char *mode, long threads, process *out)
{
    compiler *c = s->x->c;
    char line[512];
    const char *argv[] = {process_python(),
                          path_join(&c->mem, s->scratch, "reference.py"),
                          s->path,
                          s->scratch,
                          mode,
                          arena_printf(&c->mem, "%ld", threads),
                          runs_plain(s, mode) ? "plain" : "default",
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
