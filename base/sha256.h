/* SHA-256 (FIPS 180-4): with the SHA instructions of x86 if the processor has them (>= 1 GB/s),
 * otherwise portable C. */
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
/* Writes the hash of everything added, in lower-case digits. `sha` cannot be used afterwards. */
void mt_sha256_finish(struct mt_sha256 *sha, char text[MT_SHA256_TEXT]);

#endif
