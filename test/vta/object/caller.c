/* caller.c: runs my_gemm with buffers of the default device: linked with the object, or with its shared library loaded
 * after the run-time (caller LIBVTA MODULE MODULE): one module after the other, as like as not at the same address, so
 * that a call site of the first must not serve the second.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LOADED
#include "vta_runtime.h"
int my_gemm(void *A, void *B, void *C);
#else
static void *(*VTABufferAlloc)(size_t);
static void (*VTABufferFree)(void *);
static void (*VTABufferCopy)(const void *, size_t, void *, size_t, size_t, int);
static void (*VTARuntimeShutdown)(void);
#endif

static void fill(int8_t *p, size_t count, uint32_t state)
{
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (int8_t)(state >> 16);
    }
}

static int check(int (*gemm)(void *, void *, void *), uint32_t seed)
{
    static int8_t A[4 * 16], B[16 * 4 * 256], C[16 * 16];
    void *dA = VTABufferAlloc(sizeof A), *dB = VTABufferAlloc(sizeof B), *dC = VTABufferAlloc(sizeof C);
    fill(A, sizeof A, seed);
    fill(B, sizeof B, 77);
    VTABufferCopy(A, 0, dA, 0, sizeof A, 1);
    VTABufferCopy(B, 0, dB, 0, sizeof B, 1);
    if (gemm(dA, dB, dC) != 0)
        return 1;
    VTABufferCopy(dC, 0, C, 0, sizeof C, 2);
    VTABufferFree(dA);
    VTABufferFree(dB);
    VTABufferFree(dC);
    for (int m = 0; m < 16; m++)
        for (int o = 0; o < 16; o++) {
            int32_t sum = 0;
            for (int k = 0; k < 64; k++)
                sum += A[k] * B[((m * 4 + k / 16) * 16 + o) * 16 + k % 16];
            if (C[m * 16 + o] != (int8_t)sum) {
                printf("tile %d lane %d: %d, wanted %d\n", m, o, C[m * 16 + o], (int8_t)sum);
                return 1;
            }
        }
    return 0;
}

#ifdef LOADED
/* POSIX promises that an object pointer of dlsym can hold a function; C does not convert it. */
static void find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    if (!found) {
        printf("%s: not found\n", name);
        exit(1);
    }
    memcpy(out, &found, sizeof found);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    void *runtime = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!runtime) {
        printf("%s\n", dlerror());
        return 1;
    }
    find(runtime, "VTABufferAlloc", &VTABufferAlloc);
    find(runtime, "VTABufferFree", &VTABufferFree);
    find(runtime, "VTABufferCopy", &VTABufferCopy);
    find(runtime, "VTARuntimeShutdown", &VTARuntimeShutdown);
    for (int round = 2; round < argc; round++) {
        int (*gemm)(void *, void *, void *);
        void *module = dlopen(argv[round], RTLD_NOW | RTLD_LOCAL);
        if (!module) {
            printf("%s\n", dlerror());
            return 1;
        }
        find(module, "my_gemm", &gemm);
        if (check(gemm, (uint32_t)round) != 0 || check(gemm, (uint32_t)round + 5) != 0)
            return 1;
        dlclose(module);
    }
    VTARuntimeShutdown();
    printf("%d modules: right\n", argc - 2);
    return 0;
}
#else
int main(void)
{
    if (check(my_gemm, 1) != 0)
        return 1;
    VTARuntimeShutdown(); /* the call sites outlive the device; the next call makes a new one */
    if (check(my_gemm, 2) != 0)
        return 1;
    VTARuntimeShutdown();
    puts("2 devices: right");
    return 0;
}
#endif
