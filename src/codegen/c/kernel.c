/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in generated C: files of the folder kernel/, whose text travels inside the program (cmake/embed.cmake). A
 * header stands once in the C, behind the headers that it includes, and a template (*.inc) wherever it is included.
 * Licence lines and guards stay behind: what is generated has its own.
 *
 * A template may have words, which stand for the texts that the writer gives them: LATHE_LANES for a number, LATHE_V
 * for the name of a type. Where a text has an @, the word stands with a name in brackets, which comes into its place.
 * What the preprocessor need not ask any more is left out: a condition that such numbers alone decide, and one on
 * whether a word is defined, behind which a template says what its words are when it is compiled alone. */
#include "codegen/c/emit.h"
#include "codegen/embedded.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NESTED 16

/* The names of files are in the compiler's tables, and a test looks for each of them: one that is missing is a fault of
 * the build. */
static const char *text_of(const char *file)
{
    const struct embedded_file *f = embedded_find(file);
    return f ? (const char *)f->data : NULL;
}

static bool starts(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* The file that a line includes, of those here; NULL: it includes none. */
static const char *included(arena *a, const char *line)
{
    static const char start[] = "#include \"kernel/";
    if (!starts(line, start))
        return NULL;
    const char *name = strchr(line, '"') + 1;
    return arena_strndup(a, name, strcspn(name, "\""));
}

static bool is_header(const char *file)
{
    return strcmp(file + strlen(file) - 2, ".h") == 0;
}

static bool seen(const kernel_paste *k, const char *file)
{
    for (uint32_t i = 0; i < k->files.len; i++)
        if (strcmp(k->files.data[i], file) == 0)
            return true;
    return false;
}

/* --- words --- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const kernel_word *find_word(const kernel_words *words, const char *s, size_t n)
{
    for (uint32_t i = 0; words && i < words->n; i++)
        if (strlen(words->words[i].name) == n && strncmp(words->words[i].name, s, n) == 0)
            return &words->words[i];
    return NULL;
}

/* The line with what its words stand for. */
static const char *filled(arena *a, const kernel_words *words, const char *line, size_t n)
{
    writer w;
    writer_init(&w, a);
    for (const char *p = line, *end = line + n; p < end;) {
        const char *start = p;
        while (p < end && is_name(*p))
            p++;
        const kernel_word *word = find_word(words, start, (size_t)(p - start));
        const char *at = word ? strchr(word->text, '@') : NULL;
        if (at) {
            assert(*p == '(');
            const size_t name = strcspn(p + 1, ")");
            w_fmt(&w, "%.*s%.*s%s", (int)(at - word->text), word->text, (int)name, p + 1, at + 1);
            p += name + 2;
        } else if (word) {
            w_str(&w, word->text);
        } else if (p > start) {
            w_fmt(&w, "%.*s", (int)(p - start), start);
        } else {
            w_fmt(&w, "%c", *p++);
        }
    }
    return w.len ? w.data : "";
}

/* --- conditions --- */

typedef enum verdict { HOLDS_NOT, HOLDS, OPEN } verdict;

/* Takes comparisons of numbers from the front of a condition, as long as they hold. */
static verdict decide(const char **condition)
{
    for (;;) {
        char *end;
        const long left = strtol(*condition, &end, 10);
        if (end == *condition || *end != ' ')
            return OPEN;
        const char *op = end + 1, *second = op + strcspn(op, " ");
        const long right = strtol(second, &end, 10);
        if (end == second || (*end && !starts(end, " && ")))
            return OPEN;
        const bool holds = starts(op, "==")   ? left == right
                           : starts(op, "<=") ? left <= right
                           : starts(op, ">=") ? left >= right
                           : starts(op, "<")  ? left < right
                                              : left > right;
        if (!holds || !*end)
            return holds ? HOLDS : HOLDS_NOT;
        *condition = end + strlen(" && ");
    }
}

/* One #if: whether its head is in the text, a branch stood for certain, and what is read now is part of the text. */
typedef struct branch {
    bool written, done, active;
} branch;

typedef struct reader {
    kernel_paste *k;
    const kernel_words *words;
    branch open[MOST_NESTED];
    uint32_t n;
} reader;

static bool is_active(const reader *r)
{
    return r->n == 0 || r->open[r->n - 1].active;
}

/* The next branch of the innermost #if, on `condition`. The text of its head; NULL: it has none. */
static const char *next_branch(reader *r, verdict v, const char *condition)
{
    branch *b = &r->open[r->n - 1];
    const bool around = r->n == 1 || r->open[r->n - 2].active, first = !b->written;
    b->active = around && !b->done && v != HOLDS_NOT;
    if (!b->active)
        return NULL;
    b->done = v == HOLDS;
    if (v == HOLDS)
        return first ? NULL : "#else";
    b->written = true;
    return arena_printf(r->k->a, "#%s %s", first ? "if" : "elif", condition);
}

/* A directive of conditions: true, and in out_text what becomes of it, NULL when nothing does. */
static bool read_condition(reader *r, const char *line, const char **out_text)
{
    static const char if_not[] = "#ifndef ", endif[] = "#endif";
    const bool opens = starts(line, "#if");
    *out_text = NULL;
    if (opens) {
        assert(r->n < MOST_NESTED);
        r->open[r->n++] = (branch){false, false, false};
    } else if (!starts(line, "#el") && !starts(line, endif)) {
        return false;
    }
    assert(r->n > 0);
    if (starts(line, if_not)) {
        const char *name = line + sizeof if_not - 1;
        const bool is_guard = starts(name, "LATHE_KERNEL_"), is_word = find_word(r->words, name, strcspn(name, " "));
        if (is_guard || is_word) {
            *out_text = next_branch(r, is_guard ? HOLDS : HOLDS_NOT, "");
        } else if (next_branch(r, OPEN, "")) {
            *out_text = line;
        }
    } else if (opens || starts(line, "#elif ")) {
        const char *asks = strchr(line, ' ') + 1;
        const char *condition = starts(line, "#ifdef ") ? arena_printf(r->k->a, "defined %s", asks)
                                                        : filled(r->k->a, r->words, asks, strlen(asks));
        const verdict v = decide(&condition);
        *out_text = next_branch(r, v, condition);
    } else if (starts(line, "#else")) {
        *out_text = next_branch(r, HOLDS, "");
    } else {
        *out_text = r->open[--r->n].written ? line : NULL;
    }
    return true;
}

/* --- text --- */

/* Of a guard or a licence. */
static bool is_left_out(const char *line)
{
    return starts(line, "/* SPDX-") || starts(line, "#define LATHE_KERNEL_");
}

/* The comment behind the licence line, which every file has; what follows it. */
static const char *read_head(arena *a, const char *text, const char **out_head)
{
    const char *start = strchr(text, '\n') + 1, *end = strstr(start, "*/\n");
    assert(starts(start, "/*") && end);
    *out_head = arena_strndup(a, start, (size_t)(end + 3 - start));
    return end + 3;
}

/* Where a template has words, the others that it includes stand in front of it. */
static bool stands_here(const reader *r, const char *name)
{
    return !is_header(name) && !r->words;
}

static void write_lines(reader *r, writer *w, const char *file, bool with_head)
{
    bool blank = false; /* a line that waits for another one, */
    bool fresh = true;  /* unless it would be behind the head */
    const char *head;
    for (const char *p = read_head(r->k->a, text_of(file), &head); *p;) {
        const size_t n = strcspn(p, "\n");
        const char *line = arena_strndup(r->k->a, p, n), *name = included(r->k->a, line), *text;
        p += n + (p[n] != 0);
        if (read_condition(r, line, &text)) {
            fresh |= !text;
        } else if (!is_active(r)) {
            continue;
        } else if (*line == 0) {
            blank = !fresh;
            continue;
        } else {
            text = name || is_left_out(line) ? NULL : filled(r->k->a, r->words, line, n);
            fresh |= !text && !(name && stands_here(r, name));
        }
        if (!text && !(name && stands_here(r, name)))
            continue;
        w_str(w, with_head ? head : "");
        with_head = false;
        if (text)
            w_fmt(w, "%s%s\n", blank ? "\n" : "", text);
        else
            write_lines(r, w, name, true);
        blank = fresh = fresh && !text;
    }
}

/* The headers that the file includes, and the templates in it. */
static void write_headers(reader *r, writer *w, const char *file)
{
    const char *ignored;
    for (const char *p = text_of(file); *p; p += strcspn(p, "\n"), p += *p != 0) {
        const char *line = arena_strndup(r->k->a, p, strcspn(p, "\n")), *name = included(r->k->a, line);
        if (read_condition(r, line, &ignored) || !is_active(r) || !name)
            continue;
        if (stands_here(r, name))
            write_headers(r, w, name);
        else
            kernel_write(r->k, w, name, is_header(name) ? NULL : r->words, NULL);
    }
}

/* Whether a template, or one that it includes, has the word. */
static bool has_word(arena *a, const char *file, const char *word)
{
    const char *text = text_of(file);
    if (strstr(text, word))
        return true;
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p != 0) {
        const char *name = included(a, p);
        if (name && !is_header(name) && has_word(a, name, word))
            return true;
    }
    return false;
}

/* What tells a form of a file from its others: the texts of the words that it has. */
static const char *form_of(arena *a, const char *file, const kernel_words *words)
{
    writer w;
    writer_init(&w, a);
    w_str(&w, file);
    for (uint32_t i = 0; words && i < words->n; i++)
        if (has_word(a, file, words->words[i].name))
            w_fmt(&w, " %s", words->words[i].text);
    return w.data;
}

/* A template with words is explained once, however many forms of it follow. */
void kernel_write(kernel_paste *k, writer *w, const char *file, const kernel_words *words, const char *condition)
{
    reader r = {.k = k, .words = words};
    writer text;
    assert(text_of(file));
    const char *form = form_of(k->a, file, words);
    const bool known = seen(k, file);
    if ((known && is_header(file)) || (words && seen(k, form)))
        return;
    vec_push(k->a, &k->files, file);
    vec_push(k->a, &k->files, form);
    write_headers(&r, w, file);
    writer_init(&text, k->a);
    write_lines(&r, &text, file, !known || !words);
    if (text.len == 0)
        return;
    if (condition)
        w_fmt(w, "#if %s\n", condition);
    w_fmt(w, "%s%s", text.data, condition ? "#endif\n\n" : "\n");
}
