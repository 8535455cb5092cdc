/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and tokens of remote devices, as the command line has them. */
#ifndef LATHE_API_REMOTE_H
#define LATHE_API_REMOTE_H
#include "api/ask.h"
#include "driver/run_remote.h"

/* "HOST:PORT", of the option that is named. */
bool remote_address(const ask *x, const char *option, const char *text, const char **out_host, uint16_t *out_port);
/* The first line of a file: one word. */
bool remote_token(compiler *c, const char *path, const char **out);
/* --remote or --tracker is given. */
bool remote_asked(const ask *x);
/* --remote, --tracker, --key, --token-file; false after a diagnostic, also of options that a remote run lacks. */
bool remote_options(const ask *x, run_remote_options *out);
#endif
