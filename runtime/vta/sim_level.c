/* sim_level.c: the choice among inner loops: plain C or the vectors that this machine has.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

const sim_kernels *vta_sim_kernels(vta_sim_level level, const vta_geometry *g)
{
    const sim_kernels *vector = g->width[VTA_MEM_WGT] > 8 ? NULL : vta_sim_vector(level, g->block_out);
    return vector || (level != VTA_SIM_AUTO && level != VTA_SIM_SCALAR) ? vector : &vta_sim_scalar;
}
