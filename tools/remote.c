/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and tokens. */
#include "remote.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

bool remote_address(const cli *x, const char *option, const char *text, const char **out_host, uint16_t *out_port)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : 0;
    if (!colon || colon == text || end == colon + 1 || *end || port < 1 || port > 65535)
        return cli_usage_error(x, "as in 127.0.0.1:9090", "--%s: '%.100s' is no HOST:PORT", option, text);
    const bool brackets = text[0] == '[' && colon[-1] == ']';
    *out_host = brackets ? arena_strndup(&x->c->mem, text + 1, (size_t)(colon - text) - 2)
                         : arena_strndup(&x->c->mem, text, (size_t)(colon - text));
    *out_port = (uint16_t)port;
    return true;
}

bool remote_token(compiler *c, const char *path, const char **out)
{
    span s;
    if (!compiler_read_file(c, path, &s))
        return false;
    const char *text = arena_strndup(&c->mem, (const char *)s.data, s.len);
    size_t n = strcspn(text, "\r\n");
    *out = arena_strndup(&c->mem, text, n);
    return (n > 0 && strcspn(*out, " \t") == n) ||
           diag_error(&c->diags, DIAG_DATA, src_loc_none(), "%s: its first line is no token, which is one word", path);
}
