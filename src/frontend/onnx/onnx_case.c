/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case of letters whose two forms have as many bytes in UTF-8: ASCII, and of two bytes Latin (Latin-1
 * and Extended-A), Greek, Cyrillic and Armenian letters. Others stay as they are, those whose other form is longer or
 * shorter (i without a dot, long s) among them. */
#include "frontend/onnx/onnx_import.h"

/* Capital letters from first to last, each step-th; the small letter is so many code points behind the capital. */
static const struct {
    uint16_t first, last, step;
    int16_t to_small;
} pairs[] = {
    {'A', 'Z', 1, 32},         {0x0c0, 0x0d6, 1, 32}, {0x0d8, 0x0de, 1, 32}, {0x100, 0x12e, 2, 1},
    {0x132, 0x136, 2, 1},      {0x139, 0x147, 2, 1},  {0x14a, 0x176, 2, 1},  {0x178, 0x178, 1, -121},
    {0x179, 0x17d, 2, 1},      {0x386, 0x386, 1, 38}, {0x388, 0x38a, 1, 37}, {0x38c, 0x38c, 1, 64},
    {0x38e, 0x38f, 1, 63},     {0x391, 0x3a1, 1, 32}, {0x3a3, 0x3ab, 1, 32}, {0x3d8, 0x3ee, 2, 1},
    {0x400, 0x40f, 1, 80},     {0x410, 0x42f, 1, 32}, {0x460, 0x480, 2, 1},  {0x48a, 0x4be, 2, 1},
    {0x4c0, 0x4c0, 1, 15},     {0x4c1, 0x4cd, 2, 1},  {0x4d0, 0x52e, 2, 1},  {0x531, 0x556, 1, 48},
};

static bool is_capital(size_t row, int32_t code)
{
    return code >= pairs[row].first && code <= pairs[row].last && (code - pairs[row].first) % pairs[row].step == 0;
}

uint32_t onnx_case_lower(uint32_t code)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (is_capital(i, (int32_t)code))
            return (uint32_t)((int32_t)code + pairs[i].to_small);
    return code;
}

uint32_t onnx_case_upper(uint32_t code)
{
    if (code == 0x0b5) /* micro sign: the letter mu */
        return 0x39c;
    if (code == 0x3c2) /* sigma at the end of a word */
        return 0x3a3;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (is_capital(i, (int32_t)code - pairs[i].to_small))
            return (uint32_t)((int32_t)code - pairs[i].to_small);
    return code;
}
