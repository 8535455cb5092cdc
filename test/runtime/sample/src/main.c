/* main.c: runs model "default" from the command line.
 *   runner [NAME=FILE]... [-o DIR] [-n RUNS] [-w WORKERS]
 * FILE holds the raw little-endian elements of input NAME; inputs not named get a fixed pattern. -o writes every output
 * as DIR/NAME.bin, -n repeats the run and prints the median time, -w limits the threads of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "tvmgen_default.h"
#include "tvmgen_default_instance.h"
#include "tvmrt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* An input or output. Kinds: 'f' float, 'b' bfloat, 'i' signed, 'u' unsigned, '?' bool. */
struct tensor {
    const char *name;
    const char *dtype;
    char kind;
    unsigned bits;
    unsigned rank;
    const int64_t *shape;
    unsigned char *data;
    size_t size; /* bytes */
};

TVMRT_ALIGNED(64) static unsigned char input_0[TVMGEN_DEFAULT_INPUT_SIZE];
TVMRT_ALIGNED(64) static unsigned char output_0[TVMGEN_DEFAULT_OUTPUT_SIZE];

static const int64_t input_0_shape[] = {1};
static const int64_t output_0_shape[] = {1};

static const struct tensor inputs[] = {
    {"input", "float32", 'f', 32, 1, input_0_shape, input_0, sizeof input_0},
};
static const struct tensor outputs[] = {
    {"output", "float32", 'f', 32, 1, output_0_shape, output_0, sizeof output_0},
};

enum { NUM_INPUTS = TVMGEN_DEFAULT_NUM_INPUTS, NUM_OUTPUTS = TVMGEN_DEFAULT_NUM_OUTPUTS, MAX_RUNS = 1000, SHOWN = 8 };

TVMRT_ALIGNED(TVMGEN_DEFAULT_WORKSPACE_ALIGN) static unsigned char workspace[TVMGEN_DEFAULT_WORKSPACE_SIZE];
static struct tvmgen_default_instance instance;

static size_t element_bytes(const struct tensor *t)
{
    return (t->bits + 7) / 8;
}

static size_t element_count(const struct tensor *t)
{
    size_t n = 1;
    unsigned i;

    for (i = 0; i < t->rank; i++)
        n *= (size_t)t->shape[i];
    return n;
}

/* k / 128 - 1 for k in 0..255: exact in every floating type. */
static float pattern_float(size_t i)
{
    return (float)((i * 37 + 11) % 256) / 128.0f - 1.0f;
}

/* IEEE half of a value of pattern_float. */
static uint16_t pattern_half(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) == 0)
        return 0;
    return (uint16_t)((bits >> 16 & 0x8000u) | ((((bits >> 23 & 0xFFu) - 112u) << 10) | (bits >> 13 & 0x3FFu)));
}

/* The fixed pattern of element i: floats in [-1, 1), 8-bit integers all values, wider ones 0 and 1. */
static void fill_element(const struct tensor *t, size_t i)
{
    unsigned char *at = t->data + i * element_bytes(t);
    float value = pattern_float(i);
    double wide = (double)value;
    uint32_t bits;
    uint16_t half;

    memset(at, 0, element_bytes(t));
    if (t->kind == 'f' && t->bits == 64) {
        memcpy(at, &wide, sizeof wide);
    } else if (t->kind == 'f' && t->bits == 32) {
        memcpy(at, &value, sizeof value);
    } else if (t->kind == 'f' && t->bits == 16) {
        half = pattern_half(value);
        memcpy(at, &half, sizeof half);
    } else if (t->kind == 'b') {
        memcpy(&bits, &value, sizeof bits);
        half = (uint16_t)(bits >> 16);
        memcpy(at, &half, sizeof half);
    } else if (t->bits == 8 && t->kind != '?') {
        at[0] = (unsigned char)(i * 37 + 11);
    } else {
        at[0] = (unsigned char)(i & 1);
    }
}

static double half_value(uint16_t bits)
{
    double fraction = (double)(bits & 0x3FF) / 1024.0;
    int exponent = bits >> 10 & 0x1F;
    double value = exponent == 0 ? fraction / 16384.0 : 1.0 + fraction;

    if (exponent == 31)
        value = 1e300 * 1e300;
    for (; exponent > 15 && exponent < 31; exponent--)
        value *= 2.0;
    for (; exponent > 0 && exponent < 15; exponent++)
        value /= 2.0;
    return bits & 0x8000 ? -value : value;
}

static double integer_value(const unsigned char *at, unsigned bytes, int is_signed)
{
    uint64_t bits = 0;
    unsigned i;

    for (i = 0; i < bytes; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    if (is_signed && bytes > 0 && (at[bytes - 1] & 0x80) != 0)
        return -(double)(~(bits | (bytes < 8 ? UINT64_MAX << 8 * bytes : 0)) + 1);
    return (double)bits;
}

static double element_value(const struct tensor *t, size_t i)
{
    const unsigned char *at = t->data + i * element_bytes(t);
    uint32_t bits;
    uint16_t half;
    double wide;
    float value;

    if (t->kind == 'f' && t->bits == 64) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    if (t->kind == 'f' && t->bits == 32) {
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    if ((t->kind == 'f' && t->bits == 16) || t->kind == 'b') {
        memcpy(&half, at, sizeof half);
        if (t->kind == 'f')
            return half_value(half);
        bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    return integer_value(at, (unsigned)element_bytes(t), t->kind == 'i');
}

/* name dtype [shape] range min..max first: v v v */
static void print_tensor(const struct tensor *t)
{
    size_t n = element_count(t), i;
    double low = 0, high = 0;

    for (i = 0; i < n; i++) {
        double v = element_value(t, i);

        low = i == 0 || v < low ? v : low;
        high = i == 0 || v > high ? v : high;
    }
    printf("%s %s [", t->name, t->dtype);
    for (i = 0; i < t->rank; i++)
        printf("%s%ld", i > 0 ? "," : "", (long)t->shape[i]);
    printf("] range %.9g..%.9g first:", low, high);
    for (i = 0; i < n && i < SHOWN; i++)
        printf(" %.9g", element_value(t, i));
    printf("\n");
}

static int fail(const char *what, const char *name)
{
    fprintf(stderr, "runner: %s: %s\n", name, what);
    return 1;
}

static int read_input(const struct tensor *t, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t got;
    int more;

    if (file == NULL)
        return fail(strerror(errno), path);
    got = fread(t->data, 1, t->size, file);
    more = fgetc(file);
    fclose(file);
    if (got == t->size && more == EOF)
        return 0;
    fprintf(stderr, "runner: %s: %s bytes for input %s, which takes %lu\n", path, more == EOF ? "too few" : "too many",
            t->name, (unsigned long)t->size);
    return 1;
}

/* NAME=FILE. Names may hold any character, so they are looked for and not cut at the first '='. */
static int take_input(const char *arg, unsigned char *given)
{
    size_t i;

    for (i = 0; i < NUM_INPUTS; i++) {
        size_t length = strlen(inputs[i].name);

        if (strncmp(arg, inputs[i].name, length) == 0 && arg[length] == '=') {
            given[i] = 1;
            return read_input(&inputs[i], arg + length + 1);
        }
    }
    fprintf(stderr, "runner: %s: not NAME=FILE of an input; the inputs are:", arg);
    for (i = 0; i < NUM_INPUTS; i++)
        fprintf(stderr, " %s", inputs[i].name);
    fprintf(stderr, "\n");
    return 2;
}

static int write_output(const struct tensor *t, const char *folder)
{
    static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    char path[4096];
    size_t start = (size_t)snprintf(path, sizeof path, "%s/", folder), i;
    size_t bytes = element_count(t) * element_bytes(t);
    FILE *file;
    int bad;

    if (start + strlen(t->name) + 5 > sizeof path)
        return fail("name too long", t->name);
    for (i = 0; t->name[i] != '\0'; i++)
        path[start + i] = strchr(legal, t->name[i]) != NULL ? t->name[i] : '_';
    memcpy(path + start + i, ".bin", 5);
    file = fopen(path, "wb");
    if (file == NULL)
        return fail(strerror(errno), path);
    bad = fwrite(t->data, 1, bytes, file) != bytes;
    return fclose(file) != 0 || bad ? fail("could not be written", path) : 0;
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Runs the model `runs` times; prints the median when asked for more than one. */
static int32_t run_model(unsigned runs)
{
    static double times[MAX_RUNS];
    struct tvmgen_default_inputs in = {input_0};
    struct tvmgen_default_outputs out = {output_0};
    unsigned i;

    for (i = 0; i < runs; i++) {
        double start = now_ms();
        int32_t status = tvmgen_default_run_instance(&instance, &in, &out);

        times[i] = now_ms() - start;
        if (status != 0)
            return status;
    }
    if (runs > 1) {
        qsort(times, runs, sizeof times[0], by_value);
        printf("median %.6f ms of %u runs\n", times[runs / 2], runs);
    }
    return 0;
}

struct options {
    const char *folder;
    unsigned runs;
    unsigned workers;
    unsigned char given[NUM_INPUTS + 1];
};

static int number(const char *text, unsigned limit, unsigned *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (unsigned)value;
    return *text != '\0' && *end == '\0' && value <= limit;
}

static int usage(const char *arg)
{
    fprintf(stderr, "runner: %s: cannot be used here\nusage: runner [NAME=FILE]... [-o DIR] [-n RUNS] [-w WORKERS]\n",
            arg);
    return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
    int i, status = 0;

    for (i = 1; i < argc && status == 0; i++) {
        const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

        if (arg[0] != '-') {
            status = take_input(arg, options->given);
            continue;
        }
        i++;
        if (strcmp(arg, "-o") == 0 && *value != '\0')
            options->folder = value;
        else if (strcmp(arg, "-n") == 0 && number(value, MAX_RUNS, &options->runs) && options->runs > 0)
            continue;
        else if (strcmp(arg, "-w") == 0 && number(value, TVMRT_MAX_WORKERS, &options->workers))
            continue;
        else
            return usage(arg);
    }
    return status;
}

static int finish(const struct options *options)
{
    int status = 0;
    size_t i;

    if (options->folder != NULL && mkdir(options->folder, 0777) != 0 && errno != EEXIST)
        return fail(strerror(errno), options->folder);
    for (i = 0; i < NUM_OUTPUTS && status == 0; i++) {
        print_tensor(&outputs[i]);
        if (options->folder != NULL)
            status = write_output(&outputs[i], options->folder);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {NULL, 1, 0, {0}};
    int32_t status;
    size_t i, k;
    int code = parse(argc, argv, &options);

    if (code != 0)
        return code;
    for (i = 0; i < NUM_INPUTS; i++)
        for (k = 0; !options.given[i] && k < element_count(&inputs[i]); k++)
            fill_element(&inputs[i], k);
    status = tvmgen_default_instance_init(&instance, NULL, workspace, sizeof workspace);
    if (status == 0)
        status = tvmgen_default_instance_set_workers(&instance, options.workers);
    if (status == 0)
        status = run_model(options.runs);
    if (status != 0)
        return fail(tvmrt_status_text(status), "default");
    code = finish(&options);
    tvmrt_engine_shutdown(NULL);
    return code;
}
