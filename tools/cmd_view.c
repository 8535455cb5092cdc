/* SPDX-License-Identifier: Apache-2.0 */
/* lathe view: the page of a model, served to a browser on this machine. It shows the model as it was read, and what a
 * compile makes of it where one succeeds. Only the loopback address listens, and requests that name another host are
 * refused: a page from elsewhere, whose name was made to lead here, could read the model otherwise. */
#include "cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "driver/format.h"
#include "driver/html.h"
#include "driver/html_model.h"

enum { MOST_CLIENTS = 32, MOST_REQUEST = 8192, SECONDS = 10 };

typedef struct client {
    int fd;
    size_t len;
    char request[MOST_REQUEST + 1];
} client;

typedef struct view_server {
    writer page, json;
    client clients[MOST_CLIENTS];
    uint32_t n_clients;
} view_server;

/* --- answers --- */

static bool send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        const ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

static void answer(int fd, const char *status, const char *kind, const char *body, size_t n, bool with_body)
{
    char head[512];
    const int len = snprintf(head, sizeof head,
                             "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
                             "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                             "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
                             "script-src 'unsafe-inline'\r\nConnection: close\r\n\r\n",
                             status, kind, n);
    if (len > 0 && send_all(fd, head, (size_t)len) && with_body)
        (void)send_all(fd, body, n); /* who does not want the rest has gone */
}

static void refuse(int fd, const char *status)
{
    answer(fd, status, "text/plain", status, strlen(status), true);
}

/* "Host: 127.0.0.1:8000" or localhost, in any case of letters. */
static bool names_this_machine(const char *request)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    for (const char *line = strstr(request, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        const char *host = line + 2;
        if (strncasecmp(host, "host:", 5) != 0)
            continue;
        host += 5 + strspn(host + 5, " \t");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const size_t n = strlen(names[i]);
            if (strncasecmp(host, names[i], n) == 0 && (host[n] == ':' || host[n] == '\r'))
                return true;
        }
        return false;
    }
    return false;
}

static void serve_request(const view_server *s, const client *x)
{
    const bool get = strncmp(x->request, "GET ", 4) == 0, head = strncmp(x->request, "HEAD ", 5) == 0;
    const char *path = x->request + (get ? 4 : 5);
    const size_t n = strcspn(path, " ?\r\n");
    if (!get && !head)
        refuse(x->fd, "405 Method Not Allowed");
    else if (!names_this_machine(x->request))
        refuse(x->fd, "403 Forbidden");
    else if (n == 1 && *path == '/')
        answer(x->fd, "200 OK", "text/html", s->page.data, s->page.len, get);
    else if (n == strlen("/document.json") && strncmp(path, "/document.json", n) == 0)
        answer(x->fd, "200 OK", "application/json", s->json.data, s->json.len, get);
    else
        refuse(x->fd, "404 Not Found");
}

/* --- connections: browsers open some in advance and say nothing on them, so nobody is waited for --- */

static void drop_client(view_server *s, uint32_t i)
{
    (void)close(s->clients[i].fd);
    s->clients[i] = s->clients[--s->n_clients];
}

static void accept_client(view_server *s, int listening)
{
    const struct timeval limit = {.tv_sec = SECONDS};
    const int fd = accept(listening, NULL, NULL);
    if (fd < 0)
        return;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (s->n_clients == MOST_CLIENTS)
        drop_client(s, 0);
    s->clients[s->n_clients].fd = fd;
    s->clients[s->n_clients++].len = 0;
}

/* Reads what is there. False: the client is done with. */
static bool read_client(const view_server *s, client *x)
{
    const ssize_t got = recv(x->fd, x->request + x->len, MOST_REQUEST - x->len, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0)
        return false;
    x->len += (size_t)got;
    x->request[x->len] = '\0';
    if (strstr(x->request, "\r\n\r\n"))
        serve_request(s, x);
    else if (x->len == MOST_REQUEST)
        refuse(x->fd, "431 Request Header Fields Too Large");
    else
        return true;
    return false;
}

/* Until a signal ends the program. */
static bool serve_all(ask *x, view_server *s, int listening)
{
    struct pollfd wait[MOST_CLIENTS + 1];
    for (;;) {
        wait[0] = (struct pollfd){.fd = listening, .events = POLLIN};
        for (uint32_t i = 0; i < s->n_clients; i++)
            wait[i + 1] = (struct pollfd){.fd = s->clients[i].fd, .events = POLLIN};
        if (poll(wait, s->n_clients + 1, -1) < 0) {
            if (errno == EINTR)
                continue;
            return diag_error(&x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot wait for a browser: %s",
                              strerror(errno));
        }
        for (uint32_t i = s->n_clients; i-- > 0;) /* from the end: a client that goes is replaced by the last one */
            if (wait[i + 1].revents && !read_client(s, &s->clients[i]))
                drop_client(s, i);
        if (wait[0].revents)
            accept_client(s, listening);
    }
}

static int listen_on(ask *x, uint16_t port, uint16_t *out_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof at;
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, MOST_CLIENTS) == 0 &&
            getsockname(fd, (struct sockaddr *)&at, &size) == 0) {
            *out_port = ntohs(at.sin_port);
            return fd;
        }
    }
    diag_error(&x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot listen on 127.0.0.1:%u: %s", (unsigned)port,
               strerror(errno));
    diag_hint(&x->c->diags, "--port 0 takes any port that is free");
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* --- the page --- */

/* The model as it was read. Where that fails, as with an operator that is not known, what can be shown of it:
 * *out_whole is false then, and the diagnostics stay. */
static bool read_model(ask *x, const char *model, const compile_options *o, html_page *page, bool *out_whole)
{
    compile_options as_is = *o;
    graph_module *m;
    compile_set_emit(&as_is, EMIT_GRAPH); /* which leaves dimensions open */
    *out_whole = pipeline_load(x->c, model, &as_is, &m);
    if (!*out_whole && x->c->cancelled)
        return false;
    const diags_mark mark = diags_get_mark(&x->c->diags);
    if (!*out_whole && !pipeline_load_to_look(x->c, model, &as_is, &m)) {
        diags_reset(&x->c->diags, mark); /* the same again */
        return false;
    }
    page->model = html_model_of(x->c, m);
    return true;
}

/* A compile that fails is no failure here: the page says why, and shows the model. */
static bool make_page(ask *x, const char *model, compile_options *o, view_server *s)
{
    compile_result r;
    html_page page = {.file = model, .ram = o->ram};
    bool whole;
    const diags_mark mark = diags_get_mark(&x->c->diags);
    if (!read_model(x, model, o, &page, &whole))
        return false;
    o->page = true;
    if (whole && pipeline_compile(x->c, model, o, &r)) {
        page.result = &r;
        page.model = r.model;
    } else if (x->c->cancelled) {
        return false;
    }
    writer_init(&s->page, &x->c->mem);
    writer_init(&s->json, &x->c->mem);
    html_write(x->c, &s->page, &page);
    html_write_document(x->c, &s->json, &page);
    if (!page.result)
        diags_reset(&x->c->diags, mark);
    return true;
}

bool cmd_view(ask *x)
{
    const char *model = ask_model(x);
    compile_options o;
    bool computation;
    long port;
    uint16_t at;
    if (!model || !ask_compile_options(x, false, &o) || !ask_number(x, OPT_LISTEN_PORT, 0, UINT16_MAX, 0, &port) ||
        !pipeline_is_computation(x->c, model, &o, &computation))
        return false;
    if (computation)
        return ask_usage_error(x, "lathe opt shows its loops", "'%s' is a computation, and view shows models", model);
    const int listening = listen_on(x, (uint16_t)port, &at);
    if (listening < 0)
        return false;
    view_server *s = arena_new(&x->c->mem, view_server);
    bool ok = make_page(x, model, &o, s);
    progress_hide(x->c);
    if (ok) {
        printf("view: http://127.0.0.1:%u/ shows %s; Ctrl-C ends it\n", (unsigned)at, cli_shown(x, model));
        (void)fflush(stdout);
        ok = serve_all(x, s, listening);
    }
    (void)close(listening);
    return ok;
}
