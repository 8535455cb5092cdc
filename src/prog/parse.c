/* SPDX-License-Identifier: Apache-2.0 */
/* Text to program, by the grammar of docs/reference/program.md. Kernels stand behind the functions that run them, so
 * their names are resolved at the end. What has been read is verified. */
#include "base/ptr_map.h"
#include "prog/shape.h"
#include "tir/text.h"

#include <string.h>

typedef struct parser {
    compiler *c;
    lexer l;
    prog_module *m;
    prog_func *f;
    ptr_map values;                      /* of the current function: name -> number */
    VEC(const char *) wanted, results;   /* kernel name of each step of the module, NULL: none; values returned */
    ptr_map kernels;                     /* name -> number */
    VEC(const char *) shapes;            /* of each kernel: the name of its shape, NULL: none */
    VEC(uint32_t) n_numbers;             /* of each kernel: those that it hands to that */
    uint32_t depth;                      /* blocks around the step at hand */
} parser;

/* --- names --- */

/* "in ext_dev" */
static bool memory(parser *p, prog_value *v)
{
    lexer *l = &p->l;
    if (!lexer_accept(l, "in"))
        return true;
    if (l->tok.kind != TOK_IDENT || strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "expected the name of a device's memory");
    if (v->space != SPACE_WORKSPACE || v->extent)
        return lexer_error(l, "%%%s is the host's", v->name);
    v->space = SPACE_DEVICE;
    v->memory = l->tok.text;
    lexer_next(l);
    return true;
}

/* "seq <= 128" */
static bool extent(parser *p, prog_value *v)
{
    lexer *l = &p->l;
    src_loc at = l->tok.loc;
    v->type = type_static(p->c, DT_I64, 0, NULL);
    if (!dim_parse(p->c, l, &v->extent))
        return false;
    if (!dim_symbol_name(v->extent))
        return diag_error(&p->c->diags, DIAG_SYNTAX, at, "%%%s: 'extent' takes the name of a symbol", v->name);
    if (!lexer_accept(l, "<="))
        return true;
    if (l->tok.kind != TOK_INT || l->tok.i < 0)
        return lexer_error(l, "expected a bound");
    v->extent = dim_symbol(p->c, dim_symbol_name(v->extent), l->tok.i);
    lexer_next(l);
    return true;
}

static bool new_value(parser *p, prog_space space, uint32_t *out)
{
    lexer *l = &p->l;
    uint32_t ignored;
    prog_value v = {.name = l->tok.text, .space = space, .base = PROG_NONE};
    if (l->tok.kind != TOK_VAR || l->tok.len == 0 || strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "expected a value such as %%x");
    if (ptr_map_get(&p->values, v.name, &ignored))
        return lexer_error(l, "%%%s is made already", v.name);
    src_loc at = l->tok.loc;
    lexer_next(l);
    if (!lexer_expect(l, ":") || !(lexer_accept(l, "extent") ? extent(p, &v) : type_parse(p->c, l, &v.type)))
        return false;
    if (v.type.kind != TYPE_TENSOR || v.type.shape.rank < 0)
        return diag_error(&p->c->diags, DIAG_SYNTAX, at, "%%%s: a value must be a tensor of known rank", v.name);
    if (!memory(p, &v))
        return false;
    *out = prog_add_value(p->m, p->f, v);
    ptr_map_set(&p->values, v.name, *out);
    return true;
}

static bool use(parser *p, uint32_t *out)
{
    lexer *l = &p->l;
    if (l->tok.kind != TOK_VAR)
        return lexer_error(l, "expected a value such as %%x");
    if (!ptr_map_get(&p->values, l->tok.text, out))
        return lexer_error(l, "%%%s is not made before its use", l->tok.text);
    lexer_next(l);
    return true;
}

/* A new value with its type, or, without one, a value of the block around it that is made here. */
static bool result(parser *p, const prog_step *s, uint32_t *out)
{
    lexer *l = &p->l;
    src_loc at = l->tok.loc;
    if (s->kind == STEP_VIEW || s->kind == STEP_JOIN || l->tok.kind != TOK_VAR ||
        !ptr_map_get(&p->values, l->tok.text, out))
        return new_value(p, SPACE_WORKSPACE, out);
    lexer_next(l);
    return !lexer_is(l, ":") || diag_error(&p->c->diags, DIAG_SYNTAX, at, "%%%s is made already",
                                           p->f->values.data[*out].name);
}

static bool text(parser *p, const char **out)
{
    if (p->l.tok.kind != TOK_STRING || strlen(p->l.tok.text) != p->l.tok.len)
        return lexer_error(&p->l, "expected a string");
    *out = p->l.tok.text;
    lexer_next(&p->l);
    return true;
}

static bool offset(parser *p, uint64_t *out)
{
    *out = 0;
    if (!lexer_accept(&p->l, "at"))
        return true;
    if (p->l.tok.kind != TOK_INT)
        return lexer_error(&p->l, "expected a number of bytes");
    *out = (uint64_t)p->l.tok.i;
    lexer_next(&p->l);
    return true;
}

/* --- steps --- */

static bool constant(parser *p)
{
    uint32_t v;
    if (!new_value(p, SPACE_CONSTANT, &v) || !lexer_expect(&p->l, "="))
        return false;
    prog_value *made = &p->f->values.data[v];
    return tensor_parse(p->c, &p->l, &made->type, &made->data);
}

/* They follow the inputs. */
static bool state(parser *p)
{
    uint32_t v;
    if (p->depth > 0 || p->f->values.len != p->f->n_inputs + p->f->n_states)
        return lexer_error(&p->l, "states come first in a function");
    if (!new_value(p, SPACE_STATE, &v))
        return false;
    p->f->values.data[v].index = p->f->n_states++;
    const type t = p->f->values.data[v].type;
    return !lexer_accept(&p->l, "=") || tensor_parse(p->c, &p->l, &t, &p->f->values.data[v].initial);
}

static bool operands(parser *p, prog_step *s, arena *a)
{
    VEC(uint32_t) args = {0};
    uint32_t first = 0;
    if (s->n_blocks > 0) { /* the condition */
        if (!use(p, &first))
            return false;
        vec_push(a, &args, first);
        first = 1;
    }
    if (!lexer_expect(&p->l, "("))
        return false;
    while (!lexer_accept(&p->l, ")")) {
        uint32_t v;
        uint64_t at = 0;
        if ((args.len > first && !lexer_expect(&p->l, ",")) || !use(p, &v))
            return false;
        if (s->kind == STEP_JOIN && !offset(p, &at))
            return false;
        if (s->kind == STEP_JOIN) {
            if (p->f->values.data[v].base != PROG_NONE)
                return lexer_error(&p->l, "%%%s lies in another value already", p->f->values.data[v].name);
            p->f->values.data[v].base = p->f->values.len; /* the result, which comes next */
            p->f->values.data[v].offset = at;
        }
        vec_push(a, &args, v);
    }
    s->n_in = args.len;
    if (!lexer_expect(&p->l, "->") || !lexer_expect(&p->l, "("))
        return false;
    while (!lexer_accept(&p->l, ")")) {
        uint32_t v;
        if ((args.len > s->n_in && !lexer_expect(&p->l, ",")) || !result(p, s, &v))
            return false;
        if (s->kind == STEP_VIEW) {
            if (s->n_in != 1)
                return lexer_error(&p->l, "a view has one operand");
            p->f->values.data[v].base = args.data[0];
            if (!offset(p, &p->f->values.data[v].offset))
                return false;
        }
        vec_push(a, &args, v);
    }
    s->args = args.data;
    s->n_args = args.len;
    if ((s->kind == STEP_VIEW || s->kind == STEP_JOIN || s->kind == STEP_COPY) && s->n_args != s->n_in + 1)
        return lexer_error(&p->l, "a %s has one result", prog_step_text(s->kind));
    return true;
}

static bool block(parser *p, prog_block *to);

static bool blocks(parser *p, prog_step *s)
{
    s->blocks = arena_array(&p->c->mem, prog_block, s->n_blocks);
    if (p->depth == PROG_MAX_DEPTH)
        return lexer_error(&p->l, "blocks are nested more than %u deep", PROG_MAX_DEPTH);
    p->depth++;
    for (uint32_t b = 0; b < s->n_blocks; b++)
        if ((b && !lexer_expect(&p->l, "else")) || !lexer_expect(&p->l, "{") || !block(p, &s->blocks[b]))
            return false;
    p->depth--;
    return true;
}

static bool step_kind(parser *p, prog_step *s)
{
    static const prog_step_kind kinds[] = {
#define X(id, text) id,
        PROG_STEPS(X)
#undef X
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (lexer_accept(&p->l, prog_step_text(kinds[k]))) {
            s->kind = kinds[k];
            s->n_blocks = s->kind == STEP_IF ? 2 : s->kind == STEP_LOOP ? 1 : 0;
            return true;
        }
    return lexer_error(&p->l, "expected constant, state, kernel, view, join, copy, if or loop");
}

static bool step(parser *p, prog_block *to)
{
    prog_step s = {.source = "", .loc = p->l.tok.loc};
    const char *kernel = NULL;
    if (lexer_accept(&p->l, "constant"))
        return constant(p);
    if (lexer_accept(&p->l, "state"))
        return state(p);
    if (!step_kind(p, &s) || (s.kind == STEP_KERNEL && !lexer_name(&p->l, TOK_SYMBOL, &kernel)))
        return false;
    if (!operands(p, &s, &p->c->mem) || (lexer_accept(&p->l, "of") && !text(p, &s.source)))
        return false;
    vec_push(&p->c->mem, &p->wanted, kernel); /* before those of its blocks */
    if (s.n_blocks > 0 && !blocks(p, &s))
        return false;
    vec_push(&p->c->mem, to, s);
    return true;
}

static bool block(parser *p, prog_block *to)
{
    while (!lexer_accept(&p->l, "}"))
        if (!step(p, to))
            return false;
    return true;
}

/* --- functions --- */

static bool head(parser *p)
{
    lexer *l = &p->l;
    if (!lexer_name(l, TOK_SYMBOL, &p->f->name) || !lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        uint32_t v;
        if ((p->f->n_inputs && !lexer_expect(l, ",")) || !new_value(p, SPACE_INPUT, &v))
            return false;
        p->f->values.data[v].index = p->f->n_inputs++;
    }
    p->results.len = 0;
    if (!lexer_expect(l, "->") || !lexer_expect(l, "("))
        return false;
    while (!lexer_accept(l, ")")) {
        const char *name = NULL;
        prog_result r = {NULL, PROG_NONE, PROG_NONE};
        if ((p->results.len && !lexer_expect(l, ",")) || !lexer_name(l, TOK_VAR, &name))
            return false;
        r.name = name;
        if (l->tok.kind == TOK_STRING && !text(p, &r.name))
            return false;
        if (lexer_accept(l, "shape")) {
            if (!lexer_expect(l, "of"))
                return false;
            if (l->tok.kind != TOK_INT || l->tok.i < 0 || l->tok.i >= p->f->results.len)
                return lexer_error(l, "expected the number of a result before this one");
            r.shape_of = (uint32_t)l->tok.i;
            lexer_next(l);
        }
        vec_push(&p->c->mem, &p->results, name);
        vec_push(&p->c->mem, &p->f->results, r);
    }
    return lexer_expect(l, "{");
}

static bool resolve_results(parser *p)
{
    for (uint32_t i = 0; i < p->results.len; i++)
        if (!ptr_map_get(&p->values, p->results.data[i], &p->f->results.data[i].value))
            return lexer_error(&p->l, "the result %%%s is not made", p->results.data[i]);
    prog_place_results(p->f);
    return true;
}

static bool function(parser *p)
{
    p->f = arena_new(&p->c->mem, prog_func);
    ptr_map_init(&p->values, &p->c->mem);
    if (!head(p))
        return false;
    if (prog_find(p->m, p->f->name))
        return lexer_error(&p->l, "@%s is there already", p->f->name);
    vec_push(&p->c->mem, &p->m->funcs, p->f);
    while (!lexer_is(&p->l, "}"))
        if (!step(p, &p->f->steps))
            return false;
    return resolve_results(p) && lexer_expect(&p->l, "}");
}

/* "as @shape (1, -2)" */
static bool numbers(parser *p, prog_kernel *k)
{
    lexer *l = &p->l;
    const char *name = NULL;
    VEC(int32_t) list = {0};
    if (lexer_accept(l, "as")) {
        if (!lexer_name(l, TOK_SYMBOL, &name) || !lexer_expect(l, "("))
            return false;
        while (!lexer_accept(l, ")")) {
            if (list.len > 0 && !lexer_expect(l, ","))
                return false;
            const bool minus = lexer_accept(l, "-");
            if (l->tok.kind != TOK_INT || l->tok.i > (int64_t)INT32_MAX + minus || l->tok.i < INT32_MIN)
                return lexer_error(l, "expected an integer of 32 bits");
            vec_push(&p->c->mem, &list, (int32_t)(minus ? -l->tok.i : l->tok.i));
            lexer_next(l);
        }
    }
    k->numbers = list.data;
    vec_push(&p->c->mem, &p->shapes, name);
    vec_push(&p->c->mem, &p->n_numbers, list.len);
    return true;
}

static bool shared(parser *p)
{
    prog_shape *s = arena_new(&p->c->mem, prog_shape);
    if (!lexer_name(&p->l, TOK_SYMBOL, &s->name))
        return false;
    for (uint32_t i = 0; i < p->m->shapes.len; i++)
        if (strcmp(p->m->shapes.data[i]->name, s->name) == 0)
            return lexer_error(&p->l, "the shape @%s is there already", s->name);
    if (!tir_parse_func(p->c, &p->l, &s->loops))
        return false;
    s->loops->name = s->name;
    vec_push(&p->c->mem, &p->m->shapes, s);
    return true;
}

static bool kernel(parser *p)
{
    lexer *l = &p->l;
    prog_kernel *k = arena_new(&p->c->mem, prog_kernel);
    const char *who = NULL;
    uint32_t ignored;
    src_loc at = l->tok.loc;
    if (!lexer_name(l, TOK_SYMBOL, &k->name) || !lexer_expect(l, "of") || !text(p, &k->kind) ||
        !lexer_expect(l, "target") || !text(p, &who))
        return false;
    k->joins = lexer_accept(l, "joins");
    k->stacks = !k->joins && lexer_accept(l, "stacks");
    k->region = !k->joins && !k->stacks && lexer_accept(l, "region") ? k->name : NULL;
    if (!numbers(p, k))
        return false;
    k->target = target_lookup(p->c, who);
    if (!k->target)
        return diag_error(&p->c->diags, DIAG_SYNTAX, at, "there is no target \"%s\"; known are %s", who,
                          target_names(p->c));
    if (ptr_map_get(&p->kernels, k->name, &ignored))
        return lexer_error(l, "the kernel @%s is there already", k->name);
    if (!tir_parse_func(p->c, l, &k->plain))
        return false;
    k->plain->name = k->name;
    ptr_map_set(&p->kernels, k->name, p->m->kernels.len);
    vec_push(&p->c->mem, &p->m->kernels, k);
    return true;
}

static bool resolve_kernels(parser *p)
{
    uint32_t at = 0, n;
    prog_walk w;
    for (uint32_t i = 0; i < p->m->funcs.len; i++)
        for (prog_step *s = prog_first_step(p->m->funcs.data[i], &w); s; s = prog_next_step(&w)) {
            const char *name = p->wanted.data[at++];
            if (name && !ptr_map_get(&p->kernels, name, &n))
                return diag_error(&p->c->diags, DIAG_SYNTAX, s->loc, "there is no kernel @%s", name);
            if (name)
                s->kernel = p->m->kernels.data[n];
        }
    return true;
}

static bool resolve_shapes(parser *p)
{
    for (uint32_t i = 0; i < p->shapes.len; i++) {
        prog_kernel *k = p->m->kernels.data[i];
        const char *name = p->shapes.data[i];
        for (uint32_t n = 0; name && n < p->m->shapes.len; n++)
            if (strcmp(p->m->shapes.data[n]->name, name) == 0)
                k->shape = p->m->shapes.data[n];
        if (name && !k->shape)
            return diag_error(&p->c->diags, DIAG_SYNTAX, k->plain->loc, "there is no shape @%s", name);
        if (name && prog_shape_numbers(k->shape) != p->n_numbers.data[i])
            return diag_error(&p->c->diags, DIAG_SYNTAX, k->plain->loc,
                              "the kernel @%s has %u numbers, and its shape asks for %u", k->name,
                              p->n_numbers.data[i], prog_shape_numbers(k->shape));
    }
    return true;
}

bool prog_parse(compiler *c, const char *file, const char *text, size_t len, prog_module **out)
{
    parser p = {.c = c, .m = prog_module_new(c)};
    *out = NULL;
    lexer_init(&p.l, &c->mem, c->names, &c->diags, file, text, len);
    ptr_map_init(&p.kernels, &c->mem);
    if (!lexer_expect(&p.l, "program"))
        return false;
    while (p.l.tok.kind != TOK_END)
        if (lexer_accept(&p.l, "func")    ? !function(&p)
            : lexer_accept(&p.l, "shape") ? !shared(&p)
                                          : !lexer_expect(&p.l, "kernel") || !kernel(&p))
            return false;
    if (p.l.failed || !resolve_kernels(&p) || !resolve_shapes(&p) || !prog_verify(c, p.m))
        return false;
    *out = p.m;
    return true;
}
