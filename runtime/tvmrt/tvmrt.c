/* tvmrt.c: the embedded runtime: log ring, semantic layer (storage ids to addresses) and the engine that runs a static
 * schedule layer by layer over worker threads. Freestanding C99: no heap, no standard library; threads through the
 * port. Objects in static storage: the default engine and the log ring, nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmrt.h"

const char *tvmrt_status_text(int32_t status)
{
    switch (status) {
#define TVMRT_STATUS_CASE(name, value, text) \
    case name: return text;
        TVMRT_STATUS_TABLE(TVMRT_STATUS_CASE)
#undef TVMRT_STATUS_CASE
    default: /* any other value is legal: it comes from a kernel */ return "status of a kernel";
    }
}

/* ---- Log: a bounded queue for many writers and many readers --- */
#if TVMRT_LOG_ENABLE

#define LOG_MASK ((uint32_t)(TVMRT_LOG_CAPACITY) - 1u)

/* Slot i is free for the writer of position p (p & LOG_MASK == i) when turn == p - i, and holds the record of p when
 * turn == p - i + 1. Counting from p - i makes zeroed memory the empty ring, so that no initialisation is needed. */
typedef struct log_slot {
    uint32_t turn;
    tvmrt_log_record_t record;
} log_slot;

static struct {
    log_slot slots[TVMRT_LOG_CAPACITY];
    uint32_t head; /* next position to read */
    uint32_t tail; /* next position to write */
    uint32_t dropped;
    tvmrt_log_callback_t callback;
} g_log;

void tvmrt_log_set_callback(tvmrt_log_callback_t callback)
{
#if TVMRT_ATOMICS == 1
    __atomic_store_n(&g_log.callback, callback, __ATOMIC_SEQ_CST);
#else
    *(tvmrt_log_callback_t volatile *)&g_log.callback = callback;
#endif
}

static tvmrt_log_callback_t log_callback(void)
{
#if TVMRT_ATOMICS == 1
    return __atomic_load_n(&g_log.callback, __ATOMIC_SEQ_CST);
#else
    return *(tvmrt_log_callback_t volatile *)&g_log.callback;
#endif
}

/* False when the slot at the tail still holds a record, or is being read. */
static bool log_write(const tvmrt_log_record_t *record)
{
    for (;;) {
        uint32_t position = tvmrt_atomic_load(&g_log.tail);
        uint32_t index = position & LOG_MASK;
        log_slot *slot = &g_log.slots[index];
        int32_t lead = (int32_t)(tvmrt_atomic_load(&slot->turn) - (position - index));

        if (lead < 0)
            return false;
        if (lead == 0 && tvmrt_atomic_replace(&g_log.tail, position, position + 1)) {
            slot->record = *record;
            tvmrt_atomic_store(&slot->turn, position - index + 1);
            return true;
        }
    }
}

bool tvmrt_log_pop(tvmrt_log_record_t *out_record)
{
    for (;;) {
        uint32_t position = tvmrt_atomic_load(&g_log.head);
        uint32_t index = position & LOG_MASK;
        log_slot *slot = &g_log.slots[index];
        int32_t lead = (int32_t)(tvmrt_atomic_load(&slot->turn) - (position - index + 1));

        if (lead < 0)
            return false;
        if (lead == 0 && tvmrt_atomic_replace(&g_log.head, position, position + 1)) {
            *out_record = slot->record;
            tvmrt_atomic_store(&slot->turn, position - index + TVMRT_LOG_CAPACITY);
            return true;
        }
    }
}

void tvmrt_log_push(tvmrt_log_level_t level, int32_t code, int32_t op_id)
{
    tvmrt_log_record_t record, oldest;
    tvmrt_log_callback_t callback = log_callback();

    record.level = level;
    record.code = code;
    record.op_id = op_id;
    if (callback != NULL)
        callback(&record);
    /* Two attempts: a full ring gives up its oldest record for the second one. When another thread was stopped halfway
     * through that slot, waiting for it could take for ever under fixed priorities, so the new record is lost. */
    if (log_write(&record))
        return;
    if (tvmrt_log_pop(&oldest))
        tvmrt_atomic_add(&g_log.dropped, 1);
    if (!log_write(&record))
        tvmrt_atomic_add(&g_log.dropped, 1);
}

void tvmrt_log_clear(void)
{
    tvmrt_log_record_t record;
    uint32_t left;

    for (left = TVMRT_LOG_CAPACITY; left > 0 && tvmrt_log_pop(&record); left--)
        ;
    tvmrt_atomic_store(&g_log.dropped, 0);
}

uint32_t tvmrt_log_count(void)
{
    uint32_t head = tvmrt_atomic_load(&g_log.head);
    uint32_t count = tvmrt_atomic_load(&g_log.tail) - head;

    return count < TVMRT_LOG_CAPACITY ? count : TVMRT_LOG_CAPACITY; /* head may be stale by now */
}

uint32_t tvmrt_log_dropped(void)
{
    return tvmrt_atomic_load(&g_log.dropped);
}
#endif

static int32_t fail(int32_t status, int32_t id)
{
    tvmrt_log_push(TVMRT_LOG_ERROR, status, id);
    return status;
}

/* ---- Semantic layer --- */

static int32_t check_area(const void *area, size_t bytes, size_t align)
{
    if (bytes == 0)
        return TVMRT_OK;
    if (area == NULL)
        return TVMRT_E_NULL;
#ifdef TVMRT_UNALIGNED
    (void)align;
    return TVMRT_OK;
#else
    return ((uintptr_t)area & (align - 1)) != 0 ? TVMRT_E_ALIGNMENT : TVMRT_OK;
#endif
}

static int32_t check_memory(const tvmrt_model_desc_t *model, const void *constants, const void *workspace, size_t size)
{
    int32_t status = check_area(constants, model->const_bytes, model->const_align);

    if (status == TVMRT_OK)
        status = check_area(workspace, model->workspace_bytes, model->workspace_align);
    return status == TVMRT_OK && size < model->workspace_bytes ? (int32_t)TVMRT_E_WORKSPACE : status;
}

/* Whether a step names layers, a step or a byte that are there. */
static bool is_sound_step(const tvmrt_model_desc_t *model, const tvmrt_schedule_step_t *step)
{
    const tvmrt_schedule_desc_t *schedule = model->schedule;

    switch (step->kind) {
    case TVMRT_STEP_RUN: return step->at <= schedule->num_layers && step->count <= schedule->num_layers - step->at;
    case TVMRT_STEP_JUMP: return step->at <= schedule->num_steps;
    case TVMRT_STEP_JUMP_IF_ZERO:
        return step->at <= schedule->num_steps && step->sid >= 0 && (uint32_t)step->sid < model->num_tensors &&
               model->tensor_map[step->sid].size > 0;
    }
    return false;
}

static int32_t check_steps(const tvmrt_model_desc_t *model)
{
    const tvmrt_schedule_desc_t *schedule = model->schedule;
    uint32_t i;

    if (schedule == NULL || schedule->steps == NULL)
        return TVMRT_OK;
    for (i = 0; i < schedule->num_steps; i++)
        if (!is_sound_step(model, &schedule->steps[i]))
            return TVMRT_E_ABI;
    return TVMRT_OK;
}

int32_t tvmrt_semantic_init(tvmrt_context_t *context, const tvmrt_model_desc_t *model, const void *const_workspace,
                            void *workspace, size_t workspace_size)
{
    int32_t status;

    if (context == NULL || model == NULL)
        return fail(TVMRT_E_NULL, -1);
    context->model = NULL; /* stays so on failure: an instance that was not initialised is recognised */
    if (model->abi_version != TVMRT_ABI_VERSION)
        return fail(TVMRT_E_ABI, -1);
    status = check_memory(model, const_workspace, workspace, workspace_size);
    if (status == TVMRT_OK)
        status = check_steps(model);
    if (status != TVMRT_OK)
        return fail(status, -1);
    context->engine = NULL;
    context->inputs = NULL;
    context->outputs = NULL;
    context->const_workspace = const_workspace;
    context->workspace = workspace;
    context->op_execs = NULL;
    context->max_workers = 0;
#if TVMRT_HOOKS
    context->cancelled = 0;
#endif
    context->model = model;
    return TVMRT_OK;
}

/* Where the input, output or area of `entry` starts; false when the entry names none that exists. */
static bool storage_base(const tvmrt_context_t *context, const tvmrt_tensor_map_entry_t *entry, uintptr_t *out_base)
{
    const void *base = NULL;

    switch (entry->kind) {
    case TVMRT_STORAGE_INPUT:
        if (entry->index >= context->model->num_inputs)
            return false;
        base = context->inputs != NULL ? context->inputs[entry->index] : NULL;
        break;
    case TVMRT_STORAGE_OUTPUT:
        if (entry->index >= context->model->num_outputs)
            return false;
        base = context->outputs != NULL ? context->outputs[entry->index] : NULL;
        break;
    case TVMRT_STORAGE_CONSTANT:
        if (entry->index != 0 || entry->size > context->model->const_bytes ||
            entry->offset > context->model->const_bytes - entry->size)
            return false;
        base = context->const_workspace;
        break;
    case TVMRT_STORAGE_WORKSPACE:
        if (entry->index != 0 || entry->size > context->model->workspace_bytes ||
            entry->offset > context->model->workspace_bytes - entry->size)
            return false;
        base = context->workspace;
        break;
    }
    *out_base = (uintptr_t)base;
    return true;
}

int32_t tvmrt_semantic_resolve_sid(const tvmrt_context_t *context, int32_t sid, void **out_pointer)
{
    const tvmrt_tensor_map_entry_t *entry;
    uintptr_t base = 0;

    *out_pointer = NULL;
    if (context->model == NULL)
        return fail(TVMRT_E_STATE, sid);
    if (sid < 0 || (uint32_t)sid >= context->model->num_tensors)
        return fail(TVMRT_E_SID, sid);
    entry = &context->model->tensor_map[sid];
    if (entry->sid != sid || (uint32_t)entry->kind > TVMRT_STORAGE_WORKSPACE || !storage_base(context, entry, &base))
        return fail(TVMRT_E_SID, sid);
    if (base == 0)
        return entry->size == 0 ? (int32_t)TVMRT_OK : fail(TVMRT_E_NULL, sid);
    *out_pointer = (void *)(base + entry->offset);
    return TVMRT_OK;
}

/* Resolves `count` ids into args[*used], args[*used + 1], ... */
static int32_t fill_pointers(const tvmrt_context_t *context, const int32_t *sids, uint32_t count, void **args,
                             size_t num_args, size_t *used)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        int32_t status;

        if (*used >= num_args)
            return fail(TVMRT_E_SID, sids[i]);
        status = tvmrt_semantic_resolve_sid(context, sids[i], &args[*used]);
        if (status != TVMRT_OK)
            return status;
        ++*used;
    }
    return TVMRT_OK;
}

int32_t tvmrt_semantic_fill_args(const tvmrt_context_t *context, void **args, size_t num_args,
                                 tvmrt_op_exec_t *op_execs)
{
    const tvmrt_model_desc_t *model = context->model;
    size_t used = 0;
    uint32_t op;

    if (model == NULL)
        return fail(TVMRT_E_STATE, -1);
    for (op = 0; op < model->num_ops; op++) {
        const tvmrt_op_desc_t *desc = &model->op_descs[op];
        size_t first = used;
        int32_t status = fill_pointers(context, desc->input_sids, desc->num_inputs, args, num_args, &used);

        if (status == TVMRT_OK)
            status = fill_pointers(context, desc->output_sids, desc->num_outputs, args, num_args, &used);
        if (status != TVMRT_OK)
            return status;
        op_execs[op].func = model->cpu_funcs[op];
        op_execs[op].args = args + first;
    }
    return used == num_args ? (int32_t)TVMRT_OK : fail(TVMRT_E_SID, -1);
}

/* ---- Engine --- */

/* What an engine does, in the low bits of its state; above them the count of forks when that was so. The word is
 * changed by compare and swap only, which makes it the engine's lock as well. */
enum { ENGINE_OFF = 0, ENGINE_STARTING, ENGINE_IDLE, ENGINE_RUNNING, ENGINE_STOPPING, ENGINE_ACTIVITIES = 8 };

/* The default engine: shared by all packages of a program that do not name another one. */
static tvmrt_engine_t g_engine;

tvmrt_engine_t *tvmrt_engine_default(void)
{
    return &g_engine;
}

#if TVMRT_HOOKS && defined(TVMRT_WEAK)
TVMRT_WEAK int32_t tvmrt_hook_before(const tvmrt_context_t *context, uint32_t op_id, uint32_t part)
{
    (void)context, (void)op_id, (void)part;
    return TVMRT_OK;
}

TVMRT_WEAK void tvmrt_hook_after(const tvmrt_context_t *context, uint32_t op, uint32_t part, int32_t status, uint32_t n)
{
    (void)context, (void)op, (void)part, (void)status, (void)n;
}
#endif

static int32_t call(const tvmrt_context_t *context, const tvmrt_op_exec_t *exec, uint32_t op_id, uint32_t part,
                    uint32_t parts)
{
    int32_t status;
#if TVMRT_HOOKS
    uint32_t start;
    status = TVMRT_E_CANCELLED;
    if (tvmrt_atomic_load(&context->cancelled) == 0u)
        status = tvmrt_hook_before(context, op_id, part);
    if (status != TVMRT_OK)
        return status;
    start = tvmrt_port_cycles();
#endif
#if !TVMRT_HOOKS
    (void)context;
    (void)op_id;
#endif
    status = exec->func(exec->args, part, parts);
#if TVMRT_HOOKS
    tvmrt_hook_after(context, op_id, part, status, tvmrt_port_cycles() - start);
#endif
    return status;
}

static int32_t execute(const tvmrt_context_t *context, uint32_t op_id, uint32_t part)
{
    return call(context, &context->op_execs[op_id], op_id, part, context->model->op_descs[op_id].parts);
}

/* All tasks of a layer in order; the first status that is not 0. */
static int32_t run_layer_single(const tvmrt_context_t *context, const tvmrt_schedule_layer_t *layer)
{
    int32_t first = TVMRT_OK;
    uint32_t i, part;

    for (i = 0; i < layer->num_ops; i++) {
        uint32_t op_id = layer->op_ids[i];

        for (part = 0; part < context->model->op_descs[op_id].parts; part++) {
            int32_t status = execute(context, op_id, part);

            if (first == TVMRT_OK && status != TVMRT_OK)
                first = fail(status, (int32_t)op_id);
        }
    }
    return first;
}

static int32_t check_run(const tvmrt_context_t *context, const tvmrt_schedule_desc_t *schedule)
{
    if (context == NULL || schedule == NULL)
        return fail(TVMRT_E_NULL, -1);
    if (context->model == NULL || (context->op_execs == NULL && context->model->num_ops != 0))
        return fail(TVMRT_E_STATE, -1);
    return TVMRT_OK;
}

/* `activity` as a state of this process. */
static uint32_t state_word(uint32_t activity)
{
#if TVMRT_THREADED
    return tvmrt_port_forks() * ENGINE_ACTIVITIES + activity;
#else
    return activity;
#endif
}

/* Never started, shut down, or left behind by the process that this one is a copy of. */
static bool is_off(uint32_t state)
{
    return state % ENGINE_ACTIVITIES == ENGINE_OFF || state != state_word(state % ENGINE_ACTIVITIES);
}

#if TVMRT_THREADED

#define QUEUE_WORKERS_SHIFT 24

/* Opens `layer` to `workers` threads. No task of the layer before is left, so no thread reads the other members. */
static void queue_fill(tvmrt_layer_queue_t *queue, const tvmrt_context_t *context, const tvmrt_schedule_layer_t *layer,
                       uint32_t workers)
{
    uint32_t i;

    queue->context = context;
    queue->layer = layer;
    for (i = 0; i < workers; i++)
        tvmrt_atomic_store(&queue->taken[i], 0);
    tvmrt_atomic_store(&queue->head, workers << QUEUE_WORKERS_SHIFT | layer->num_tasks);
}

/* Whether the thread of this index may find a task. */
static bool queue_has_task(const tvmrt_layer_queue_t *queue, uint32_t worker_index)
{
    uint32_t head = tvmrt_atomic_load(&queue->head);

    return (head & TVMRT_MAX_LAYER_TASKS) != 0 && worker_index < head >> QUEUE_WORKERS_SHIFT;
}

/* Where the share of this thread begins among `count` tasks. */
static uint32_t share_start(uint32_t count, uint32_t worker_index, uint32_t workers)
{
    return (count * worker_index + workers - 1) / workers; /* 2^24 tasks, 127 workers */
}

/* Task `position` of a thread's share of the layer: its share of each operator. false: the share is smaller. */
static bool share_task(const tvmrt_layer_queue_t *queue, uint32_t worker_index, uint32_t workers, uint32_t position,
                       uint32_t *out_task)
{
    uint32_t first = 0, i;

    for (i = 0; i < queue->layer->num_ops; i++) {
        uint32_t parts = queue->context->model->op_descs[queue->layer->op_ids[i]].parts;
        uint32_t from = share_start(parts, worker_index, workers);
        uint32_t count = share_start(parts, worker_index + 1, workers) - from;

        if (position < count) {
            *out_task = first + from + position;
            return true;
        }
        position -= count;
        first += parts;
    }
    return false;
}

/* The next task of the thread's own share, so that it finds in its cache what it wrote in the layer before; when that
 * is used up, of the others'. The caller has taken one of those that are left off the count: there is one for it. */
static uint32_t queue_choose(tvmrt_layer_queue_t *queue, uint32_t worker_index, uint32_t workers)
{
    uint32_t owner = worker_index, task = 0, position;

    for (;; owner = owner + 1 < workers ? owner + 1 : 0)
        for (position = tvmrt_atomic_load(&queue->taken[owner]); share_task(queue, owner, workers, position, &task);
             position = tvmrt_atomic_load(&queue->taken[owner]))
            if (tvmrt_atomic_replace(&queue->taken[owner], position, position + 1))
                return task;
}

/* Takes a task. Its number in the layer is valid until the task has arrived at the barrier: as long as a task is
 * held, the layer cannot end, hence the other members of the queue cannot change. */
static bool queue_pop(tvmrt_layer_queue_t *queue, uint32_t worker_index, uint32_t *out_task, uint32_t *out_left)
{
    for (;;) {
        uint32_t head = tvmrt_atomic_load(&queue->head);
        uint32_t left = head & TVMRT_MAX_LAYER_TASKS, workers = head >> QUEUE_WORKERS_SHIFT;

        if (left == 0 || worker_index >= workers)
            return false;
        if (tvmrt_atomic_replace(&queue->head, head, head - 1)) {
            *out_task = queue_choose(queue, worker_index, workers);
            *out_left = left - 1;
            return true;
        }
    }
}

/* Which operator and part entry `task` of the queue is. */
static void queue_entry(const tvmrt_layer_queue_t *queue, uint32_t task, uint32_t *out_op, uint32_t *out_part)
{
    const tvmrt_op_desc_t *descs = queue->context->model->op_descs;
    const uint16_t *op = queue->layer->op_ids;

    while (task >= descs[*op].parts)
        task -= descs[*op++].parts;
    *out_op = *op;
    *out_part = task;
}

/* Wakes one sleeping thread that may help with the current layer. */
static void wake_next(tvmrt_engine_t *engine)
{
    uint32_t i;

    if (tvmrt_atomic_load(&engine->sleepers) == 0)
        return;
    tvmrt_mutex_lock(&engine->mutex);
    for (i = 0; i < engine->num_threads; i++) {
        tvmrt_worker_t *worker = &engine->workers[i];

        if (worker->sleeping && queue_has_task(&engine->task_queue, worker->index)) {
            worker->sleeping = 0;
            tvmrt_thread_keep_off(&worker->thread);
            tvmrt_cond_signal(&worker->wake);
            break;
        }
    }
    tvmrt_mutex_unlock(&engine->mutex);
}

static void record_failure(tvmrt_engine_t *engine, uint32_t task, int32_t status)
{
    tvmrt_mutex_lock(&engine->mutex);
    if (engine->failed_status == TVMRT_OK || task < engine->failed_task) {
        engine->failed_task = task;
        engine->failed_status = status;
    }
    tvmrt_mutex_unlock(&engine->mutex);
}

/* Works on the current layer as long as it has tasks; each task taken wakes one more thread. */
static void work(tvmrt_engine_t *engine, uint32_t worker_index)
{
    tvmrt_layer_queue_t *queue = &engine->task_queue;
    uint32_t task, left;

    while (queue_pop(queue, worker_index, &task, &left)) {
        uint32_t op_id, part;
        int32_t status;

        if (left > 0)
            wake_next(engine);
        queue_entry(queue, task, &op_id, &part);
        status = execute(queue->context, op_id, part);
        if (status != TVMRT_OK)
            record_failure(engine, task, status);
        tvmrt_barrier_arrive(&engine->layer_barrier);
    }
}

/* Whether the run in progress, or the last one, admits this thread. */
static bool may_help(const tvmrt_worker_t *worker)
{
    return worker->index < tvmrt_atomic_load(&worker->engine->task_queue.head) >> QUEUE_WORKERS_SHIFT;
}

static bool has_event(const tvmrt_worker_t *worker)
{
    return queue_has_task(&worker->engine->task_queue, worker->index) || tvmrt_atomic_load(&worker->engine->stop) != 0;
}

/* Returns when there may be a task or the engine stops. The sleeper announces itself before it looks at the queue for
 * the last time, and queue_fill comes before the look at `sleepers`: one of the two sees the other. */
static void await_event(tvmrt_worker_t *worker)
{
    tvmrt_engine_t *engine = worker->engine;
    uint32_t spin = may_help(worker) ? tvmrt_atomic_load(&engine->spin) : 0;

    for (; spin > 0; spin--) {
        if (has_event(worker))
            return;
        tvmrt_cpu_relax();
    }
    tvmrt_mutex_lock(&engine->mutex);
    tvmrt_atomic_add(&engine->sleepers, 1);
    worker->sleeping = 1;
    while (worker->sleeping && !has_event(worker))
        tvmrt_cond_wait(&worker->wake, &engine->mutex);
    worker->sleeping = 0;
    tvmrt_atomic_add(&engine->sleepers, (uint32_t)-1);
    tvmrt_mutex_unlock(&engine->mutex);
}

static void worker_func(void *arg)
{
    tvmrt_worker_t *worker = (tvmrt_worker_t *)arg;

    while (tvmrt_atomic_load(&worker->engine->stop) == 0) {
        work(worker->engine, worker->index);
        await_event(worker);
    }
}

/* Fills the queue with a layer and wakes the first worker, which wakes the next. */
static int load_next_layer(tvmrt_engine_t *engine, const tvmrt_context_t *context, const tvmrt_schedule_layer_t *layer,
                           uint32_t workers)
{
    if (tvmrt_barrier_reset(&engine->layer_barrier, layer->num_tasks) != 0)
        return TVMRT_E_PORT;
    queue_fill(&engine->task_queue, context, layer, workers);
    wake_next(engine);
    return TVMRT_OK;
}

static int32_t share_layer(tvmrt_engine_t *engine, const tvmrt_context_t *context, const tvmrt_schedule_layer_t *layer,
                           uint32_t workers)
{
    uint32_t op_id, part;
    int32_t status;

    engine->failed_status = TVMRT_OK;
    status = load_next_layer(engine, context, layer, workers);
    if (status != TVMRT_OK)
        return fail(status, -1);
    work(engine, 0);
    if (tvmrt_barrier_sync(&engine->layer_barrier) != 0)
        return fail(TVMRT_E_PORT, -1);
    if (engine->failed_status == TVMRT_OK)
        return TVMRT_OK;
    queue_entry(&engine->task_queue, engine->failed_task, &op_id, &part);
    return fail(engine->failed_status, (int32_t)op_id);
}

#endif

/* One layer: by this thread when there is nothing to share or nobody to share it with (no queue, no barrier). */
static int32_t run_layer(tvmrt_engine_t *engine, const tvmrt_context_t *context, const tvmrt_schedule_layer_t *layer,
                         uint32_t workers)
{
#if TVMRT_THREADED
    if (workers > 1 && layer->num_tasks > 1)
        return share_layer(engine, context, layer, workers);
#else
    (void)engine;
    (void)workers;
#endif
    return run_layer_single(context, layer);
}

static int32_t run_layers(tvmrt_engine_t *engine, const tvmrt_context_t *context, const tvmrt_schedule_layer_t *layers,
                          uint32_t count, uint32_t workers)
{
    int32_t status = TVMRT_OK;
    uint32_t i;

    for (i = 0; i < count && status == TVMRT_OK; i++)
        status = run_layer(engine, context, &layers[i], workers);
    return status;
}

/* Whether the byte that a jump asks is zero; a value without bytes has none. */
static int32_t is_zero(const tvmrt_context_t *context, int32_t sid, bool *out)
{
    void *byte = NULL;
    int32_t status = tvmrt_semantic_resolve_sid(context, sid, &byte);

    if (status != TVMRT_OK)
        return status;
    if (byte == NULL)
        return fail(TVMRT_E_NULL, sid);
    *out = *(const uint8_t *)byte == 0;
    return TVMRT_OK;
}

/* By the calling thread and, with workers > 1, by those of the engine. The calling thread alone walks the steps. */
static int32_t run_schedule(tvmrt_engine_t *engine, const tvmrt_context_t *context,
                            const tvmrt_schedule_desc_t *schedule, uint32_t workers)
{
    const tvmrt_schedule_step_t *step = schedule->steps;
    int32_t status = TVMRT_OK;

    if (step == NULL)
        return run_layers(engine, context, schedule->layers, schedule->num_layers, workers);
    while (step < schedule->steps + schedule->num_steps && status == TVMRT_OK) {
        bool jumps = step->kind != TVMRT_STEP_RUN;

        if (step->kind == TVMRT_STEP_JUMP_IF_ZERO)
            status = is_zero(context, step->sid, &jumps);
        if (step->kind == TVMRT_STEP_RUN)
            status = run_layers(engine, context, schedule->layers + step->at, step->count, workers);
        step = jumps ? schedule->steps + step->at : step + 1;
    }
    return status;
}

int32_t tvmrt_engine_run_single(const tvmrt_context_t *context, const tvmrt_schedule_desc_t *schedule)
{
    int32_t status = check_run(context, schedule);

    return status == TVMRT_OK ? run_schedule(NULL, context, schedule, 1) : status;
}

#if TVMRT_THREADED

/* Threads that may work on a run, which the engine prepares for. */
static uint32_t admit_workers(tvmrt_engine_t *engine, const tvmrt_context_t *context)
{
    uint32_t workers = context->max_workers != 0 ? context->max_workers : engine->processors;
    uint32_t spin;

    if (workers > engine->num_threads + 1)
        workers = engine->num_threads + 1;
    if (workers == 1)
        return 1;
    spin = workers <= engine->processors ? TVMRT_SPIN : 0;
    tvmrt_atomic_store(&engine->spin, spin);
    engine->layer_barrier.spin = spin;
    return workers;
}

int32_t tvmrt_engine_run(const tvmrt_context_t *context, const tvmrt_schedule_desc_t *schedule)
{
    int32_t status = check_run(context, schedule);
    uint32_t idle = state_word(ENGINE_IDLE);
    tvmrt_engine_t *engine;

    if (status != TVMRT_OK)
        return status;
    engine = context->engine != NULL ? context->engine : &g_engine;
    if (!tvmrt_atomic_replace(&engine->state, idle, state_word(ENGINE_RUNNING)))
        return run_schedule(NULL, context, schedule, 1);
    status = run_schedule(engine, context, schedule, admit_workers(engine, context));
    tvmrt_atomic_store(&engine->state, idle);
    return status;
}

/* Starts worker `index`; on failure nothing of it is left. */
static bool start_worker(tvmrt_engine_t *engine, uint32_t index)
{
    tvmrt_worker_t *worker = &engine->workers[index - 1];

    worker->engine = engine;
    worker->index = index;
    worker->sleeping = 0;
    if (tvmrt_cond_init(&worker->wake) != 0)
        return false;
    if (tvmrt_thread_create(&worker->thread, worker_func, worker) == 0)
        return true;
    tvmrt_cond_destroy(&worker->wake);
    return false;
}

static int32_t start_workers(tvmrt_engine_t *engine)
{
    uint32_t started = 0;

    if (tvmrt_port_check(sizeof(tvmrt_mutex_t), sizeof(tvmrt_cond_t), sizeof(tvmrt_thread_t)) != TVMRT_OK)
        return TVMRT_E_ABI;
    engine->processors = tvmrt_port_processors();
    engine->spin = 0;
    engine->stop = 0;
    engine->sleepers = 0;
    engine->task_queue.head = 0;
    engine->num_threads = 0;
    if (tvmrt_mutex_init(&engine->mutex) != 0)
        return TVMRT_E_PORT;
    if (tvmrt_barrier_init(&engine->layer_barrier) != 0) {
        tvmrt_mutex_destroy(&engine->mutex);
        return TVMRT_E_PORT;
    }
    while (started + 1 < TVMRT_NUM_WORKERS && start_worker(engine, started + 1))
        started++;
    if (started + 1 < TVMRT_NUM_WORKERS)
        tvmrt_log_push(TVMRT_LOG_WARNING, TVMRT_E_PORT, -1);
    engine->num_threads = started; /* read by runs only, which come after the state says idle */
    return TVMRT_OK;
}

static void stop_workers(tvmrt_engine_t *engine)
{
    uint32_t i;

    tvmrt_mutex_lock(&engine->mutex);
    tvmrt_atomic_store(&engine->stop, 1);
    for (i = 0; i < engine->num_threads; i++)
        tvmrt_cond_signal(&engine->workers[i].wake);
    tvmrt_mutex_unlock(&engine->mutex);
    for (i = 0; i < engine->num_threads; i++) {
        tvmrt_thread_join(&engine->workers[i].thread);
        tvmrt_cond_destroy(&engine->workers[i].wake);
    }
    tvmrt_barrier_destroy(&engine->layer_barrier);
    tvmrt_mutex_destroy(&engine->mutex);
    engine->num_threads = 0;
}

#else

static int32_t start_workers(tvmrt_engine_t *engine)
{
    (void)engine;
    return TVMRT_OK;
}

static void stop_workers(tvmrt_engine_t *engine)
{
    (void)engine;
}

int32_t tvmrt_engine_run(const tvmrt_context_t *context, const tvmrt_schedule_desc_t *schedule)
{
    return tvmrt_engine_run_single(context, schedule);
}
#endif

/* NULL is the default engine, which has the size that this file gives it. */
static int32_t find_engine(tvmrt_engine_t *engine, size_t engine_size, tvmrt_engine_t **out_engine)
{
    *out_engine = engine != NULL ? engine : &g_engine;
    return engine == NULL || engine_size == sizeof(tvmrt_engine_t) ? (int32_t)TVMRT_OK : fail(TVMRT_E_ABI, -1);
}

int32_t tvmrt_engine_init_sized(tvmrt_engine_t *engine, size_t engine_size)
{
    int32_t status = find_engine(engine, engine_size, &engine);
    uint32_t state;

    if (status != TVMRT_OK)
        return status;
    state = tvmrt_atomic_load(&engine->state);
    if (!is_off(state) || !tvmrt_atomic_replace(&engine->state, state, state_word(ENGINE_STARTING))) {
        state = tvmrt_atomic_load(&engine->state);
        return state == state_word(ENGINE_STOPPING) ? fail(TVMRT_E_BUSY, -1) : (int32_t)TVMRT_OK;
    }
    status = start_workers(engine);
    tvmrt_atomic_store(&engine->state, state_word(status == TVMRT_OK ? ENGINE_IDLE : ENGINE_OFF));
    return status == TVMRT_OK ? (int32_t)TVMRT_OK : fail(status, -1);
}

int32_t tvmrt_engine_shutdown_sized(tvmrt_engine_t *engine, size_t engine_size)
{
    int32_t status = find_engine(engine, engine_size, &engine);

    if (status != TVMRT_OK || is_off(tvmrt_atomic_load(&engine->state)))
        return status;
    if (!tvmrt_atomic_replace(&engine->state, state_word(ENGINE_IDLE), state_word(ENGINE_STOPPING)))
        return fail(TVMRT_E_BUSY, -1);
    stop_workers(engine);
    tvmrt_atomic_store(&engine->state, state_word(ENGINE_OFF));
    return TVMRT_OK;
}
