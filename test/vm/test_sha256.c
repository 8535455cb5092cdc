/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 against the examples that NIST gives with FIPS 180-4, in one piece and in pieces of every length. */
#include "jit_test.h"

#include "abi/sha256.h"

static void expect_hash(const sha256 *s, const char *want)
{
    sha256 copy = *s;
    uint8_t hash[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    sha256_end(&copy, hash);
    for (int i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(text, want);
}

static const struct example {
    const char *text, *hash;
} examples[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static void test_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        size_t n = strlen(examples[i].text);
        for (size_t piece = 1; piece <= n + 1; piece++) {
            sha256 s;
            sha256_init(&s);
            for (size_t at = 0; at < n; at += piece)
                sha256_add(&s, examples[i].text + at, n - at < piece ? n - at : piece);
            expect_hash(&s, examples[i].hash);
        }
    }
}

static void test_million(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 63, 64, 65, 1000000};
    char *text = malloc(1000000);
    assert_non_null(text);
    memset(text, 'a', 1000000);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        sha256 s;
        sha256_init(&s);
        for (size_t at = 0; at < 1000000; at += pieces[i])
            sha256_add(&s, text, 1000000 - at < pieces[i] ? 1000000 - at : pieces[i]);
        expect_hash(&s, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_million)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
