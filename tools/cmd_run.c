/* SPDX-License-Identifier: Apache-2.0 */
/* lathe run: being written. */
#include "cli.h"
int cmd_run(cli *x) { cli_usage_error(x, NULL, "not built yet"); return 3; }
