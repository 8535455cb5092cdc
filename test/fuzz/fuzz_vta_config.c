/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as vta_config.json, and as a preset: what is read must print, and read again, as the same. */
#include <stdint.h>
#include <stdlib.h>

#include "vta.h"

static void check(const vta_config *c)
{
    vta_config again = vta_config_default();
    vta_geometry g;
    vta_error e;
    char text[800], bitstream[100];
    size_t n = vta_config_print(c, text, sizeof text);
    if (vta_config_check(c, &g, &e) != VTA_OK || n >= sizeof text ||
        vta_config_parse("again", text, n, &again, &e) != VTA_OK || !vta_config_equal(c, &again))
        abort();
    vta_config_bitstream(c, bitstream, sizeof bitstream);
    if (vta_config_preset(bitstream, &again, &e) != VTA_OK || !vta_config_equal(c, &again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vta_config c = vta_config_default();
    vta_error e;
    if (vta_config_parse("fuzz", (const char *)data, size, &c, &e) == VTA_OK)
        check(&c);
    char name[100];
    size_t n = size < sizeof name - 1 ? size : sizeof name - 1;
    memcpy(name, data, n);
    name[n] = 0;
    c = vta_config_default();
    if (vta_config_preset(name, &c, &e) == VTA_OK)
        check(&c);
    return 0;
}
