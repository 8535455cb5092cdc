/* SPDX-License-Identifier: Apache-2.0 */
/* The run-time compiler: a module's source is taken from the cache, or compiled as a whole, in pieces on several
 * processors where the source can be cut, and loaded. All work is done in a folder of its own that goes at the end. */
#include "jit.h"

#include "jit_cache.h"
#include "jit_command.h"
#include "jit_file.h"
#include "jit_load.h"
#include "jit_machine.h"
#include "jit_process.h"
#include "jit_util.h"

#include "abi/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct job {
    const lathe_options *options;
    lathe_error *error;
    const char *name, *source;
    size_t size;
    char *file;   /* the name as a file may have it */
    char *folder; /* for all that is temporary */
    char *source_path, *object_path;
    int keep; /* the folder that the user wants sources in; -1: none */
    jit_command command;
    jit_cache cache;
    jit_bytes object;
    int hold; /* the entry of the cache that it came from or went to */
} job;

/* --- what a compiler says --- */

/* How much a line of its output says about why it failed. */
static int weight(const char *line)
{
    static const struct {
        const char *text;
        int weight;
    } signs[] = {{": error: ", 4},           {": fatal error: ", 4},     {": Error: ", 4}, {"undefined reference", 3},
                 {"multiple definition", 3}, {"undefined symbol", 3}, {"error: ", 2},   {"Error: ", 2}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (strstr(line, signs[i].text))
            return signs[i].weight;
    }
    return line[strspn(line, " \t\r")] ? 1 : 0;
}

/* The line that says most: the first of its kind, or the last one where there is nothing but talk. In `log`. */
static const char *telling_line(char *log)
{
    char *best = NULL, *end;
    int most = 0;
    for (char *line = log; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        char ends = *end;
        *end = '\0';
        int w = weight(line);
        *end = ends;
        if (w > most || (w == 1 && most == 1))
            best = line;
        most = w > most ? w : most;
    }
    if (!best)
        return "it said nothing";
    best[strcspn(best, "\r\n")] = '\0';
    return best;
}

/* Takes every "FOLDER/" out: the files there are gone when the message is read. */
static void drop_folder(char *text, const char *folder)
{
    size_t n = strlen(folder);
    char *to = text;
    for (const char *p = text; *p;)
        if (strncmp(p, folder, n) == 0 && p[n] == '/')
            p += n + 1;
        else
            *to++ = *p++;
    *to = '\0';
}

/* --- files that the user wants to see --- */

static int32_t keep(const job *j, const char *end, const void *data, size_t n)
{
    if (j->keep < 0)
        return LATHE_OK;
    char *name = jit_printf("%s.%s", j->file, end);
    jit_part part = {data, n};
    bool good = name && jit_file_put(j->keep, name, 0666, &part, 1);
    int why = name ? errno : ENOMEM;
    free(name);
    return good ? LATHE_OK
                : vm_fail(j->error, LATHE_E_FILE, "cannot write '%s/%s.%s': %s", j->options->keep_sources, j->file,
                           end, strerror(why));
}

/* The log of an earlier failure would be taken for that of this compilation. */
static void drop_log(const job *j)
{
    char *name = jit_printf("%s.log", j->file);
    if (name && j->keep >= 0)
        (void)unlinkat(j->keep, name, 0);
    free(name);
}

/* A module is named as what is kept of it: in its own folder it would be overwritten. */
static int32_t check_no_module(const job *j)
{
    jit_bytes there = {0};
    char *path = jit_printf("%s/%s.so", j->options->keep_sources, j->file);
    if (!path)
        return jit_no_memory(j->error);
    bool module = jit_file_take(path, &there) && jit_contains((const char *)there.at, there.n, MODULE_SYMBOL);
    int32_t status = module ? vm_fail(j->error, LATHE_E_REFUSED, "the sources that are kept would overwrite the "
                                      "module '%s': name another folder", path)
                            : LATHE_OK;
    free(there.at);
    free(path);
    return status;
}

static int32_t open_keep(job *j)
{
    const char *path = j->options->keep_sources;
    if (!path || !*path)
        return LATHE_OK;
    if (jit_folder_make(path, 0777))
        j->keep = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->keep < 0)
        return vm_fail(j->error, LATHE_E_FILE, "cannot use the folder '%s' for sources: %s", path, strerror(errno));
    int32_t status = check_no_module(j);
    if (status)
        return status;
    drop_log(j);
    return keep(j, "c", j->source, j->size);
}

/* --- compiling --- */

static int32_t explain_exit(const job *j, const jit_process *p)
{
    jit_bytes log = {0};
    bool said = jit_file_take(p->log, &log), kept = false;
    if (said && j->keep >= 0)
        kept = keep(j, "log", log.at, strlen((char *)log.at)) == LATHE_OK;
    if (said)
        drop_folder((char *)log.at, j->folder);
    const char *line = said ? telling_line((char *)log.at) : "its output cannot be read";
    if (kept)
        (void)vm_fail(j->error, LATHE_E_COMPILER, "the compiler '%s' failed on '%s': %.600s; all it said: %s/%s.log",
                       j->command.words.at[0], j->name, line, j->options->keep_sources, j->file);
    else
        (void)vm_fail(j->error, LATHE_E_COMPILER, "the compiler '%s' failed on '%s': %.600s; "
                       "LATHE_KEEP_SOURCES names a folder for the source and all it said",
                       j->command.words.at[0], j->name, line);
    free(log.at);
    return LATHE_E_COMPILER;
}

static int32_t explain(const job *j, const jit_process *p)
{
    const char *program = j->command.words.at[0];
    switch (p->how) {
    case JIT_NOT_STARTED:
        return vm_fail(j->error, LATHE_E_COMPILER, "the compiler '%s' cannot be started: %s", program,
                        strerror(p->number));
    case JIT_KILLED:
        return vm_fail(j->error, LATHE_E_COMPILER, "the compiler '%s' was killed by signal %d on '%s'", program,
                        p->number, j->name);
    case JIT_TOO_LONG:
        return vm_fail(j->error, LATHE_E_COMPILER, "the compiler '%s' took longer than %u s on '%s' and was stopped: "
                        "LATHE_COMPILE_SECONDS, or the option `compile_seconds`, gives it more", program,
                        (unsigned)jit_command_seconds(j->options), j->name);
    case JIT_STOPPED: return vm_fail(j->error, LATHE_E_STOPPED, "stopped");
    case JIT_ENDED:
    case JIT_WAITING:
    case JIT_RUNNING:
    case JIT_GIVEN_UP: break;
    }
    return explain_exit(j, p);
}

/* The one that failed, not those that were stopped because of it. */
static const jit_process *culprit(const jit_process *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].how != JIT_GIVEN_UP && (list[i].how != JIT_ENDED || list[i].number != 0))
            return &list[i];
    return &list[0];
}

static int32_t run_with(const job *j, const jit_words *commands, jit_process *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *line = jit_words_join(&commands[i]);
        if (!list[i].log || !line) {
            free(line);
            return jit_no_memory(j->error);
        }
        jit_say(j->options, "RVV compile command: %s", line);
        free(line);
    }
    bool good = jit_processes_run(j->options, list, n, jit_machine_cores(), jit_command_seconds(j->options),
                                  j->folder);
    return good ? LATHE_OK : explain(j, culprit(list, n));
}

/* Runs n commands that make `products`; `what` tells their logs from others. */
static int32_t run(const job *j, const char *what, const jit_words *commands, char *const *products, size_t n)
{
    jit_process *list = calloc(n, sizeof *list);
    int32_t status = list ? LATHE_OK : jit_no_memory(j->error);
    for (size_t i = 0; i < n && list; i++) {
        if (commands[i].failed)
            status = jit_no_memory(j->error);
        list[i] = (jit_process){.path = j->command.path, .argv = commands[i].at, .product = products[i],
                                .log = jit_printf("%s/%s%zu.log", j->folder, what, i)};
    }
    if (!status)
        status = run_with(j, commands, list, n);
    for (size_t i = 0; i < n && list; i++)
        free((char *)(uintptr_t)list[i].log);
    free(list);
    return status;
}

static int32_t compile_whole(const job *j)
{
    jit_words command = {0};
    jit_command_whole(&j->command, j->source_path, j->object_path, &command);
    int32_t status = run(j, "whole", &command, &j->object_path, 1);
    jit_words_free(&command);
    return status;
}

static int32_t compile_pieces(const job *j, uint32_t n)
{
    jit_words commands[MODULE_SHARDS] = {{0}}, objects = {0}, link = {0};
    int32_t status = LATHE_OK;
    for (uint32_t k = 0; k < n; k++)
        jit_words_add(&objects, jit_printf("%s/%s.%u.o", j->folder, j->file, (unsigned)k));
    if (objects.failed)
        status = jit_no_memory(j->error);
    for (uint32_t k = 0; k < n && !status; k++)
        jit_command_piece(&j->command, j->source_path, k, n, objects.at[k], &commands[k]);
    if (!status)
        status = run(j, "piece", commands, objects.at, n);
    if (!status) {
        jit_command_link(&j->command, &objects, j->object_path, &link);
        status = run(j, "link", &link, &j->object_path, 1);
    }
    for (uint32_t k = 0; k < n; k++)
        jit_words_free(&commands[k]);
    jit_words_free(&objects);
    jit_words_free(&link);
    return status;
}

/* In how many pieces: each compiler reads the whole source, so a short one is not cut; and only a source that says so
 * can be. */
static uint32_t count_pieces(const job *j)
{
    enum { WORTH = 32 << 10 };
    uint32_t n = jit_machine_cores();
    n = n < MODULE_SHARDS ? n : MODULE_SHARDS;
    n = j->size / WORTH + 1 < n ? (uint32_t)(j->size / WORTH) + 1 : n;
    return n > 1 && jit_contains(j->source, j->size, MODULE_MACRO_SHARDS) ? n : 1;
}

static int32_t write_source(const job *j)
{
    int fd = open(j->source_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && jit_file_write(fd, j->source, j->size);
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        why = errno;
    }
    return good ? LATHE_OK
                : vm_fail(j->error, LATHE_E_FILE, "cannot write '%s': %s", j->source_path, strerror(why));
}

static int32_t compile(job *j)
{
    int32_t status = write_source(j);
    uint32_t n = count_pieces(j);
    if (!status)
        status = n > 1 ? compile_pieces(j, n) : compile_whole(j);
    if (status)
        return status;
    if (!jit_file_take(j->object_path, &j->object) && errno != ENOENT)
        return vm_fail(j->error, LATHE_E_FILE, "cannot read what the compiler '%s' wrote: %s",
                        j->command.words.at[0], strerror(errno));
    if (j->object.n == 0)
        return vm_fail(j->error, LATHE_E_COMPILER, "the compiler '%s' ended without an error on '%s' but wrote "
                        "nothing", j->command.words.at[0], j->name);
    return LATHE_OK;
}

/* --- the whole way --- */

/* Without ".so" at the end. Letters, digits and ".-_" stay, and none of ".-" in front: the name of a file in a folder,
 * and no option. */
static char *file_name(const char *name)
{
    size_t n = strlen(name);
    n = n > 3 && strcmp(name + n - 3, ".so") == 0 ? n - 3 : n;
    char *file = n ? jit_printf("%.*s", (int)(n < 100 ? n : 100), name) : jit_printf("module");
    for (char *p = file; p && *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
        if (!plain && *p != '_' && (p == file || (*p != '.' && *p != '-')))
            *p = '_';
    }
    return file;
}

static int32_t prepare(job *j)
{
    jit_held held;
    jit_hold(&held);
    j->folder = jit_folder_temporary();
    if (j->folder)
        jit_tell(j->options, j->folder, 0, true);
    jit_release(&held);
    if (!j->folder)
        return vm_fail(j->error, LATHE_E_FILE, "cannot make a temporary folder to compile in (TMPDIR): %s",
                        strerror(errno));
    j->file = file_name(j->name);
    j->source_path = j->file ? jit_printf("%s/%s.c", j->folder, j->file) : NULL;
    j->object_path = j->file ? jit_printf("%s/%s.so", j->folder, j->file) : NULL;
    if (!j->source_path || !j->object_path)
        return jit_no_memory(j->error);
    return open_keep(j);
}

/* Keeps the object for the user before it is loaded: one for another machine is wanted too. */
static int32_t load(job *j, jit_library **out)
{
    int32_t status = keep(j, "so", j->object.at, j->object.n);
    return status ? status
                  : jit_load(&j->object, j->folder, j->command.words.at[0], j->name, out, j->error);
}

static bool take(job *j)
{
    bool hit = jit_cache_get(&j->cache, &j->object, &j->hold);
    if (hit)
        jit_say(j->options, "cache hit: %s/%s.so", j->cache.path, j->cache.key);
    return hit;
}

/* A cache that came with a module, or is left of a compiler that is gone. Which compiler made the object does not
 * matter then: it was made from this source, for this machine. */
static int32_t obtain_without_compiler(job *j, jit_library **out)
{
    lathe_error lacking = j->error ? *j->error : (lathe_error){0}, why = {0};
    const int32_t status = jit_cache_open(j->options, NULL, j->source, j->size, &j->cache, &why);
    if (status != LATHE_OK)
        return vm_fail(j->error, LATHE_E_COMPILER, "%.300s; and %.500s", lacking.message, why.message);
    if (!j->cache.path)
        return LATHE_E_COMPILER;
    if (!jit_cache_newest(&j->cache, &j->object, &j->hold))
        return vm_fail(j->error, LATHE_E_COMPILER, "%.300s; the cache '%.500s' has no object of this source for this "
                        "machine", lacking.message, j->cache.path);
    if (j->error)
        *j->error = (lathe_error){0};
    jit_say(j->options, "no compiler; the newest object of this source for this machine: %s/%s.so", j->cache.path,
            j->cache.key);
    return load(j, out);
}

/* What was compiled is stored when it could be loaded. */
static int32_t obtain(job *j, jit_library **out)
{
    int32_t status = jit_command_find(j->options, j->folder, j->source, j->size, &j->command, j->error);
    if (status == LATHE_E_COMPILER && !jit_command_exists(j->options))
        return obtain_without_compiler(j, out);
    if (!status)
        status = jit_cache_open(j->options, &j->command, j->source, j->size, &j->cache, j->error);
    if (status)
        return status;
    if (take(j))
        return load(j, out);
    jit_cache_lock(&j->cache);
    if (take(j)) /* another one has made it meanwhile */
        return load(j, out);
    if (j->cache.path)
        jit_say(j->options, "cache miss: %s/%s.so", j->cache.path, j->cache.key);
    status = compile(j);
    if (!status)
        status = load(j, out);
    if (!status)
        jit_cache_put(&j->cache, &j->object, &j->hold);
    return status;
}

static void finish(job *j)
{
    jit_cache_close(&j->cache);
    jit_command_free(&j->command);
    if (j->keep >= 0)
        (void)close(j->keep);
    if (j->folder) {
        jit_folder_remove(j->folder);
        jit_tell(j->options, j->folder, 0, false);
    }
    free(j->object.at);
    free(j->object_path);
    free(j->source_path);
    free(j->file);
    free(j->folder);
}

bool jit_has_compiler(const lathe_options *options)
{
    return jit_command_exists(options);
}

int32_t jit_compile(const lathe_options *options, const char *name, const char *source, size_t size,
                    jit_library **out, lathe_error *error)
{
    *out = NULL;
    if (options->no_jit)
        return vm_fail(error, LATHE_E_REFUSED, "'%s' holds source code, and the option `no_jit` forbids to compile it",
                        name);
    job j = {.options = options, .error = error, .name = name, .source = source, .size = size, .keep = -1, .hold = -1,
             .cache = {.dir = -1, .lock = -1}};
    int32_t status = prepare(&j);
    if (!status)
        status = obtain(&j, out);
    if (!status)
        jit_load_hold(*out, j.hold);
    else if (j.hold >= 0)
        (void)close(j.hold);
    finish(&j);
    return status;
}
