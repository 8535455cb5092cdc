/* twice.c: runs the package of net.txt on two inputs, one after the other: twice IN IN > OUT OUT. The second run finds
 * constants and streams of the first in the device's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tvmgen_default.h"

int main(int argc, char **argv)
{
    static int8_t x[256], z[256];
    struct tvmgen_default_inputs in = {x};
    struct tvmgen_default_outputs out = {z};
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f || fread(x, 1, sizeof x, f) != sizeof x || tvmgen_default_run(&in, &out) != 0)
            return 1;
        fclose(f);
        fwrite(z, 1, sizeof z, stdout);
    }
    return 0;
}
