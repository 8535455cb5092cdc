/* tvmrt.h: the one header of the embedded runtime: status codes, log, model tables, contexts, the engine and the
 * operating system functions that a port supplies. C99 and C++; no heap, no dependency beyond the port's own.
 * A generated package and the runtime that it is linked with must agree on TVMRT_ABI_VERSION.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMRT_H
#define TVMRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Configuration: define on the command line, the same for every file of a program -------------------------- */

/* Threads that may work on one run, the calling thread included: N starts N - 1 threads. 0 (or 1): single thread, no
 * thread code is compiled and the port's thread functions are not referenced. At most TVMRT_MAX_WORKERS. */
#ifndef TVMRT_NUM_WORKERS
#define TVMRT_NUM_WORKERS 4
#endif

/* 0 removes the log: its functions become empty inline functions and its ring takes no memory. */
#ifndef TVMRT_LOG_ENABLE
#define TVMRT_LOG_ENABLE 1
#endif

/* Records that the log keeps, of 16 bytes; a power of two. The oldest record gives way when the ring is full. */
#ifndef TVMRT_LOG_CAPACITY
#if TVMRT_NUM_WORKERS > 1
#define TVMRT_LOG_CAPACITY 32
#else
#define TVMRT_LOG_CAPACITY 4
#endif
#endif

/* 1: what is called before and after every task, tvmrt_cancel, and a counter of cycles; all files of a program alike.
 * 0: none of it is compiled. */
#ifndef TVMRT_HOOKS
#define TVMRT_HOOKS 0
#endif

/* Ports of real-time systems: they allot the stacks of workers, and their schedulers have priorities. */
#if defined(TVMRT_PORT_FREERTOS) || defined(TVMRT_PORT_ZEPHYR) || defined(TVMRT_PORT_CMSIS_RTOS2)
#define TVMRT_PORT_RTOS 1
#endif

/* Bytes of a worker's stack where the port allots it; a port of a hosted system uses the system's default unless this
 * is defined. docs/reference/tvmrt.md says how large it must be. */
#if defined(TVMRT_PORT_RTOS) && !defined(TVMRT_WORKER_STACK_BYTES)
#define TVMRT_WORKER_STACK_BYTES 4096
#endif

/* How often a thread that waits for a layer looks for it before it goes to sleep (hosted: 1000 looks are 10 to 50
 * microseconds). 0: never; right where a waiting thread would starve one of lower priority. Figures:
 * docs/reference/tvmrt.md. */
#ifndef TVMRT_SPIN
#ifdef TVMRT_PORT_RTOS
#define TVMRT_SPIN 0
#else
#define TVMRT_SPIN 20000
#endif
#endif

/* Room for the port's own objects. A port file checks when compiled that its types fit or names the macro to raise. */
#ifndef TVMRT_MUTEX_BYTES
#ifdef TVMRT_PORT_DUALCORE
#define TVMRT_MUTEX_BYTES 8
#else
#define TVMRT_MUTEX_BYTES (sizeof(void *) == 8 ? 64 : 96)
#endif
#endif
#ifndef TVMRT_COND_BYTES
#ifdef TVMRT_PORT_DUALCORE
#define TVMRT_COND_BYTES 8
#else
#define TVMRT_COND_BYTES (sizeof(void *) == 8 ? 64 : 112)
#endif
#endif
#ifndef TVMRT_THREAD_BYTES
#if defined(TVMRT_PORT_FREERTOS) || defined(TVMRT_PORT_CMSIS_RTOS2)
#define TVMRT_THREAD_BYTES (512 + TVMRT_WORKER_STACK_BYTES)
#elif defined(TVMRT_PORT_ZEPHYR)
#define TVMRT_THREAD_BYTES (sizeof(void *) == 8 ? 768 : 512)
#else
#define TVMRT_THREAD_BYTES 32
#endif
#endif

/* Layout of the tables below and contract of the kernels; a package states the one that it was generated for. */
#define TVMRT_ABI_VERSION 3u

/* Limits of the layer queue's packed word: 8 bits of workers, 24 bits of tasks. */
#define TVMRT_MAX_WORKERS     127
#define TVMRT_MAX_LAYER_TASKS 0xFFFFFFu

#if TVMRT_NUM_WORKERS < 0 || TVMRT_NUM_WORKERS > TVMRT_MAX_WORKERS
#error "TVMRT_NUM_WORKERS must be 0..127"
#endif
#if (TVMRT_LOG_CAPACITY) < 1 || ((TVMRT_LOG_CAPACITY) & ((TVMRT_LOG_CAPACITY) - 1)) != 0
#error "TVMRT_LOG_CAPACITY must be a power of two"
#endif
#define TVMRT_THREADED (TVMRT_NUM_WORKERS > 1)

/* 1: packages for processors with little memory call their operators themselves, one after the other, and have no
 * tables of storage ids, operators and layers at run time; others are as they are. Not with threads. */
#ifndef TVMRT_SMALL
#define TVMRT_SMALL (!TVMRT_THREADED)
#elif TVMRT_SMALL && TVMRT_THREADED
#error "TVMRT_SMALL is for one thread: set TVMRT_NUM_WORKERS to 0"
#endif

/* Placement of static memory: TVMRT_ALIGNED(64) TVMRT_SECTION(".ccmram") static uint8_t ws[...]. Both may be defined
 * on the command line for compilers that say it in another way. Strict C99 has no alignment: there TVMRT_ALIGNED is
 * empty, nothing is checked, and areas need the alignment of a double, which suffices without vector types. */
#ifndef TVMRT_ALIGNED
#if defined(__GNUC__)
#define TVMRT_ALIGNED(bytes) __attribute__((aligned(bytes)))
#elif defined(__cplusplus) && __cplusplus >= 201103L
#define TVMRT_ALIGNED(bytes) alignas(bytes)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TVMRT_ALIGNED(bytes) _Alignas(bytes)
#else
#define TVMRT_ALIGNED(bytes)
#define TVMRT_UNALIGNED 1
#endif
#endif
#if !defined(TVMRT_SECTION) && defined(__GNUC__)
#define TVMRT_SECTION(name) __attribute__((section(name)))
#endif
/* A function that the program may define itself; with a compiler that has no such thing, it has to. */
#if !defined(TVMRT_WEAK) && defined(__GNUC__)
#define TVMRT_WEAK __attribute__((weak))
#endif

/* ---- Status --- */

/* Every status of the runtime: name, value, what to do. 0 is success. Kernels may return any other non-zero value of
 * their own; it reaches the caller unchanged. */
#define TVMRT_STATUS_TABLE(X)                                                                        \
    X(TVMRT_OK, 0, "success")                                                                        \
    X(TVMRT_E_NULL, -1, "a required pointer is null")                                                \
    X(TVMRT_E_SID, -2, "storage id is not in the tensor map")                                        \
    X(TVMRT_E_ABI, -3, "program, package and runtime differ in version or TVMRT_ macros")            \
    X(TVMRT_E_WORKSPACE, -4, "workspace is smaller than the package's WORKSPACE_SIZE")               \
    X(TVMRT_E_ALIGNMENT, -5, "workspace or constants are not aligned as the header demands")         \
    X(TVMRT_E_BUSY, -6, "engine is in use: wait for the runs in progress")                           \
    X(TVMRT_E_PORT, -7, "the operating system refused a mutex, condition, thread or barrier")        \
    X(TVMRT_E_UNSUPPORTED, -8, "this port has no threads")                                           \
    X(TVMRT_E_STATE, -9, "instance is not initialized: call its init function first")                \
    X(TVMRT_E_SHAPE, -10, "a run-time shape exceeds its declared bound or contradicts the model")    \
    X(TVMRT_E_CONSTANTS, -11, "the constants handed over are not this package's file")               \
    X(TVMRT_E_INDEX, -12, "an index, a length or the number of an axis in the data is out of range") \
    X(TVMRT_E_VECTORS, -13, "this machine's vectors are narrower than those the package is for")     \
    X(TVMRT_E_LIBRARY, -14, "a library or a device that an operator calls has failed")               \
    X(TVMRT_E_EXTENT, -16, "an input extent is 0: set it, or use ..._EMPTY for an empty tensor")      \
    TVMRT_STATUS_OF_HOOKS(X)

#if TVMRT_HOOKS
#define TVMRT_STATUS_OF_HOOKS(X) X(TVMRT_E_CANCELLED, -15, "the run was cancelled")
#else
#define TVMRT_STATUS_OF_HOOKS(X)
#endif

typedef enum tvmrt_status {
#define TVMRT_STATUS_ROW(name, value, text) name = value,
    TVMRT_STATUS_TABLE(TVMRT_STATUS_ROW)
#undef TVMRT_STATUS_ROW
        TVMRT_STATUS_END = 0x7FFFFFFF /* makes the enum as wide as int32_t */
} tvmrt_status_t;

/* A constant sentence for a status of the table, "status of a kernel" for any other value. Never null. */
const char *tvmrt_status_text(int32_t status);

/* ---- Log --- */

typedef enum tvmrt_log_level {
    TVMRT_LOG_DEBUG = 0,
    TVMRT_LOG_INFO = 1,
    TVMRT_LOG_WARNING = 2,
    TVMRT_LOG_ERROR = 3
} tvmrt_log_level_t;

/* What the log keeps: a status or a kernel's own code, and the operator or (for TVMRT_E_SID) the storage id that it
 * concerns; -1 where neither applies. */
typedef struct tvmrt_log_record {
    tvmrt_log_level_t level;
    int32_t code;
    int32_t op_id;
} tvmrt_log_record_t;

/* Called on the thread that pushes, while a run may be in progress: it must be short and must not run a model. */
typedef void (*tvmrt_log_callback_t)(const tvmrt_log_record_t *record);

#if TVMRT_LOG_ENABLE
/* Sets (or with NULL removes) the function that sees every record as it is pushed. Any thread, any time. */
void tvmrt_log_set_callback(tvmrt_log_callback_t callback);
/* Appends a record; drops the oldest one when the ring is full. Never waits. Any thread, any time. */
void tvmrt_log_push(tvmrt_log_level_t level, int32_t code, int32_t op_id);
/* Takes the oldest record; false when there is none. Any thread, any time. */
bool tvmrt_log_pop(tvmrt_log_record_t *out_record);
/* Removes all records and sets the count of dropped ones to 0. */
void tvmrt_log_clear(void);
/* Records in the ring: exact when no other thread pushes or pops at the moment. */
uint32_t tvmrt_log_count(void);
/* Records lost since the last clear because the ring was full. */
uint32_t tvmrt_log_dropped(void);
#else
static inline void tvmrt_log_set_callback(tvmrt_log_callback_t callback)
{
    (void)callback;
}
static inline void tvmrt_log_push(tvmrt_log_level_t level, int32_t code, int32_t op_id)
{
    (void)level;
    (void)code;
    (void)op_id;
}
static inline bool tvmrt_log_pop(tvmrt_log_record_t *out_record)
{
    (void)out_record;
    return false;
}
static inline void tvmrt_log_clear(void)
{
}
static inline uint32_t tvmrt_log_count(void)
{
    return 0;
}
static inline uint32_t tvmrt_log_dropped(void)
{
    return 0;
}
#endif

/* ---- Model tables: all const, made by the compiler --- */

/* Who executes an operator. The engine calls every operator through its function, whatever the kind; the kind tells
 * tools and applications where the work goes. */
typedef enum tvmrt_backend_kind {
    TVMRT_BACKEND_CPU = 0,
    TVMRT_BACKEND_VTA = 1,
    TVMRT_BACKEND_EXTERNAL = 2 /* a library or another compiler's code */
} tvmrt_backend_kind_t;

typedef enum tvmrt_storage_kind {
    TVMRT_STORAGE_INPUT = 0,    /* index: which input of the model */
    TVMRT_STORAGE_OUTPUT = 1,   /* index: which output of the model */
    TVMRT_STORAGE_CONSTANT = 2, /* index: 0 */
    TVMRT_STORAGE_WORKSPACE = 3 /* index: 0 */
} tvmrt_storage_kind_t;

/* Where a storage id lives. Row i of a tensor map describes sid i. Views share bytes by overlapping rows. */
typedef struct tvmrt_tensor_map_entry {
    int32_t sid;
    tvmrt_storage_kind_t kind;
    uint32_t index;
    size_t offset; /* bytes from the start of the input, output, constant area or workspace */
    size_t size;   /* bytes; 0 for an empty tensor */
} tvmrt_tensor_map_entry_t;

/* One operator of the model. Its arguments are the pointers of its inputs and then of its outputs, in this order. */
typedef struct tvmrt_op_desc {
    const char *name;
    tvmrt_backend_kind_t backend;
    const int32_t *input_sids;
    const int32_t *output_sids;
    uint16_t num_inputs;
    uint16_t num_outputs;
    uint32_t parts; /* tasks that the operator is cut into, at least 1; fixed at compile time */
} tvmrt_op_desc_t;

/* A kernel: computes part `part` of `parts` (the operator's own number) of an operator. `args` points to an array of
 * `void *`: inputs, then outputs. Parts of one operator may run in any order and at the same time, so they write
 * disjoint bytes. Returns 0, or a status that ends the run at the barrier of the layer. */
typedef int32_t (*tvmrt_op_func_t)(const void *args, uint32_t part, uint32_t parts);

/* Operators that do not depend on each other. Its tasks are all parts of its operators. */
typedef struct tvmrt_schedule_layer {
    const uint16_t *op_ids;
    uint32_t num_ops;
    uint32_t num_tasks; /* sum of parts over op_ids, at most TVMRT_MAX_LAYER_TASKS */
} tvmrt_schedule_layer_t;

typedef enum tvmrt_step_kind {
    TVMRT_STEP_RUN = 0,         /* runs `count` layers from layer `at` on */
    TVMRT_STEP_JUMP = 1,        /* step `at` comes next; the number of steps: the run ends */
    TVMRT_STEP_JUMP_IF_ZERO = 2 /* the same when the first byte of storage id `sid` is 0 */
} tvmrt_step_kind_t;

/* How a run goes on where the model has branches or loops. */
typedef struct tvmrt_schedule_step {
    tvmrt_step_kind_t kind;
    uint32_t at;
    uint32_t count;
    int32_t sid;
} tvmrt_schedule_step_t;

/* The whole run: layers in order, a barrier after each; or, with steps, one step after the other from the first on. */
typedef struct tvmrt_schedule_desc {
    const tvmrt_schedule_layer_t *layers;
    uint32_t num_layers;
    const tvmrt_schedule_step_t *steps; /* NULL: all layers in order */
    uint32_t num_steps;
} tvmrt_schedule_desc_t;

/* Everything that the compiler knows about a model. */
typedef struct tvmrt_model_desc {
    uint32_t abi_version; /* TVMRT_ABI_VERSION of the package */
    const char *name;
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t num_tensors;
    uint32_t num_ops;
    const tvmrt_tensor_map_entry_t *tensor_map; /* num_tensors rows */
    const tvmrt_op_desc_t *op_descs;            /* num_ops rows */
    const tvmrt_op_func_t *cpu_funcs;           /* num_ops rows */
    const tvmrt_schedule_desc_t *schedule;
    size_t const_bytes;
    size_t const_align; /* a power of two */
    size_t workspace_bytes;
    size_t workspace_align; /* a power of two */
} tvmrt_model_desc_t;

/* ---- Port: what an operating system supplies --- */

/* Opaque room for the port's types. All functions return 0 or TVMRT_E_PORT (TVMRT_E_UNSUPPORTED without threads). */
typedef union tvmrt_mutex {
    void *pointer;
    uint64_t word;
    unsigned char bytes[TVMRT_MUTEX_BYTES];
} tvmrt_mutex_t;

typedef union tvmrt_cond {
    void *pointer;
    uint64_t word;
    unsigned char bytes[TVMRT_COND_BYTES];
} tvmrt_cond_t;

typedef union tvmrt_thread {
    void *pointer;
    uint64_t word;
    unsigned char bytes[TVMRT_THREAD_BYTES];
} tvmrt_thread_t;

/* Counts tasks down: one thread waits until as many arrivals came as the last reset announced. */
typedef struct tvmrt_barrier {
    tvmrt_mutex_t mutex;
    tvmrt_cond_t done;
    uint32_t pending; /* arrivals still to come; atomic */
    uint32_t waiting; /* 1 while the waiting thread sleeps or is about to; atomic */
    uint32_t spin;    /* times to look at `pending` before sleeping; set by the waiting thread, 0 from init */
} tvmrt_barrier_t;

typedef void (*tvmrt_thread_func_t)(void *arg);

int tvmrt_mutex_init(tvmrt_mutex_t *mutex);
int tvmrt_mutex_lock(tvmrt_mutex_t *mutex);
int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex);
int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex);

/* The caller of wait, signal and broadcast holds the mutex that all waiters of this condition use. Wake-ups without a
 * signal are allowed: waiters test their predicate in a loop. */
int tvmrt_cond_init(tvmrt_cond_t *cond);
int tvmrt_cond_wait(tvmrt_cond_t *cond, tvmrt_mutex_t *mutex);
int tvmrt_cond_signal(tvmrt_cond_t *cond);
int tvmrt_cond_broadcast(tvmrt_cond_t *cond);
int tvmrt_cond_destroy(tvmrt_cond_t *cond);

/* `thread` stays where it is until joined; it holds whatever the port needs, a stack included. */
int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg);
int tvmrt_thread_join(tvmrt_thread_t *thread);
/* `thread` sleeps and is about to be woken by the calling one: it should not start on the processor of that. A hint,
 * which may do nothing; never two calls for one thread at once. */
void tvmrt_thread_keep_off(tvmrt_thread_t *thread);

int tvmrt_barrier_init(tvmrt_barrier_t *barrier);
/* Announces `count` arrivals. Only between a completed sync (or the init) and the first arrival. */
int tvmrt_barrier_reset(tvmrt_barrier_t *barrier, uint32_t count);
/* One of the announced arrivals. Threads that return from sync see what the caller wrote before. */
int tvmrt_barrier_arrive(tvmrt_barrier_t *barrier);
/* Returns when all announced arrivals came. One thread at a time. */
int tvmrt_barrier_sync(tvmrt_barrier_t *barrier);
int tvmrt_barrier_destroy(tvmrt_barrier_t *barrier);

/* Processors that threads of this program can use, at least 1. A run without a limit of its own uses no more threads,
 * and threads look for work TVMRT_SPIN times before they sleep only while each of them has a processor. */
uint32_t tvmrt_port_processors(void);

/* TVMRT_OK, or TVMRT_E_ABI when the port's file is compiled with other sizes of these objects than the caller. */
int tvmrt_port_check(size_t mutex_bytes, size_t cond_bytes, size_t thread_bytes);

/* How often this process was copied by fork since its first worker started; a copy has the memory of an engine but not
 * its threads. Always 0 where there is no fork. */
uint32_t tvmrt_port_forks(void);

/* ---- Engine --- */

struct tvmrt_engine;
struct tvmrt_context;

/* The explicit queue of the current layer: entry k is (operator, part), found from the layer's operators and their
 * parts, so that nothing is copied and a layer may have any number of tasks. */
typedef struct tvmrt_layer_queue {
    const struct tvmrt_context *context;
    const tvmrt_schedule_layer_t *layer;
    uint32_t head; /* atomic: workers allowed << 24 | tasks left */
#if TVMRT_THREADED
    uint32_t taken[TVMRT_NUM_WORKERS]; /* atomic: tasks taken of each worker's share of the layer */
#endif
} tvmrt_layer_queue_t;

/* A thread of the engine. Worker 0 is the thread that calls run and has no entry of this type. */
typedef struct tvmrt_worker {
    tvmrt_thread_t thread;
    tvmrt_cond_t wake;
    struct tvmrt_engine *engine;
    uint32_t index;    /* 1.. */
    uint32_t sleeping; /* under the engine's mutex */
} tvmrt_worker_t;

/* Workers and the queue that they share. Put it into static storage, start it as TVMRT_ENGINE_INIT, and let any number
 * of instances of any number of packages use it. All members belong to the runtime. */
typedef struct tvmrt_engine {
    uint32_t state; /* atomic: off, starting, idle, running, stopping; forks of the process so far << 3 */
#if TVMRT_THREADED
    uint32_t num_threads; /* started: 0..TVMRT_NUM_WORKERS - 1 */
    uint32_t processors;
    uint32_t spin;        /* atomic: of the current run */
    uint32_t sleepers;    /* atomic: threads that sleep or are about to */
    uint32_t stop;        /* atomic */
    uint32_t failed_task; /* under mutex: the lowest failed task of the layer */
    int32_t failed_status;
    tvmrt_mutex_t mutex;
    tvmrt_layer_queue_t task_queue;
    tvmrt_barrier_t layer_barrier;
    tvmrt_worker_t workers[TVMRT_NUM_WORKERS - 1];
#endif
} tvmrt_engine_t;

/* static tvmrt_engine_t engine = TVMRT_ENGINE_INIT; (all zero, so that the object takes no space in an image) */
#if TVMRT_THREADED
#define TVMRT_ENGINE_INIT                                                 \
    {                                                                     \
        0, 0, 0, 0, 0, 0, 0, 0, {0}, {0, 0, 0, {0}}, {{0}, {0}, 0, 0, 0}, \
        { {{0}, {0}, 0, 0, 0} }                                           \
    }
#else
#define TVMRT_ENGINE_INIT {0}
#endif

/* What the engine calls for an operator. */
typedef struct tvmrt_op_exec {
    tvmrt_op_func_t func;
    const void *args; /* array of void *: inputs, then outputs */
} tvmrt_op_exec_t;

/* One instance of a model at run time: where its bytes are and how its operators are called. Belongs to one run at a
 * time; different contexts may run at the same time. */
typedef struct tvmrt_context {
    const tvmrt_model_desc_t *model;
    tvmrt_engine_t *engine;          /* NULL: the default engine */
    const void *const *inputs;       /* model->num_inputs pointers, bound before each run */
    void *const *outputs;            /* model->num_outputs pointers, bound before each run */
    const void *const_workspace;     /* model->const_bytes */
    void *workspace;                 /* model->workspace_bytes */
    const tvmrt_op_exec_t *op_execs; /* model->num_ops entries */
    uint32_t max_workers;            /* threads that a run may use, the caller included; 0: one per processor */
#if TVMRT_HOOKS
    uint32_t cancelled;              /* atomic; of tvmrt_cancel */
#endif
} tvmrt_context_t;

/* The engine of a program that does not bring its own; one object in static storage. */
tvmrt_engine_t *tvmrt_engine_default(void);

/* Starts the workers of `engine` (NULL: the default one) if they are not running yet. May be called by several threads
 * at once. When the system gives fewer threads than asked for, the engine works with those and logs a warning.
 * Errors: TVMRT_E_ABI (an engine of the caller's, and the caller is compiled with another TVMRT_NUM_WORKERS than the
 * runtime), TVMRT_E_BUSY (being shut down), TVMRT_E_PORT. */
int32_t tvmrt_engine_init_sized(tvmrt_engine_t *engine, size_t engine_size);
static inline int32_t tvmrt_engine_init(tvmrt_engine_t *engine)
{
    return tvmrt_engine_init_sized(engine, sizeof(tvmrt_engine_t));
}

/* Stops and joins the workers; the engine can be started again. TVMRT_E_BUSY while a run is in progress, TVMRT_E_ABI as
 * for init. */
int32_t tvmrt_engine_shutdown_sized(tvmrt_engine_t *engine, size_t engine_size);
static inline int32_t tvmrt_engine_shutdown(tvmrt_engine_t *engine)
{
    return tvmrt_engine_shutdown_sized(engine, sizeof(tvmrt_engine_t));
}

/* Runs all layers, or steps, on context->engine and returns 0, or the status of the first failed task in schedule order
 * of the first layer that failed, and logs it with its operator (both the same for every number of workers). All tasks
 * of that layer run, none of later ones.
 * When the engine is not started, was started before a fork that made this process, or runs something for another
 * thread at the moment, the calling thread does all the work itself: two runs never wait for each other. Results do not
 * depend on the number of workers. */
int32_t tvmrt_engine_run(const tvmrt_context_t *context, const tvmrt_schedule_desc_t *schedule);

/* The same on the calling thread alone; needs no engine. */
int32_t tvmrt_engine_run_single(const tvmrt_context_t *context, const tvmrt_schedule_desc_t *schedule);

/* ---- Semantic layer --- */

/* Prepares `context` for `model`: checks ABI, workspace size and alignment of both areas, that the schedule's steps
 * name layers, steps and storage that are there (else TVMRT_E_ABI), clears the rest; inputs, outputs, op_execs and
 * engine are set by the caller afterwards. `workspace` may be NULL when the model needs none, so may `const_workspace`.
 * Errors: TVMRT_E_NULL, TVMRT_E_ABI, TVMRT_E_WORKSPACE, TVMRT_E_ALIGNMENT, all logged. */
int32_t tvmrt_semantic_init(tvmrt_context_t *context, const tvmrt_model_desc_t *model, const void *const_workspace,
                            void *workspace, size_t workspace_size);

/* The address of storage id `sid` in `context`. Constants come back without `const` because argument tables hold one
 * kind of pointer; kernels never write them. Errors, each with a log record: TVMRT_E_SID (no such id, or its row is
 * inconsistent), TVMRT_E_NULL (the input, output or area that it lies in is null; allowed when its size is 0). */
int32_t tvmrt_semantic_resolve_sid(const tvmrt_context_t *context, int32_t sid, void **out_pointer);

/* Resolves the arguments of all operators in order into `args` (inputs, then outputs, of operator 0, 1, ...), which
 * holds `num_args` pointers, and fills op_execs (model->num_ops entries) with functions and argument addresses.
 * TVMRT_E_SID when num_args is not the sum over all operators. A package's model_fill_args is this call. */
int32_t tvmrt_semantic_fill_args(const tvmrt_context_t *context, void **args, size_t num_args,
                                 tvmrt_op_exec_t *op_execs);

/* ---- Atomics: for tvmrt.c and ports --- */

/* Where they come from: TVMRT_ATOMICS 1: the __atomic functions of gcc and clang. 2: C11's, for other compilers: the
 * words above have plain types, which is the same where a word is free of locks. 3: TVMRT_ATOMIC_HOOKS is defined, for
 * cores that have no such instructions (Cortex-M0+ of RP2040): what the board supplies keeps everybody else out, other
 * cores and interrupts of this one, as with a hardware spin lock. 0: plain accesses, one thread. */
#ifndef TVMRT_ATOMICS
#if defined(TVMRT_ATOMIC_HOOKS)
#define TVMRT_ATOMICS 3
#elif defined(__GCC_ATOMIC_INT_LOCK_FREE)
#define TVMRT_ATOMICS (__GCC_ATOMIC_INT_LOCK_FREE == 2)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__STDC_NO_ATOMICS__)
#define TVMRT_ATOMICS 2
#else
#define TVMRT_ATOMICS 0
#endif
#endif
#if TVMRT_ATOMICS == 2
#include <stdatomic.h>
#if ATOMIC_INT_LOCK_FREE != 2
#undef TVMRT_ATOMICS
#define TVMRT_ATOMICS 0
#endif
#endif
#if TVMRT_ATOMICS == 0 && TVMRT_THREADED
#error "no atomic operations of 4 bytes: set TVMRT_NUM_WORKERS to 0, compile as C11, or define TVMRT_ATOMIC_HOOKS"
#endif

/* Of the board, with TVMRT_ATOMIC_HOOKS. They do not nest. */
uint32_t tvmrt_port_atomic_begin(void);
void tvmrt_port_atomic_end(uint32_t begun);

static inline uint32_t tvmrt_atomic_load(const uint32_t *word)
{
#if TVMRT_ATOMICS == 1
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
#elif TVMRT_ATOMICS == 2
    return atomic_load((const _Atomic uint32_t *)word);
#elif TVMRT_ATOMICS == 3
    const uint32_t begun = tvmrt_port_atomic_begin();
    const uint32_t value = *(const volatile uint32_t *)word;

    tvmrt_port_atomic_end(begun);
    return value;
#else
    return *word;
#endif
}

static inline void tvmrt_atomic_store(uint32_t *word, uint32_t value)
{
#if TVMRT_ATOMICS == 1
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
#elif TVMRT_ATOMICS == 2
    atomic_store((_Atomic uint32_t *)word, value);
#elif TVMRT_ATOMICS == 3
    const uint32_t begun = tvmrt_port_atomic_begin();

    *(volatile uint32_t *)word = value;
    tvmrt_port_atomic_end(begun);
#else
    *word = value;
#endif
}

/* Returns the value after adding. */
static inline uint32_t tvmrt_atomic_add(uint32_t *word, uint32_t amount)
{
#if TVMRT_ATOMICS == 1
    return __atomic_add_fetch(word, amount, __ATOMIC_SEQ_CST);
#elif TVMRT_ATOMICS == 2
    return atomic_fetch_add((_Atomic uint32_t *)word, amount) + amount;
#elif TVMRT_ATOMICS == 3
    const uint32_t begun = tvmrt_port_atomic_begin();
    const uint32_t value = *(volatile uint32_t *)word += amount;

    tvmrt_port_atomic_end(begun);
    return value;
#else
    return *word += amount;
#endif
}

/* Replaces *word by `desired` if it equals `expected`; says whether it did. */
static inline bool tvmrt_atomic_replace(uint32_t *word, uint32_t expected, uint32_t desired)
{
#if TVMRT_ATOMICS == 1
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#elif TVMRT_ATOMICS == 2
    return atomic_compare_exchange_strong((_Atomic uint32_t *)word, &expected, desired);
#else
#if TVMRT_ATOMICS == 3
    const uint32_t begun = tvmrt_port_atomic_begin();
    const bool equal = *(volatile uint32_t *)word == expected;

    if (equal)
        *(volatile uint32_t *)word = desired;
    tvmrt_port_atomic_end(begun);
#else
    const bool equal = *word == expected;

    if (equal)
        *word = desired;
#endif
    return equal;
#endif
}

/* Tells the processor that this thread spins. */
static inline void tvmrt_cpu_relax(void)
{
#if !defined(__GNUC__)
    /* nothing that is known */
#elif defined(__x86_64__) || defined(__i386__)
    __asm__ __volatile__("pause");
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
    __asm__ __volatile__("yield");
#endif
}

/* ---- Hooks: with TVMRT_HOOKS --- */

#if TVMRT_HOOKS
/* Before and after each task, on the thread that runs it, several at the same time where there are workers: for a
 * watchdog, a yield, a table of times, the end of a run. They are weak: a program defines what it needs. Before: 0, or
 * the status that ends the run as if the kernel had returned it; the kernel and the hook after it are not called then.
 * After: the kernel's status, and what tvmrt_port_cycles counted meanwhile. */
int32_t tvmrt_hook_before(const tvmrt_context_t *context, uint32_t op_id, uint32_t part);
void tvmrt_hook_after(const tvmrt_context_t *context, uint32_t op_id, uint32_t part, int32_t status, uint32_t cycles);

/* A counter that runs up and begins again behind 2^32 - 1; differences count. Of the port, and weak there: a board with
 * another counter has its own. POSIX: nanoseconds; others: cycles of Cortex-M's DWT, which the board
 * has to switch on, or of RISC-V; 0 on others. */
uint32_t tvmrt_port_cycles(void);

/* What ports without an operating system's clock count: CYCCNT of the DWT, on Cortex-M3 and larger (DEMCR.TRCENA and
 * DWT_CTRL.CYCCNTENA switch it on), mcycle on RISC-V. */
static inline uint32_t tvmrt_cpu_cycles(void)
{
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__) || defined(__ARM_ARCH_8M_MAIN__) || \
    defined(__ARM_ARCH_8_1M_MAIN__)
    return *(const volatile uint32_t *)0xE0001004u;
#elif defined(__riscv) && defined(__GNUC__)
    uint32_t cycles;

    __asm__ __volatile__(".option push\n.option arch, +zicsr\ncsrr %0, mcycle\n.option pop" : "=r"(cycles));
    return cycles;
#else
    return 0;
#endif
}

/* Ends the run in progress with TVMRT_E_CANCELLED as soon as the kernels that are at work return, and each later one at
 * once, until tvmrt_resume. Any thread, an interrupt, a hook. The workspace is fit for a next run. */
static inline void tvmrt_cancel(tvmrt_context_t *context)
{
    tvmrt_atomic_store(&context->cancelled, 1);
}

static inline void tvmrt_resume(tvmrt_context_t *context)
{
    tvmrt_atomic_store(&context->cancelled, 0);
}
#endif

/* ---- Small packages: with TVMRT_SMALL --- */

#if TVMRT_SMALL
/* In front of operator `op_id` of a package that calls its operators itself: a status that is not 0 ends the run. */
static inline int32_t tvmrt_small_before(const tvmrt_context_t *context, uint32_t op_id, uint32_t *out_start)
{
#if TVMRT_HOOKS
    int32_t status = TVMRT_E_CANCELLED;

    if (tvmrt_atomic_load(&context->cancelled) == 0u)
        status = tvmrt_hook_before(context, op_id, 0);
    if (status != TVMRT_OK)
        tvmrt_log_push(TVMRT_LOG_ERROR, status, (int32_t)op_id);
    *out_start = tvmrt_port_cycles();
    return status;
#else
    (void)context;
    (void)op_id;
    *out_start = 0;
    return TVMRT_OK;
#endif
}

/* Behind it. Returns the operator's status, and logs it unless it is 0. */
static inline int32_t tvmrt_small_after(const tvmrt_context_t *context, uint32_t op_id, uint32_t start, int32_t status)
{
#if TVMRT_HOOKS
    tvmrt_hook_after(context, op_id, 0, status, tvmrt_port_cycles() - start);
#else
    (void)context;
    (void)start;
#endif
    if (status != TVMRT_OK)
        tvmrt_log_push(TVMRT_LOG_ERROR, status, (int32_t)op_id);
    return status;
}

/* Logs and returns a status that is no operator's. */
static inline int32_t tvmrt_small_fail(int32_t status)
{
    tvmrt_log_push(TVMRT_LOG_ERROR, status, -1);
    return status;
}

/* Whether both areas are there and aligned; one of no bytes need not be. */
static inline int32_t tvmrt_small_check(const void *constants, size_t const_bytes, size_t const_align,
                                        const void *workspace, size_t workspace_bytes, size_t workspace_align)
{
    const uintptr_t from = const_bytes != 0 ? (uintptr_t)constants : const_align;
    const uintptr_t in = workspace_bytes != 0 ? (uintptr_t)workspace : workspace_align;

    if (from == 0 || in == 0)
        return tvmrt_small_fail(TVMRT_E_NULL);
#ifndef TVMRT_UNALIGNED
    if ((from & (const_align - 1)) != 0 || (in & (workspace_align - 1)) != 0)
        return tvmrt_small_fail(TVMRT_E_ALIGNMENT);
#endif
    return TVMRT_OK;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
