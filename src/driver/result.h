/* SPDX-License-Identifier: Apache-2.0 */
/* What --json printed, read back. */
#ifndef LATHE_DRIVER_RESULT_H
#define LATHE_DRIVER_RESULT_H
#include <jansson.h>

/* The result in a document. A result alone, as the library's functions give it, stands for itself. NULL for NULL. */
static inline const json_t *result_of(const json_t *document)
{
    const json_t *result = json_object_get(document, "result");
    return result && json_object_get(document, "schema") ? result : document;
}
#endif
