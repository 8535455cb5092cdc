/* tvmrt_port_common.h: what all ports have in common: the check of sizes, copies of the process, and the counter of
 * cycles. A port's file includes it last, and says before what it counts otherwise: TVMRT_PORT_FORKS() where a process
 * can be copied, TVMRT_PORT_CYCLES() where the system has a clock. It lies beside them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMRT_PORT_COMMON_H
#define TVMRT_PORT_COMMON_H
#include "tvmrt.h"

#ifndef TVMRT_PORT_FORKS
#define TVMRT_PORT_FORKS() 0u
#endif
#ifndef TVMRT_PORT_CYCLES
#define TVMRT_PORT_CYCLES() tvmrt_cpu_cycles()
#endif

int tvmrt_port_check(size_t mutex_bytes, size_t cond_bytes, size_t thread_bytes)
{
    return mutex_bytes == sizeof(tvmrt_mutex_t) && cond_bytes == sizeof(tvmrt_cond_t) &&
                   thread_bytes == sizeof(tvmrt_thread_t)
               ? TVMRT_OK
               : TVMRT_E_ABI;
}

uint32_t tvmrt_port_forks(void)
{
    return TVMRT_PORT_FORKS();
}

#if TVMRT_HOOKS
#ifdef TVMRT_WEAK
TVMRT_WEAK
#endif
uint32_t tvmrt_port_cycles(void)
{
    return TVMRT_PORT_CYCLES();
}
#endif

#endif
