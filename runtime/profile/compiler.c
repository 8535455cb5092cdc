/* SPDX-License-Identifier: Apache-2.0 */
/* Names the compiler that a package was built with, for programs that store its times. */
extern const char lathe_built_by[];
const char lathe_built_by[] = __VERSION__;
