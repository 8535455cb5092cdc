/* SPDX-License-Identifier: Apache-2.0 */
/* The VTA device that is compiled for, as text. */
#ifndef LATHE_TYPE_VTA_TEXT_H
#define LATHE_TYPE_VTA_TEXT_H
#include "base/compiler.h"

struct vta_config;

/* Reads a bit-stream name, "1x16_i8w8a32_15_15_18_17": batch x block, widths of inputs, weights and accumulators in
 * bits, log2 bytes of the micro-op, input, weight and accumulator memories. A target may stand in front of it,
 * "pynq_1x16_...", or alone: then all else is the default. Checks every rule of vta_config.h. *out
 * lives as long as c; NULL, and false, after DIAG_USAGE. */
bool vta_text_parse(compiler *c, const char *text, const struct vta_config **out);
/* The same, and c compiles for it. */
bool vta_text_set(compiler *c, const char *text);
/* What c compiles for: what was set, or the default configuration. */
const struct vta_config *vta_text_config(compiler *c);
/* Its name, as vta_text_parse reads it. */
const char *vta_text_name(compiler *c);
#endif
