/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of QEMU's user mode (version 1 of its interface, which is declared here because Debian packages no header):
 * how many instructions ran in each function, a line "COUNT NAME" in the file of the argument out=FILE. A block counts
 * for the function that it begins in. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t at);
extern const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *insn);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int add, void *to, uint64_t n);
extern void qemu_plugin_register_atexit_cb(plugin_id id, void (*cb)(plugin_id id, void *ctx), void *ctx);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int n, char **args);

#define MOST 4096

static struct {
    char name[160];
    uint64_t count;
} functions[MOST];
static size_t n_functions;
static char path[4096];

static uint64_t *counter(const char *name)
{
    for (size_t i = 0; i < n_functions; i++)
        if (strncmp(functions[i].name, name, sizeof functions[i].name - 1) == 0)
            return &functions[i].count;
    if (n_functions == MOST)
        return NULL;
    strncpy(functions[n_functions].name, name, sizeof functions[0].name - 1);
    return &functions[n_functions++].count;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    const char *name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
    uint64_t *to = counter(name ? name : "?");
    (void)id;
    if (to)
        qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, to, qemu_plugin_tb_n_insns(tb));
}

static void ended(plugin_id id, void *ctx)
{
    FILE *f = fopen(path, "w");
    (void)id;
    (void)ctx;
    for (size_t i = 0; f && i < n_functions; i++)
        fprintf(f, "%llu %s\n", (unsigned long long)functions[i].count, functions[i].name);
    if (f)
        fclose(f);
}

int qemu_plugin_install(plugin_id id, const void *info, int n, char **args)
{
    (void)info;
    for (int i = 0; i < n; i++)
        if (strncmp(args[i], "out=", 4) == 0)
            strncpy(path, args[i] + 4, sizeof path - 1);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
