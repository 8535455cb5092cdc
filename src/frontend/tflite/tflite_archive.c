/* SPDX-License-Identifier: Apache-2.0 */
/* Files that travel with a model: a ZIP archive behind the tables, in which files are stored as they are. Offsets in it
 * count from the beginning of the whole file, or from that of the archive: writers differ.
 * The format: APPNOTE.TXT of PKWARE, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (end). */
#include "frontend/tflite/tflite_import.h"

#include <string.h>

enum { LOCAL = 30, ENTRY = 46, END = 22, MOST_REMARK = 65535, STORED = 0 };

static uint64_t read_number(span s, uint64_t at, uint32_t bytes)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)s.data[at + i] << 8 * i;
    return v;
}

/* `size` bytes of a record that begins with that mark are at `at`. */
static bool is_record(span s, uint64_t at, uint64_t size, const char *mark)
{
    return at <= s.len && size <= s.len - at && memcmp(s.data + at, mark, 4) == 0;
}

/* Where the last record stands; a remark may follow it. */
static bool find_end(span s, uint64_t *out)
{
    for (uint64_t back = END; back <= s.len && back <= END + MOST_REMARK; back++)
        if (is_record(s, s.len - back, END, "PK\005\006")) {
            *out = s.len - back;
            return true;
        }
    return false;
}

/* The bytes of the file whose local header stands at `at`. */
static bool read_file(span s, uint64_t at, uint64_t bytes, span *out)
{
    if (!is_record(s, at, LOCAL, "PK\003\004"))
        return false;
    const uint64_t begin = at + LOCAL + read_number(s, at + 26, 2) + read_number(s, at + 28, 2);
    if (begin > s.len || bytes > s.len - begin)
        return false;
    *out = (span){s.data + begin, (size_t)bytes};
    return true;
}

bool tflite_find_file(span whole, span name, span *out, const char **why)
{
    uint64_t end = 0;
    *why = "the archive behind the model is not there, or damaged";
    if (!find_end(whole, &end))
        return false;
    const uint64_t bytes = read_number(whole, end + 12, 4), given = read_number(whole, end + 16, 4);
    if (bytes > end || given > end - bytes)
        return false;
    const uint64_t shift = end - bytes - given;
    for (uint64_t at = end - bytes; is_record(whole, at, ENTRY, "PK\001\002");) {
        const uint64_t n = read_number(whole, at + 28, 2);
        const uint64_t more = read_number(whole, at + 30, 2) + read_number(whole, at + 32, 2);
        if (n > whole.len - at - ENTRY)
            return false;
        if (n == name.len && memcmp(whole.data + at + ENTRY, name.data, name.len) == 0) {
            if (read_number(whole, at + 10, 2) != STORED) {
                *why = "it is compressed; store it, as zip -0 does";
                return false;
            }
            return read_file(whole, shift + read_number(whole, at + 42, 4), read_number(whole, at + 24, 4), out);
        }
        at += ENTRY + n + more;
    }
    *why = "the archive behind the model does not hold it";
    return false;
}
