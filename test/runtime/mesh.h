/* mesh.h: a model for tests: LAYERS layers of up to WIDTH operators of 1..MAX_PARTS parts, each mixing all bytes of two
 * values of earlier layers and a constant into its own value. Kernels can be delayed and made to fail.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_RUNTIME_MESH_H
#define TEST_RUNTIME_MESH_H

#include <sched.h>
#include <string.h>

#include "tvmrt.h"

enum { LAYERS = 8, WIDTH = 5, OPS = LAYERS * WIDTH, MAX_PARTS = 6, SLICE = 16, VALUE = MAX_PARTS * SLICE };
enum { SIDS = 2 + 2 * OPS, ARGS = 4 * OPS };

/* How kernels behave; set while no run is in progress. fail_*: operator (by its constant), part and status. */
typedef struct mesh_behaviour {
    uint32_t delay;
    int32_t fail_op[2];
    uint32_t fail_part[2];
    int32_t fail_status[2];
} mesh_behaviour;

static mesh_behaviour behaviour = {0, {-1, -1}, {0, 0}, {0, 0}};
static uint32_t kernels_run; /* atomic */

/* The tables, shared by all instances. */
typedef struct mesh {
    tvmrt_tensor_map_entry_t map[SIDS];
    int32_t in[OPS][3];
    int32_t out[OPS][1];
    tvmrt_op_desc_t descs[OPS];
    tvmrt_op_func_t funcs[OPS];
    uint16_t layer_ops[LAYERS][WIDTH];
    tvmrt_schedule_layer_t layers[LAYERS];
    tvmrt_schedule_desc_t schedule;
    tvmrt_model_desc_t model;
    uint32_t constants[OPS];
} mesh;

/* One instance: its memory and its context. The last operator writes the output. */
typedef struct mesh_instance {
    tvmrt_context_t context;
    const void *inputs[1];
    void *outputs[1];
    tvmrt_op_exec_t execs[OPS];
    void *args[ARGS];
    TVMRT_ALIGNED(64) uint8_t workspace[OPS * VALUE];
    uint8_t input[VALUE];
    uint8_t output[VALUE];
} mesh_instance;

static inline uint32_t mesh_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Delays that differ from run to run: the address of a local and a counter feed them. */
static inline void mesh_delay(void)
{
    uint32_t mix = __atomic_load_n(&kernels_run, __ATOMIC_RELAXED) * 2654435761u;
    volatile uint32_t spin = behaviour.delay == 0 ? 0 : (mix >> 7) % behaviour.delay;

    if (behaviour.delay != 0 && mix >> 29 == 0)
        sched_yield();
    while (spin > 0)
        spin--;
}

static inline int32_t mesh_kernel(const void *args, uint32_t part, uint32_t parts)
{
    void *const *p = (void *const *)args;
    const uint8_t *a = (const uint8_t *)p[0], *b = (const uint8_t *)p[1];
    uint32_t id, k, i, hash;

    memcpy(&id, p[2], sizeof id);
    __atomic_add_fetch(&kernels_run, 1, __ATOMIC_RELAXED);
    mesh_delay();
    hash = (id + 1) * 2654435761u + part * 40503u + parts;
    for (i = 0; i < VALUE; i++)
        hash = (hash ^ a[i]) * 16777619u + b[i];
    for (k = 0; k < SLICE * (part + 1 == parts ? MAX_PARTS - part : 1); k++) /* the last part fills the rest */
        ((uint8_t *)p[3])[part * SLICE + k] = (uint8_t)((hash >> k % 24) + k);
    for (i = 0; i < 2; i++)
        if (behaviour.fail_op[i] == (int32_t)id && behaviour.fail_part[i] == part)
            return behaviour.fail_status[i];
    return 0;
}

static inline void mesh_entry(mesh *m, int32_t sid, tvmrt_storage_kind_t kind, size_t offset, size_t size)
{
    m->map[sid].sid = sid;
    m->map[sid].kind = kind;
    m->map[sid].index = 0;
    m->map[sid].offset = offset;
    m->map[sid].size = size;
}

/* Operator op of layer `layer`: value sid 1 + op, constant sid 1 + OPS + op, input sid 0, output sid SIDS - 1. */
static inline void mesh_op(mesh *m, uint32_t op, uint32_t layer, uint32_t *seed)
{
    uint32_t before = layer * WIDTH;
    int32_t last = op == OPS - 1;

    m->constants[op] = op;
    m->in[op][0] = before == 0 ? 0 : (int32_t)(1 + before - WIDTH + mesh_random(seed) % WIDTH);
    m->in[op][1] = before == 0 ? 0 : (int32_t)(1 + mesh_random(seed) % before);
    m->in[op][2] = (int32_t)(1 + OPS + op);
    m->out[op][0] = last ? SIDS - 1 : (int32_t)(1 + op);
    mesh_entry(m, (int32_t)(1 + op), TVMRT_STORAGE_WORKSPACE, op * (size_t)VALUE, VALUE);
    mesh_entry(m, (int32_t)(1 + OPS + op), TVMRT_STORAGE_CONSTANT, op * sizeof(uint32_t), sizeof(uint32_t));
    m->descs[op].name = "mesh";
    m->descs[op].backend = TVMRT_BACKEND_CPU;
    m->descs[op].input_sids = m->in[op];
    m->descs[op].output_sids = m->out[op];
    m->descs[op].num_inputs = 3;
    m->descs[op].num_outputs = 1;
    m->descs[op].parts = 1 + mesh_random(seed) % MAX_PARTS;
    m->funcs[op] = mesh_kernel;
    m->layer_ops[layer][op % WIDTH] = (uint16_t)op;
    m->layers[layer].num_tasks += m->descs[op].parts;
}

static inline void mesh_make(mesh *m, uint32_t seed)
{
    uint32_t op, layer;

    memset(m, 0, sizeof *m);
    mesh_entry(m, 0, TVMRT_STORAGE_INPUT, 0, VALUE);
    mesh_entry(m, SIDS - 1, TVMRT_STORAGE_OUTPUT, 0, VALUE);
    for (op = 0; op < OPS; op++)
        mesh_op(m, op, op / WIDTH, &seed);
    for (layer = 0; layer < LAYERS; layer++) {
        m->layers[layer].op_ids = m->layer_ops[layer];
        m->layers[layer].num_ops = WIDTH;
    }
    m->schedule.layers = m->layers;
    m->schedule.num_layers = LAYERS;
    m->model.abi_version = TVMRT_ABI_VERSION;
    m->model.name = "mesh";
    m->model.num_inputs = m->model.num_outputs = 1;
    m->model.num_tensors = SIDS;
    m->model.num_ops = OPS;
    m->model.tensor_map = m->map;
    m->model.op_descs = m->descs;
    m->model.cpu_funcs = m->funcs;
    m->model.schedule = &m->schedule;
    m->model.const_bytes = sizeof m->constants;
    m->model.const_align = sizeof m->constants[0];
    m->model.workspace_bytes = OPS * (size_t)VALUE;
    m->model.workspace_align = 64;
}

static inline int32_t mesh_open(mesh_instance *i, const mesh *m, tvmrt_engine_t *engine, uint32_t workers)
{
    int32_t status = tvmrt_semantic_init(&i->context, &m->model, m->constants, i->workspace, sizeof i->workspace);
    uint32_t k;

    if (status != TVMRT_OK)
        return status;
    for (k = 0; k < VALUE; k++)
        i->input[k] = (uint8_t)(k * 7 + 3);
    i->inputs[0] = i->input;
    i->outputs[0] = i->output;
    i->context.inputs = i->inputs;
    i->context.outputs = i->outputs;
    i->context.op_execs = i->execs;
    i->context.engine = engine;
    i->context.max_workers = workers;
    return tvmrt_semantic_fill_args(&i->context, i->args, ARGS, i->execs);
}

#endif
