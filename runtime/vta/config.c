/* config.c: configurations as text: the JSON of vta_config.json, presets by a target's name, bit-stream strings such as
 * 1x16_i8w8a32_15_15_18_17.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text.h"
#include "vta.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct config_key {
    const char *name;
    size_t member;
} config_key;

static const config_key keys[] = {
#define X(member, key, value, least, most, help) {key, offsetof(vta_config, member)},
    VTA_CONFIG_KEYS(X)
#undef X
};

enum { N_KEYS = sizeof keys / sizeof *keys };

static uint8_t *member(vta_config *c, size_t k)
{
    return (uint8_t *)c + keys[k].member;
}

/* --- JSON --- */

/* Derived values that published files also carry: they must agree with the keys that they follow from. */
static bool derived_key(const vta_config *c, const char *key, int64_t *value)
{
    if (strcmp(key, "LOG_BLOCK_IN") == 0 || strcmp(key, "LOG_BLOCK_OUT") == 0)
        *value = c->log_block;
    else if (strcmp(key, "LOG_OUT_WIDTH") == 0)
        *value = c->log_inp_width;
    else if (strcmp(key, "LOG_OUT_BUFF_SIZE") == 0)
        *value = c->log_acc_buff_size + c->log_inp_width - c->log_acc_width;
    else
        return false;
    return true;
}

static vta_status read_target(const char *name, const json_t *v, vta_config *c, vta_error *e)
{
    vta_target t;
    const char *text = json_string_value(v);
    if (!text || strlen(text) >= sizeof c->target || !vta_target_find(text, &t))
        return vta_fail(e, VTA_BAD_CONFIG, "%s: TARGET: there is no target '%.40s'", name, text ? text : "(no text)");
    memcpy(c->target, text, strlen(text) + 1);
    return VTA_OK;
}

static vta_status read_key(const char *name, const char *key, const json_t *v, vta_config *c, vta_error *e)
{
    int64_t unused;
    if (strcmp(key, "TARGET") == 0)
        return read_target(name, v, c, e);
    if (strcmp(key, "HW_VER") == 0)
        return VTA_OK;
    for (size_t k = 0; k < N_KEYS; k++) {
        if (strcmp(key, keys[k].name) != 0)
            continue;
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > UINT8_MAX)
            return vta_fail(e, VTA_BAD_CONFIG, "%s: %s: a small integer is expected, the base-2 logarithm", name, key);
        *member(c, k) = (uint8_t)json_integer_value(v);
        return VTA_OK;
    }
    if (derived_key(c, key, &unused))
        return VTA_OK; /* checked when all keys are read */
    return vta_fail(e, VTA_BAD_CONFIG, "%s: unknown key '%.60s'", name, key);
}

static vta_status read_keys(const char *name, json_t *root, vta_config *c, vta_error *e)
{
    vta_geometry g;
    vta_error inner = {VTA_OK, ""};
    const char *key;
    json_t *v;
    int64_t expected;
    if (!json_is_object(root))
        return vta_fail(e, VTA_BAD_TEXT, "%s: an object is expected", name);
    json_object_foreach(root, key, v)
    {
        vta_status s = read_key(name, key, v, c, e);
        if (s != VTA_OK)
            return s;
    }
    json_object_foreach(root, key, v)
    {
        if (derived_key(c, key, &expected) && (!json_is_integer(v) || json_integer_value(v) != expected))
            return vta_fail(e, VTA_BAD_CONFIG, "%s: %s follows from other keys and must be %d", name, key,
                            (int)expected);
    }
    if (vta_config_check(c, &g, &inner) != VTA_OK)
        return vta_fail(e, inner.status, "%s: %s", name, inner.text);
    return VTA_OK;
}

vta_status vta_config_parse(const char *name, const char *json, size_t len, vta_config *c, vta_error *e)
{
    json_error_t je;
    vta_config read = *c;
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &je);
    if (!root)
        return vta_fail(e, VTA_BAD_TEXT, "%s:%d:%d: %s", name, je.line, je.column, je.text);
    vta_status s = read_keys(name, root, &read, e);
    json_decref(root);
    if (s == VTA_OK)
        *c = read;
    return s;
}

/* --- presets and bit-stream strings --- */

/* A decimal number after `prefix`; NULL: not there. */
static const char *number(const char *s, const char *prefix, uint32_t *out)
{
    size_t n = strlen(prefix);
    if (strncmp(s, prefix, n) != 0 || s[n] < '0' || s[n] > '9')
        return NULL;
    *out = 0;
    for (s += n; *s >= '0' && *s <= '9'; s++) {
        if (*out > 1000000)
            return NULL;
        *out = *out * 10 + (uint32_t)(*s - '0');
    }
    return s;
}

/* The same, as a power of two: its logarithm. */
static const char *power(const char *s, const char *prefix, uint8_t *out)
{
    uint32_t v, log = 0;
    s = number(s, prefix, &v);
    if (!s || v == 0 || (v & (v - 1)) != 0)
        return NULL;
    while (v >> log > 1)
        log++;
    *out = (uint8_t)log;
    return s;
}

static const char *small(const char *s, uint8_t *out)
{
    uint32_t v;
    s = number(s, "_", &v);
    if (!s || v > 63)
        return NULL;
    *out = (uint8_t)v;
    return s;
}

static bool read_bitstream(const char *s, vta_config *c)
{
    (void)((s = power(s, "", &c->log_batch)) && (s = power(s, "x", &c->log_block)) &&
           (s = power(s, "_i", &c->log_inp_width)) && (s = power(s, "w", &c->log_wgt_width)) &&
           (s = power(s, "a", &c->log_acc_width)) && (s = small(s, &c->log_uop_buff_size)) &&
           (s = small(s, &c->log_inp_buff_size)) && (s = small(s, &c->log_wgt_buff_size)) &&
           (s = small(s, &c->log_acc_buff_size)));
    return s && *s == 0;
}

/* The part before the first '_', or all, as a target. Returns what is left; NULL: not a target. */
static const char *read_preset_target(const char *name, vta_config *c)
{
    vta_target t;
    size_t n = strcspn(name, "_");
    char word[sizeof c->target] = "";
    if (n >= sizeof word)
        return NULL;
    memcpy(word, name, n);
    if (!vta_target_find(word, &t))
        return NULL;
    memcpy(c->target, word, sizeof word);
    return name[n] == '_' ? name + n + 1 : name + n;
}

vta_status vta_config_preset(const char *name, vta_config *c, vta_error *e)
{
    vta_config read = vta_config_default();
    vta_geometry g;
    const char *rest = read_preset_target(name, &read);
    bool only_target = rest && rest == name + strlen(name) && rest[-1] != '_';
    if (!only_target && !read_bitstream(rest ? rest : name, &read))
        return vta_fail(e, VTA_BAD_CONFIG,
                        "'%.80s' is neither a target (sim, tsim, pynq, ultra96, zcu104, de10nano, intelfocl) nor a "
                        "string like 1x16_i8w8a32_15_15_18_17",
                        name);
    vta_status s = vta_config_check(&read, &g, e);
    if (s == VTA_OK)
        *c = read;
    return s;
}

size_t vta_config_bitstream(const vta_config *c, char *out, size_t size)
{
    return (size_t)snprintf(out, size, "%ux%u_i%uw%ua%u_%u_%u_%u_%u", 1u << (c->log_batch & 31),
                            1u << (c->log_block & 31), 1u << (c->log_inp_width & 31), 1u << (c->log_wgt_width & 31),
                            1u << (c->log_acc_width & 31), c->log_uop_buff_size, c->log_inp_buff_size,
                            c->log_wgt_buff_size, c->log_acc_buff_size);
}

size_t vta_config_print(const vta_config *c, char *out, size_t size)
{
    vta_text t = {out, size, 0};
    vta_put(&t, "{\n  \"TARGET\": \"%.15s\"", c->target);
#define X(member, key, value, least, most, help) vta_put(&t, ",\n  \"" key "\": %u", c->member);
    VTA_CONFIG_KEYS(X)
#undef X
    vta_put(&t, "\n}\n");
    return t.length;
}
