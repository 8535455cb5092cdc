/* SPDX-License-Identifier: Apache-2.0 */
/* The corpora of all fuzz targets, replayed without a fuzzer: replay FOLDER. A reader that crashes ends the program,
 * whose last line names the input. The leak sanitizer is linked: memory that a reader keeps fails the program. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int replay_fn(const uint8_t *data, size_t size);
#define X(name) replay_fn name;
#include "fuzz_targets.def"
#undef X

static const struct {
    const char *name;
    replay_fn *run;
} targets[] = {
#define X(name) {#name, name},
#include "fuzz_targets.def"
#undef X
};

static int replay_file(replay_fn *run, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return 0;
    const long size = ftell(f);
    uint8_t *data = malloc((size_t)size + 1); /* a block of its own: what reads behind it reads behind the block */
    rewind(f);
    const int ok = data && fread(data, 1, (size_t)size, f) == (size_t)size;
    (void)fclose(f);
    if (ok)
        (void)run(data, (size_t)size);
    free(data);
    return ok;
}

/* How many inputs a folder has; -1: one cannot be read. */
static int replay_folder(replay_fn *run, const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char path[1024];
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        (void)printf("%s\n", path);
        (void)fflush(stdout);
        if (!replay_file(run, path))
            return -1;
        n++;
    }
    if (d)
        (void)closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int bad = argc != 2;
    for (size_t i = 0; i < sizeof targets / sizeof *targets && !bad; i++) {
        char folder[512];
        (void)snprintf(folder, sizeof folder, "%s/%s", argv[1], targets[i].name + strlen("fuzz_"));
        const int n = replay_folder(targets[i].run, folder);
        (void)printf("%s: %d inputs\n", targets[i].name, n);
        bad = n <= 0;
    }
    return bad;
}
