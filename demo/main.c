/* The demo's program: reads pictures of handwritten digits with their labels, runs the generated package on each, and
 * prints predictions next to labels, the time per picture and the workspace. It uses the package by its public header.
 *     digits FILE           FILE: records of one byte label and 64 bytes of pixels (0..16)
 */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "tvmgen_default.h"

#ifndef DEMO_HEAP
#define DEMO_HEAP "none"
#endif

enum { PIXELS = 64, CLASSES = 10, DRAWN = 2, SHOWN = 20, ROUNDS = 20 };

struct record {
    uint8_t label;
    uint8_t pixels[PIXELS];
};

struct tally {
    int pictures;
    int correct;
    double seconds; /* of the fastest round of each picture, summed */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int best_class(const float *probabilities)
{
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        if (probabilities[i] > probabilities[best])
            best = i;
    return best;
}

#ifdef DEMO_LOGITS
#define RESULT    logits
#define IS_LOGITS 1
#else
#define RESULT    probabilities
#define IS_LOGITS 0
#endif

/* Runs the network once on `picture`; returns the package's status. */
static int32_t classify(const struct record *picture, float *out_result)
{
    float image[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        image[i] = (float)picture->pixels[i];
    struct tvmgen_default_inputs inputs = {.image = image};
    struct tvmgen_default_outputs outputs = {.RESULT = out_result};
    return tvmgen_default_run(&inputs, &outputs);
}

/* Of a network that ends without a softmax. */
static void normalise(float *logits)
{
    float most = logits[best_class(logits)], sum = 0;
    for (int i = 0; i < CLASSES; i++)
        sum += logits[i] = expf(logits[i] - most);
    for (int i = 0; i < CLASSES; i++)
        logits[i] /= sum;
}

static int32_t classify_timed(const struct record *picture, float *out_probabilities, double *out_seconds)
{
    *out_seconds = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        int32_t status = classify(picture, out_probabilities);
        if (status != 0)
            return status;
        double seconds = now() - start;
        *out_seconds = seconds < *out_seconds ? seconds : *out_seconds;
    }
    return 0;
}

static void show(const struct record *picture, const float *probabilities, int predicted)
{
    printf("  label %d   predicted %d  (%.1f %%)%s\n", picture->label, predicted,
           100.0 * (double)probabilities[predicted], predicted == picture->label ? "" : "   <-- wrong");
}

static void draw(const struct record *picture)
{
    static const char shades[] = " .:-=+*#%@";
    for (int row = 0; row < 8; row++) {
        fputs("    ", stdout);
        for (int column = 0; column < 8; column++) {
            char shade = shades[picture->pixels[8 * row + column] * 9 / 16];
            printf("%c%c", shade, shade);
        }
        putchar('\n');
    }
}

static int32_t run_all(FILE *file, struct tally *out_tally)
{
    struct record picture;
    *out_tally = (struct tally){0, 0, 0.0};
    while (fread(&picture, sizeof picture, 1, file) == 1) {
        float probabilities[CLASSES];
        double seconds;
        int32_t status = classify_timed(&picture, probabilities, &seconds);
        if (status != 0)
            return status;
        if (IS_LOGITS)
            normalise(probabilities);
        int predicted = best_class(probabilities);
        if (out_tally->pictures < DRAWN)
            draw(&picture);
        if (out_tally->pictures < SHOWN)
            show(&picture, probabilities, predicted);
        out_tally->pictures++;
        out_tally->correct += predicted == picture.label;
        out_tally->seconds += seconds;
    }
    return 0;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: digits FILE (the bundled one is demo/inputs/digits.bin)\n");
        return 2;
    }
    struct tally tally;
    int32_t status = run_all(file, &tally);
    fclose(file);
    if (status != 0 || tally.pictures == 0) {
        fprintf(stderr, "digits: status %d after %d pictures\n", (int)status, tally.pictures);
        return 1;
    }
    printf("\ncorrect: %d of %d\n", tally.correct, tally.pictures);
    printf("time per picture: %.1f us (%d workers)\n", 1e6 * tally.seconds / tally.pictures, DEMO_WORKERS);
    printf("workspace: %lu bytes, constants: %lu bytes, heap: %s\n", (unsigned long)TVMGEN_DEFAULT_WORKSPACE_SIZE,
           (unsigned long)TVMGEN_DEFAULT_CONST_SIZE, DEMO_HEAP);
    return 0;
}
