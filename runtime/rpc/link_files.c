/* link_files.c: tar and cc as child processes, without a shell. The environment's CC names the compiler.
 * SPDX-License-Identifier: Apache-2.0 */
#include "link_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS_MAX = 256, WORDS_MAX = 16 };

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The first bytes of what a program said, on one line. */
static void first_words(const char *log, char *out, size_t size)
{
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* Runs a program to its end; what it says goes to `log`. */
static int32_t run(const char *const *argv, const char *log, lathe_error *error)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int how = 0;
    char said[300];
    if (posix_spawn_file_actions_init(&actions) != 0)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory to start %s", argv[0]);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int why = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (why != 0)
        return rpc_fail(error, LATHE_E_COMPILER, "%s: %s", argv[0], strerror(why));
    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return rpc_fail(error, LATHE_E_COMPILER, "%s: %s", argv[0], strerror(errno));
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return LATHE_OK;
    first_words(log, said, sizeof said);
    return rpc_fail(error, LATHE_E_COMPILER, "%s failed: %s", argv[0], said);
}

/* The words of CC, the compiler and its arguments; how many, 0: too many. */
static size_t compiler(char *words, size_t size, const char **argv)
{
    const char *cc = getenv("CC");
    char *rest = NULL;
    size_t n = 0;
    int length = snprintf(words, size, "%s", cc ? cc : "");
    if (length < 0 || (size_t)length >= size)
        return 0;
    for (char *word = strtok_r(words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (n == WORDS_MAX)
            return 0;
        argv[n++] = word;
    }
    if (n == 0)
        argv[n++] = "cc";
    return n;
}

static int32_t link_objects(const char *const *objects, size_t n, const char *out, lathe_error *error)
{
    const char *argv[OBJECTS_MAX + WORDS_MAX + 8];
    char log[RPC_PATH_MAX + 8], words[RPC_PATH_MAX];
    size_t k = compiler(words, sizeof words, argv);
    if (k == 0)
        return rpc_fail(error, LATHE_E_COMPILER, "CC has more than %d words, or is too long", WORDS_MAX);
    argv[k++] = "-shared";
    argv[k++] = "-fPIC";
    argv[k++] = "-o";
    argv[k++] = out;
    for (size_t i = 0; i < n; i++)
        argv[k++] = objects[i];
    argv[k] = NULL;
    (void)snprintf(log, sizeof log, "%s.log", out);
    int32_t status = run(argv, log, error);
    (void)unlink(log);
    return status;
}

/* Every object file of a folder, which is flat. */
static int32_t link_folder(const char *folder, const char *out, lathe_error *error)
{
    char *objects[OBJECTS_MAX];
    size_t n = 0;
    int32_t status = LATHE_OK;
    DIR *d = opendir(folder);
    if (!d)
        return rpc_fail(error, LATHE_E_FILE, "the archive gave no files");
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!ends_with(e->d_name, ".o"))
            continue;
        if (n == OBJECTS_MAX) {
            status = rpc_fail(error, LATHE_E_UNSUPPORTED, "the archive has more than %d object files", OBJECTS_MAX);
            break;
        }
        size_t size = strlen(folder) + strlen(e->d_name) + 2;
        objects[n] = malloc(size);
        if (!objects[n]) {
            status = rpc_fail(error, LATHE_E_MEMORY, "no memory for the names of object files");
            break;
        }
        (void)snprintf(objects[n++], size, "%s/%s", folder, e->d_name);
    }
    (void)closedir(d);
    if (status == LATHE_OK)
        status = n > 0 ? link_objects((const char *const *)objects, n, out, error)
                       : rpc_fail(error, LATHE_E_FORMAT, "the archive has no object file");
    for (size_t i = 0; i < n; i++)
        free(objects[i]);
    return status;
}

static int32_t link_archive(const rpc_files *files, const char *path, const char *out, lathe_error *error)
{
    char folder[RPC_PATH_MAX + 8], log[RPC_PATH_MAX + 16];
    (void)snprintf(folder, sizeof folder, "%s.d", path);
    (void)snprintf(log, sizeof log, "%s.log", folder);
    (void)rpc_files_remove_tree(folder);
    if (mkdir(folder, 0700) != 0)
        return rpc_fail(error, LATHE_E_FILE, "no folder for the archive: %s", strerror(errno));
    const char *const argv[] = {"tar", "-x", "-f", path, "-C", folder, "--no-same-owner", NULL};
    int32_t status = run(argv, log, error);
    if (status == LATHE_OK)
        status = rpc_files_room(files, 0, error);
    if (status == LATHE_OK)
        status = link_folder(folder, out, error);
    (void)unlink(log);
    (void)rpc_files_remove_tree(folder);
    return status;
}

int32_t rpc_link_shared(const rpc_files *files, const char *path, char out[RPC_PATH_MAX], lathe_error *error)
{
    const bool object = ends_with(path, ".o"), archive = ends_with(path, ".tar");
    int n = snprintf(out, RPC_PATH_MAX, "%s%s", path, object || archive ? ".so" : "");
    if (n >= RPC_PATH_MAX)
        return rpc_fail(error, LATHE_E_ARGUMENT, "the name is too long");
    if (!archive && !object)
        return LATHE_OK;
    int32_t status = archive ? link_archive(files, path, out, error) : link_objects(&path, 1, out, error);
    if (status == LATHE_OK)
        status = rpc_files_room(files, 0, error);
    if (status != LATHE_OK)
        (void)unlink(out);
    return status;
}
