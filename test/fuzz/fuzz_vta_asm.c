/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a VTA program, text or binary: what is read must print, and read again, as the same. */
#include <stdint.h>
#include <stdlib.h>

#include "vta.h"

static char *print(const vta_program *p, size_t *n)
{
    *n = vta_disassemble(p, NULL, 0);
    char *text = malloc(*n + 1);
    if (!text || vta_disassemble(p, text, *n + 1) != *n)
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vta_program p, q;
    vta_error e;
    vta_status s = vta_program_is_binary(data, size) ? vta_program_read("fuzz", data, size, &p, &e)
                                                     : vta_assemble("fuzz", (const char *)data, size, NULL, &p, &e);
    if (s != VTA_OK)
        return 0;
    size_t n, m;
    char *text = print(&p, &n);
    if (vta_assemble("again", text, n, NULL, &q, &e) != VTA_OK)
        abort();
    char *again = print(&q, &m);
    if (n != m || memcmp(text, again, n) != 0)
        abort();
    size_t bytes = vta_program_write(&q, NULL, 0);
    uint8_t *file = malloc(bytes);
    if (!file || vta_program_write(&q, file, bytes) != bytes)
        abort();
    vta_program_release(&p);
    if (vta_program_read("written", file, bytes, &p, &e) != VTA_OK)
        abort();
    free(file);
    free(text);
    free(again);
    vta_program_release(&p);
    vta_program_release(&q);
    return 0;
}
