/* vta_replay.h: what a program without a heap needs of the library: devices behind one driver table, memory that they
 * reach, captured streams and how they are run, memory-mapped hardware. Nothing here allocates, uses stdio or threads;
 * the code is replay.c, status.c, config_check.c and mmio.c, together libvta_replay. C99. vta.h has all the rest.
 *
 *   const vta_capture (generated C) --+-> vta_replay(device, ...)
 *   vta_memory: scratch, bindings ----+       |
 *                             vta_device: mmio.c, or a simulator of vta.h
 *
 * One device runs any number of captured streams one after the other; one scratch memory of the largest
 * vta_replay_bytes serves them all.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_REPLAY_H
#define VTA_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vta_config.h"
#include "vta_isa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(id, text) */
#define VTA_STATUSES(X)                                                  \
    X(VTA_OK, "done")                                                    \
    X(VTA_BAD_CONFIG, "the configuration breaks a rule")                 \
    X(VTA_BAD_TEXT, "text that cannot be read")                          \
    X(VTA_BAD_FIELD, "a value does not fit its field")                   \
    X(VTA_BAD_ARGUMENT, "an argument is out of range")                   \
    X(VTA_BAD_HANDLE, "a handle is freed, foreign or of another device") \
    X(VTA_BAD_STATE, "a call in the wrong order")                        \
    X(VTA_NO_MEMORY, "no memory of the kind asked for")                  \
    X(VTA_FAULT, "an instruction did what the device does not allow")    \
    X(VTA_DEADLOCK, "every stage waits for a token")                     \
    X(VTA_TIMEOUT, "the device did not finish in time")                  \
    X(VTA_UNSUPPORTED, "this device or profile lacks it")                \
    X(VTA_IO, "a file cannot be read or written")
typedef enum vta_status {
#define X(id, text) id,
    VTA_STATUSES(X)
#undef X
} vta_status;

typedef struct vta_error {
    vta_status status;
    char text[400];
} vta_error;

const char *vta_status_text(vta_status s);
/* Fills *e (when not NULL) and returns s. For the library's own files and for drivers outside it. Of printf's
 * conversions: d u x s p c %, with 0, width, precision, h hh l ll z. */
vta_status vta_fail(vta_error *e, vta_status s, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Checks and derives; the message names the rule. */
vta_status vta_config_check(const vta_config *c, vta_geometry *g, vta_error *e);

/* --- the device behind a table (driver) --------------------------------------------------------------------------- */

/* Memory that the device can reach: page-aligned, contiguous for the device. */
typedef struct vta_memory {
    void *host;    /* address for the CPU */
    uint64_t phys; /* address for the device; never 0 */
    size_t bytes;
} vta_memory;

typedef struct vta_driver {
    const char *name;
    /* Contiguous memory of at least `bytes` (> 0), zeroed. */
    vta_status (*alloc)(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e);
    void (*free)(void *self, const vta_memory *m);
    /* Makes `bytes` of host memory visible to the device in place; out->phys is a multiple of every element. NULL, or
     * VTA_UNSUPPORTED, where that is impossible: the caller stages copies. `unmap` forgets it. */
    vta_status (*map)(void *self, void *host, size_t bytes, vta_memory *out, vta_error *e);
    void (*unmap)(void *self, const vta_memory *m);
    /* Cache maintenance before the device reads and before the host reads; NULL: coherent. */
    void (*flush)(void *self, const vta_memory *m, size_t offset, size_t bytes);
    void (*invalidate)(void *self, const vta_memory *m, size_t offset, size_t bytes);
    /* Runs `count` instructions at `phys` to FINISH. wait_cycles: as much patience, in polls or simulated cycles; for
     * the functional simulator the cycles that the busiest stage needs at least: one an operation, one for 64 bytes. */
    vta_status (*run)(void *self, uint64_t phys, uint32_t count, uint32_t wait_cycles, vta_error *e);
    /* After a run that failed: nothing in flight, dependency tokens 0. NULL: such a run leaves none behind. */
    void (*reset)(void *self);
    /* Elements [index, index + count) of a scratchpad, as stored; NULL where it cannot be read. */
    vta_status (*scratchpad)(void *self, enum vta_mem m, uint32_t index, uint32_t count, void *out, vta_error *e);
    /* Counters as JSON, the seven published keys first (vta_counters_print); NULL: none. Returns the length. */
    size_t (*counters)(void *self, char *out, size_t size);
    void (*clear_counters)(void *self);
    void (*skip_exec)(void *self, bool on); /* count and load micro-ops, compute nothing; NULL: cannot */
    void (*destroy)(void *self);
} vta_driver;

typedef struct vta_device {
    const vta_driver *driver;
    void *self;
    vta_config config;
    vta_geometry geometry;
} vta_device;

void vta_device_destroy(vta_device *d); /* calls driver->destroy; d itself is the caller's */

/* Cache maintenance over part of `m`: before the device reads what the CPU wrote, and before the CPU reads what the
 * device wrote. */
static inline void vta_device_flush(const vta_device *d, const vta_memory *m, size_t offset, size_t bytes)
{
    if (d->driver->flush)
        d->driver->flush(d->self, m, offset, bytes);
}

static inline void vta_device_invalidate(const vta_device *d, const vta_memory *m, size_t offset, size_t bytes)
{
    if (d->driver->invalidate)
        d->driver->invalidate(d->self, m, offset, bytes);
}

/* --- captured streams (replay.c) ---------------------------------------------------------------------------------- */

/* An address to be filled in: instruction `insn` reads or writes binding `binding` at `offset` elements. Binding 0 is
 * the micro-op image; binding i + 1 is buffer i. */
typedef struct vta_relocation {
    uint32_t insn, binding, offset;
} vta_relocation;

/* A captured stream. Its relocations are those of a program: binding 0 is the micro-op image; others are the buffers in
 * order of first use. */
typedef struct vta_capture {
    vta_config config;     /* of the device that it was captured for; no other runs it */
    const vta_insn *insns; /* dram_base 0 where relocated */
    uint32_t n_insns;
    const uint32_t *uops;
    uint32_t n_uops;
    const vta_relocation *relocations;
    uint32_t n_relocations;
    const uint64_t *binding_bytes; /* [n_bindings]: what the stream reaches of binding i + 1 */
    uint32_t n_bindings;           /* besides the micro-op image */
} vta_capture;
/* Runs a captured stream on a device without a context: `scratch` is device memory for stream and micro-ops
 * (vta_replay_bytes; at least 8-byte aligned for the CPU), bindings[i] the device memory of binding i + 1: any memory
 * that the device reaches, a multiple of the elements that it holds. No allocation, no recording. The caller flushes
 * and invalidates bindings; scratch is flushed here. */
size_t vta_replay_bytes(const vta_capture *p);
vta_status vta_replay(vta_device *d, const vta_capture *p, const vta_memory *scratch, const vta_memory *bindings,
                      uint32_t wait_cycles, vta_error *e);

/* --- the program's device ----------------------------------------------------------------------------------------- */

/* Generated code acquires a device before it replays a stream, and releases it afterwards. The program has to define
 * both functions. A board does so for a device of its own (vta_mmio_init). On a host, libvta defines them with a
 * simulator (vta_host.c). From acquire to release the device belongs to the caller alone, whatever thread it runs on.
 * NULL: there is no device, and *e says why. `e` of release: how the work ended, for a log. */
vta_device *vta_host_acquire(const vta_config *c, vta_error *e);
void vta_host_release(vta_device *d, const vta_error *e);

/* --- memory-mapped hardware (mmio.c) ------------------------------------------------------------------------------ */

/* What the board support gives: registers and contiguous memory. */
typedef struct vta_mmio {
    void *user;
    void (*write)(void *user, uint32_t address, uint32_t value);
    uint32_t (*read)(void *user, uint32_t address);
    void (*sleep)(void *user, uint32_t microseconds);
    vta_status (*alloc)(void *user, size_t bytes, bool cached, vta_memory *out, vta_error *e);
    void (*free)(void *user, const vta_memory *m); /* this and alloc: NULL where there is nothing to give */
    void (*flush)(void *user, const vta_memory *m, size_t offset, size_t bytes); /* NULL: coherent */
    void (*invalidate)(void *user, const vta_memory *m, size_t offset, size_t bytes);
    /* The device's address of `bytes` of the CPU's memory. false: it does not reach them all, or not in one piece.
     * NULL: it reaches none. */
    bool (*reach)(void *user, const void *host, size_t bytes, uint64_t *phys);
} vta_mmio;
/* The state of such a device: its members are the driver's. */
typedef struct vta_mmio_state {
    vta_mmio io;
    uint32_t base, most_element;
    bool one_block; /* the control block of the Chisel design */
} vta_mmio_state;
/* A device in the caller's memory: `state` must outlive it, *io is copied. VTA_BAD_CONFIG, VTA_BAD_ARGUMENT. */
vta_status vta_mmio_init(vta_mmio_state *state, const vta_config *c, const vta_mmio *io, vta_device *out,
                         vta_error *e);

#ifdef __cplusplus
}
#endif
#endif
