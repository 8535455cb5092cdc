/* SPDX-License-Identifier: Apache-2.0 */
/* The version, which CMakeLists.txt states. */
#include "lathe/lathe.h"

#include "lathe_version.h"

const char *lathe_version(void)
{
    return LATHE_VERSION;
}
