/* SHA-256 (FIPS 180-4). With the SHA instructions of x86 where the processor
 * has them (>= 1 GB/s), else portable C. */
#ifndef MT_BASE_SHA256_H
#define MT_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_SHA256_TEXT 65 /* 64 hexadecimal digits and the NUL */

struct mt_sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    unsigned char block[64];
    bool portable; /* do not use special instructions */
};

void mt_sha256_init(struct mt_sha256 *sha);
void mt_sha256_add(struct mt_sha256 *sha, const void *bytes, size_t length);
/* Lower-case digits of the hash of everything added; `sha` is used up. */
void mt_sha256_finish(struct mt_sha256 *sha, char text[MT_SHA256_TEXT]);

#endif
