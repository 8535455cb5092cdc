/* SPDX-License-Identifier: Apache-2.0 */
/* What --json prints: one document, of the same form for every verb, whether it succeeds or fails. The result of the
 * verb is a member of it. docs/reference/schema/lathe.json says what the results hold. */
#ifndef LATHE_API_DOCUMENT_H
#define LATHE_API_DOCUMENT_H
#include "api/ask.h"

#include <stdio.h>

/* The document of a verb that has ended. x->out: the result, one value, which stands even where a comparison failed; or
 * nothing, which becomes null. */
void document_write(writer *w, const ask *x);
/* The same where there is no memory to write it: "environment", as text of its own. */
void document_put_out_of_memory(FILE *to, const ask *x);
#endif
