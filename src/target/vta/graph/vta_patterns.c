/* SPDX-License-Identifier: Apache-2.0 */
/* What the accelerator takes of a model (docs/reference/partition.md): layers of quantized networks (vta_layer.h). The
 * first pattern that fits takes its nodes, so larger ones stand before smaller ones. The checks read the numbers, and
 * ask the rule for a blocking. */
#include "target/vta/graph/vta_layer.h"

#define VTA_EPILOGUE                                                                                        \
    "  %l = optional nn.relu|clip(%s, *)"                                                                   \
    "  %q = qnn.requantize(%l, *)"                                                                          \
    "  %y = optional nn.relu|clip(%q, *)"                                                                   \
    "  return %y"                                                                                           \
    "} where static(%x), vta_layer(%y)"

const char vta_patterns[] =
    "pattern vta.conv2d(%x: i8[_, _, _, _], %w: constant i8[_, _, _, _], %b: constant i32) {"
    "  %c = qnn.conv2d(%x, %w, *)"
    "  %s = add(%c, %b)" VTA_EPILOGUE
    "pattern vta.conv2d(%x: i8[_, _, _, _], %w: constant i8[_, _, _, _]) {"
    "  %s = qnn.conv2d(%x, %w, *)" VTA_EPILOGUE
    "pattern vta.conv2d_transpose(%x: i8[_, _, _, _], %w: constant i8[_, _, _, _], %b: constant i32) {"
    "  %c = qnn.conv2d_transpose(%x, %w, *)"
    "  %s = add(%c, %b)" VTA_EPILOGUE
    "pattern vta.conv2d_transpose(%x: i8[_, _, _, _], %w: constant i8[_, _, _, _]) {"
    "  %s = qnn.conv2d_transpose(%x, %w, *)" VTA_EPILOGUE
    "pattern vta.dense(%x: i8[_, _], %w: constant i8[_, _], %b: constant i32) {"
    "  %c = qnn.matmul(%x, %w, *)"
    "  %s = add(%c, %b)" VTA_EPILOGUE
    "pattern vta.dense(%x: i8[_, _], %w: constant i8[_, _]) {"
    "  %s = qnn.matmul(%x, %w, *)" VTA_EPILOGUE
    /* Sums that nobody requantises: the check says so. */
    "pattern vta.sums(%x: i8, %w: i8) {"
    "  %y = qnn.conv2d|qnn.conv2d_transpose|qnn.matmul(%x, %w, *)"
    "  return %y"
    "} where vta_layer(%y)"
    "pattern vta.add(%x: i8, %xs, %z: i8) {"
    "  %s = qnn.add(%x, %xs, %z, *)"
    "  %y = optional nn.relu|clip(%s, *)"
    "  return %y"
    "} where static(%x, %z), vta_layer(%y)"
    "pattern vta.pool2d(%x: i8[_, _, _, _]) {"
    "  %p = nn.max_pool2d|qnn.avg_pool2d|qnn.global_avg_pool2d(%x, *)"
    "  %y = optional nn.relu|clip(%p, *)"
    "  return %y"
    "} where static(%x), vta_layer(%y)"
    "pattern vta.concat(%a: i8[_, _, _, _], %b: i8[_, _, _, _]) {"
    "  %y = concatenate(%a, %b)"
    "  return %y"
    "} where static(%a, %b), vta_layer(%y)"
    "pattern vta.concat(%a: i8[_, _, _, _], %b: i8[_, _, _, _], %c: i8[_, _, _, _]) {"
    "  %y = concatenate(%a, %b, %c)"
    "  return %y"
    "} where static(%a, %b, %c), vta_layer(%y)"
    "pattern vta.concat(%a: i8[_, _, _, _], %b: i8[_, _, _, _], %c: i8[_, _, _, _], %d: i8[_, _, _, _]) {"
    "  %y = concatenate(%a, %b, %c, %d)"
    "  return %y"
    "} where static(%a, %b, %c, %d), vta_layer(%y)"
    "pattern vta.upsample(%x: i8[_, _, _, _]) {"
    "  %y = resize(%x, *)"
    "  return %y"
    "} where static(%x), vta_layer(%y)"
    "pattern vta.clip(%x: i8) {"
    "  %y = nn.relu|clip(%x, *)"
    "  return %y"
    "} where static(%x), vta_limits(%y)"
    "pattern vta.view(%x: i8) {"
    "  %y = reshape(%x, *)"
    "  return %y"
    "} where static(%x), vta_layer(%y)";
