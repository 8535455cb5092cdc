/* SPDX-License-Identifier: Apache-2.0 */
/* bench --profile (profile.c). */
#ifndef LATHE_TOOLS_PROFILE_H
#define LATHE_TOOLS_PROFILE_H
#include "driver/profile.h"
#include "api/session.h"

/* What can be said of the options before a model is opened. */
bool bench_check_profile(const ask *x);
/* Times of the package that s has opened, printed; rounds 0: ten. */
bool bench_profile(session *s, long rounds);
#endif
