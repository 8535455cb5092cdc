/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of QEMU's user mode (version 1 of its interface, which is declared here because Debian packages no header):
 * how many instructions ran in each function, a line "COUNT NAME" in the file of the argument out=FILE. With the
 * argument riscv=on the line goes on with " VECTORS MULTIPLY_ADDS": those of RISC-V's V, and those that multiply and
 * add. A block counts for the function that it begins in. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t at);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *insn);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int add, void *to, uint64_t n);
extern void qemu_plugin_register_atexit_cb(plugin_id id, void (*cb)(plugin_id id, void *ctx), void *ctx);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int n, char **args);

#define MOST 4096

static struct counts {
    char name[160];
    uint64_t count, vectors, multiply_adds;
} functions[MOST];
static size_t n_functions;
static char path[4096];
static int riscv;

static struct counts *counter(const char *name)
{
    for (size_t i = 0; i < n_functions; i++)
        if (strncmp(functions[i].name, name, sizeof functions[i].name - 1) == 0)
            return &functions[i];
    if (n_functions == MOST)
        return NULL;
    strncpy(functions[n_functions].name, name, sizeof functions[0].name - 1);
    return &functions[n_functions++];
}

/* The V extension's manual: major opcodes OP-V (but for vset*), and LOAD-FP and STORE-FP with widths of vectors. */
static int is_vector(uint32_t word)
{
    const uint32_t opcode = word & 0x7F, width = word >> 12 & 7;
    return opcode == 0x57 ? width != 7 : (opcode == 0x07 || opcode == 0x27) && (width == 0 || width >= 5);
}

/* OP-V of floats (OPFVV, OPFVF) and of integers (OPMVV, OPMVX) with funct6 101xxx, sums in place, and 1111xx, wide. */
static int is_multiply_add(uint32_t word)
{
    const uint32_t form = word >> 12 & 7, funct6 = word >> 26;
    if ((word & 0x7F) != 0x57)
        return 0;
    if (form == 1 || form == 5)
        return funct6 >> 3 == 5 || funct6 >> 2 == 15;
    return (form == 2 || form == 6) && ((funct6 >> 3 == 5 && (funct6 & 1)) || funct6 >> 2 == 15);
}

static void count_kinds(struct qemu_plugin_tb *tb, struct counts *to)
{
    uint64_t vectors = 0, multiply_adds = 0;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        const uint8_t *p = qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, i));
        uint32_t word;
        if ((p[0] & 3) != 3) /* compressed: of 16 bits */
            continue;
        memcpy(&word, p, sizeof word);
        vectors += (uint64_t)is_vector(word);
        multiply_adds += (uint64_t)is_multiply_add(word);
    }
    if (vectors)
        qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &to->vectors, vectors);
    if (multiply_adds)
        qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &to->multiply_adds, multiply_adds);
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    const char *name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
    struct counts *to = counter(name ? name : "?");
    (void)id;
    if (!to)
        return;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &to->count, qemu_plugin_tb_n_insns(tb));
    if (riscv)
        count_kinds(tb, to);
}

static void ended(plugin_id id, void *ctx)
{
    FILE *f = fopen(path, "w");
    (void)id;
    (void)ctx;
    for (size_t i = 0; f && i < n_functions; i++) {
        const struct counts *c = &functions[i];
        fprintf(f, "%llu %s", (unsigned long long)c->count, c->name);
        if (riscv)
            fprintf(f, " %llu %llu", (unsigned long long)c->vectors, (unsigned long long)c->multiply_adds);
        fputc('\n', f);
    }
    if (f)
        fclose(f);
}

int qemu_plugin_install(plugin_id id, const void *info, int n, char **args)
{
    (void)info;
    for (int i = 0; i < n; i++)
        if (strncmp(args[i], "out=", 4) == 0)
            strncpy(path, args[i] + 4, sizeof path - 1);
        else if (strcmp(args[i], "riscv=on") == 0)
            riscv = 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
