/* SPDX-License-Identifier: Apache-2.0 */
/* lathe bench: being written. */
#include "cli.h"
int cmd_bench(cli *x) { cli_usage_error(x, NULL, "not built yet"); return 3; }
