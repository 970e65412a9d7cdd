#include "sha256.h"

#include "sha256_blocks.h"

#include <string.h>

#define BLOCK_BYTES 64

static uint32_t turn(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static uint32_t read_word(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Names of the variables are those of the standard. */
static void portable_block(uint32_t state[8], const unsigned char *bytes)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7], w[64];

    for (int t = 0; t < 16; t++)
        w[t] = read_word(bytes + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = turn(w[t - 15], 7) ^ turn(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = turn(w[t - 2], 17) ^ turn(w[t - 2], 19) ^ w[t - 2] >> 10;

        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    for (int t = 0; t < 64; t++) {
        uint32_t sum1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
        uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + mt_sha256_constants[t] + w[t];
        uint32_t sum0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);

        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + sum0 + ((b & c) ^ (b & d) ^ (c & d));
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

static void add_blocks(struct mt_sha256 *sha, const unsigned char *bytes, size_t blocks)
{
    if (!sha->portable) {
        mt_sha256_x86_blocks(sha->state, bytes, blocks);
        return;
    }
    for (; blocks; blocks--, bytes += BLOCK_BYTES)
        portable_block(sha->state, bytes);
}

void mt_sha256_init(struct mt_sha256 *sha)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memset(sha, 0, sizeof *sha);
    memcpy(sha->state, start, sizeof start);
    sha->portable = !mt_sha256_x86_available();
}

void mt_sha256_add(struct mt_sha256 *sha, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    size_t used = (size_t)(sha->length_bytes % BLOCK_BYTES);

    sha->length_bytes += length;
    if (used) {
        size_t part = BLOCK_BYTES - used < length ? BLOCK_BYTES - used : length;

        memcpy(sha->block + used, bytes, part);
        bytes += part;
        length -= part;
        if (used + part < BLOCK_BYTES)
            return;
        add_blocks(sha, sha->block, 1);
    }
    add_blocks(sha, bytes, length / BLOCK_BYTES);
    if (length % BLOCK_BYTES)
        memcpy(sha->block, bytes + length / BLOCK_BYTES * BLOCK_BYTES, length % BLOCK_BYTES);
}

void mt_sha256_finish(struct mt_sha256 *sha, char text[MT_SHA256_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = sha->length_bytes * 8;
    size_t used = (size_t)(sha->length_bytes % BLOCK_BYTES);

    sha->block[used++] = 0x80;
    if (used > BLOCK_BYTES - 8) {
        memset(sha->block + used, 0, BLOCK_BYTES - used);
        add_blocks(sha, sha->block, 1);
        used = 0;
    }
    memset(sha->block + used, 0, BLOCK_BYTES - 8 - used);
    for (int i = 0; i < 8; i++)
        sha->block[BLOCK_BYTES - 1 - i] = (unsigned char)(bits >> 8 * i);
    add_blocks(sha, sha->block, 1);
    for (int i = 0; i < 64; i++)
        text[i] = digits[sha->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    text[64] = '\0';
}
