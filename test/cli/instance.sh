#!/usr/bin/env bash
# Instances of a package in a program: docs/reference/tvmrt.md's example with the include folder alone, an engine of
# another size than the runtime's, an initialisation that fails once, constants that change or are misaligned.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
cd "$work" || exit 3
six_operators > six.txt
expect 0 '' compile six.txt -O0 --workers 2 -o p
check "make lib" make -s -C p lib CC="$cc"

# --- the example as it stands in the document
awk '/^```/ { code = 0 } code; /^```c/ { getline first; code = first ~ /_instance.h/; if (code) print first }' \
    "$top/docs/reference/tvmrt.md" > example.h
cat > example.c << 'C'
#include <stdio.h>

#include "example.h"

int main(void)
{
    float x[2] = {10, 20}, y[2] = {0, 0};
    struct tvmgen_default_inputs in[2] = {{&x[0]}, {&x[1]}};
    struct tvmgen_default_outputs out[2] = {{&y[0]}, {&y[1]}};
    int status = (int)run_both(in, out), again = (int)run_both(in, out);

    printf("status %d %d, %g %g, shutdown %d\n", status, again, (double)y[0], (double)y[1],
           (int)tvmrt_engine_shutdown(&engine));
    return 0;
}
C
# says TEXT FLAGS...: the example, compiled with FLAGS and linked with the package of two workers, prints TEXT.
says() {
    "$cc" -std=c99 -Wall -Wextra -Werror -pedantic "${@:2}" -Ip/include example.c p/libtvmgen_default.a -lm -lpthread -o example &&
        ./example > said && cat said && grep -qxF "$1" said
}
check "the example" says "status 0 0, 23 43, shutdown 0" -DTVMRT_NUM_WORKERS=2
for workers in 0 1 4 8; do
    check "an engine of $workers workers" says "status -3 -3, 0 0, shutdown -3" -DTVMRT_NUM_WORKERS=$workers
done
check "an engine of the default size" says "status -3 -3, 0 0, shutdown -3"
check "an engine with larger mutexes" says "status -3 -3, 0 0, shutdown -3" -DTVMRT_NUM_WORKERS=2 -DTVMRT_MUTEX_BYTES=256
"$cc" -std=c99 -DTVMRT_NUM_WORKERS=2 -DTVMRT_COND_BYTES=256 -Ip/include -c p/src/tvmrt_port_posix.c -o port.o
check "a port with larger conditions" sh -c "'$cc' -std=c99 -DTVMRT_NUM_WORKERS=2 -Ip/include example.c port.o p/build/default_lib*.o \
    p/build/model_data.o p/build/ops.o p/build/tvmrt.o -lm -lpthread -o example && ./example | grep -q 'status -3 -3'"

# --- constants handed over, and a mutex that the system refuses once
cat > again.c << 'C'
#include <stdio.h>

#include "default_names.h"

extern int refusals;
int refusals = 1;
int system_mutex_init(tvmrt_mutex_t *mutex);
int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    return refusals-- > 0 ? TVMRT_E_PORT : system_mutex_init(mutex);
}

int main(void)
{
    static struct { TVMRT_ALIGNED(64) float numbers[TVMGEN_DEFAULT_CONST_SIZE / sizeof(float)]; float more; } other;
    TVMRT_ALIGNED(64) static uint8_t ws[TVMGEN_DEFAULT_WORKSPACE_SIZE];
    float x = 10, y = 0;
    struct tvmgen_default_inputs in = {&x};
    struct tvmgen_default_outputs out = {&y};
    int first = (int)tvmgen_default_run(&in, &out), second = (int)tvmgen_default_run(&in, &out), zero, odd;

    printf("%d, then %d: %g\n", first, second, (double)y);
    zero = (int)tvmgen_default___tvm_main__(&in, &out, other.numbers, ws); /* all constants 0: x + x */
    printf("others %d: %g\n", zero, (double)y);
    y = 0;
    odd = (int)tvmgen_default___tvm_main__(&in, &out, &other.numbers[1], ws);
    printf("odd %d: %g\n", odd, (double)y);
    zero = (int)tvmgen_default_run(&in, &out);
    printf("again %d: %g\n", zero, (double)y);
    return 0;
}
C
"$cc" -std=c99 -DTVMRT_NUM_WORKERS=2 -Dtvmrt_mutex_init=system_mutex_init -Ip/include -c p/src/tvmrt_port_posix.c -o port.o
check "it links" "$cc" -std=c99 -DTVMRT_NUM_WORKERS=2 -Ip/include -Ip/src again.c port.o p/build/default_lib*.o p/build/model_data.o \
    p/build/ops.o p/build/tvmrt.o -lm -lpthread -o again
./again > said
check "a failed start, then a good one" grep -qx -- '-7, then 0: 23' said
check "other constants are read" grep -qx 'others 0: 20' said
check "constants that are not aligned are refused" grep -qx 'odd -5: 0' said
check "the package's own constants again" grep -qx 'again 0: 23' said
finish
