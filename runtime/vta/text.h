/* text.h: text written into a caller's buffer, as every *_print function of the library does: cut where the buffer
 * ends, its whole length counted. SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_TEXT_H
#define VTA_TEXT_H

#include <stddef.h>

typedef struct vta_text {
    char *out; /* may be NULL when size is 0 */
    size_t size, length;
} vta_text;

void vta_put(vta_text *t, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#endif
