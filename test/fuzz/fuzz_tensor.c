/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a file with a tensor; the first byte chooses the kind of file, the second the type that is
 * wanted. What is read as .npy is read again from what is written. Each is also read as a sequence or an optional. */
#include "driver/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"x.npy", "x.npz", "x.pb", "x.bin", "again.npy"};
enum { KINDS = 4, AGAIN = 4 };
static char folder[64]; /* of this process */

static void leave(void)
{
    char path[96];
    for (int i = 0; i <= AGAIN; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* A tensor of the type and shape that the file states, when it is small; else one of six elements. */
static run_tensor wanted(compiler *c, const char *path, uint8_t choice)
{
    run_tensor t = {.name = "x", .dt = DT_F32, .rank = 2, .dims = {2, 3}, .count = 6};
    dtype dt;
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK], count;
    if (choice % 4 != 0 && tensor_file_peek(c, path, "x", &dt, &rank, dims) && dtype_usable(dt) &&
        tensor_count(rank, dims, &count) && count < 4096) {
        t.dt = dt;
        t.rank = rank;
        t.count = count;
        memcpy(t.dims, dims, sizeof dims);
    }
    t.bytes = (size_t)t.count * dtype_bytes(t.dt);
    t.data = malloc(t.bytes); /* of its exact size, so that a write behind it shows */
    return t;
}

static void write_and_read(compiler *c, const run_tensor *t)
{
    const char *path = path_join(&c->mem, folder, names[AGAIN]);
    run_tensor again = *t;
    again.data = malloc(t->bytes);
    if (!tensor_file_write_npy(c, path, t) || !tensor_file_read(c, path, &again) ||
        memcmp(again.data, t->data, t->bytes) != 0) {
        fprintf(stderr, "a tensor does not come back:\n%s\n", diags_print(&c->diags, &c->mem));
        abort();
    }
    free(again.data);
}

/* The same file as a sequence or an optional of either kind, and its first elements as tensors of their own type. */
static void read_list(compiler *c, const char *path, uint8_t choice)
{
    const list_io kind = {.name = "x", .is_sequence = choice % 3 != 0, .is_optional = choice % 3 != 1};
    tensor_list l;
    if (!tensor_file_list(c, path, &kind, &l))
        return;
    for (uint32_t k = 0; k < l.n && k < 4; k++) {
        run_tensor t = {.name = "x", .dt = DT_F32};
        int64_t dims[TYPE_MAX_RANK];
        if (!tensor_file_element_shape(&l, k, &t.rank, dims) || !tensor_count(t.rank, dims, &t.count) || t.count > 4096)
            continue;
        run_set_dims(&t, dims);
        t.data = malloc(t.bytes);
        (void)tensor_file_read_element(c, path, &l, k, &t);
        free(t.data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    if (size < 2)
        return 0;
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/fuzz_tensor.XXXXXX");
        if (!mkdtemp(folder) || atexit(leave) != 0)
            abort();
    }
    compiler_init(&c);
    const char *path = path_join(&c.mem, folder, names[data[0] % KINDS]);
    if (!file_write(&c.diags, &c.temps, path, data + 2, size - 2))
        abort();
    run_tensor t = wanted(&c, path, data[1]);
    if (tensor_file_read(&c, path, &t))
        write_and_read(&c, &t);
    free(t.data);
    read_list(&c, path, data[1]);
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
