/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and tokens. */
#include "api/remote.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool remote_address(const ask *x, const char *option, const char *text, const char **out_host, uint16_t *out_port)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : 0;
    if (!colon || colon == text || end == colon + 1 || *end || port < 1 || port > 65535)
        return ask_usage_error(x, "for example 127.0.0.1:9090", "--%s: '%.100s' is not a HOST:PORT", option, text);
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
           diag_error(&c->diags, DIAG_DATA, src_loc_none(),
                      "%s: the first line must be a token, which is one word", path);
}

/* At once, since what is waited for may never come. */
static void waiting(void *user, const char *line)
{
    const ask *x = user;
    if (x->say)
        x->say(line);
}

bool remote_asked(const ask *x)
{
    return ask_has(x, OPT_REMOTE) || ask_has(x, OPT_TRACKER);
}

bool remote_options(const ask *x, run_remote_options *out)
{
    static const struct {
        ask_option option;
        const char *name;
    } others[] = {{OPT_META, "meta"},         {OPT_NO_JIT, "no-jit"},   {OPT_KEEP_SOURCES, "keep-sources"},
                  {OPT_TRACE, "trace"},       {OPT_KEEP, "keep"},       {OPT_INTERPRET, "interpret"},
                  {OPT_EMULATOR, "emulator"}, {OPT_AGAINST, "against"}, {OPT_WORKERS, "workers"}};
    const char *remote = ask_get(x, OPT_REMOTE, NULL), *tracker = ask_get(x, OPT_TRACKER, NULL);
    const char *emit = ask_get(x, OPT_EMIT, "module"), *secret = ask_get(x, OPT_TOKEN_FILE, NULL);
    *out = (run_remote_options){.key = ask_get(x, OPT_KEY, NULL), .by_tracker = !remote, .waiting = waiting,
                                .user = (ask *)(uintptr_t)x};
    if (remote && tracker)
        return ask_usage_error(x, "use only one of them", "--remote names a server, and --tracker a tracker that knows "
                                                          "servers");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ask_has(x, others[i].option))
            return ask_usage_error(x, "use only one of them", "--%s is for runs on this machine, --%s for another",
                                   others[i].name, remote ? "remote" : "tracker");
    if (strcmp(emit, "module") != 0)
        return ask_usage_error(x, "leave --emit out", "--emit %s: a remote device runs modules", emit);
    return (!secret || remote_token(x->c, secret, &out->token)) &&
           remote_address(x, remote ? "remote" : "tracker", remote ? remote : tracker, &out->host, &out->port);
}
