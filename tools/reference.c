/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime as a reference: a Python child reads the same inputs and either stores its outputs once, or runs when
 * told to and answers with its time. Its worker threads spin for some 40 ms after a run, in the way of whoever is
 * measured next: with several threads both sides begin when all have gone to sleep. The first run after that is not
 * timed. */
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
                             "model, folder, mode, threads = sys.argv[1:5]\n"
                             "o = ort.SessionOptions()\n"
                             "o.intra_op_num_threads = max(1, int(threads)); o.log_severity_level = 3\n"
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
    return file_write(&c->diags, path_join(&c->mem, s->scratch, "names"), names.data ? names.data : "", names.len) &&
           file_write(&c->diags, path_join(&c->mem, s->scratch, "reference.py"), script, sizeof script - 1);
}

bool reference_start(session *s, const char *mode, long threads, process *out)
{
    compiler *c = s->x->c;
    char line[512];
    if (strcmp(cli_get(s->x, OPT_AGAINST, ""), "onnxruntime") != 0)
        return cli_usage_error(s->x, "as in --against onnxruntime", "--against: '%.100s' is unknown",
                               cli_get(s->x, OPT_AGAINST, ""));
    if (file_is_dir(s->path))
        return cli_usage_error(s->x, "name the ONNX file instead of the package", "onnxruntime cannot run a package");
    const char *argv[] = {process_python(),
                          path_join(&c->mem, s->scratch, "reference.py"),
                          s->path,
                          s->scratch,
                          mode,
                          arena_printf(&c->mem, "%ld", threads),
                          NULL};
    if (!write_inputs(s) || !process_start(c, argv, out))
        return false;
    bool heard = process_hear(out, line, sizeof line);
    if (heard && strcmp(line, "ready") == 0)
        return true;
    process_end(out);
    if (heard && strncmp(line, "failed", 6) == 0)
        return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "onnxruntime: %s", line + 7);
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s has no onnxruntime and numpy%s%s", argv[0],
               heard ? ": " : "", heard ? line + 8 : "");
    diag_hint(&c->diags,
              "pip install onnxruntime numpy, and name that Python in the environment variable LATHE_PYTHON");
    return false;
}
