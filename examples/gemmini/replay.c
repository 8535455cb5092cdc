/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs for the model (device.h) from a file, and compares the memories behind each instruction with digests:
 *
 *     replay [--strict] [--update] FILE
 *
 *     program N memory KIND [fault TEXT]     all local memories and registers are zero
 *     FUNCT RS1 RS2 [DIGEST]                 decimal, hexadecimal; `fence` alone is the processor's
 *     end
 *
 * Main memory is 131,072 bytes from 0x80000000: x = N + 1, and for each byte x = x * 6364136223846793005 +
 * 1442695040888963407, r = the low 32 bits of x >> 33; the byte is r % 7 - 3 for kind 0, r & 255 for kind 1, and
 * r % 33 - 16 for kind 2. A digest is FNV-1a of 64 bits over scratchpad, accumulator and main memory. A program with
 * `fault` ends in one whose text begins so. `--update` prints the file with this model's digests. */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY 131072u
#define START 0x80000000u

static gemmini device;
static uint8_t memory[MEMORY];

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* On a little-endian machine, as the reference's. */
static uint64_t digest(void)
{
    uint64_t h = hash(0xcbf29ce484222325u, device.scratchpad, sizeof device.scratchpad);
    h = hash(h, device.sums, sizeof device.sums);
    return hash(h, memory, sizeof memory);
}

static void start(uint64_t program, unsigned kind, bool strict)
{
    uint64_t x = program + 1;
    for (size_t i = 0; i < MEMORY; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint32_t r = (uint32_t)(x >> 33);
        memory[i] = (uint8_t)(kind == 0 ? r % 7 - 3 : kind == 1 ? r : r % 33 - 16);
    }
    gemmini_reset(&device);
    device.strict = strict;
    device.offset = (uintptr_t)memory - START;
}

int main(int argc, char **argv)
{
    bool strict = false, update = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--strict") == 0)
            strict = true;
        else if (strcmp(argv[i], "--update") == 0)
            update = true;
        else
            path = argv[i];
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f) {
        fprintf(stderr, "replay: cannot read '%s'\n", path ? path : "");
        return 2;
    }
    char line[256], wanted[128] = "";
    unsigned programs = 0, instructions = 0, digests = 0, wrong = 0, number = 0;
    while (fgets(line, sizeof line, f)) {
        uint64_t program, rs1, rs2, want;
        unsigned kind, funct;
        number++;
        line[strcspn(line, "\n")] = 0;
        const int n = sscanf(line, "%u %" SCNx64 " %" SCNx64 " %" SCNx64, &funct, &rs1, &rs2, &want);
        bool bad = false;
        if (sscanf(line, "program %" SCNu64 " memory %u", &program, &kind) == 2) {
            const char *text = strstr(line, " fault ");
            snprintf(wanted, sizeof wanted, "%s", text ? text + 7 : "");
            start(program, kind, strict);
            programs++;
        } else if (strcmp(line, "fence") == 0) {
            gemmini_fence(&device);
        } else if (strcmp(line, "end") == 0) {
            const bool faults = device.fault && strncmp(device.fault, wanted, strlen(wanted)) == 0;
            bad = wanted[0] ? !faults : device.fault != NULL;
            if (bad)
                fprintf(stderr, "%s:%u: fault '%s' instead of '%s'\n", path, number,
                        device.fault ? device.fault : "none", wanted[0] ? wanted : "none");
        } else if (n >= 3) {
            instructions++;
            const bool ran = gemmini_run(&device, funct, rs1, rs2);
            const bool changes = funct != 0 && funct != 6 && funct != 7;
            const uint64_t is = ran && (n == 4 || (update && changes)) ? digest() : 0;
            bad = ran && !update && n == 4 && is != want;
            digests += n == 4;
            if (bad)
                fprintf(stderr, "%s:%u: digest %016" PRIx64 " instead of %016" PRIx64 "\n", path, number, is, want);
            if (update && ran && changes)
                snprintf(line, sizeof line, "%u %" PRIx64 " %" PRIx64 " %016" PRIx64, funct, rs1, rs2, is);
        } else if (line[0] && line[0] != '#') {
            bad = true;
            fprintf(stderr, "%s:%u: cannot read '%s'\n", path, number, line);
        }
        wrong += bad;
        if (update)
            puts(line);
        if (wrong > 9)
            break;
    }
    fclose(f);
    fprintf(stderr, "%u programs, %u instructions, %u digests: %u wrong\n", programs, instructions, digests, wrong);
    return wrong > 0;
}
