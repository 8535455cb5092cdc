/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises files by format.def, and refuses those that a verb does not take. */
#include "driver/format.h"

#include "base/nearest.h"
#include "frontend/onnx/onnx.h"
#include "frontend/tflite/tflite.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PRIMITIVE(id, name, fields) #name " "
static const char primitives[] =
#include "te/primitives.def"
    ;
#undef PRIMITIVE
#define FORMAT_PRIMITIVES primitives

static const struct format_row {
    const char *name, *suffix;
    size_t offset;
    const char *magic;
    size_t magic_len;
    const char *words, *inside;
    size_t inside_len;
    const char *verbs, *way;
} rows[] = {
    [FORMAT_NONE] = {"", "", 0, "", 0, "", "", 0, "", ""},
#define FORMAT(id, name, suffix, offset, magic, words, inside, verbs, way) \
    [id] = {name, suffix, offset, magic, sizeof magic - 1, words, inside, sizeof inside - 1, verbs, way},
#include "driver/format.def"
};

static bool format_may_be_onnx(span s);

static const frontend frontends[FORMAT_COUNT] = {
#define FORMAT(id, name, suffix, offset, magic, words, inside, verbs, way)
#define FRONTEND(id, name, offset, magic, recogniser, importer, reference, verbs, way) \
    [id] = {name, recogniser, importer, reference},
#include "driver/format.def"
};

/* --- evidence ----------------------------------------------------------------------------------------------------- */

static bool skip_line(span s, size_t *i)
{
    while (*i < s.len && s.data[*i] != '\n')
        ++*i;
    return true;
}

static bool skip_remark(span s, size_t *i)
{
    size_t at = *i + 2;
    while (at + 1 < s.len && !(s.data[at] == '*' && s.data[at + 1] == '/'))
        at++;
    *i = at + 1 < s.len ? at + 2 : s.len;
    return true;
}

/* Where the first word begins behind space and remarks: //, those of C, or # of VTA programs and schedules. */
static size_t first_word(span s)
{
    size_t i = 0;
    while (i < s.len && (isspace(s.data[i]) || (s.data[i] == '#' && skip_line(s, &i)) ||
                         (s.data[i] == '/' && i + 1 < s.len && s.data[i + 1] == '/' && skip_line(s, &i)) ||
                         (s.data[i] == '/' && i + 1 < s.len && s.data[i + 1] == '*' && skip_remark(s, &i))))
        i += i < s.len && isspace(s.data[i]);
    return i;
}

static size_t word_len(span s, size_t at)
{
    size_t n = at;
    while (n < s.len && (isalnum(s.data[n]) || s.data[n] == '_'))
        n++;
    return n - at;
}

/* No control characters at the beginning; a binary file has one early. */
static bool is_text(span s)
{
    for (size_t i = 0; i < s.len && i < 512; i++)
        if ((s.data[i] < 32 && !isspace(s.data[i])) || s.data[i] == 127)
            return false;
    return true;
}

static bool has_word(const char *list, const char *word, size_t len, char separator)
{
    while (*list) {
        const char *end = strchr(list, separator);
        size_t n = end ? (size_t)(end - list) : strlen(list);
        if (n == len && memcmp(list, word, n) == 0)
            return true;
        list += n + (end != NULL);
        list += *list == ' ';
    }
    return false;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    for (size_t i = 0; i < m; i++)
        if (n < m || tolower((unsigned char)path[n - m + i]) != suffix[i])
            return false;
    return true;
}

/* The first byte is a field of a ModelProto, with the wire type that it has: all that its writers, who may order fields
 * as they like, have in common. */
static bool format_may_be_onnx(span s)
{
    static const uint8_t first[] = {0x08, 0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72, 0xa2, 0xca};
    return s.len > 0 && memchr(first, s.data[0], sizeof first) && !is_text(s);
}

static bool has_inside(span s, const char *text, size_t len)
{
    size_t most = s.len < 4096 ? s.len : 4096;
    for (size_t i = 0; i + len <= most; i++)
        if (memcmp(s.data + i, text, len) == 0)
            return true;
    return false;
}

static bool matches(file_format f, const char *path, span s)
{
    const struct format_row *r = &rows[f];
    size_t at = first_word(s);
    while (at < s.len && memchr("<!?", s.data[at], 3))
        at++;
    if (frontends[f].recognise)
        return frontends[f].recognise(s);
    if (!*r->suffix && r->magic_len == 0 && !*r->words)
        return false; /* not known by its bytes */
    return has_suffix(path, r->suffix) && s.len >= r->offset + r->magic_len &&
           (r->magic_len == 0 || memcmp(s.data + r->offset, r->magic, r->magic_len) == 0) &&
           (!*r->words || has_word(r->words, (const char *)s.data + at, word_len(s, at), ' ')) &&
           has_inside(s, r->inside, r->inside_len);
}

file_format format_of(const char *path, span bytes)
{
    for (int f = FORMAT_NONE + 1; f < FORMAT_COUNT && bytes.len > 0; f++)
        if (matches((file_format)f, path, bytes))
            return (file_format)f;
    return FORMAT_NONE;
}

const frontend *format_frontend(file_format f)
{
    return frontends[f].import ? &frontends[f] : NULL;
}

const frontend *format_frontend_of(compiler *c, const char *path)
{
    span bytes;
    const diags_mark mark = diags_get_mark(&c->diags);
    if (file_is_dir(path) || !compiler_read_file(c, path, &bytes)) {
        diags_reset(&c->diags, mark);
        return NULL;
    }
    return format_frontend(format_of(path, bytes));
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static bool takes(const char *verb, int f)
{
    return has_word(rows[f].verbs, verb, strlen(verb), ',');
}

/* "'lathe run' takes a package, graph text (func), ..." */
static const char *what_it_takes(compiler *c, const char *verb)
{
    writer w;
    writer_init(&w, &c->mem);
    w_fmt(&w, "'lathe %s' takes", verb);
    int last = FORMAT_COUNT;
    while (--last > FORMAT_NONE && !takes(verb, last))
        ;
    for (int f = FORMAT_NONE + 1, n = 0; f <= last; f++)
        if (takes(verb, f))
            w_fmt(&w, "%s %s", n++ == 0 ? "" : f == last ? " or" : ",", rows[f].name);
    return w.data;
}

static src_loc at_file(const char *path)
{
    src_loc l = src_loc_none();
    l.file = path;
    return l;
}

/* The way with the file's name in the place of FILE. */
static const char *way_of(compiler *c, const struct format_row *r, const char *path)
{
    writer w;
    writer_init(&w, &c->mem);
    for (const char *s = r->way, *hole; *s; s = hole + (*hole ? 4 : 0)) {
        hole = strstr(s, "FILE");
        hole = hole ? hole : s + strlen(s);
        w_fmt(&w, "%.*s%s", (int)(hole - s), s, *hole ? path : "");
    }
    return w.data;
}

static bool refuse_text(compiler *c, const char *verb, const char *path, span s)
{
    size_t at = first_word(s), n = word_len(s, at);
    const char *word = (const char *)s.data + at;
    src_loc loc = at_file(path);
    nearest near = nearest_to(word, n);
    loc.line = 1;
    loc.col = 1;
    for (size_t i = 0; i < at; i++, loc.col++)
        if (s.data[i] == '\n') {
            loc.line++;
            loc.col = 0;
        }
    for (int f = 0; f < FORMAT_COUNT; f++)
        if (takes(verb, f))
            nearest_offer_list(&near, rows[f].words, &c->mem);
    if (n == 0 && at < s.len)
        n = 1;
    if (n == 0)
        diag_error(&c->diags, DIAG_FORMAT, at_file(path), "the file has only white space and comments");
    else
        diag_error(&c->diags, DIAG_FORMAT, loc, "unknown text format: the file starts with '%.*s'",
                   (int)(n < 40 ? n : 40), word);
    diag_hint(&c->diags, "%s%s", nearest_question(&near, "", &c->mem), what_it_takes(c, verb));
    return false;
}

static bool refuse(compiler *c, const char *verb, const char *path, span s, file_format f)
{
    if (f != FORMAT_NONE) {
        diag_error(&c->diags, DIAG_FORMAT, at_file(path), "this is %s, which 'lathe %s' does not take", rows[f].name,
                   verb);
        diag_hint(&c->diags, "%s; %s", way_of(c, &rows[f], path), what_it_takes(c, verb));
        return false;
    }
    if (s.len > 0 && is_text(s))
        return refuse_text(c, verb, path, s);
    diag_error(&c->diags, DIAG_FORMAT, at_file(path),
               s.len > 0 ? "unknown file format" : "the file is empty");
    diag_hint(&c->diags, "%s", what_it_takes(c, verb));
    return false;
}

/* What cannot be opened is none: who reads it says why. But for want of memory, or of files, it may be one. */
bool format_is_object(compiler *c, const char *path, bool *out)
{
    char magic[4] = {0};
    size_t n = 0;
    ssize_t got = 1;
    const int fd = file_is_regular(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    *out = false;
    if (fd < 0)
        return file_code_of(errno) != DIAG_ENVIRONMENT || !file_is_regular(path) ||
               diag_error(&c->diags, DIAG_ENVIRONMENT, at_file(path), "%s", strerror(errno));
    while (n < sizeof magic && (got > 0 || (got < 0 && errno == EINTR))) {
        got = read(fd, magic + n, sizeof magic - n);
        n += got > 0 ? (size_t)got : 0;
    }
    const int why = errno;
    (void)close(fd);
    if (got < 0)
        return diag_error(&c->diags, file_code_of(why), at_file(path), "%s", strerror(why));
    *out = n == sizeof magic && memcmp(magic, "\x7f" "ELF", sizeof magic) == 0;
    return true;
}

bool format_folder(compiler *c, const char *verb, const char *path)
{
    bool package = file_exists(path_join(&c->mem, path, "report.json")), taken = takes(verb, FORMAT_PACKAGE);
    if (package && taken)
        return true;
    if (package)
        return refuse(c, verb, path, (span){NULL, 0}, FORMAT_PACKAGE);
    if (file_exists(path_join(&c->mem, path, "saved_model.pb")))
        return refuse(c, verb, path, (span){NULL, 0}, FORMAT_SAVED_MODEL);
    if (has_suffix(path, ".mlpackage"))
        return refuse(c, verb, path, (span){NULL, 0}, FORMAT_CORE_ML);
    diag_error(&c->diags, DIAG_FORMAT, at_file(path), "this is a folder%s",
               taken ? ", but not a package: it has no report.json" : "");
    diag_hint(&c->diags, "%s", what_it_takes(c, verb));
    return false;
}

bool format_read(compiler *c, const char *verb, const char *path, span *out_bytes, file_format *out)
{
    *out_bytes = (span){NULL, 0};
    *out = FORMAT_PACKAGE;
    if (file_is_dir(path))
        return format_folder(c, verb, path);
    if (!compiler_read_file(c, path, out_bytes)) { /* stays: constants point into it */
        diag_hint(&c->diags, "%s", what_it_takes(c, verb));
        file_hint_missing(&c->diags, path);
        return false;
    }
    *out = format_of(path, *out_bytes);
    return takes(verb, (int)*out) || refuse(c, verb, path, *out_bytes, *out);
}
