/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of this machine for pictures that packages do not read by themselves. */
#ifndef LATHE_DRIVER_PICTURES_H
#define LATHE_DRIVER_PICTURES_H
#include "driver/run.h"

/* What a status may mean that an operator ended with which decodes pictures. */
#define PICTURES_HINT                                                                                                  \
    "packages read PNG, JPEG that is not progressive, BMP, PNM and TIFF. For WebP and JPEG 2000, install "             \
    "pkg-config, libwebp-dev and libopenjp2-7-dev; for others, bring a decoder: docs/reference/onnx-front-end.md"

bool pictures_are_decoded(const run_operator *op); /* NULL: no */
/* Source and libraries for the command that builds a package which decodes pictures; nothing for others, where they
 * are not installed, or where $CFLAGS names a decoder. */
bool pictures_add_decoders(compiler *c, const run_model *m, const char *scratch, process_words *a);
#endif
