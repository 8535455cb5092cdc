/* config_check.c: the rules of a configuration as an error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_replay.h"

vta_status vta_config_check(const vta_config *c, vta_geometry *g, vta_error *e)
{
    vta_target target;
    const char *why, *rule;
    if (!memchr(c->target, 0, sizeof c->target) || !vta_target_find(c->target, &target))
        return vta_fail(e, VTA_BAD_CONFIG, "TARGET: there is no target '%.15s'", c->target);
    rule = vta_config_derive(c, g, &why);
    return rule ? vta_fail(e, VTA_BAD_CONFIG, "%s: %s", rule, why) : VTA_OK;
}
