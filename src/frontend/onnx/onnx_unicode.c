/* SPDX-License-Identifier: Apache-2.0 */
/* General categories of Unicode, for classes of regular expressions. */
#include "frontend/onnx/onnx_regex.h"

#include <string.h>

static const struct {
    int32_t first;
    char category[3];
} runs[] = {
#define U(code, category) {code, #category},
#include "frontend/onnx/onnx_unicode.def"
};

bool regex_category(const char *name, size_t len, uint32_t *at, int32_t *out_first, int32_t *out_last)
{
    const uint32_t n = (uint32_t)(sizeof runs / sizeof *runs);
    for (; *at < n; ++*at) {
        const char *category = runs[*at].category;
        if (strcmp(category, "Cn") == 0 || strncmp(category, name, len) != 0)
            continue;
        *out_first = runs[*at].first;
        *out_last = *at + 1 < n ? runs[*at + 1].first - 1 : REGEX_MOST_CODE;
        ++*at;
        return true;
    }
    return false;
}
