/* SHA-256 with the SHA extensions of x86: four rounds an instruction pair. The
 * state lives in two registers in the order that the instructions want, ABEF
 * and CDGH; message words in four, used in turn. */
#include "sha256_blocks.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

bool mt_sha256_x86_available(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}

__attribute__((target("sha,sse4.1,ssse3"))) void mt_sha256_x86_blocks(uint32_t state[8],
                                                                      const unsigned char *bytes,
                                                                      size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    const __m128i *constants = (const __m128i *)mt_sha256_constants;
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
            __m128i sum = _mm_add_epi32(now, _mm_loadu_si128(constants + i));

            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
            if (i < 12) { /* the words of four rounds, sixteen rounds on */
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

bool mt_sha256_x86_available(void)
{
    return false;
}

void mt_sha256_x86_blocks(uint32_t state[8], const unsigned char *bytes, size_t blocks)
{
    (void)state;
    (void)bytes;
    (void)blocks;
}

#endif
