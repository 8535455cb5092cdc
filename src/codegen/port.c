/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ports, and how rows of it are found. */
#include "codegen/port.h"

#include "abi/package.h"

#include <string.h>

static const package_port table[] = {
#define PORT(name, brief, file, macro, libraries, system, main, workers, most) \
    {name, brief, file, macro, libraries, system, main, workers, most},
#include "codegen/port.def"
};

const char port_names[] =
#define PORT(name, brief, file, macro, libraries, system, main, workers, most) "|" name
#include "codegen/port.def"
    ;

const package_port *port_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

const package_port *port_at(uint32_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const package_port *port_default(void)
{
    return &table[0];
}

uint32_t port_usual_workers(const package_port *p, uint32_t target)
{
    return p->most_workers == 1 ? 0 : p->workers ? p->workers : target;
}
