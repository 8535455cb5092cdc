/* make.c: captures a program and prints it as C: make NAME NUMBER: out = low bytes of (in + NUMBER), 4 tiles.
 * Replayed by run.c and board.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "vta.h"

static int record(void *closure)
{
    const vta_uop add = {.mode = VTA_MODE_ALU, .alu_opcode = VTA_ALU_ADD, .use_imm = 1, .imm = *(int *)closure};
    vta_uop_loop_begin(4, 1, 1, 0, NULL);
    vta_uop_push(&add, NULL);
    vta_uop_loop_end(NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static char text[65536];
    static uint64_t arrays[4096];
    vta_config config;
    const vta_sim_options so = {.seed = 1};
    vta_sim *sim;
    vta_context *c;
    vta_capture k;
    vta_buffer in, out;
    if (argc != 3 || vta_config_preset("pynq", &config, NULL) != VTA_OK)
        return 1;
    int number = atoi(argv[2]);
    if (vta_sim_create(&config, &so, &sim, NULL) != VTA_OK)
        return 1;
    vta_device device = vta_sim_device(sim);
    size_t bytes = vta_context_bytes(&device, NULL);
    void *memory = aligned_alloc(64, bytes);
    if (vta_context_init(memory, bytes, &device, NULL, &c, NULL) != VTA_OK)
        return 1;
    vta_buffer_alloc(c, 256, &in);
    vta_buffer_alloc(c, 64, &out);
    vta_capture_begin(c);
    vta_transfer all = {.memory = VTA_MEM_ACC, .x_size = 4, .y_size = 1, .x_stride = 4};
    vta_load(c, in, &all);
    vta_push(c, VTA_MODE_ALU, NULL, record, &number, sizeof number);
    vta_dep_push(c, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    vta_dep_pop(c, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    all.memory = VTA_MEM_OUT;
    vta_store(c, out, &all);
    vta_synchronize(c, 1000);
    vta_capture_end(c, arrays, sizeof arrays, &k);
    vta_error e;
    if (vta_context_last_error(c, &e) != VTA_OK)
        return fputs(e.text, stderr), 1;
    size_t length = vta_capture_print_c(&k, argv[1], text, sizeof text);
    fwrite(text, 1, length, stdout);
    vta_context_destroy(c);
    free(memory);
    vta_device_destroy(&device);
    return 0;
}
