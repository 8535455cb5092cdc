/* SPDX-License-Identifier: Apache-2.0 */
/* The operator rows of a compile: built-in ones from graph_ops.def, and those that users register. Rows live in the
 * compiler context and are never removed. */
#include "graph/op.h"
#include "base/ptr_map.h"
#include "graph/text.h"

#include <ctype.h>
#include <string.h>

struct graph_registry {
    VEC(graph_op *) rows;
    ptr_map by_name; /* interned name -> position in rows */
};

const graph_op graph_op_unknown = {.name = "unknown operator", .max_in = -1, .max_out = -1};
const graph_op graph_op_unread = {.name = "not read", .max_in = -1, .max_out = -1};

static struct graph_registry *registry_of(compiler *c)
{
    if (!c->ops) {
        c->ops = arena_new(&c->mem, struct graph_registry);
        ptr_map_init(&c->ops->by_name, &c->mem);
    }
    return c->ops;
}

static graph_op *find(const compiler *c, const char *name)
{
    uint32_t i = 0;
    if (!c->ops || !ptr_map_get(&c->ops->by_name, intern(c->names, name), &i))
        return NULL;
    return c->ops->rows.data[i];
}

/* --- schemas: "axis:int=-1 perm:ints=[] to:dtype" --- */

/* Text of a default: from its first token to the token after it. A schema is one line, so columns are offsets. */
static const char *default_text(compiler *c, const char *schema, uint32_t from_col, const lexer *l)
{
    size_t from = from_col - 1, to = l->tok.kind == TOK_END ? strlen(schema) : l->tok.loc.col - 1;
    while (to > from && schema[to - 1] == ' ')
        to--;
    return intern_n(c->names, schema + from, to - from);
}

static bool parse_entry(compiler *c, lexer *l, const char *schema, attr_def *def, attr *dflt)
{
    *def = (attr_def){0};
    *dflt = (attr){0};
    if (l->tok.kind != TOK_IDENT)
        return lexer_error(l, "expected the name of an attribute");
    def->name = l->tok.text;
    lexer_next(l);
    if (!lexer_expect(l, ":"))
        return false;
    if (l->tok.kind != TOK_IDENT || !graph_attr_kind_parse(l->tok.text, &def->kind))
        return lexer_error(l, "expected the kind of attribute '%s'", def->name);
    lexer_next(l);
    dflt->kind = def->kind;
    if (!lexer_accept(l, "="))
        return true;
    if (def->kind == ATTR_FUNC)
        return lexer_error(l, "an attribute of kind func has no default");
    uint32_t from = l->tok.loc.col;
    if (!graph_parse_attr(c, l, def->name, def->kind, dflt))
        return false;
    def->default_text = default_text(c, schema, from, l);
    return true;
}

static bool parse_schema(compiler *c, graph_op *row)
{
    lexer l;
    VEC(attr_def) defs = {0};
    VEC(attr) defaults = {0};
    const char *schema = row->schema ? row->schema : "";
    lexer_init(&l, &c->mem, c->names, &c->diags, row->name, schema, strlen(schema));
    while (l.tok.kind != TOK_END) {
        attr_def def;
        attr dflt;
        if (!parse_entry(c, &l, schema, &def, &dflt))
            return false;
        for (uint32_t i = 0; i < defs.len; i++)
            if (defs.data[i].name == def.name)
                return lexer_error(&l, "attribute '%s' is declared twice", def.name);
        vec_push(&c->mem, &defs, def);
        vec_push(&c->mem, &defaults, dflt);
    }
    row->attrs = defs.data;
    row->defaults = defaults.data;
    row->n_attrs = defs.len;
    return !l.failed;
}

/* --- rows --- */

static bool check_row(compiler *c, const graph_op *row)
{
    src_loc at = src_loc_none();
    const char *name = row->name ? row->name : "";
    bool ok = isalpha((unsigned char)*name) || *name == '_';
    for (const char *p = name; *p; p++)
        ok &= isalnum((unsigned char)*p) || *p == '_' || *p == '.';
    if (!ok)
        return diag_error(&c->diags, DIAG_USAGE, at, "'%s' cannot be the name of an operator: use letters, digits, "
                          "_ and .", name);
    if (find(c, name))
        return diag_error(&c->diags, DIAG_USAGE, at, "operator '%s' is registered already", name);
    if (!row->infer)
        return diag_error(&c->diags, DIAG_USAGE, at, "operator '%s' has no type relation", name);
    if (!row->operands)
        return diag_error(&c->diags, DIAG_USAGE, at, "operator '%s' does not say what operands it takes", name);
    if (row->min_out < 0 || (row->max_out >= 0 && row->max_out < row->min_out))
        return diag_error(&c->diags, DIAG_USAGE, at, "operator '%s' has an impossible number of results", name);
    return true;
}

const graph_op *graph_register_op(compiler *c, const graph_op *row)
{
    if (!check_row(c, row))
        return NULL;
    struct graph_registry *r = registry_of(c);
    graph_op *copy = arena_new(&c->mem, graph_op);
    *copy = *row;
    copy->name = intern(c->names, row->name);
    if (!parse_schema(c, copy) || !operands_parse(c, copy->name, row->operands, &copy->operand_defs, &copy->n_operands,
                                                  &copy->min_in, &copy->max_in))
        return NULL;
    ptr_map_set(&r->by_name, copy->name, r->rows.len);
    vec_push(&c->mem, &r->rows, copy);
    return copy;
}

static const graph_op builtin_ops[] = {
#define GRAPH_OP(id, name_, operands_, omin, omax, cls_, effect_, flags_, infer_, compute, schedule, schema_) \
    {.name = name_,                                                                                           \
     .operands = operands_,                                                                                   \
     .min_out = omin,                                                                                         \
     .max_out = omax,                                                                                         \
     .cls = cls_,                                                                                             \
     .effect = effect_,                                                                                       \
     .flags = flags_,                                                                                         \
     .infer = infer_,                                                                                         \
     .schema = schema_},
#include "graph/graph_ops.def"
#undef GRAPH_OP
};

void graph_register_builtin_ops(compiler *c)
{
    for (size_t i = 0; i < sizeof builtin_ops / sizeof *builtin_ops; i++)
        (void)graph_register_op(c, &builtin_ops[i]);
}

void graph_op_set_te(compiler *c, const char *name, const struct te_op *te)
{
    graph_op *row = find(c, name);
    if (row)
        row->te = te;
    else
        (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "operator '%s' is not registered", name);
}

const graph_op *graph_find_op(const compiler *c, const char *name)
{
    return find(c, name);
}

uint32_t graph_op_count(const compiler *c)
{
    return c->ops ? c->ops->rows.len : 0;
}

const graph_op *graph_op_at(const compiler *c, uint32_t i)
{
    return c->ops->rows.data[i];
}
