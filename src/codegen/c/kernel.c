/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in generated C: files of the folder kernel/, whose text travels inside the program (cmake/embed.cmake). A
 * header stands once in the C, behind the headers that it includes, and a template (*.inc) wherever it is included.
 * Licence lines and guards stay behind: what is generated has its own. */
#include "codegen/c/emit.h"
#include "codegen/c/embedded.h"

#include <assert.h>
#include <string.h>

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

/* Of a guard or a licence. */
static bool is_left_out(const char *line, bool last)
{
    return starts(line, "/* SPDX-") || starts(line, "#ifndef LATHE_KERNEL_") ||
           starts(line, "#define LATHE_KERNEL_") || last;
}

static void write_lines(kernel_paste *k, writer *w, const char *file, const char *text)
{
    bool blank = false; /* a line that waits for another one, */
    bool fresh = true;  /* unless it would be behind the head */
    for (const char *p = text; *p;) {
        const size_t line = strcspn(p, "\n");
        const char *next = p[line] ? p + line + 1 : p + line, *name = included(k->a, p);
        if (name && !is_header(name)) {
            write_lines(k, w, name, text_of(name));
        } else if (line == 0) {
            blank = !fresh;
        } else if (name || is_left_out(p, is_header(file) && !*next)) {
            fresh = true;
        } else {
            w_fmt(w, "%s%.*s\n", blank ? "\n" : "", (int)line, p);
            blank = fresh = false;
        }
        p = next;
    }
}

void kernel_write(kernel_paste *k, writer *w, const char *file, const char *condition)
{
    const char *text = text_of(file), *name;
    assert(text);
    if (seen(k, file))
        return;
    vec_push(k->a, &k->files, file);
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p != 0)
        if ((name = included(k->a, p)) && is_header(name))
            kernel_write(k, w, name, NULL);
    if (condition)
        w_fmt(w, "#if %s\n", condition);
    write_lines(k, w, file, text);
    w_str(w, condition ? "#endif\n\n" : "\n");
}
