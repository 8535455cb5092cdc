/* SPDX-License-Identifier: Apache-2.0 */
/* lathe verify: being written. */
#include "cli.h"
int cmd_verify(cli *x) { cli_usage_error(x, NULL, "not built yet"); return 3; }
