/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler that a package was built with, for whoever keeps its times. */
extern const char lathe_built_by[];
const char lathe_built_by[] = __VERSION__;
