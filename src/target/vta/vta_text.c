/* SPDX-License-Identifier: Apache-2.0 */
/* Names of VTA configurations. */
#include "target/vta/vta_text.h"

#include "base/nearest.h"
#include "type/target.h"

#include <stdio.h>
#include <string.h>
#include <vta_config.h>

/* log2 of a power of two; 255: it is none. */
static uint8_t log_of(unsigned v)
{
    uint8_t n = 0;
    while (n < 31 && 1u << n < v)
        n++;
    return v != 0 && 1u << n == v ? n : UINT8_MAX;
}

/* The target in front of a configuration's name, when there is one: *text is what follows. */
static bool read_target(vta_config *c, const char **text)
{
    char word[sizeof c->target] = "";
    vta_target t;
    size_t n = strcspn(*text, "_");
    if (n >= sizeof word)
        return false;
    memcpy(word, *text, n);
    if (!vta_target_find(word, &t) || ((*text)[n] == '_' && (*text)[n + 1] == 0))
        return false;
    memcpy(c->target, word, sizeof word);
    *text += n + ((*text)[n] == '_');
    return true;
}

#define TARGET_WORD(name, bus, clock, burst, base) " " name

bool vta_text_parse(compiler *c, const char *text, const struct vta_config **out)
{
    unsigned v[9] = {0};
    int end = 0;
    vta_geometry g;
    const char *why = "is neither a target nor the name of a configuration", *broken = NULL, *rest = text;
    vta_config *made = arena_new(&c->mem, vta_config);
    *out = NULL;
    *made = vta_config_default();
    bool is_target = read_target(made, &rest);
    int n = sscanf(rest, "%3ux%3u_i%3uw%3ua%3u_%3u_%3u_%3u_%3u%n", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
                   &v[7], &v[8], &end);
    bool ok = is_target && *rest == 0;
    if (n == 9 && rest[end] == 0) {
        ok = true;
        made->log_batch = log_of(v[0]);
        made->log_block = log_of(v[1]);
        made->log_inp_width = log_of(v[2]);
        made->log_wgt_width = log_of(v[3]);
        made->log_acc_width = log_of(v[4]);
        made->log_uop_buff_size = (uint8_t)(v[5] > UINT8_MAX ? UINT8_MAX : v[5]);
        made->log_inp_buff_size = (uint8_t)(v[6] > UINT8_MAX ? UINT8_MAX : v[6]);
        made->log_wgt_buff_size = (uint8_t)(v[7] > UINT8_MAX ? UINT8_MAX : v[7]);
        made->log_acc_buff_size = (uint8_t)(v[8] > UINT8_MAX ? UINT8_MAX : v[8]);
        broken = vta_config_derive(made, &g, &why);
    }
    if (!ok || broken) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "VTA configuration '%.60s'%s%s%s %s", text,
                   broken ? ": " : "", broken ? broken : "", broken ? ":" : "", why);
        if (broken)
            return false;
        diag_hint(&c->diags,
                  "%stargets are:" VTA_TARGETS(TARGET_WORD)
                          "; for example pynq, 1x16_i8w8a32_15_15_18_17 or pynq_1x16_i8w8a32_15_15_18_17 "
                          "(docs/explanation/vta.md)",
                  nearest_in(text, VTA_TARGETS(TARGET_WORD), &c->mem));
        return false;
    }
    *out = made;
    return true;
}

bool vta_text_set(compiler *c, const char *text)
{
    const struct vta_config *made;
    if (!vta_text_parse(c, text, &made))
        return false;
    target_set(c, "vta", made);
    return true;
}

const char *vta_text_name(compiler *c)
{
    const vta_config *v = vta_text_config(c);
    return arena_printf(&c->mem, "%ux%u_i%uw%ua%u_%u_%u_%u_%u", 1u << v->log_batch, 1u << v->log_block,
                        1u << v->log_inp_width, 1u << v->log_wgt_width, 1u << v->log_acc_width,
                        (unsigned)v->log_uop_buff_size, (unsigned)v->log_inp_buff_size, (unsigned)v->log_wgt_buff_size,
                        (unsigned)v->log_acc_buff_size);
}

const struct vta_config *vta_text_config(compiler *c)
{
    const struct vta_config *given = target_settings(c, "vta");
    if (given)
        return given;
    vta_config *standard = arena_new(&c->mem, vta_config);
    *standard = vta_config_default();
    return standard;
}
