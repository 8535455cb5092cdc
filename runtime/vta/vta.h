/* vta.h: the VTA library: devices (simulated or real) behind one driver table, and the run-time that records micro-op
 * kernels, queues instructions and runs them. Everything hangs on an object; there are no globals here. The published
 * VTA* entry points, which need a default device, are in vta_runtime.h, thin over this.
 *
 *   vta_context  -- instruction queue, micro-op kernels, buffers --+
 *                                                                  |  vta_device (driver table)
 *   vta_sim (functional)  vta_cycle (timing)  mmio (registers)  <--+
 *
 * Threads: calls on one context may come from any thread (it locks); a device serves one context at a time in `run`.
 * Errors: functions return a status and fill *e (may be NULL), one sentence that names what is at fault.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_H
#define VTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vta_replay.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- configuration as text (config.c) ----------------------------------------------------------------------------- */

/* Reads the keys of vta_config.json over *c (start from vta_config_default()). Keys that are not ours but published
 * (HW_VER) are ignored, unknown ones refused, as are values that break a rule. `name` is for messages. */
vta_status vta_config_parse(const char *name, const char *json, size_t len, vta_config *c, vta_error *e);
/* A preset: a target's name ("pynq"), or a bit-stream string ("1x16_i8w8a32_15_15_18_17", "4x8_i8w8a32_15_16_16_18"),
 * or both ("pynq_1x16_i8w8a32_15_15_18_17"). */
vta_status vta_config_preset(const char *name, vta_config *c, vta_error *e);
/* JSON with the keys of vta_config.json, and the bit-stream string. Return the length; write at most `size` bytes. */
size_t vta_config_print(const vta_config *c, char *out, size_t size);
size_t vta_config_bitstream(const vta_config *c, char *out, size_t size);

/* --- DRAM of simulated devices (dram.c) --------------------------------------------------------------------------- */

/* Page-granular allocations, with bounds: an address belongs to one live allocation or to none. Thread-safe. */
typedef struct vta_dram vta_dram;
vta_dram *vta_dram_create(uint64_t most_bytes); /* NULL: no memory */
void vta_dram_destroy(vta_dram *d);
vta_status vta_dram_alloc(vta_dram *d, size_t bytes, vta_memory *out, vta_error *e);
vta_status vta_dram_map(vta_dram *d, void *host, size_t bytes, vta_memory *out,
                        vta_error *e); /* host memory stays the caller's */
vta_status vta_dram_release(vta_dram *d, const vta_memory *m,
                            vta_error *e); /* either kind; freed twice: VTA_BAD_HANDLE */
/* Host address of [phys, phys + bytes) when one live allocation holds all of it, else NULL. */
void *vta_dram_at(const vta_dram *d, uint64_t phys, size_t bytes);

/* --- functional simulator (sim.c) --------------------------------------------------------------------------------- */

/* X(id, text): what a hardware profile does differently is refused by it; `compatible` takes everything. */
#define VTA_PROFILES(X)             \
    X(VTA_COMPATIBLE, "compatible") \
    X(VTA_HLS, "hls")               \
    X(VTA_CHISEL, "chisel")         \
    X(VTA_INTELFOCL, "intelfocl")
typedef enum vta_profile {
#define X(id, text) id,
    VTA_PROFILES(X)
#undef X
} vta_profile;

/* X(member, published key or ours) */
#define VTA_COUNTERS(X)                         \
    X(inp_load_nbytes, "inp_load_nbytes")       \
    X(wgt_load_nbytes, "wgt_load_nbytes")       \
    X(acc_load_nbytes, "acc_load_nbytes")       \
    X(uop_load_nbytes, "uop_load_nbytes")       \
    X(out_store_nbytes, "out_store_nbytes")     \
    X(gemm_counter, "gemm_counter")             \
    X(alu_counter, "alu_counter")               \
    X(gemm_reset_counter, "gemm_reset_counter") \
    X(acc8_load_nbytes, "acc8_load_nbytes")     \
    X(insn_counter, "insn_counter")
typedef struct vta_counters {
#define X(member, key) uint64_t member;
    VTA_COUNTERS(X)
#undef X
} vta_counters;
size_t vta_counters_print(const vta_counters *c, char *out, size_t size); /* JSON object; returns the length */

/* X(id, text): inner loops; AUTO takes the best that the CPU has at run time. */
#define VTA_SIM_LEVELS(X)       \
    X(VTA_SIM_AUTO, "auto")     \
    X(VTA_SIM_SCALAR, "scalar") \
    X(VTA_SIM_SSE2, "sse2")     \
    X(VTA_SIM_AVX2, "avx2")     \
    X(VTA_SIM_AVX512, "avx512") \
    X(VTA_SIM_VNNI, "vnni")
typedef enum vta_sim_level {
#define X(id, text) id,
    VTA_SIM_LEVELS(X)
#undef X
} vta_sim_level;

typedef struct vta_sim_options {
    vta_profile profile;
    vta_sim_level level;
    uint32_t acc_distance;    /* 0: reported only; N: writing an accumulator again within N operations is a fault */
    uint32_t seed;            /* order in which stages take turns; results must not depend on it */
    bool skip_exec;           /* count, load micro-ops, compute nothing */
    uint64_t dram_bytes;      /* 0: 1 GiB */
    uint64_t most_operations; /* in one instruction, more is VTA_TIMEOUT; 0: no limit. For streams from outside */
} vta_sim_options;

/* Tokens in the four dependency queues: from load (l) and store (s) to compute (g), and back. */
typedef struct vta_tokens {
    int32_t l2g, g2l, s2g, g2s;
} vta_tokens;

typedef struct vta_sim vta_sim;
vta_status vta_sim_create(const vta_config *c, const vta_sim_options *o, vta_sim **out, vta_error *e);
void vta_sim_destroy(vta_sim *s);
/* The simulator as a device; the device's destroy destroys it. */
vta_device vta_sim_device(vta_sim *s);
const vta_geometry *vta_sim_geometry(const vta_sim *s);
vta_dram *vta_sim_dram(vta_sim *s);
/* Executes one instruction at once, tokens not looked at. `index` names it in messages. A fault leaves the state before
 * the faulty row or operation. */
vta_status vta_sim_execute(vta_sim *s, const vta_insn *insn, uint32_t index, vta_error *e);
/* Runs a stream through three queues and four token counters until FINISH. Tokens start at 0 and persist between runs,
 * as on hardware. The seed says which stage goes on after each instruction. No stage able to go on: VTA_DEADLOCK, the
 * waiting instruction of each stage named. */
vta_status vta_sim_run(vta_sim *s, const vta_insn *insns, uint32_t count, vta_error *e);
void vta_sim_tokens(const vta_sim *s, vta_tokens *out); /* those that nobody has taken yet */
void vta_sim_reset(vta_sim *s);                         /* tokens and counters to 0, scratchpads to 0 */
vta_status vta_sim_scratchpad(vta_sim *s, enum vta_mem m, uint32_t index, uint32_t count, void *out, vta_error *e);
const vta_counters *vta_sim_counters(const vta_sim *s);
void vta_sim_clear_counters(vta_sim *s);
void vta_sim_set_skip_exec(vta_sim *s, bool skip);
/* Least distance, in operations of one instruction, at which an accumulator was written again; 0: never. */
uint32_t vta_sim_acc_distance(const vta_sim *s);

/* --- cycle model (cycle.c) ---------------------------------------------------------------------------------------- */

typedef enum vta_cycle_profile { VTA_CYCLE_CHISEL, VTA_CYCLE_HLS } vta_cycle_profile;
/* All zero, like a NULL pointer, is what the target and the profile say. */
typedef struct vta_cycle_options {
    vta_cycle_profile profile;
    uint32_t bus_bits;       /* 0: the target's */
    uint32_t latency;        /* cycles from request to first beat; 0: 16 */
    uint32_t burst_beats;    /* 0: the target's */
    uint32_t command_cycles; /* per read burst; 0: the profile's */
    uint32_t insn_queue;     /* entries per stage; 0: 512 */
    uint32_t token_queue;    /* tokens per queue; 0: the profile's (Chisel 255, HLS 8) */
    uint32_t gemm_interval;  /* cycles per GEMM micro-op; 0: 1; 4: Chisel's unit before it was pipelined */
    uint32_t alu_interval;   /* cycles per ALU micro-op, both forms; 0: the profile's */
    uint32_t unit_fill;      /* cycles of a GEMM or ALU beside its micro-ops; 0: 7 */
} vta_cycle_options;

/* Token queues between neighbors; load is the first stage, store the last. */
enum vta_token_queue {
    VTA_LOAD_TO_COMPUTE,
    VTA_COMPUTE_TO_LOAD,
    VTA_COMPUTE_TO_STORE,
    VTA_STORE_TO_COMPUTE,
    VTA_TOKEN_QUEUES
};

/* An instruction's stay in its stage; of fetch (VTA_STAGE_NONE): a burst of instructions, `insn` being the first. */
typedef struct vta_span {
    uint32_t insn;              /* index in the stream */
    uint8_t stage;              /* enum vta_stage */
    uint8_t queue;              /* the token that it waited for last (enum vta_token_queue) */
    uint32_t beats;             /* of the DRAM port */
    uint64_t ready, start, end; /* arrived in its queue, began (tokens there), ended. Fetch: asked, data came, queued */
    uint64_t waited, work;      /* for tokens before it began; cycles in which it computed or data moved */
} vta_span;

/* A part of a stream with a name, as a layer of a model is: from instruction `first` to where the next one begins. */
typedef struct vta_section {
    const char *name;
    uint32_t first;
} vta_section;

/* They add up to the report's cycles. wait_token: for a token, or for room where tokens go; fetch: for room in a
 * stage's queue. wait_dram: begun, but no data move. wait_fetch: nothing to do yet. idle: nothing to do any more. */
typedef struct vta_stage_cycles {
    uint64_t busy, wait_token, wait_dram, wait_fetch, idle;
} vta_stage_cycles;

typedef struct vta_cycle_report {
    uint64_t cycles;                         /* end of FINISH, or of what still ran then */
    vta_stage_cycles stage[VTA_STAGE_COUNT]; /* [0]: fetch */
    uint64_t dram_beats;                     /* read and written */
    uint64_t lost_tokens;                    /* Chisel: pushed while the counter stood at its most */
    vta_span *spans; /* one per instruction and per fetched burst, in order of start; owned by the report */
    uint32_t n_spans;
    const vta_section *sections; /* what timelines name, in order; set by who knows, and not owned. NULL: nothing */
    uint32_t n_sections;
} vta_cycle_report;

/* Times a stream; it only looks at fields, so no data are needed. VTA_DEADLOCK names the waiting instruction of each
 * stage. vta_cycle_release frees the spans. */
vta_status vta_cycle_time(const vta_config *c, const vta_cycle_options *o, const vta_insn *insns, uint32_t count,
                          vta_cycle_report *out, vta_error *e);
void vta_cycle_release(vta_cycle_report *r);
/* What a section takes. Sections follow each other without gaps: their cycles add up to the report's. */
typedef struct vta_section_cycles {
    uint64_t start, end;                  /* from when all before it has ended to when it has */
    uint64_t insns, gemm, alu;            /* instructions; operations of the two units, one for each tile */
    uint64_t busy[VTA_STAGE_COUNT];       /* [0], fetch, is not counted, as below */
    uint64_t wait_port[VTA_STAGE_COUNT];  /* begun, but no data move */
    uint64_t wait_token[VTA_TOKEN_QUEUES]; /* by the stage that takes tokens from there */
    uint64_t compute_loads;               /* of compute's busy cycles: loads of micro-ops and accumulators */
    uint64_t bytes[VTA_MEM_COUNT];        /* of DRAM, read into a memory; of VTA_MEM_OUT written */
    uint64_t two;                         /* cycles in which two stages at least are at work */
    enum vta_stage bound;                 /* which has most to do: load (all reads), compute (GEMM and ALU) or store */
    uint64_t least;                       /* its busy cycles, which are a lower bound of the section's */
} vta_section_cycles;
void vta_cycle_section(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, uint32_t section,
                       vta_section_cycles *out);
/* Timeline of a report: Chrome trace events (JSON), and an SVG with one lane per stage. Return the length. */
size_t vta_cycle_chrome_trace(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, char *out,
                              size_t size);
size_t vta_cycle_svg(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, char *out, size_t size);
/* A device that runs streams on a simulator of its own and adds up cycles: counters() has "cycle_count" too. */
vta_status vta_cycle_device(const vta_config *c, const vta_sim_options *so, const vta_cycle_options *co,
                            vta_device *out, vta_error *e);
/* The last run's report of such a device; NULL: none yet. Valid until the next run. */
const vta_cycle_report *vta_cycle_last(const vta_device *d);

/* --- programs as text and files (isa_text.c, program.c) ----------------------------------------------------------- */

/* A stream with what it needs to run: micro-ops, and buffers by name. docs/reference/vta-isa.md has the text and the
 * file. */
enum vta_sizes { VTA_NAME_BYTES = 32 };
typedef struct vta_program_buffer {
    char name[VTA_NAME_BYTES];
    uint64_t bytes;
} vta_program_buffer;

typedef struct vta_program {
    vta_config config;
    vta_insn *insns; /* dram_base 0 where relocated */
    uint32_t *uops;  /* the micro-op image */
    vta_program_buffer *buffers;
    vta_relocation *relocations; /* by ascending insn */
    uint32_t n_insns, n_uops, n_buffers, n_relocations;
} vta_program;

/* Text into a program, for `base` (NULL: the default) unless the text names a configuration. Errors carry line and
 * column. The program is to be released; after an error it is empty. */
vta_status vta_assemble(const char *name, const char *text, size_t len, const vta_config *base, vta_program *out,
                        vta_error *e);
/* A program as text, canonical: assembling it gives the same program. Returns the length; writes at most `size`. */
size_t vta_disassemble(const vta_program *p, char *out, size_t size);
/* One instruction on one line, without newline. Returns the length; writes at most `size`. */
size_t vta_insn_print(const vta_geometry *g, const vta_insn *insn, char *out, size_t size);
/* Programs as bytes. vta_program_write returns the length and writes nothing when `size` is less. */
bool vta_program_is_binary(const void *data, size_t len);
size_t vta_program_write(const vta_program *p, void *out, size_t size);
vta_status vta_program_read(const char *name, const void *data, size_t len, vta_program *out, vta_error *e);
/* The instructions with addresses filled in, into out[n_insns]; bindings[0] is where the micro-op image lies.
 * VTA_FAULT: a row of a transfer leaves its binding. */
vta_status vta_program_link(const vta_program *p, const vta_memory *bindings, vta_insn *out, vta_error *e);
void vta_program_release(vta_program *p);

/* --- run-time (context.c, queue.c, kernel.c) ---------------------------------------------------------------------- */

typedef struct vta_context vta_context;
typedef uint64_t vta_buffer; /* never 0, never used twice, no address inside */

/* X(id, bit, text): the published debug flags */
#define VTA_DEBUG_FLAGS(X)                                   \
    X(VTA_DEBUG_DUMP_INSN, 1, "dump_insn")                   \
    X(VTA_DEBUG_DUMP_UOP, 2, "dump_uop")                     \
    X(VTA_DEBUG_SKIP_READ_BARRIER, 3, "skip_read_barrier")   \
    X(VTA_DEBUG_SKIP_WRITE_BARRIER, 4, "skip_write_barrier") \
    X(VTA_DEBUG_FORCE_SERIAL, 5, "force_serial")
enum vta_debug_flag {
#define X(id, bit, text) id = 1 << (bit),
    VTA_DEBUG_FLAGS(X)
#undef X
};

/* What vta_synchronize does about tokens that were given and that nobody has taken: X(id, text) */
#define VTA_LEFT_TOKENS(X)                                                                  \
    X(VTA_LEFT_WARN, "warn")    /* told through `log` when their numbers change; they stay */ \
    X(VTA_LEFT_ERROR, "error")  /* VTA_BAD_STATE; nothing runs, and what is queued is gone */  \
    X(VTA_LEFT_IGNORE, "ignore") /* they stay */
typedef enum vta_left {
#define X(id, text) id,
    VTA_LEFT_TOKENS(X)
#undef X
} vta_left;

typedef struct vta_context_options {
    uint32_t max_insns;   /* capacity of the instruction queue, at least 256; 0: 65536. When full, what it has runs */
    uint32_t max_uops;    /* capacity of the micro-op log between synchronizations; 0: 65536 */
    uint32_t max_kernels; /* micro-op kernels remembered; 0: 4096. When full, all are forgotten and recorded again */
    uint32_t max_buffers; /* 0: 4096 */
    void (*log)(void *user, const char *text); /* dumps of the debug flags, warnings; NULL: standard error */
    void *log_user;
    uint32_t wait_cycles; /* patience of a run that a full queue causes; 0: 2^31 */
    vta_left left_tokens;
} vta_context_options;

/* Bytes of caller's memory that a context of these capacities needs (64-byte aligned). Device memory for the queues is
 * taken from the device. */
size_t vta_context_bytes(const vta_device *d, const vta_context_options *o);
/* `d` must outlive the context and stay at its address. */
vta_status vta_context_init(void *memory, size_t bytes, vta_device *d, const vta_context_options *o, vta_context **out,
                            vta_error *e);
void vta_context_destroy(vta_context *c); /* frees its buffers and what it took from the device; not `memory` */
vta_device *vta_context_device(const vta_context *c);
uint32_t vta_context_debug(vta_context *c, uint32_t flags); /* returns the flags before */
/* The device's counters as JSON, the published keys first, then "left_tokens" of the last synchronization, "buffers"
 * that there are, and bytes that were copied: "to_device_nbytes", "from_device_nbytes", "within_device_nbytes". Returns
 * the length; 0: the device counts nothing. */
size_t vta_context_counters(vta_context *c, char *out, size_t size);
void vta_context_clear_counters(vta_context *c);
/* The first error since the last call of this function, VTA_OK if there was none. While one is set the context refuses
 * work with its status. A call that was refused has queued nothing; what was queued before it stays: vta_discard. */
vta_status vta_context_last_error(vta_context *c, vta_error *out);
/* Drops what is queued and not yet run, an open capture too. */
void vta_discard(vta_context *c);

vta_status vta_buffer_alloc(vta_context *c, size_t bytes, vta_buffer *out);
vta_status vta_buffer_map(vta_context *c, void *host, size_t bytes,
                          vta_buffer *out); /* caller keeps it alive; VTA_UNSUPPORTED: stage a copy */
/* Works while an error is pending, too. VTA_BAD_STATE: queued instructions use it: synchronize first. */
vta_status vta_buffer_free(vta_context *c, vta_buffer b);
size_t vta_buffer_bytes(vta_context *c, vta_buffer b);  /* 0: no such buffer */
void *vta_buffer_cpu_ptr(vta_context *c, vta_buffer b); /* NULL: no such buffer */
vta_status vta_buffer_write(vta_context *c, vta_buffer to, size_t offset, const void *from, size_t bytes);
/* Reading, and copying from: VTA_BAD_STATE: a queued store writes it: synchronize first. */
vta_status vta_buffer_read(vta_context *c, vta_buffer from, size_t offset, void *to, size_t bytes);
vta_status vta_buffer_copy(vta_context *c, vta_buffer from, size_t from_offset, vta_buffer to, size_t to_offset,
                           size_t bytes);
vta_status vta_write_barrier(vta_context *c, vta_buffer b, uint32_t elem_bits, uint32_t start, uint32_t extent);
vta_status vta_read_barrier(vta_context *c, vta_buffer b, uint32_t elem_bits, uint32_t start, uint32_t extent);

/* One 2-D transfer; sizes, strides, offsets in elements of `memory`. */
typedef struct vta_transfer {
    enum vta_mem memory;
    uint32_t sram_index, dram_offset;
    uint32_t x_size, y_size, x_stride;
    uint32_t x_pad_before, y_pad_before, x_pad_after, y_pad_after; /* load only */
} vta_transfer;
vta_status vta_load(vta_context *c, vta_buffer from, const vta_transfer *t);
vta_status vta_store(vta_context *c, vta_buffer to, const vta_transfer *t);

/* Micro-op kernels. Between begin and end on the calling thread: loops first (at most two, the first is the outer),
 * then pushes of one mode, one reset_out, and for ALU one operation. */
typedef enum vta_mode { VTA_MODE_GEMM = 0, VTA_MODE_ALU = 1 } vta_mode;
typedef struct vta_uop {
    uint32_t mode, reset_out, dst, src, wgt, alu_opcode, use_imm;
    int32_t imm;
} vta_uop;
typedef int (*vta_record_fn)(void *closure); /* records through vta_uop_*; not 0: dropped */
/* Queues one GEMM or ALU instruction. (site, record, mode, closure bytes) names the kernel: recorded once, found again
 * later; a NULL site records every time. Equal contents share their micro-ops. No lock is held while `record` runs. */
vta_status vta_push(vta_context *c, vta_mode mode, const void *site, vta_record_fn record, void *closure, size_t bytes);
/* On the kernel that this thread is recording. */
vta_status vta_uop_push(const vta_uop *u, vta_error *e);
vta_status vta_uop_loop_begin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor, uint32_t wgt_factor,
                              vta_error *e);
vta_status vta_uop_loop_end(vta_error *e);
/* Why the kernel that this thread is recording will be dropped; VTA_OK: nothing is wrong, or nothing is recorded. */
vta_status vta_record_error(vta_error *out);

vta_status vta_dep_push(vta_context *c, enum vta_stage from, enum vta_stage to);
vta_status vta_dep_pop(vta_context *c, enum vta_stage from, enum vta_stage to);
vta_status vta_synchronize(vta_context *c, uint32_t wait_cycles);
/* Tokens that were left at the last vta_synchronize. Runs that a full queue causes do not count: theirs are for what
 * is queued next. */
void vta_left_tokens(vta_context *c, vta_tokens *out);
/* Instructions queued and not yet run; *out is valid until the next call. Takes no lock. */
uint32_t vta_queued(const vta_context *c, const vta_insn **out);

/* Static check of a stream that starts with *t (updated): no instruction takes a token that none before it gave, and
 * none is left at the end. VTA_DEADLOCK names the first instruction or the queue at fault; *t holds the counts there.
 */
vta_status vta_check_tokens(const vta_geometry *g, const vta_insn *insns, uint32_t count, vta_tokens *t, vta_error *e);

/* --- capture (capture.c); vta_replay.h runs them ------------------------------------------------------------------ */

/* From begin (nothing queued) to end, synchronize closes a run but runs nothing; several runs make one capture. The
 * queue and the micro-op log must hold all of it. `end` writes the arrays into the caller's `memory` (8-byte aligned,
 * of vta_capture_bytes(c), asked before `end`) and leaves the queue empty. */
vta_status vta_capture_begin(vta_context *c);
size_t vta_capture_bytes(vta_context *c);
vta_status vta_capture_end(vta_context *c, void *memory, size_t bytes, vta_capture *out);
/* Which binding of the capture that ended last buffer b is; 0: none. Until the next capture begins. */
uint32_t vta_capture_binding(vta_context *c, vta_buffer b);
/* C text of the capture: constant arrays and `const vta_capture NAME`. Returns the length; writes at most `size`. */
size_t vta_capture_print_c(const vta_capture *p, const char *name, char *out, size_t size);

/* --- memory-mapped hardware (mmio_device.c) ----------------------------------------------------------------------- */

/* vta_mmio_init with a state of its own, which the device's destroy frees; alloc and free must be given.
 * VTA_NO_MEMORY. */
vta_status vta_mmio_device(const vta_config *c, const vta_mmio *io, vta_device *out, vta_error *e);

#ifdef __cplusplus
}
#endif
#endif
