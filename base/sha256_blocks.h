/* The two ways to hash whole blocks; for sha256.c alone. */
#ifndef MT_BASE_SHA256_BLOCKS_H
#define MT_BASE_SHA256_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint32_t mt_sha256_constants[64];

bool mt_sha256_x86_available(void);
/* Only if available. */
void mt_sha256_x86_blocks(uint32_t state[8], const unsigned char *bytes, size_t blocks);

#endif
