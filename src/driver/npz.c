/* SPDX-License-Identifier: Apache-2.0 */
/* Zip archives without compression, read by their directory at the end: the headers beside the members may leave sizes
 * to it, and numpy.savez writes 64-bit sizes there. */
#include "driver/npz.h"

#include <string.h>

enum {
    END_BYTES = 22, /* of the record at the end, without its comment */
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MOST_COMMENT = 0xffff,
    EXTRA_64 = 1 /* the field that has 64-bit sizes */
};
#define IN_EXTRA 0xffffffffu /* a size or an offset that this field has */

typedef struct entry {
    const uint8_t *name, *extra;
    size_t name_bytes, extra_bytes;
    uint32_t method;
    uint64_t size, at; /* stored bytes; of the local header */
} entry;

static uint64_t le(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static bool fail(compiler *c, const char *path, const char *why)
{
    return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s': %s", path, why);
}

static const uint8_t *find_end(span s)
{
    for (size_t back = END_BYTES; back <= s.len && back <= END_BYTES + MOST_COMMENT; back++)
        if (le(s.data + s.len - back, 4) == 0x06054b50u)
            return s.data + s.len - back;
    return NULL;
}

/* Values that the entry leaves to the 64-bit field are there in its own order: size, stored size, offset. */
static bool read_64(entry *e, bool has_size)
{
    for (size_t at = 0; at + 4 <= e->extra_bytes;) {
        const uint64_t id = le(e->extra + at, 2), bytes = le(e->extra + at + 2, 2);
        size_t k = at + 4;
        if (bytes > e->extra_bytes - k)
            return false;
        const size_t end = k + (size_t)bytes;
        k += id == EXTRA_64 && has_size ? 8 : 0;
        for (int i = 0; id == EXTRA_64 && i < 2; i++) {
            uint64_t *v = i == 0 ? &e->size : &e->at;
            if (*v == IN_EXTRA && k + 8 <= end) {
                *v = le(e->extra + k, 8);
                k += 8;
            }
        }
        at = end;
    }
    return true;
}

/* The entry at *at, which moves behind it. */
static bool read_entry(span s, size_t *at, entry *out)
{
    const uint8_t *p = s.data + *at;
    if (*at > s.len || s.len - *at < ENTRY_BYTES || le(p, 4) != 0x02014b50u)
        return false;
    *out = (entry){.name = p + ENTRY_BYTES, .name_bytes = (size_t)le(p + 28, 2), .extra_bytes = (size_t)le(p + 30, 2),
                   .method = (uint32_t)le(p + 10, 2), .size = le(p + 20, 4), .at = le(p + 42, 4)};
    const size_t all = ENTRY_BYTES + out->name_bytes + out->extra_bytes + (size_t)le(p + 32, 2);
    if (all > s.len - *at)
        return false;
    out->extra = out->name + out->name_bytes;
    *at += all;
    return read_64(out, le(p + 24, 4) == IN_EXTRA);
}

/* The bytes of a member: they lie behind a header of their own. */
static bool find_bytes(span s, const entry *e, span *out)
{
    if (e->at > s.len || s.len - e->at < LOCAL_BYTES)
        return false;
    const uint8_t *p = s.data + e->at;
    const size_t left = s.len - (size_t)e->at, head = LOCAL_BYTES + (size_t)(le(p + 26, 2) + le(p + 28, 2));
    if (le(p, 4) != 0x04034b50u || head > left || e->size > left - head)
        return false;
    *out = (span){p + head, (size_t)e->size};
    return true;
}

bool npz_read(compiler *c, const char *path, span s, npz_file *out)
{
    *out = (npz_file){0};
    if (s.len < 4 || le(s.data, 4) != 0x04034b50u)
        return fail(c, path, "this is not a .npz file");
    const uint8_t *end = find_end(s);
    if (!end)
        return fail(c, path, "the .npz file is cut off");
    size_t at = (size_t)le(end + 16, 4);
    for (uint64_t i = le(end + 10, 2); i > 0; i--) {
        entry e;
        npz_array x;
        if (!read_entry(s, &at, &e) || !find_bytes(s, &e, &x.bytes))
            return fail(c, path, "the .npz file is cut off");
        if (e.method != 0)
            return fail(c, path, "compressed .npz files are not supported; use np.savez, not np.savez_compressed");
        const bool npy = e.name_bytes >= 4 && memcmp(e.name + e.name_bytes - 4, ".npy", 4) == 0;
        x.name = arena_strndup(&c->mem, (const char *)e.name, e.name_bytes - (npy ? 4 : 0));
        vec_push(&c->mem, &out->arrays, x);
    }
    return out->arrays.len > 0 || fail(c, path, "the .npz file holds no array");
}

const npz_array *npz_find(const npz_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->arrays.len; i++)
        if (strcmp(f->arrays.data[i].name, name) == 0)
            return &f->arrays.data[i];
    return NULL;
}
