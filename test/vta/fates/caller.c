/* caller.c: calls what the compiler wrote of a computation, of any signature:
 *     caller fill BYTES SEED > FILE             numbers that are the same every time
 *     caller jit OBJECT NAME BUFFER...          over buffer handles of the default device
 *     caller capture OBJECT NAME BUFFER...      over device memory of a simulator, by vta_replay
 * OBJECT is a shared one, linked with libvta. A BUFFER is FILE:BYTES, read before the call and, where FILE begins with
 * '>', written after it; '-:BYTES' is memory that only the function uses.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vta_runtime.h"

enum { MOST = 8 };

typedef struct buffer {
    const char *file;
    size_t bytes;
    unsigned char *data;
} buffer;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static int fill(size_t bytes, uint32_t state)
{
    while (bytes-- > 0) {
        state = state * 1664525u + 1013904223u;
        putchar((int)(state >> 24));
    }
    return 0;
}

static void read_buffer(buffer *b, char *text)
{
    char *colon = strrchr(text, ':');
    if (!colon)
        die(text, "no BYTES");
    *colon = 0;
    b->file = text;
    b->bytes = strtoull(colon + 1, NULL, 10);
    b->data = calloc(1, b->bytes + 1);
    if (*text == '>' || *text == '-')
        return;
    FILE *f = fopen(text, "rb");
    if (!f || fread(b->data, 1, b->bytes, f) != b->bytes)
        die(text, "not that many bytes");
    fclose(f);
}

static void write_buffer(const buffer *b)
{
    FILE *f = *b->file == '>' ? fopen(b->file + 1, "wb") : NULL;
    if (f)
        fwrite(b->data, 1, b->bytes, f);
    if (f)
        fclose(f);
}

/* POSIX promises that an object pointer of dlsym can hold a function; C does not convert it. */
static void find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    if (!found)
        die(name, "not found");
    memcpy(out, &found, sizeof found);
}

static int32_t call_jit(void *library, const char *name, buffer *b, int n)
{
    int32_t (*f)(void *, ...) = NULL;
    int32_t (*f1)(void *), (*f2)(void *, void *), (*f3)(void *, void *, void *);
    int32_t (*f4)(void *, void *, void *, void *), (*f5)(void *, void *, void *, void *, void *);
    void *h[MOST];
    int32_t status = -1;
    find(library, name, &f);
    memcpy(&f1, &f, sizeof f);
    memcpy(&f2, &f, sizeof f);
    memcpy(&f3, &f, sizeof f);
    memcpy(&f4, &f, sizeof f);
    memcpy(&f5, &f, sizeof f);
    for (int i = 0; i < n; i++) {
        h[i] = VTABufferAlloc(b[i].bytes);
        VTABufferCopy(b[i].data, 0, h[i], 0, b[i].bytes, 1);
    }
    for (int round = 0; round < 2; round++) /* the second finds its kernels recorded */
        status = n == 1   ? f1(h[0])
                 : n == 2 ? f2(h[0], h[1])
                 : n == 3 ? f3(h[0], h[1], h[2])
                 : n == 4 ? f4(h[0], h[1], h[2], h[3])
                          : f5(h[0], h[1], h[2], h[3], h[4]);
    for (int i = 0; i < n; i++)
        VTABufferCopy(h[i], 0, b[i].data, 0, b[i].bytes, 2);
    VTARuntimeShutdown();
    return status;
}

static int32_t call_capture(void *library, const char *name, buffer *b, int n)
{
    int32_t (*f)(vta_device *, const vta_memory *, const vta_memory *, vta_error *);
    const vta_sim_options so = {.seed = 5};
    const vta_capture *k;
    vta_error e = {VTA_OK, ""};
    vta_memory scratch, memory[MOST];
    vta_sim *sim;
    char text[200];
    snprintf(text, sizeof text, "%s_capture", name);
    find(library, name, &f);
    k = dlsym(library, text);
    if (!k || vta_sim_create(&k->config, &so, &sim, &e) != VTA_OK)
        die(text, e.text);
    vta_device d = vta_sim_device(sim);
    d.driver->alloc(d.self, vta_replay_bytes(k), true, &scratch, &e);
    for (int i = 0; i < n; i++) {
        d.driver->alloc(d.self, b[i].bytes, true, &memory[i], &e);
        memcpy(memory[i].host, b[i].data, b[i].bytes);
    }
    if (e.status != VTA_OK)
        die(name, e.text);
    const int32_t status = f(&d, &scratch, memory, &e);
    if (status != 0)
        die(name, e.text);
    for (int i = 0; i < n; i++)
        memcpy(b[i].data, memory[i].host, b[i].bytes);
    vta_device_destroy(&d);
    return status;
}

int main(int argc, char **argv)
{
    buffer b[MOST];
    const int n = argc - 4;
    if (argc == 4 && strcmp(argv[1], "fill") == 0)
        return fill(strtoull(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
    if (n < 1 || n > MOST || (strcmp(argv[1], "jit") == 0 && n > 5))
        return 2;
    void *library = dlopen(argv[2], RTLD_NOW);
    if (!library)
        die(argv[2], dlerror());
    for (int i = 0; i < n; i++)
        read_buffer(&b[i], argv[4 + i]);
    const int32_t status =
        strcmp(argv[1], "jit") == 0 ? call_jit(library, argv[3], b, n) : call_capture(library, argv[3], b, n);
    for (int i = 0; i < n; i++)
        write_buffer(&b[i]);
    return status != 0;
}
