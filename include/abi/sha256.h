/* sha256.h: SHA-256 as FIPS 180-4 writes it (4.1.2 for the functions, 5.1 for the padding, 6.2 for the rounds): names
 * of cached objects and their check before they are loaded; what a package was made of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_SHA256_H
#define ABI_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHA256_BYTES 32
#define SHA256_TEXT  65 /* hexadecimal digits and the zero behind them */

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* taken so far */
    uint8_t block[64];
} sha256;

static const uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t sha256_turn(uint32_t x, unsigned by)
{
    return (x >> by) | (x << (32 - by));
}

static inline uint32_t sha256_load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void sha256_schedule(uint32_t w[64], const uint8_t *block)
{
    for (int t = 0; t < 16; t++)
        w[t] = sha256_load(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        uint32_t low = sha256_turn(a, 7) ^ sha256_turn(a, 18) ^ (a >> 3);
        uint32_t high = sha256_turn(b, 17) ^ sha256_turn(b, 19) ^ (b >> 10);
        w[t] = high + w[t - 7] + low + w[t - 16];
    }
}

/* A round; who is called a to h turns by one from round to round, so that nothing has to move. */
static inline void sha256_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
                                uint32_t *h, uint32_t word)
{
    uint32_t upper = sha256_turn(e, 6) ^ sha256_turn(e, 11) ^ sha256_turn(e, 25);
    uint32_t lower = sha256_turn(a, 2) ^ sha256_turn(a, 13) ^ sha256_turn(a, 22);
    uint32_t one = *h + word + upper + (g ^ (e & (f ^ g)));
    *d += one;
    *h = one + lower + ((a & b) | (c & (a | b)));
}

static inline void sha256_take_block(sha256 *s, const uint8_t *block)
{
    uint32_t w[64], *v = s->state;
    uint32_t a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
    sha256_schedule(w, block);
    for (int t = 0; t < 64; t += 8) {
        const uint32_t *k = sha256_constants + t, *x = w + t;
        sha256_round(a, b, c, &d, e, f, g, &h, k[0] + x[0]);
        sha256_round(h, a, b, &c, d, e, f, &g, k[1] + x[1]);
        sha256_round(g, h, a, &b, c, d, e, &f, k[2] + x[2]);
        sha256_round(f, g, h, &a, b, c, d, &e, k[3] + x[3]);
        sha256_round(e, f, g, &h, a, b, c, &d, k[4] + x[4]);
        sha256_round(d, e, f, &g, h, a, b, &c, k[5] + x[5]);
        sha256_round(c, d, e, &f, g, h, a, &b, k[6] + x[6]);
        sha256_round(b, c, d, &e, f, g, h, &a, k[7] + x[7]);
    }
    v[0] += a, v[1] += b, v[2] += c, v[3] += d, v[4] += e, v[5] += f, v[6] += g, v[7] += h;
}

static inline void sha256_init(sha256 *s)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->state, first, sizeof first);
}

static inline void sha256_add(sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = (const uint8_t *)data;
    while (n > 0) {
        size_t at = s->bytes % 64, part = n < 64 - at ? n : 64 - at;
        if (part == 64)
            sha256_take_block(s, p);
        else
            memcpy(s->block + at, p, part);
        if (part < 64 && at + part == 64)
            sha256_take_block(s, s->block);
        s->bytes += part;
        p += part;
        n -= part;
    }
}

static inline void sha256_end(sha256 *s, uint8_t out[SHA256_BYTES])
{
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = s->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, pad, 1 + (119 - s->bytes % 64) % 64);
    sha256_add(s, length, sizeof length);
    for (int i = 0; i < SHA256_BYTES; i++)
        out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

static inline void sha256_end_text(sha256 *s, char out[SHA256_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t hash[SHA256_BYTES];
    sha256_end(s, hash);
    for (int i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[2 * SHA256_BYTES] = '\0';
}
#endif
