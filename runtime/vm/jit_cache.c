/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of compiled objects. Its folder has to belong to the user alone, otherwise it is not used. Entries appear
 * by rename, so readers need no lock. A lock for each key lets others wait for the process that compiles. */
#include "jit_cache.h"

#include "jit_machine.h"

#include "abi/module.h"
#include "abi/package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Behind the object: these bytes, little endian, then the hash. */
#define MARK         "lathejit"
#define ENTRY_FORMAT 1u
enum { TAIL = 16, FOOTER = TAIL + SHA256_BYTES, NAME_SIZE = JIT_KEY_SIZE + 8 };

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* --- the key --- */

static void hash_text(sha256 *s, const void *text, size_t n)
{
    uint8_t length[8] = {0};
    put_u32(length, (uint32_t)n);
    put_u32(length + 4, (uint32_t)((uint64_t)n >> 32));
    sha256_add(s, length, sizeof length);
    sha256_add(s, text, n);
}

static void hash_words(sha256 *s, const jit_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        hash_text(s, w->at[i], strlen(w->at[i]));
    hash_text(s, "", 0);
}

/* The program's size and time stand for builds of it that call themselves alike. */
static void hash_program(sha256 *s, const char *path)
{
    struct stat st;
    int64_t facts[3] = {0};
    if (stat(path, &st) == 0) {
        facts[0] = (int64_t)st.st_size;
        facts[1] = (int64_t)st.st_mtim.tv_sec;
        facts[2] = (int64_t)st.st_mtim.tv_nsec;
    }
    hash_text(s, path, strlen(path));
    hash_text(s, facts, sizeof facts);
}

static void hash_numbers(sha256 *s, const uint32_t *numbers, size_t n)
{
    uint8_t bytes[4];
    for (size_t i = 0; i < n; i++) {
        put_u32(bytes, numbers[i]);
        hash_text(s, bytes, sizeof bytes);
    }
}

/* What decides whether an object may run here. */
static void hash_machine(sha256 *s)
{
    const jit_machine m = jit_this_machine();
    const uint32_t numbers[] = {ENTRY_FORMAT,   LATHE_VM_VERSION, PACKAGE_ABI_VERSION,
                                m.vector_bytes, m.vector_regs,    jit_command_own_width()};
    hash_numbers(s, numbers, sizeof numbers / sizeof *numbers);
    hash_text(s, jit_machine_name(), strlen(jit_machine_name()));
}

static void make_key(const jit_command *c, const char *source, size_t size, char out[JIT_KEY_SIZE])
{
    sha256 s;
    char compiler[SHA256_TEXT];
    sha256_init(&s);
    hash_machine(&s);
    hash_text(&s, source, size);
    sha256_end_text(&s, out);
    if (!c)
        return;
    sha256_init(&s);
    hash_numbers(&s, &c->width, 1);
    hash_program(&s, c->path);
    hash_text(&s, c->version, strlen(c->version));
    hash_words(&s, &c->words);
    hash_words(&s, &c->flags);
    sha256_end_text(&s, compiler);
    (void)snprintf(out + JIT_KEY_SOURCE, JIT_KEY_SIZE - JIT_KEY_SOURCE, "-%.*s", JIT_KEY_COMPILER, compiler);
}

/* --- the folder --- */

/* The place that is usual; NULL: there is none, or no memory. */
static char *usual_place(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return jit_printf("%s/lathe", cache);
    return home && *home == '/' ? jit_printf("%s/.cache/lathe", home) : NULL;
}

/* A folder that others can write may hold what others made. */
static int32_t check_folder(const jit_cache *k, lathe_error *error)
{
    struct stat st;
    if (fstat(k->dir, &st) != 0)
        return vm_fail(error, LATHE_E_FILE, "cannot look at the cache folder '%s': %s", k->path, strerror(errno));
    if (st.st_uid != geteuid())
        return vm_fail(error, LATHE_E_FILE, "the cache folder '%s' belongs to another user: name another one by "
                       "XDG_CACHE_HOME or the option `cache_dir`", k->path);
    if (st.st_mode & 077)
        return vm_fail(error, LATHE_E_FILE, "the cache folder '%s' is open to other users: chmod 700 '%s'", k->path,
                        k->path);
    return LATHE_OK;
}

static void forget(jit_cache *k)
{
    free(k->path);
    k->path = NULL;
}

int32_t jit_cache_open(const lathe_options *options, const jit_command *c, const char *source, size_t size,
                       jit_cache *out, lathe_error *error)
{
    const char *given = options->cache_dir;
    *out = (jit_cache){.options = options, .dir = -1, .lock = -1, .width = c ? c->width : jit_command_own_width()};
    if (given && !*given)
        return LATHE_OK;
    out->path = given ? jit_printf("%s", given) : usual_place();
    if (!out->path) {
        jit_say(options, "no cache: neither XDG_CACHE_HOME nor HOME is set, nor the option `cache_dir`");
        return given ? jit_no_memory(error) : LATHE_OK;
    }
    if (jit_folder_make(out->path, 0700))
        out->dir = open(out->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out->dir >= 0) {
        make_key(c, source, size, out->key);
        return check_folder(out, error);
    }
    if (errno == ELOOP || errno == ENOTDIR)
        return vm_fail(error, LATHE_E_FILE, "the cache folder '%s' is a link or a file", out->path);
    if (given)
        return vm_fail(error, LATHE_E_FILE, "cannot use the cache folder '%s': %s", out->path, strerror(errno));
    jit_say(options, "no cache: '%s': %s", out->path, strerror(errno));
    forget(out);
    return LATHE_OK;
}

void jit_cache_close(jit_cache *k)
{
    jit_cache_unlock(k);
    if (k->dir >= 0)
        (void)close(k->dir);
    k->dir = -1;
    forget(k);
}

/* --- the lock of a key --- */

static void file_name(const jit_cache *k, const char *end, char out[NAME_SIZE])
{
    (void)snprintf(out, NAME_SIZE, "%s.%s", k->key, end);
}

/* Whether the lock was taken, else whether it makes sense to try again. The file goes while its lock is held, so a lock
 * on one that is gone is none. */
static bool try_lock(jit_cache *k, bool *out_again)
{
    char name[NAME_SIZE];
    struct stat st;
    file_name(k, "lock", name);
    int fd = openat(k->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    *out_again = false;
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0) {
        if (st.st_nlink > 0) {
            k->lock = fd;
            return true;
        }
        *out_again = true;
    } else {
        *out_again = errno == EWOULDBLOCK || errno == EINTR;
    }
    (void)close(fd);
    return false;
}

/* One who hangs, or a file system without locks, makes nobody wait for ever: compiling twice does no harm. */
void jit_cache_lock(jit_cache *k)
{
    struct timespec now = {0}, pause = {.tv_nsec = 5000000};
    bool again = true;
    if (!k->path)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + (time_t)jit_command_seconds(k->options);
    while (!try_lock(k, &again) && again && now.tv_sec <= end) {
        (void)nanosleep(&pause, NULL);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    }
    if (k->lock < 0)
        jit_say(k->options, "cache: no lock for %s", k->key);
}

void jit_cache_unlock(jit_cache *k)
{
    char name[NAME_SIZE];
    if (k->lock < 0)
        return;
    file_name(k, "lock", name);
    (void)unlinkat(k->dir, name, 0);
    (void)close(k->lock);
    k->lock = -1;
}

/* --- entries --- */

static void make_tail(const jit_cache *k, uint8_t tail[TAIL])
{
    memcpy(tail, MARK, 8);
    put_u32(tail + 8, ENTRY_FORMAT);
    put_u32(tail + 12, k->width);
}

/* The key is hashed too, so that an entry serves only under its own name. */
static void hash_entry(const jit_cache *k, const void *object, size_t n, const uint8_t tail[TAIL],
                       uint8_t out[SHA256_BYTES])
{
    sha256 s;
    sha256_init(&s);
    sha256_add(&s, k->key, sizeof k->key);
    sha256_add(&s, object, n);
    sha256_add(&s, tail, TAIL);
    sha256_end(&s, out);
}

/* Why an entry cannot be used; NULL: it can, and *bytes is the object. */
static const char *check_entry(const jit_cache *k, jit_bytes *bytes)
{
    uint8_t tail[TAIL], hash[SHA256_BYTES];
    if (bytes->n < FOOTER)
        return "it is cut off";
    const uint8_t *end = bytes->at + bytes->n - FOOTER;
    if (memcmp(end, MARK, 8) != 0)
        return "it is damaged";
    hash_entry(k, bytes->at, bytes->n - FOOTER, end, hash);
    if (memcmp(end + TAIL, hash, sizeof hash) != 0)
        return "its hash is another";
    make_tail(k, tail);
    if (memcmp(end, tail, TAIL) != 0)
        return "it was made for vectors of another width";
    bytes->n -= FOOTER;
    return NULL;
}

static int open_entry(const jit_cache *k, const char *name)
{
    return openat(k->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* `else_what`: what happens when it cannot be used. */
static bool get(const jit_cache *k, const char *else_what, jit_bytes *object, int *hold)
{
    char name[NAME_SIZE];
    struct stat st;
    *object = (jit_bytes){0};
    *hold = -1;
    if (!k->path)
        return false;
    file_name(k, "so", name);
    int fd = open_entry(k, name);
    if (fd < 0 && errno == ENOENT)
        return false;
    const char *why = fd < 0 || fstat(fd, &st) != 0 ? strerror(errno) : NULL;
    if (!why && (st.st_uid != geteuid() || (st.st_mode & 077)))
        why = "others may have written it";
    if (!why && !jit_file_read(fd, object))
        why = strerror(errno);
    if (!why)
        why = check_entry(k, object);
    if (!why) {
        (void)flock(fd, LOCK_SH | LOCK_NB);
        (void)futimens(fd, NULL); /* the oldest entry is the one that was not used for longest */
        *hold = fd;
        return true;
    }
    jit_say(k->options, "cache: %s/%s is %s: %s", k->path, name, else_what, why);
    if (fd >= 0)
        (void)close(fd);
    free(object->at);
    *object = (jit_bytes){0};
    return false;
}

bool jit_cache_get(const jit_cache *k, jit_bytes *object, int *hold)
{
    return get(k, "made again", object, hold);
}

/* --- all entries --- */

typedef struct old_entry {
    char name[NAME_SIZE];
    uint64_t bytes;
    struct timespec used;
} old_entry;

typedef struct old_list {
    old_entry *at;
    size_t n, room;
    uint64_t bytes;
} old_list;

static int by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const old_entry *)a)->used, *y = &((const old_entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Removes a file that nobody holds. */
static bool remove_free(const jit_cache *k, const char *name)
{
    int fd = open_entry(k, name);
    bool gone = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(k->dir, name, 0) == 0;
    if (fd >= 0)
        (void)close(fd);
    return gone;
}

/* Keys of earlier versions were shorter. */
static bool is_file(const char *name, const char *end)
{
    const size_t n = strspn(name, "0123456789abcdef-");
    return n >= JIT_KEY_SOURCE && n < JIT_KEY_SIZE && strcmp(name + n, end) == 0;
}

/* What is there only while somebody holds it. */
static bool is_passing(const char *name)
{
    return strncmp(name, JIT_FILE_TEMPORARY, strlen(JIT_FILE_TEMPORARY)) == 0 || is_file(name, ".lock");
}

static void add_old(const jit_cache *k, old_list *list, const char *name)
{
    struct stat st;
    if (fstatat(k->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        old_entry *at = realloc(list->at, room * sizeof *at);
        if (!at)
            return; /* this one stays for now */
        list->at = at;
        list->room = room;
    }
    old_entry *e = &list->at[list->n++];
    (void)snprintf(e->name, sizeof e->name, "%.*s", NAME_SIZE - 1, name);
    e->bytes = (uint64_t)st.st_size;
    e->used = st.st_mtim;
    list->bytes += e->bytes;
}

/* All entries; with `start` those alone whose names begin so, else what writers that were stopped have left goes at
 * once. */
static void list_old(const jit_cache *k, const char *start, old_list *list)
{
    int fd = openat(k->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (!start && is_passing(e->d_name))
            (void)remove_free(k, e->d_name);
        else if (is_file(e->d_name, ".so") && (!start || strncmp(e->d_name, start, strlen(start)) == 0))
            add_old(k, list, e->d_name);
    }
    (void)closedir(dir);
}

static void clear_away(const jit_cache *k)
{
    uint64_t most = k->options->cache_bytes ? k->options->cache_bytes : UINT64_C(1) << 30;
    old_list list = {0};
    list_old(k, NULL, &list);
    if (list.n > 0 && list.bytes > most)
        qsort(list.at, list.n, sizeof *list.at, by_age);
    for (size_t i = 0; i < list.n && list.bytes > most; i++)
        if (remove_free(k, list.at[i].name)) {
            list.bytes -= list.at[i].bytes;
            jit_say(k->options, "cache: %s/%s is cleared away", k->path, list.at[i].name);
        }
    free(list.at);
}

void jit_cache_put(const jit_cache *k, const jit_bytes *object, int *hold)
{
    char name[NAME_SIZE];
    uint8_t footer[FOOTER];
    *hold = -1;
    if (!k->path)
        return;
    file_name(k, "so", name);
    make_tail(k, footer);
    hash_entry(k, object->at, object->n, footer, footer + TAIL);
    jit_part parts[] = {{object->at, object->n}, {footer, FOOTER}};
    if (!jit_file_put(k->dir, name, 0600, parts, 2)) {
        jit_say(k->options, "cache: cannot write %s/%s: %s", k->path, name, strerror(errno));
        return;
    }
    *hold = open_entry(k, name);
    if (*hold >= 0)
        (void)flock(*hold, LOCK_SH | LOCK_NB);
    clear_away(k);
}

bool jit_cache_newest(jit_cache *k, jit_bytes *object, int *hold)
{
    char start[JIT_KEY_SIZE], own[JIT_KEY_SIZE];
    old_list list = {0};
    bool found = false;
    *object = (jit_bytes){0};
    *hold = -1;
    if (!k->path)
        return false;
    memcpy(own, k->key, sizeof own);
    (void)snprintf(start, sizeof start, "%.*s-", JIT_KEY_SOURCE, k->key);
    list_old(k, start, &list);
    if (list.n > 0)
        qsort(list.at, list.n, sizeof *list.at, by_age);
    while (list.n > 0 && !found) {
        const char *name = list.at[--list.n].name;
        if (strlen(name) == JIT_KEY_SIZE - 1 + strlen(".so")) {
            (void)snprintf(k->key, sizeof k->key, "%.*s", JIT_KEY_SIZE - 1, name);
            found = get(k, "not used", object, hold);
        }
    }
    free(list.at);
    if (!found)
        memcpy(k->key, own, sizeof own);
    return found;
}
