/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ecosystems. */
#include "codegen/ecosystem.h"

#include <stddef.h>

static const ecosystem table[] = {
#define ECOSYSTEM(name, brief, ports, headers, sources, files) {name, brief, ports, headers, sources, files},
#include "codegen/ecosystem.def"
};

const char ecosystem_names[] =
#define ECOSYSTEM(name, brief, ports, headers, sources, files) "|" name
#include "codegen/ecosystem.def"
    ;

/* By --example, not by --as: the rest of the package stays as it is. */
static const ecosystem example = {"example", "", "baremetal", "include", "src", true};

const ecosystem *ecosystem_at(uint32_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const ecosystem *ecosystem_example(void)
{
    return &example;
}
