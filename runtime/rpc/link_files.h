/* link_files.h: object files and archives of them become shared objects by this machine's C compiler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_LINK_FILES_H
#define LATHE_RPC_LINK_FILES_H
#include "files.h"

/* The shared object of a file: NAME.o and NAME.tar (of object files) are linked into NAME.o.so, NAME.tar.so; any other
 * name is the file itself. LATHE_E_COMPILER, LATHE_E_FILE. */
int32_t rpc_link_shared(const rpc_files *files, const char *path, char out[RPC_PATH_MAX], lathe_error *error);
#endif
