/* SPDX-License-Identifier: Apache-2.0 */
/* Short names: identifiers of what the compiler writes have at most 31 characters, which is what C99 5.2.4.1 promises
 * of external ones, and tables hold no names. The files are read as C, and each longer identifier becomes its beginning
 * with a hash of all of it, the same in all files and all packages; names.map says which. Comments stay: they tell the
 * long names; and so do macros that a build may define, of which 63 characters count. */
#include <ctype.h>
#include <string.h>

#include "base/ptr_map.h"
#include "codegen/c/package.h"

#define MOST_CHARACTERS 31u
#define KEPT            18u /* characters of a longer one: "tvmgen_", ten of a module's name, "_" */

typedef struct shortener {
    compiler *c;
    ptr_map taken;   /* identifiers of all files, and short ones */
    ptr_map asked;   /* those that #ifndef and its like ask for */
    ptr_map shorter; /* longer one -> its place in `list` + 1 */
    VEC(const char *) list, longs;
} shortener;

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool goes_on(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The end of the comment, string, character, number, identifier or other character at s. `*is_name`: identifier. */
static const char *token_end(const char *s, const char *end, bool *is_name)
{
    *is_name = begins_name(*s);
    if (s + 1 < end && s[0] == '/' && s[1] == '*') {
        for (s += 2; s + 1 < end && !(s[0] == '*' && s[1] == '/'); s++) {
        }
        return s + 2 < end ? s + 2 : end;
    }
    if (s + 1 < end && s[0] == '/' && s[1] == '/')
        return s + strcspn(s, "\n");
    if (*s == '"' || *s == '\'') {
        const char quote = *s;
        for (s++; s < end && *s != quote; s++)
            s += *s == '\\';
        return s < end ? s + 1 : end;
    }
    if (*is_name || isdigit((unsigned char)*s)) {
        while (s < end && goes_on(*s))
            s++;
        return s;
    }
    return s + 1;
}

static const char *name_at(const shortener *x, const char *s, const char *end)
{
    return intern(x->c->names, arena_strndup(&x->c->mem, s, (size_t)(end - s)));
}

static void collect(shortener *x, const artifact_file *f)
{
    const char *s = f->data, *end = s + f->len, *before = "";
    while (s < end) {
        bool is_name;
        const char *next = token_end(s, end, &is_name);
        if (is_name) {
            const char *name = name_at(x, s, next);
            ptr_map_set(&x->taken, name, 1);
            if (strcmp(before, "ifndef") == 0 || strcmp(before, "ifdef") == 0 || strcmp(before, "defined") == 0)
                ptr_map_set(&x->asked, name, 1);
            before = name;
        }
        s = next;
    }
}

/* FNV-1a, 32 bits. */
static uint32_t hash_of(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    return h;
}

/* Names that begin with _ are the C compiler's. */
static const char *shortened(shortener *x, const char *name)
{
    uint32_t at, ignored;
    if (strlen(name) <= MOST_CHARACTERS || *name == '_' || ptr_map_get(&x->asked, name, &ignored))
        return name;
    if (ptr_map_get(&x->shorter, name, &at))
        return x->list.data[at];
    size_t n = KEPT;
    while (n > 1 && name[n - 1] == '_')
        n--;
    const char *made;
    uint32_t hash = hash_of(name);
    do
        made = intern(x->c->names, arena_printf(&x->c->mem, "%.*s_%08x", (int)n, name, hash++));
    while (ptr_map_get(&x->taken, made, &ignored));
    ptr_map_set(&x->taken, made, 1);
    ptr_map_set(&x->shorter, name, x->list.len);
    vec_push(&x->c->mem, &x->list, made);
    vec_push(&x->c->mem, &x->longs, name);
    return made;
}

/* What a string says: names in assembly are shortened, those in tables are left out. */
typedef enum strings { STRINGS_STAY, STRINGS_ASSEMBLY, STRINGS_NAMES } strings;

/* Assembly in a string: the symbols of C in it. Other words, names of sections say, are the user's. */
static void rewrite_assembly(shortener *x, writer *w, const char *s, const char *end)
{
    uint32_t ignored;
    for (const char *next; s < end; s = next) {
        bool is_name;
        next = token_end(s, end, &is_name);
        const char *text = name_at(x, s, next);
        w_str(w, is_name && ptr_map_get(&x->taken, text, &ignored) ? shortened(x, text) : text);
    }
}

static void rewrite(shortener *x, writer *w, const char *begin, const char *end, strings what)
{
    static const char include[] = "#include ";
    const size_t n = sizeof include - 1;
    for (const char *s = begin, *next; s < end; s = next) {
        bool is_name;
        next = token_end(s, end, &is_name);
        const bool is_file = (size_t)(s - begin) >= n && strncmp(s - n, include, n) == 0;
        if (is_name) {
            w_str(w, shortened(x, name_at(x, s, next)));
        } else if (*s == '"' && what == STRINGS_ASSEMBLY && !is_file) {
            w_str(w, "\"");
            rewrite_assembly(x, w, s + 1, next - 1);
            w_str(w, "\"");
        } else if (*s == '"' && what == STRINGS_NAMES && !is_file) {
            w_str(w, "\"\"");
        } else {
            w_str(w, arena_strndup(&x->c->mem, s, (size_t)(next - s)));
        }
    }
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

static bool is_code(const artifact_file *f)
{
    return !f->is_binary && f->len > 0 && (ends_with(f->path, ".c") || ends_with(f->path, ".h"));
}

bool short_names_write(const package *p, artifact *out)
{
    shortener x = {.c = p->c};
    ptr_map_init(&x.taken, &p->c->mem);
    ptr_map_init(&x.shorter, &p->c->mem);
    ptr_map_init(&x.asked, &p->c->mem);
    if (p->u->prog->sources.len > 0)
        return diag_error(&p->c->diags, DIAG_USAGE, src_loc_none(),
                          "--names short does not work with --offload: the names in libraries cannot be shortened");
    if (strlen(p->u->module_name) > KEPT - sizeof "tvmgen_")
        return diag_error(&p->c->diags, DIAG_USAGE, src_loc_none(),
                          "--module-name %s has %zu characters; with --names short it may have at most %d characters",
                          p->u->module_name, strlen(p->u->module_name), (int)(KEPT - sizeof "tvmgen_"));
    for (uint32_t i = 0; i < out->files.len; i++)
        if (is_code(&out->files.data[i]))
            collect(&x, &out->files.data[i]);
    for (uint32_t i = 0; i < out->files.len; i++) {
        artifact_file *f = &out->files.data[i];
        if (!is_code(f))
            continue;
        writer w;
        writer_init(&w, &p->c->mem);
        const char *text = f->data;
        rewrite(&x, &w, text, text + f->len,
                ends_with(f->path, "_lib0.c")         ? STRINGS_ASSEMBLY
                : ends_with(f->path, "/model_data.c") ? STRINGS_NAMES
                                                      : STRINGS_STAY);
        f->data = w.data;
        f->len = w.len;
    }
    writer map;
    writer_init(&map, &p->c->mem);
    for (uint32_t i = 0; i < x.list.len; i++)
        w_fmt(&map, "%s %s\n", x.list.data[i], x.longs.data[i]);
    vec_push(&p->c->mem, &out->files, ((artifact_file){"names.map", map.data ? map.data : "", map.len, false}));
    return true;
}
