#include "sha256.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define BLOCK_BYTES 64

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static uint32_t read_word(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Variables have the names of the standard. */
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
        uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
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

#if defined(__x86_64__) && defined(__GNUC__)

static bool x86_available(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}

/* Four rounds per pair of instructions. Two registers have the state in the order that the
 * instructions require, ABEF and CDGH; four others have the message words, in rotation. */
__attribute__((target("sha,sse4.1,ssse3"))) static void x86_blocks(uint32_t state[8],
                                                                   const unsigned char *bytes,
                                                                   size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    const __m128i *round_constants = (const __m128i *)constants;
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xB1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(dcba, efgh, 8), cdgh = _mm_blend_epi16(efgh, dcba, 0xF0);

    for (; blocks; blocks--, bytes += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh, words[4];

        for (int i = 0; i < 4; i++)
            words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * i)), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i now = words[i & 3];
            __m128i sum = _mm_add_epi32(now, _mm_loadu_si128(round_constants + i));

            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
            if (i < 12) { /* the words for the rounds 16 later */
                __m128i last = words[(i + 3) & 3], before_last = words[(i + 2) & 3];
                __m128i next = _mm_sha256msg1_epu32(now, words[(i + 1) & 3]);

                next = _mm_add_epi32(next, _mm_alignr_epi8(last, before_last, 4));
                words[i & 3] = _mm_sha256msg2_epu32(next, last);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    dcba = _mm_shuffle_epi32(abef, 0x1B);
    efgh = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(dcba, efgh, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(efgh, dcba, 8));
}

#else

static bool x86_available(void)
{
    return false;
}

static void x86_blocks(uint32_t state[8], const unsigned char *bytes, size_t blocks)
{
    (void)state;
    (void)bytes;
    (void)blocks;
}

#endif

static void add_blocks(struct mt_sha256 *sha, const unsigned char *bytes, size_t blocks)
{
    if (!sha->portable) {
        x86_blocks(sha->state, bytes, blocks);
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
    sha->portable = !x86_available();
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
