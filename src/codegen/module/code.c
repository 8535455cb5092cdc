/* SPDX-License-Identifier: Apache-2.0 */
/* The Relax VM executable while it is made: functions, instructions, the pool of constants, in which equal ones are
 * one. */
#include "codegen/module/module.h"

#include <string.h>

void code_init(module_code *m, compiler *c)
{
    *m = (module_code){.c = c};
    ptr_map_init(&m->known, &c->mem);
    ptr_map_init(&m->tensors, &c->mem);
}

/* --- arguments --- */

static module_arg arg(enum module_arg_kind kind, int64_t v)
{
    const uint64_t low = (UINT64_C(1) << MODULE_ARG_BITS) - 1;
    return (module_arg)((uint64_t)kind << MODULE_ARG_BITS | ((uint64_t)v & low));
}

module_arg code_reg(uint32_t r)
{
    return arg(MODULE_ARG_REGISTER, r);
}

module_arg code_int(int64_t v)
{
    return arg(MODULE_ARG_IMMEDIATE, v);
}

module_arg code_none(void)
{
    return arg(MODULE_ARG_REGISTER, MODULE_VOID_REGISTER);
}

module_arg code_machine(void)
{
    return arg(MODULE_ARG_REGISTER, MODULE_VM_REGISTER);
}

/* The constant of that key, which says all of it but for tensors. */
static module_arg pool(module_code *m, const char *key, module_const constant)
{
    uint32_t n = m->consts.len;
    const char *k = intern(m->c->names, key);
    if (!ptr_map_get(&m->known, k, &n)) {
        ptr_map_set(&m->known, k, n);
        vec_push(&m->c->mem, &m->consts, constant);
    }
    return arg(MODULE_ARG_CONSTANT, n);
}

module_arg code_text(module_code *m, const char *s)
{
    return pool(m, arena_printf(&m->c->mem, "constant text %s", s),
                (module_const){.tag = MODULE_CONST_STRING, .text = s});
}

module_arg code_dtype(module_code *m, dtype dt)
{
    return pool(m, arena_printf(&m->c->mem, "constant dtype %s", dtype_name(dt)),
                (module_const){.tag = MODULE_CONST_DTYPE, .dt = dt});
}

module_arg code_shape(module_code *m, uint32_t n, const int64_t *dims)
{
    writer key;
    writer_init(&key, &m->c->mem);
    w_str(&key, "constant shape");
    int64_t *copy = arena_array(&m->c->mem, int64_t, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        w_fmt(&key, " %lld", (long long)dims[i]);
        copy[i] = dims[i];
    }
    return pool(m, key.data, (module_const){.tag = MODULE_CONST_SHAPE, .dims = copy, .n_dims = n});
}

module_arg code_tensor(module_code *m, const tensor_data *t)
{
    uint32_t n;
    if (ptr_map_get(&m->tensors, t, &n))
        return arg(MODULE_ARG_CONSTANT, n);
    /* Of equal ones the pool has one: hash first, then all bytes; others of the same hash get keys of their own. */
    for (uint32_t again = 0;; again++) {
        const char *key =
            arena_printf(&m->c->mem, "constant tensor %llx %u", (unsigned long long)tensor_hash(t), again);
        bool found = ptr_map_get(&m->known, intern(m->c->names, key), &n);
        if (found && !tensor_equal(m->consts.data[n].tensor, t))
            continue;
        module_arg a = pool(m, key, (module_const){.tag = MODULE_CONST_TENSOR, .tensor = t});
        ptr_map_set(&m->tensors, t, found ? n : m->consts.len - 1);
        return a;
    }
}

/* --- functions --- */

static uint32_t function(module_code *m, const char *name)
{
    uint32_t n = m->funcs.len;
    const char *key = intern(m->c->names, arena_printf(&m->c->mem, "function %s", name));
    if (!ptr_map_get(&m->known, key, &n)) {
        ptr_map_set(&m->known, key, n);
        vec_push(&m->c->mem, &m->funcs, ((module_func){.kind = MODULE_FUNC_PACKED, .name = name}));
    }
    return n;
}

uint32_t code_begin(module_code *m, const char *name, uint32_t n_args, const char *const *params)
{
    uint32_t n = function(m, name);
    m->funcs.data[n] = (module_func){.kind = MODULE_FUNC_VM,
                                     .name = name,
                                     .start = m->offsets.len,
                                     .n_args = n_args,
                                     .params = params};
    return n;
}

void code_end(module_code *m, uint32_t func, uint32_t n_registers)
{
    m->funcs.data[func].end = m->offsets.len;
    m->funcs.data[func].n_registers = n_registers;
}

/* --- instructions --- */

uint32_t code_next(const module_code *m)
{
    return m->offsets.len;
}

static void word(module_code *m, int64_t w)
{
    vec_push(&m->c->mem, &m->words, w);
}

static uint32_t instruction(module_code *m, enum module_opcode op)
{
    vec_push(&m->c->mem, &m->offsets, m->words.len);
    word(m, op);
    return m->offsets.len - 1;
}

void code_call(module_code *m, const uint32_t *dst, const char *func, uint32_t n, const module_arg *args)
{
    uint32_t f = function(m, func);
    instruction(m, MODULE_CALL);
    word(m, dst ? (int64_t)*dst : MODULE_VOID_REGISTER);
    word(m, f);
    word(m, n);
    for (uint32_t i = 0; i < n; i++)
        word(m, args[i]);
}

void code_ret(module_code *m, uint32_t r)
{
    instruction(m, MODULE_RET);
    word(m, r);
}

uint32_t code_jump(module_code *m)
{
    uint32_t at = instruction(m, MODULE_GOTO);
    word(m, 0);
    return at;
}

uint32_t code_if(module_code *m, uint32_t r)
{
    uint32_t at = instruction(m, MODULE_IF);
    word(m, r);
    word(m, 0);
    return at;
}

void code_land(module_code *m, uint32_t at, uint32_t to)
{
    uint64_t first = m->offsets.data[at];
    m->words.data[first + (m->words.data[first] == MODULE_IF ? 2 : 1)] = (int64_t)to - (int64_t)at;
}

/* --- bytes --- */

static void put_dtype(module_bytes *b, dtype dt)
{
    const uint8_t both[2] = {dtype_dlpack_code(dt), (uint8_t)dtype_bits(dt)};
    bytes_put(b, both, 2);
    bytes_u16(b, 1);
}

static void put_dims(module_bytes *b, uint32_t n, const int64_t *dims)
{
    for (uint32_t i = 0; i < n; i++)
        bytes_u64(b, (uint64_t)dims[i]);
}

static void put_tensor(module_bytes *b, const tensor_data *t)
{
    size_t size = tensor_size(t), one = dtype_bytes(t->dt);
    bytes_u64(b, MODULE_TENSOR_MAGIC);
    bytes_u64(b, 0);
    bytes_u32(b, 1); /* the CPU, number 0 */
    bytes_u32(b, 0);
    bytes_u32(b, t->rank);
    put_dtype(b, t->dt);
    put_dims(b, t->rank, t->dims);
    bytes_u64(b, size);
    if (t->kind == TENSOR_DENSE || !b->data)
        bytes_put(b, t->data, size);
    else
        for (int64_t i = 0; i < t->count; i++)
            bytes_put(b, t->data, one);
}

static void put_const(module_bytes *b, const module_const *k)
{
    bytes_u32(b, k->tag);
    switch (k->tag) {
    case MODULE_CONST_STRING: bytes_str(b, k->text); break;
    case MODULE_CONST_DTYPE: put_dtype(b, k->dt); break;
    case MODULE_CONST_SHAPE:
        bytes_u64(b, k->n_dims);
        put_dims(b, k->n_dims, k->dims);
        break;
    case MODULE_CONST_TENSOR: put_tensor(b, k->tensor); break;
    case MODULE_CONST_INT:
    case MODULE_CONST_FLOAT: break; /* numbers are immediates */
    }
}

uint64_t code_constant_bytes(const module_code *m)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->consts.len; i++)
        sum += m->consts.data[i].tensor ? tensor_size(m->consts.data[i].tensor) : 0;
    return sum;
}

static void put_func(module_bytes *b, const module_func *f)
{
    bool has_names = f->kind == MODULE_FUNC_VM;
    bytes_u32(b, f->kind);
    bytes_str(b, f->name);
    bytes_u64(b, f->start);
    bytes_u64(b, f->end);
    bytes_u64(b, f->n_args);
    bytes_u64(b, f->n_registers);
    bytes_u64(b, has_names ? f->n_args : 0);
    for (uint32_t i = 0; has_names && i < f->n_args; i++)
        bytes_str(b, f->params[i]);
}

void code_write(const module_code *m, module_bytes *b)
{
    bytes_u64(b, MODULE_MAGIC_V2);
    bytes_str(b, MODULE_VERSION);
    bytes_u64(b, m->funcs.len);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        put_func(b, &m->funcs.data[i]);
    bytes_u64(b, 0); /* no memory scopes */
    bytes_u64(b, m->consts.len);
    for (uint32_t i = 0; i < m->consts.len; i++)
        put_const(b, &m->consts.data[i]);
    bytes_u64(b, m->offsets.len);
    for (uint32_t i = 0; i < m->offsets.len; i++)
        bytes_u64(b, m->offsets.data[i]);
    bytes_u64(b, m->words.len);
    for (uint32_t i = 0; i < m->words.len; i++)
        bytes_u64(b, (uint64_t)m->words.data[i]);
}
