/* SPDX-License-Identifier: Apache-2.0 */
/* lathe vta: what its files share. */
#ifndef LATHE_CMD_VTA_H
#define LATHE_CMD_VTA_H
#include "cli.h"
#include "vta.h"

/* lathe vta bench: the table; false: *e says why. */
bool vta_bench(ask *x, vta_error *e);
/* lathe vta run and trace: the program is loaded, its micro-ops and buffers are made. */
bool vta_run(ask *x, const vta_program *p);
bool vta_trace(ask *x, const vta_program *p);
bool vta_model(ask *x);
/* A VTA error as a diagnostic; false. */
bool vta_report(ask *x, const vta_error *e);
#endif
