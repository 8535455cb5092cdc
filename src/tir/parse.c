/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the loop IR's statements and functions (grammar: docs/reference/loop-ir.md); expressions are read by
 * parse_expr.c. Nodes are made as written, nothing folds: print(parse(x)) == x. Any bytes are safe: depth, ranks and
 * lanes are bounded. */
#include "tir/parse.h"
#include "tir/build.h"
#include "tir/text.h"

#include "tir/names.h"
#include "tir/node.h"

#include <string.h>

/* Scopes that may be open at once: later passes recurse over them. */
#define MAX_NEST 1000u

static tir_stmt *stmt(parser *p);

/* --- scope --- */

static bool declare(parser *p, const char *name, const tir_var *var, const tir_buffer *buffer)
{
    if (tir_is_reserved(name))
        return lexer_error(&p->l, "'%s' is a word of the language, not a name", name);
    if (p->scope.len >= MAX_NEST)
        return lexer_error(&p->l, "nested too deeply");
    vec_push(&p->c->mem, &p->scope, (parser_name){name, var, buffer});
    return true;
}

static const char *name_token(parser *p, const char *what)
{
    const char *name = p->l.tok.text;
    if (p->l.tok.kind != TOK_IDENT) {
        (void)lexer_error(&p->l, "expected the name of %s", what);
        return NULL;
    }
    lexer_next(&p->l);
    return name;
}

/* --- pieces shared by statements --- */

tir_stmt *parse_block(parser *p)
{
    VEC(tir_stmt *) all = {0};
    if (!lexer_expect(&p->l, "{"))
        return NULL;
    if (++p->l.depth > LEXER_MAX_DEPTH) {
        (void)lexer_error(&p->l, "nested too deeply");
        return NULL;
    }
    while (!lexer_is(&p->l, "}")) {
        tir_stmt *s = stmt(p);
        if (!s)
            return NULL;
        vec_push(&p->c->mem, &all, s);
    }
    p->l.depth--;
    lexer_next(&p->l);
    return all.len == 1 ? all.data[0] : tir_seq(p->c, all.len, all.data);
}

static bool strides(parser *p, tir_buffer *b)
{
    tir_expr_ref list[TIR_MAX_RANK];
    uint32_t n = 0;
    if (!lexer_expect(&p->l, "=") || !lexer_expect(&p->l, "[") ||
        !parse_exprs(p, "]", p->index_type, TIR_MAX_RANK, list, &n))
        return false;
    if (n != b->rank)
        return lexer_error(&p->l, "%u strides for a buffer of %u dimensions", n, b->rank);
    b->strides = arena_copy(&p->c->mem, list, n * sizeof *list, _Alignof(tir_expr_ref));
    return true;
}

static bool alignment(parser *p, tir_buffer *b)
{
    int64_t v = p->l.tok.i;
    if (!lexer_expect(&p->l, "="))
        return false;
    v = p->l.tok.i;
    if (p->l.tok.kind != TOK_INT || v < 1 || v > 4096 || (v & (v - 1)) != 0)
        return lexer_error(&p->l, "align needs a power of two up to 4096");
    b->align = (uint32_t)v;
    lexer_next(&p->l);
    return true;
}

static bool layout(parser *p, tir_buffer *b)
{
    while (lexer_accept(&p->l, ",")) {
        if (lexer_accept(&p->l, "strides")) {
            if (!strides(p, b))
                return false;
        } else if (lexer_accept(&p->l, "offset")) {
            if (!lexer_expect(&p->l, "=") || !(b->offset = parse_expr(p, p->index_type)))
                return false;
        } else if (lexer_accept(&p->l, "align")) {
            if (!alignment(p, b))
                return false;
        } else {
            return lexer_error(&p->l, "expected strides, offset or align");
        }
    }
    return true;
}

/* dtype , [shape] layout */
static tir_buffer *buffer_type(parser *p, const char *name)
{
    tir_type t;
    tir_expr_ref extents[TIR_MAX_RANK];
    uint32_t rank = 0;
    if (!parse_type(p, &t))
        return NULL;
    if (t.lanes > 1 || !dtype_usable(t.dt)) {
        (void)lexer_error(&p->l, "a buffer cannot hold this type");
        return NULL;
    }
    if (!lexer_expect(&p->l, ",") || !lexer_expect(&p->l, "[") ||
        !parse_exprs(p, "]", p->index_type, TIR_MAX_RANK, extents, &rank))
        return NULL;
    tir_buffer *b = arena_new(&p->c->mem, tir_buffer);
    *b = *tir_new_buffer(p->c, name, t.dt, rank, extents, SCOPE_GLOBAL);
    return layout(p, b) ? b : NULL;
}

static void set_scope(parser *p, tir_buffer *b, const char *text)
{
    b->scope = SCOPE_CUSTOM;
    b->scope_name = text;
#define X(id, name)                                    \
    if (id != SCOPE_CUSTOM && strcmp(text, name) == 0) \
        b->scope = id, b->scope_name = NULL;
    TIR_SCOPES(X)
#undef X
    (void)p;
}

/* --- statements that cover what follows: attr, allocate, let --- */

/* The text between the brackets of an attr. */
static const char *node_text(parser *p)
{
    const char *start = p->l.pos, *q = start;
    int depth = 1;
    if (!lexer_is(&p->l, "[")) {
        (void)lexer_expect(&p->l, "[");
        return NULL;
    }
    while (q < p->l.end && (*q == ' ' || *q == '\t'))
        q++;
    if (q < p->l.end && *q == '"') {
        lexer_next(&p->l);
        const char *text = p->l.tok.text;
        lexer_next(&p->l);
        return lexer_expect(&p->l, "]") ? text : NULL;
    }
    start = q;
    for (; q < p->l.end && *q >= ' ' && *q <= '~'; q++) {
        depth += (*q == '[') - (*q == ']');
        if (depth == 0)
            break;
    }
    if (depth != 0) {
        (void)lexer_error(&p->l, "'[' without ']' on this line");
        return NULL;
    }
    const char *end = q;
    while (end > start && end[-1] == ' ')
        end--;
    p->l.pos = q;
    lexer_next(&p->l);
    return lexer_expect(&p->l, "]") ? intern_n(p->c->names, start, (size_t)(end - start)) : NULL;
}

static struct tir_stmt *attr_head(parser *p)
{
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_ATTR);
    s->node = node_text(p);
    if (!s->node)
        return NULL;
    if (p->l.tok.kind != TOK_STRING) {
        (void)lexer_error(&p->l, "expected the key of the attribute, a string");
        return NULL;
    }
    s->key = p->l.tok.text;
    lexer_next(&p->l);
    if (!lexer_expect(&p->l, "=") || !(s->value = parse_expr_or_string(p)))
        return NULL;
    return s;
}

static struct tir_stmt *allocate_head(parser *p)
{
    const char *name = lexer_expect(&p->l, "(") ? name_token(p, "a buffer") : NULL;
    if (!name || !lexer_expect(&p->l, ","))
        return NULL;
    tir_buffer *b = buffer_type(p, name);
    if (!b || !lexer_expect(&p->l, ")") || !declare(p, name, NULL, b))
        return NULL;
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_ALLOCATE);
    s->buffer = b;
    return s;
}

static struct tir_stmt *let_head(parser *p)
{
    tir_type t;
    const char *name = name_token(p, "a variable");
    if (!name || !lexer_expect(&p->l, ":") || !parse_type(p, &t) || !lexer_expect(&p->l, "="))
        return NULL;
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_LET);
    s->value = parse_expr(p, t.dt);
    if (!s->value)
        return NULL;
    if (s->value->type.dt != t.dt || s->value->type.lanes != t.lanes) {
        (void)lexer_error(&p->l, "the value of '%s' has another type", name);
        return NULL;
    }
    s->var = tir_new_var(p->c, name, t);
    return declare(p, name, s->var, NULL) ? s : NULL;
}

static struct tir_stmt *scoped_head(parser *p)
{
    if (lexer_accept(&p->l, "allocate"))
        return allocate_head(p);
    if (lexer_accept(&p->l, "let"))
        return let_head(p);
    lexer_next(&p->l);
    return attr_head(p);
}

static bool is_scoped(const parser *p)
{
    return lexer_is(&p->l, "attr") || lexer_is(&p->l, "allocate") || lexer_is(&p->l, "let");
}

/* `attr [b: Pointer(t)] "storage_scope" = "s";` in front of the allocation of b is the allocation's scope. */
static bool names_scope(const struct tir_stmt *a, const struct tir_stmt *alloc)
{
    size_t n = strlen(alloc->buffer->name);
    return a->kind == TIR_ATTR && strcmp(a->key, "storage_scope") == 0 && a->value->kind == TIR_EXTERN &&
           a->value->type.dt == DT_STRING && strncmp(a->node, alloc->buffer->name, n) == 0 && a->node[n] == ':';
}

/* A chain of heads that end in ';' is read in a loop: it may be long, its depth is not that of the grammar. */
static tir_stmt *scoped(parser *p)
{
    VEC(struct tir_stmt *) heads = {0};
    uint32_t mark = p->scope.len;
    tir_stmt *body = NULL;
    while (!body) {
        struct tir_stmt *s = heads.len < MAX_NEST ? scoped_head(p) : NULL;
        if (!s) {
            (void)lexer_error(&p->l, "nested too deeply"); /* says nothing when the head has reported */
            return NULL;
        }
        if (s->kind == TIR_ALLOCATE && heads.len && names_scope(vec_last(&heads), s)) {
            set_scope(p, (tir_buffer *)(uintptr_t)s->buffer, vec_pop(&heads)->value->u.name);
        }
        vec_push(&p->c->mem, &heads, s);
        bool more = lexer_accept(&p->l, ";");
        if (more && is_scoped(p))
            continue;
        body = more ? stmt(p) : parse_block(p);
        if (!body)
            return NULL;
    }
    while (heads.len) {
        struct tir_stmt *s = vec_pop(&heads);
        s->body = body;
        body = s;
    }
    p->scope.len = mark;
    return body;
}

/* --- the other statements --- */

static tir_for_kind for_kind(parser *p)
{
    static const char *const texts[] = {"parallel", "vectorized", "unrolled", "vthread"};
    if (p->l.tok.kind != TOK_STRING)
        return FOR_SERIAL;
    for (int i = 0; i < 4; i++) {
        if (strcmp(p->l.tok.text, texts[i]) == 0) {
            lexer_next(&p->l);
            return (tir_for_kind)(FOR_PARALLEL + i);
        }
    }
    (void)lexer_error(&p->l, "unknown kind of loop '%s'", p->l.tok.text);
    return FOR_SERIAL;
}

static tir_stmt *for_stmt(parser *p)
{
    tir_type t;
    const char *name = lexer_expect(&p->l, "(") ? name_token(p, "a loop variable") : NULL;
    if (!name || !lexer_expect(&p->l, ":") || !parse_type(p, &t) || !lexer_expect(&p->l, ","))
        return NULL;
    if (t.lanes > 1 || (t.dt != DT_I32 && t.dt != DT_I64)) {
        (void)lexer_error(&p->l, "a loop variable is int32 or int64");
        return NULL;
    }
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_FOR);
    s->min = parse_expr(p, t.dt);
    if (!s->min || !lexer_expect(&p->l, ",") || !(s->extent = parse_expr(p, t.dt)) || !lexer_expect(&p->l, ")"))
        return NULL;
    if (s->min->type.dt != t.dt || s->extent->type.dt != t.dt || s->min->type.lanes > 1 || s->extent->type.lanes > 1) {
        (void)lexer_error(&p->l, "the bounds of '%s' have another type", name);
        return NULL;
    }
    s->for_kind = for_kind(p);
    s->var = tir_new_var(p->c, name, t);
    if (!declare(p, name, s->var, NULL) || !(s->body = parse_block(p)))
        return NULL;
    p->scope.len--;
    return s;
}

static tir_expr_ref condition(parser *p)
{
    tir_expr_ref e = parse_expr(p, DT_BOOL);
    if (!e || (e->type.dt == DT_BOOL && e->type.lanes == 1))
        return e;
    (void)lexer_error(&p->l, "a condition is a bool");
    return NULL;
}

static tir_stmt *if_stmt(parser *p)
{
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_IF);
    s->cond = condition(p);
    if (!s->cond || !(s->body = parse_block(p)))
        return NULL;
    if (lexer_accept(&p->l, "else") && !(s->orelse = parse_block(p)))
        return NULL;
    return s;
}

static tir_stmt *assert_stmt(parser *p)
{
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_ASSERT);
    int64_t code = 0;
    if (!lexer_expect(&p->l, "(") || !(s->cond = condition(p)) || !lexer_expect(&p->l, ",") ||
        !parse_signed(p, &code) || !lexer_expect(&p->l, ","))
        return NULL;
    if (code < INT32_MIN || code > INT32_MAX || p->l.tok.kind != TOK_STRING) {
        (void)lexer_error(&p->l, "assert needs a 32-bit status and a message");
        return NULL;
    }
    s->code = (int32_t)code;
    s->key = p->l.tok.text;
    lexer_next(&p->l);
    return lexer_expect(&p->l, ")") ? s : NULL;
}

static tir_stmt *evaluate(parser *p)
{
    bool call = p->l.tok.kind == TOK_SYMBOL;
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_EVALUATE);
    if (!call && (lexer_next(&p->l), !lexer_expect(&p->l, "(")))
        return NULL;
    s->value = parse_expr(p, DT_NONE);
    return s->value && (call || lexer_expect(&p->l, ")")) ? s : NULL;
}

static tir_stmt *store(parser *p)
{
    tir_expr_ref idx[TIR_MAX_RANK];
    const tir_buffer *b = parse_buffer_ref(p);
    struct tir_stmt *s = tir_node_stmt(p->c, TIR_STORE);
    uint16_t lanes = 1;
    if (!b || !parse_indices(p, b, idx, &s->n_indices, &lanes) || !lexer_expect(&p->l, "="))
        return NULL;
    s->buffer = b;
    s->indices = arena_copy(&p->c->mem, idx, s->n_indices * sizeof *idx, _Alignof(tir_expr_ref));
    s->value = parse_expr(p, b->dt);
    if (!s->value)
        return NULL;
    if (s->value->type.dt != b->dt || s->value->type.lanes != lanes) {
        (void)lexer_error(&p->l, "the value stored to '%s' has another type", b->name);
        return NULL;
    }
    return s;
}

static tir_stmt *stmt(parser *p)
{
    if (is_scoped(p))
        return scoped(p);
    if (lexer_accept(&p->l, "for"))
        return for_stmt(p);
    if (lexer_accept(&p->l, "if"))
        return if_stmt(p);
    if (lexer_accept(&p->l, "assert"))
        return assert_stmt(p);
    if (lexer_is(&p->l, "evaluate") || p->l.tok.kind == TOK_SYMBOL)
        return evaluate(p);
    if (p->l.tok.kind == TOK_IDENT)
        return store(p);
    (void)lexer_error(&p->l, "expected a statement");
    return NULL;
}

/* --- functions --- */

typedef struct param_names {
    VEC(const char *) list;
} param_names;

static bool params(parser *p, param_names *out)
{
    if (!lexer_expect(&p->l, "("))
        return false;
    while (!lexer_is(&p->l, ")")) {
        const char *name = name_token(p, "a parameter");
        if (!name || !lexer_expect(&p->l, ":") || !lexer_expect(&p->l, "handle"))
            return false;
        for (uint32_t i = 0; i < out->list.len; i++)
            if (strcmp(out->list.data[i], name) == 0)
                return lexer_error(&p->l, "parameter '%s' is named twice", name);
        if (out->list.len >= MAX_NEST / 2)
            return lexer_error(&p->l, "too many parameters");
        vec_push(&p->c->mem, &out->list, name);
        if (!lexer_is(&p->l, ")") && !lexer_expect(&p->l, ","))
            return false;
    }
    return lexer_expect(&p->l, ")") && lexer_expect(&p->l, "->") && lexer_expect(&p->l, "(") &&
           lexer_expect(&p->l, ")");
}

/* The counter of that name; NULL: there is none. */
static uint32_t *counter(tir_func *f, const char *key)
{
#define X(member, text, help)   \
    if (strcmp(key, text) == 0) \
        return &f->left.member;
    TIR_LEFT(X)
#undef X
    return NULL;
}

static bool attribute(parser *p, tir_func *f, const char *key)
{
    tir_type t;
    int64_t v = 0;
    bool is_string = p->l.tok.kind == TOK_STRING;
    if (is_string && (strcmp(key, "global_symbol") == 0 || strcmp(key, "schedule") == 0)) {
        *(key[0] == 'g' ? &f->name : &f->schedule) = p->l.tok.text;
        lexer_next(&p->l);
        return true;
    }
    if (strcmp(key, "index_type") == 0) {
        if (!parse_type(p, &t))
            return false;
        if (t.lanes > 1 || (t.dt != DT_I32 && t.dt != DT_I64))
            return lexer_error(&p->l, "index_type is int32 or int64");
        f->index_type = t.dt;
        return true;
    }
    uint32_t *count = counter(f, key);
    if (!count && strcmp(key, "inputs") != 0 && strcmp(key, "macs") != 0)
        return lexer_error(&p->l, "unknown attribute '%s' of a function, or a value of another kind", key);
    if (!parse_signed(p, &v))
        return false;
    if (count && (v < 0 || v > UINT32_MAX))
        return lexer_error(&p->l, "%s: this is not a number of loops", key);
    if (count)
        *count = (uint32_t)v;
    else if (key[0] == 'm')
        f->macs = v;
    else if (v < 0 || v > (int64_t)f->n_params)
        return lexer_error(&p->l, "inputs: the function has %u parameters", f->n_params);
    else
        f->n_inputs = (uint32_t)v;
    return true;
}

static bool attributes(parser *p, tir_func *f)
{
    if (!lexer_expect(&p->l, "attr") || !lexer_expect(&p->l, "=") || !lexer_expect(&p->l, "{"))
        return false;
    do {
        const char *key = p->l.tok.text;
        if (p->l.tok.kind != TOK_STRING)
            return lexer_error(&p->l, "expected the name of an attribute, a string");
        lexer_next(&p->l);
        if (!lexer_expect(&p->l, ":") || !attribute(p, f, key))
            return false;
    } while (lexer_accept(&p->l, ","));
    return lexer_expect(&p->l, "}");
}

static bool buffers(parser *p, tir_func *f, const param_names *names)
{
    const tir_buffer **list = arena_array(&p->c->mem, const tir_buffer *, names->list.len);
    if (!lexer_expect(&p->l, "buffers") || !lexer_expect(&p->l, "=") || !lexer_expect(&p->l, "{"))
        return false;
    for (uint32_t i = 0; i < names->list.len; i++) {
        const char *name = names->list.data[i];
        if (i && !lexer_expect(&p->l, ","))
            return false;
        if (!lexer_expect(&p->l, name) || !lexer_expect(&p->l, ":") || !lexer_expect(&p->l, "Buffer") ||
            !lexer_expect(&p->l, "("))
            return false;
        tir_buffer *b = buffer_type(p, name);
        if (!b || !lexer_expect(&p->l, ")") || !declare(p, name, NULL, b))
            return false;
        list[i] = b;
    }
    f->params = list;
    return lexer_expect(&p->l, "}");
}

static tir_func *function(parser *p)
{
    tir_func *f = arena_new(&p->c->mem, tir_func);
    param_names names = {0};
    *f = (tir_func){.name = "main", .index_type = DT_I64, .loc = p->l.tok.loc};
    p->scope.len = p->given;
    if (!lexer_expect(&p->l, "primfn") || !params(p, &names))
        return NULL;
    f->n_params = names.list.len;
    if (!attributes(p, f))
        return NULL;
    p->index_type = f->index_type;
    if (!buffers(p, f, &names) || !(f->body = parse_block(p)))
        return NULL;
    return f;
}

bool tir_parse(compiler *c, const char *file, const char *text, size_t len, tir_module **out)
{
    parser p = {.c = c, .index_type = DT_I64};
    tir_module *m = arena_new(&c->mem, tir_module);
    *out = NULL;
    m->c = c;
    lexer_init(&p.l, &c->mem, c->names, &c->diags, file, text, len);
    while (p.l.tok.kind != TOK_END) {
        tir_func *f = function(&p);
        if (!f)
            return false;
        vec_push(&c->mem, &m->funcs, f);
    }
    if (p.l.failed)
        return false;
    *out = m;
    return true;
}

bool tir_parse_func(compiler *c, lexer *l, tir_func **out)
{
    parser p = {.c = c, .index_type = DT_I64, .l = *l};
    *out = function(&p);
    *l = p.l;
    return *out != NULL;
}

static void start_over(parser *p, compiler *c, const char *file, const char *text, uint32_t n, const parser_name *names)
{
    *p = (parser){.c = c, .index_type = DT_I64, .given = n};
    for (uint32_t i = 0; i < n; i++)
        vec_push(&c->mem, &p->scope, (parser_name){intern(c->names, names[i].name), names[i].var, names[i].buffer});
    lexer_init(&p->l, &c->mem, c->names, &c->diags, file, text, strlen(text));
}

tir_func *parse_function_over(compiler *c, const char *file, const char *text, uint32_t n, const parser_name *names)
{
    parser p;
    start_over(&p, c, file, text, n, names);
    tir_func *f = function(&p);
    return p.l.failed ? NULL : f;
}

tir_stmt *parse_stmts_over(compiler *c, const char *file, const char *text, uint32_t n, const parser_name *names)
{
    parser p;
    VEC(tir_stmt *) all = {0};
    start_over(&p, c, file, text, n, names);
    while (p.l.tok.kind != TOK_END) {
        tir_stmt *s = stmt(&p);
        if (!s)
            return NULL;
        vec_push(&c->mem, &all, s);
    }
    return p.l.failed ? NULL : tir_seq(c, all.len, all.data);
}
