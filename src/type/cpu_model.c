/* SPDX-License-Identifier: Apache-2.0 */
/* Processors of all families (src/target), and which of them this machine has. */
#include "type/cpu_model.h"
#include "type/family.h"

#include <string.h>

const cpu_model *cpu_model_find(const char *name)
{
    for (const target_family *const *f = target_families; *f; f++)
        for (size_t i = 0; i < (*f)->n_models; i++)
            if (strcmp((*f)->models[i].name, name) == 0)
                return &(*f)->models[i];
    return NULL;
}

const char *cpu_model_here(void)
{
    for (const target_family *const *f = target_families; *f; f++)
        if ((*f)->model)
            return (*f)->model();
    return NULL;
}
