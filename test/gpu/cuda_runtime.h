/* cuda_runtime.h: a stand-in for machines without a GPU, so that the CUDA files of packages can be compiled by a C++
 * compiler and their numbers compared: one thread of a block after the other, as fibers that change at barriers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STAND_IN_CUDA_RUNTIME_H
#define STAND_IN_CUDA_RUNTIME_H
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <utility>

#define __global__ static
#define __device__
#define __shared__ static

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

/* STAND_IN_CUDA_MEMORY: bytes that there are. */
static inline cudaError_t cudaMalloc(void **out, size_t n)
{
    const char *most = getenv("STAND_IN_CUDA_MEMORY");
    *out = most && n > strtoull(most, nullptr, 10) ? nullptr : malloc(n);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFree(void *p) { free(p); return cudaSuccess; }
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind)
{
    memcpy(to, from, n);
    return cudaSuccess;
}

enum { STAND_IN_MOST = 1024, STAND_IN_STACK = 65536 };
static struct stand_in {
    ucontext_t main, fiber[STAND_IN_MOST];
    char *stacks;
    unsigned at;
    bool done[STAND_IN_MOST];
    void (*body)(void *);
    void *context;
} stand_in;

static void stand_in_enter()
{
    stand_in.body(stand_in.context);
    stand_in.done[stand_in.at] = true;
    swapcontext(&stand_in.fiber[stand_in.at], &stand_in.main);
}
static inline void __syncthreads() { swapcontext(&stand_in.fiber[stand_in.at], &stand_in.main); }

static void stand_in_block(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ucontext_t *f = &stand_in.fiber[i];
        getcontext(f);
        f->uc_stack.ss_sp = stand_in.stacks + (size_t)i * STAND_IN_STACK;
        f->uc_stack.ss_size = STAND_IN_STACK;
        f->uc_link = &stand_in.main;
        makecontext(f, stand_in_enter, 0);
        stand_in.done[i] = false;
    }
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < n; i++) {
            if (stand_in.done[i])
                continue;
            stand_in.at = i;
            threadIdx = dim3(i, 0, 0);
            swapcontext(&stand_in.main, &stand_in.fiber[i]);
            more |= !stand_in.done[i];
        }
    }
}

template <class... P, size_t... I>
static cudaError_t stand_in_launch(void (*f)(P...), dim3 grid, dim3 block, void **args, std::index_sequence<I...>)
{
    auto call = [&] { f(*static_cast<P *>(args[I])...); };
    stand_in.body = [](void *c) { (*static_cast<decltype(call) *>(c))(); };
    stand_in.context = &call;
    if (!stand_in.stacks)
        stand_in.stacks = static_cast<char *>(malloc((size_t)STAND_IN_MOST * STAND_IN_STACK));
    if (!stand_in.stacks || block.x > STAND_IN_MOST || block.y * block.z != 1)
        return cudaErrorInvalidValue;
    blockDim = block;
    gridDim = grid;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = dim3(x, y, 0);
            stand_in_block(block.x);
        }
    return cudaSuccess;
}

template <class... P>
static cudaError_t cudaLaunchKernel(void (*f)(P...), dim3 grid, dim3 block, void **args, size_t, int)
{
    return stand_in_launch(f, grid, block, args, std::index_sequence_for<P...>());
}
#endif
