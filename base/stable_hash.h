/* FNV-1a with 64 bits: the same hash in every process and on every machine, for results and files.
 * Tables in memory use hash.h, which resists chosen keys. */
#ifndef MT_BASE_STABLE_HASH_H
#define MT_BASE_STABLE_HASH_H

#include <stdint.h>

#define MT_STABLE_HASH_START UINT64_C(0xcbf29ce484222325)

/* Extends `hash` by the 8 bytes of `value`, lowest first. */
static inline uint64_t mt_stable_hash_u64(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (value >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

/* Extends `hash` by the bytes of a text. */
static inline uint64_t mt_stable_hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
