#!/bin/sh
# Several signatures of a model as functions of one package: weights that they share lie there once, each gives what it
# gives alone, one program calls both, and what a package of several has no answer for is refused.
# SPDX-License-Identifier: Apache-2.0
set -u
model=$LATHE_SOURCE/test/golden/tflite/two_signatures.tflite
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "signatures: $*"; exit 1; }

head -c 48 "$model" > sound.bin
for form in c incbin; do
    "$LATHE" compile "$model" --signature encode --signature classify --constants $form -o "$form" > said || fail "$form"
    grep -q '^function   classify: ' said || fail "no line for a function: $(cat said)"
    # 16 x 12 and 3 x 16 floats
    grep -q '^#define TVMGEN_DEFAULT_CONST_SIZE 960u' $form/include/tvmgen_default.h || fail "constants are there twice"
    make -s -C "$form" all lib CFLAGS="-O1 -Wall -Wextra -Wshadow -Werror" || fail "make $form"
    for name in encode classify; do
        "$LATHE" compile "$model" -q --signature $name -o $name || fail "$name alone"
        make -s -C $name CFLAGS=-O1 || fail "make $name"
        $name/runner -o alone sound=sound.bin > /dev/null || fail "$name alone"
        "$form/runner_$name" -o got sound=sound.bin > /dev/null || fail "runner_$name"
        cmp "alone/${name}d.bin" "got/${name}d.bin" || fail "$name of $form is not what it is alone"
    done
done

cat > main.c <<'END'
#include "tvmgen_default.h"
#include <stdio.h>
#include <string.h>

/* Turns of both functions in one workspace. */
int main(void)
{
    static const float sound[12] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
    float code[16], again[16], score[3];
    struct tvmgen_default_encode_inputs e_in = {.sound = sound};
    struct tvmgen_default_encode_outputs e_out = {.encoded = code};
    struct tvmgen_default_classify_inputs c_in = {.sound = sound};
    struct tvmgen_default_classify_outputs c_out = {.classifyd = score};
    int32_t status = tvmgen_default_encode_run(&e_in, &e_out) | tvmgen_default_classify_run(&c_in, &c_out);
    e_out.encoded = again;
    status |= tvmgen_default_encode_run(&e_in, &e_out);
    printf("%d %d\n", (int)status, memcmp(code, again, sizeof code));
    return 0;
}
END
${CC:-cc} -O1 -Ic/include main.c c/libtvmgen_default.a -lm -lpthread -o main || fail "the library"
[ "$(./main)" = "0 0" ] || fail "both in one program: $(./main)"

"$LATHE" run c > said 2>&1 && fail "run took a package of several"
grep -q 'the package has several functions' said || fail "$(cat said)"
for more in "--emit module" "--constants bin" "--names short"; do
    # shellcheck disable=SC2086 # two words
    "$LATHE" compile "$model" --signature encode --signature classify $more -o no > said 2>&1 && fail "$more"
    grep -q 'takes one signature' said || fail "$more: $(cat said)"
done
"$LATHE" verify "$model" --signature encode --signature classify --against interpreter > said 2>&1 &&
    fail "verify took two"
grep -q 'only lathe compile makes a package of several' said || fail "$(cat said)"
"$LATHE" verify "$model" --signature classify --against interpreter > said 2>&1 || fail "verify: $(cat said)"
exit 0
