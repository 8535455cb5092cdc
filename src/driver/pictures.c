/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures in WebP and JPEG 2000: a package that decodes pictures is built with a hook that reads them by libraries of
 * this machine (runtime/pictures), where pkg-config knows these and the compiler can use them. */
#include "driver/pictures.h"

#include "driver/build.h"

#include <stdlib.h>
#include <string.h>

#define SOURCE "pictures.c"

bool pictures_are_decoded(const run_operator *op)
{
    return op && strstr(op->kind, "decode_image") != NULL;
}

/* Flags and libraries; NULL: pkg-config does not know them, or is not there. */
static bool libraries(compiler *c, const char *scratch, const char **out)
{
    static const char *const ask[] = {"pkg-config", "--silence-errors", "--cflags", "--libs", "libwebp", "libopenjp2",
                                      NULL};
    char line[1000] = "";
    process p;
    *out = NULL;
    if (!process_start(c, ask, scratch, &p))
        return false;
    (void)process_hear(&p, line, sizeof line);
    *out = process_end(&p) == 0 ? arena_strdup(&c->mem, line) : NULL;
    return !c->cancelled;
}

/* Whether the compiler makes something of it: it may be one for another machine. */
static bool can_build(compiler *c, const char *scratch, const char *flags, bool *out_works)
{
    const char *cc = getenv("CC");
    process_words a = {0};
    *out_works = false;
    process_add_words(c, &a, cc && *cc ? cc : "cc");
    for (uint32_t i = 0; i < a.len; i++)
        a.data[i] = build_word_from_anywhere(c, a.data[i]);
    process_add_words(c, &a, "-std=c99 -fPIC -shared -o pictures.so " SOURCE);
    process_add_words(c, &a, flags);
    vec_push(&c->mem, &a, NULL);
    return build_write_embedded(c, scratch, "pictures", SOURCE) &&
           process_try(c, &(process_task){.argv = a.data, .dir = scratch, .what = "looking for decoders of pictures"},
                       out_works);
}

bool pictures_add_decoders(compiler *c, const run_model *m, const char *scratch, process_words *a)
{
    const char *own = getenv("CFLAGS"), *flags = NULL;
    bool wanted = false, works = false;
    for (uint32_t i = 0; i < m->report->n_operators; i++)
        wanted |= pictures_are_decoded(&m->report->operators[i]);
    if (!wanted || m->emulator || (own && strstr(own, "LATHE_IMAGE_HOOK")))
        return true;
    if (!libraries(c, scratch, &flags) || (flags && !can_build(c, scratch, flags, &works)))
        return false;
    if (works) {
        process_add_words(c, a, "-DLATHE_IMAGE_HOOK=lathe_pictures " SOURCE);
        process_add_words(c, a, flags);
    }
    return true;
}
