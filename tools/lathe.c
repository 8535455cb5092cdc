/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the verb, parses its options, runs it, prints the diagnostics, returns their exit status. */
#include "cli.h"

#include "api/document.h"
#include "base/file.h"
#include "base/nearest.h"
#include "lathe/lathe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool (*run)(ask *x);
} verbs[] = {
#define VERB(id, name, args, fn, help, examples) {name, fn},
#include "api/options.def"
};

static int find_verb(const char *name)
{
    for (int v = 0; v < VERB_COUNT; v++)
        if (strcmp(verbs[v].name, name) == 0)
            return v;
    return -1;
}

/* --help, --help=TOPIC and --help TOPIC. A word before --help that is no topic is the verb's own argument. */
static bool explain(ask *x)
{
    const char *topic = ask_get(x, OPT_HELP, ""), *word = x->args.len > 0 ? x->args.data[0] : "";
    if (*topic == '\0' && help_has_topic(x->verb, word))
        topic = word;
    if (*topic && !help_has_topic(x->verb, topic)) {
        nearest near = nearest_to(topic, strlen(topic));
        help_offer_topics(x->verb, &near);
        return ask_usage_error(x, arena_printf(&x->c->mem, "%ssee: lathe %s --help",
                                               nearest_question(&near, "", &x->c->mem), ask_verb_name(x->verb)),
                               "--help of '%s' has no topic '%.100s'", ask_verb_name(x->verb), topic);
    }
    help_verb(x->verb, *topic ? topic : NULL);
    return true;
}

static bool run_verb(ask *x, int argc, char **argv)
{
    if (!cli_parse(x, argc, argv))
        return false;
    if (ask_has(x, OPT_HELP)) {
        x->documents = false;
        return explain(x);
    }
    if (!ask_load_ops(x, x->c))
        return false;
    progress_begin(x->c);
    bool ok = verbs[x->verb].run(x);
    progress_end(x->c);
    return ok;
}

/* After the text of --help. A reader who had enough and closed the pipe, such as head, is no error. */
static bool put(const writer *out)
{
    if (fflush(stdout) == 0 && !ferror(stdout) && file_put(STDOUT_FILENO, out->data, out->len))
        return true;
    int why = errno;
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    bool closed = poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
    errno = why;
    return closed;
}

/* Prints what the verb has made, then the diagnostics; the exit status. Nothing fails without a word. */
static int finish(const ask *x, bool ok)
{
    diags *d = &x->c->diags;
    writer document;
    if (!ok && d->errors == 0) {
        diag_error(d, DIAG_INTERNAL, src_loc_none(), "'lathe %s' failed without an error message",
                   ask_verb_name(x->verb));
        diag_hint(d, "this is a fault of lathe or of an operator library; please report it with the command line and "
                     "the files that it names");
    }
    writer_init(&document, &x->c->mem);
    if (x->documents)
        document_write(&document, x);
    if (!put(x->documents ? &document : &x->out))
        diag_error(d, DIAG_ENVIRONMENT, src_loc_none(), "standard output cannot be written: %s", strerror(errno));
    char *text = diags_print(d, &x->c->mem);
    if (*text)
        fprintf(stderr, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    return diags_exit_status(d);
}

/* --- which verb --------------------------------------------------------------------------------------------------- */

/* A first word that is no verb: a slip, an option that came too early, or a file. */
static bool refuse_verb(compiler *c, const char *word)
{
    nearest near = nearest_to(word, strlen(word));
    nearest_offer(&near, "--version");
    nearest_offer(&near, "--help");
    for (int v = 0; v < VERB_COUNT; v++)
        nearest_offer(&near, verbs[v].name);
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "there is no verb '%s'", word);
    if (word[0] == '-' && !near.best)
        diag_hint(&c->diags, "options follow the verb: lathe VERB %s; see: lathe --help", word);
    else if (!near.best && file_exists(word))
        diag_hint(&c->diags, "to look into a file: lathe inspect %s; to compile it: lathe compile %s -o out", word,
                  word);
    else
        diag_hint(&c->diags, "%ssee: lathe --help", nearest_question(&near, "", &c->mem));
    return false;
}

/* lathe help, lathe help VERB, lathe help VERB TOPIC. */
static bool help(ask *x, int argc, char **argv)
{
    int verb = argc > 0 ? find_verb(argv[0]) : -1;
    if (argc > 0 && verb < 0)
        return refuse_verb(x->c, argv[0]);
    if (argc == 0) {
        help_overview(stdout, x->program);
        return true;
    }
    x->verb = (ask_verb)verb;
    if (argc > 1)
        ask_add(x, OPT_HELP, argv[1]);
    return explain(x);
}

static bool is_one_of(const char *word, const char *x, const char *y, const char *z)
{
    return strcmp(word, x) == 0 || strcmp(word, y) == 0 || strcmp(word, z) == 0;
}

static bool run(ask *x, int argc, char **argv)
{
    if (argc < 2) {
        diag_error(&x->c->diags, DIAG_USAGE, src_loc_none(), "a verb is missing");
        diag_hint(&x->c->diags, "see: lathe --help; for example: lathe compile model.onnx -o out");
        return false;
    }
    if (is_one_of(argv[1], "--help", "-h", "help"))
        return help(x, argc - 2, argv + 2);
    if (is_one_of(argv[1], "--version", "-V", "version")) {
        w_fmt(&x->out, "lathe %s\n", lathe_version());
        return true;
    }
    int verb = find_verb(argv[1]);
    if (verb < 0)
        return refuse_verb(x->c, argv[1]);
    x->verb = (ask_verb)verb;
    return run_verb(x, argc - 2, argv + 2);
}

/* --- ends in the middle ------------------------------------------------------------------------------------------- */

/* The variables of the program: a handler is given nothing but the number of a signal. */
static compiler *volatile running;
static pthread_t first_thread;

/* Leaves no temporary file, and ends as the signal ends every program. In the first thread alone: it makes these files,
 * and holds signals off while it does. */
static void clear_away(int number)
{
    if (!pthread_equal(pthread_self(), first_thread)) {
        (void)pthread_kill(first_thread, number);
        return;
    }
    if (running)
        temps_clear(&running->temps);
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* due when this returns */
}

/* This program, for what it starts of itself; NULL: it cannot be told. */
static const char *find_self(char *room, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", room, size - 1);
    if (n <= 0)
        return NULL;
    room[n] = '\0';
    return room;
}

static void say(const char *line)
{
    fprintf(stderr, "%s\n", line);
}

/* Nobody who asks an arena for memory is ready to go on without: the program says so and ends here. What it had for
 * standard output is not written, for it may be a half. */
static void end_without_memory(void *context, size_t size)
{
    ask *x = context;
    progress_end(x->c); /* it has a thread, which reads what is about to go */
    if (size > 0)
        fprintf(stderr, "error: out of memory: no room for %zu bytes more [environment]\n", size);
    else
        fprintf(stderr, "error: out of memory [environment]\n");
    if (x->documents) {
        document_put_out_of_memory(stdout, x);
        (void)fflush(stdout);
    }
    temps_clear(&x->c->temps);
    _exit(3);
}

/* Whether the verb is asked for a document: known before all else, for what is wrong with the rest of the command line,
 * and a lack of memory, are told in that form, too. */
static bool asks_for_documents(ask *x, int argc, char **argv)
{
    const int verb = argc > 1 ? find_verb(argv[1]) : -1;
    int i = 2;
    while (i < argc && strcmp(argv[i], "--json") != 0 && strcmp(argv[i], "--") != 0)
        i++;
    if (verb < 0 || i >= argc || strcmp(argv[i], "--json") != 0)
        return false;
    x->verb = (ask_verb)verb;
    return ask_takes(x, OPT_JSON);
}

int main(int argc, char **argv)
{
    compiler c;
    char path[4096];
    ask x = {.c = &c, .say = say, .flush = cli_say, .program = find_self(path, sizeof path)};
    arena root;
    arena_init(&root, NULL);
    x.documents = asks_for_documents(&x, argc, argv);
    root.out_of_memory = end_without_memory;
    root.context = &x;
    compiler_setup_under(&c, &root);
    running = &c;
    first_thread = pthread_self();
    temps_catch(clear_away);
    writer_init(&x.out, &c.mem);
    int status = finish(&x, run(&x, argc, argv));
    running = NULL;
    compiler_free(&c);
    return status;
}
