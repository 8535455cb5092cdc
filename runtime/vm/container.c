/* container.c: reads the tree of modules: row ends, children, then each module's kind and bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "container.h"

#include "abi/module.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

static int32_t damaged(lathe_error *error, const char *what)
{
    return vm_fail(error, LATHE_E_FORMAT, "the tree of modules is damaged: %s", what);
}

/* The ends of the rows become the entries' children. */
static int32_t read_rows(vm_reader *r, vm_container *c, lathe_error *error)
{
    uint64_t rows = vm_read_count(r, 8), before = 0;
    if (!r->ok || rows < 2)
        return damaged(error, r->ok ? "it has no module" : "it ends in the ends of its rows");
    if (rows - 1 > VM_CONTAINER_MODULES)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "a tree of more than %d modules", VM_CONTAINER_MODULES);
    c->count = (size_t)rows - 1;
    c->entries = calloc(c->count, sizeof *c->entries);
    if (!c->entries)
        return vm_no_memory(error, c->count * sizeof *c->entries);
    if (vm_read_u64(r) != 0)
        return damaged(error, "its first row does not begin at 0");
    for (size_t i = 0; i < c->count; i++) {
        uint64_t end = vm_read_u64(r);
        if (end < before)
            return damaged(error, "the ends of its rows fall");
        c->entries[i].first_child = (size_t)before;
        c->entries[i].children = (size_t)(end - before);
        before = end;
    }
    return LATHE_OK;
}

static int32_t read_children(vm_reader *r, vm_container *c, lathe_error *error)
{
    uint64_t n = vm_read_count(r, 8);
    const vm_entry *last = &c->entries[c->count - 1];
    if (!r->ok || n != (uint64_t)last->first_child + last->children)
        return damaged(error, "the number of children is not that of its rows");
    c->children = malloc((n ? n : 1) * sizeof *c->children);
    if (!c->children)
        return vm_no_memory(error, n * sizeof *c->children);
    for (size_t i = 0; i < n; i++)
        c->children[i] = vm_read_u64(r);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->entries[i].children; k++) {
            uint64_t child = c->children[c->entries[i].first_child + k];
            if (child <= i || child >= c->count)
                return damaged(error, "a child does not come behind its parent");
        }
    return LATHE_OK;
}

static int32_t read_entries(vm_reader *r, vm_container *c, lathe_error *error)
{
    for (size_t i = 0; i < c->count; i++) {
        vm_entry *e = &c->entries[i];
        e->kind = vm_read_text(r);
        if (!vm_text_is(e->kind, MODULE_KIND_LIBRARY))
            e->content = vm_read_text(r);
        if (!r->ok)
            return vm_fail(error, LATHE_E_FORMAT, "the tree of modules is damaged: it ends in module %zu of %zu", i,
                           c->count);
    }
    return LATHE_OK;
}

int32_t vm_container_read(vm_bytes bytes, vm_container *out, lathe_error *error)
{
    *out = (vm_container){0};
    vm_reader head = vm_reader_of(bytes);
    uint64_t size = vm_read_u64(&head);
    vm_reader r = vm_reader_of(vm_read_bytes(&head, size));
    if (!head.ok)
        return damaged(error, "it is shorter than it says");
    int32_t status = read_rows(&r, out, error);
    if (status == LATHE_OK)
        status = read_children(&r, out, error);
    if (status == LATHE_OK)
        status = read_entries(&r, out, error);
    if (status == LATHE_OK && vm_reader_left(&r) != 0)
        status = damaged(error, "bytes follow its last module");
    if (status != LATHE_OK)
        vm_container_free(out);
    return status;
}

void vm_container_free(vm_container *c)
{
    free(c->entries);
    free(c->children);
    *c = (vm_container){0};
}
