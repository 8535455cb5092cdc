/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a file up in the table of embedded files. */
#include "codegen/embedded.h"

#include <assert.h>
#include <string.h>

const struct embedded_file *embedded_find(const char *name)
{
    const struct embedded_file *f = lathe_embedded_files;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f->name ? f : NULL;
}

const char *embedded_text(const char *name)
{
    const struct embedded_file *f = embedded_find(name);
    assert(f);
    return (const char *)f->data;
}
