/* gemm.c: what a compiler of operators emits for C = clip(A * B >> 8): extern calls of the published run-time, static
 * slots for the call sites, recorders with a closure of nothing or of one integer. It includes no header of the
 * library: its undefined symbols and its prototypes are all that it knows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

extern void *VTATLSCommandHandle(void);
extern void VTALoadBuffer2D(void *cmd, void *src_dram_addr, uint32_t src_elem_offset, uint32_t x_size, uint32_t y_size,
                            uint32_t x_stride, uint32_t x_pad_before, uint32_t y_pad_before, uint32_t x_pad_after,
                            uint32_t y_pad_after, uint32_t dst_sram_index, uint32_t dst_memory_type);
extern void VTAStoreBuffer2D(void *cmd, uint32_t src_sram_index, uint32_t src_memory_type, void *dst_dram_addr,
                             uint32_t dst_elem_offset, uint32_t x_size, uint32_t y_size, uint32_t x_stride);
extern void VTAUopPush(uint32_t mode, uint32_t reset_out, uint32_t dst_index, uint32_t src_index, uint32_t wgt_index,
                       uint32_t opcode, uint32_t use_imm, int32_t imm_val);
extern void VTAUopLoopBegin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor, uint32_t wgt_factor);
extern void VTAUopLoopEnd(void);
extern int VTAPushGEMMOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes);
extern int VTADepPush(void *cmd, int from_qid, int to_qid);
extern int VTADepPop(void *cmd, int from_qid, int to_qid);
extern void VTASynchronize(void *cmd, uint32_t wait_cycles);

/* The order of the sum. A second object with the other order has the same slots and closures, and other kernels. */
#ifdef REVERSED
#define TILE(k) (3u - (uint32_t)(k))
#else
#define TILE(k) ((uint32_t)(k))
#endif

static void *slot_reset, *slot_update;

static int record_reset(void *closure)
{
    (void)closure;
    VTAUopLoopBegin(16, 1, 0, 0);
    VTAUopPush(0, 1, 0, 0, 0, 0, 0, 0);
    VTAUopLoopEnd();
    return 0;
}

/* The body depends on one integer: the tile of A. */
static int record_update(void *closure)
{
    int32_t tile = *(int32_t *)closure;
    VTAUopLoopBegin(16, 1, 0, 1);
    VTAUopPush(0, 0, 0, TILE(tile), 0, 0, 0, 0);
    VTAUopLoopEnd();
    return 0;
}

/* A: 4 tiles, B: 16 x 4 tiles, C: 16 tiles; device handles. */
int my_gemm(void *A, void *B, void *C);
int my_gemm(void *A, void *B, void *C)
{
    if (VTAPushGEMMOp(&slot_reset, record_reset, 0, 0) != 0)
        return -1;
    VTADepPush(VTATLSCommandHandle(), 2, 1);
    VTADepPop(VTATLSCommandHandle(), 2, 1);
    VTALoadBuffer2D(VTATLSCommandHandle(), A, 0, 4, 1, 4, 0, 0, 0, 0, 0, 2);
    VTADepPush(VTATLSCommandHandle(), 1, 2);
    VTADepPop(VTATLSCommandHandle(), 1, 2);
    VTADepPush(VTATLSCommandHandle(), 2, 1);
    for (int32_t ko = 0; ko < 4; ko++) {
        VTADepPop(VTATLSCommandHandle(), 2, 1);
        VTALoadBuffer2D(VTATLSCommandHandle(), B, TILE(ko), 1, 16, 4, 0, 0, 0, 0, 0, 1);
        VTADepPush(VTATLSCommandHandle(), 1, 2);
        VTADepPop(VTATLSCommandHandle(), 1, 2);
        if (VTAPushGEMMOp(&slot_update, record_update, &ko, sizeof ko) != 0)
            return -1;
        VTADepPush(VTATLSCommandHandle(), 2, 1);
    }
    VTADepPush(VTATLSCommandHandle(), 2, 3);
    VTADepPop(VTATLSCommandHandle(), 2, 1);
    VTADepPop(VTATLSCommandHandle(), 2, 3);
    VTAStoreBuffer2D(VTATLSCommandHandle(), 0, 4, C, 0, 16, 1, 16);
    VTASynchronize(VTATLSCommandHandle(), 1u << 31);
    return 0;
}
