#include "hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "sha256.h"

_Atomic uint64_t mt_hash_keys[2];

/* The kernel provides 16 random bytes to every process that it starts. Reading them needs no system
 * call, which a sandbox may forbid to a traced process, and cannot fail or block. libc derives its
 * stack guard from the same bytes, so SHA-256 keeps hashes from revealing the guard. If the bytes
 * are missing, the load address of the program is the seed. */
static void read_seed(unsigned char seed[16])
{
    const void *random_bytes = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    uintptr_t place = (uintptr_t)&mt_hash_keys;

    memset(seed, 0, 16);
    if (random_bytes)
        memcpy(seed, random_bytes, 16);
    else
        memcpy(seed, &place, sizeof place);
}

/* Development builds can take the seed from MEMTRACE_DEBUG_HASH_KEY, to test that no result depends
 * on the key. */
static void read_debug_seed(unsigned char seed[16])
{
#ifdef MEMTRACE_ASSERT
    const char *text = getenv("MEMTRACE_DEBUG_HASH_KEY");
    uint64_t number = text ? strtoull(text, NULL, 10) : 0;

    if (text) {
        memset(seed, 0, 16);
        memcpy(seed, &number, sizeof number);
    }
#else
    (void)seed;
#endif
}

/* Returns the number that 16 hexadecimal digits spell. */
static uint64_t number_of(const char *digits)
{
    char text[17] = "";

    memcpy(text, digits, 16);
    return strtoull(text, NULL, 16);
}

uint64_t mt_hash_make_key(void)
{
    unsigned char seed[16];
    char digest[MT_SHA256_TEXT];
    struct mt_sha256 sha;

    read_seed(seed);
    read_debug_seed(seed);
    mt_sha256_init(&sha);
    mt_sha256_add(&sha, seed, sizeof seed);
    mt_sha256_finish(&sha, digest);
    uint64_t secret =
        number_of(digest + 16) | 1; /* an odd factor loses no information and is not 0 */
    atomic_store_explicit(&mt_hash_keys[0], number_of(digest), memory_order_relaxed);
    atomic_store_explicit(&mt_hash_keys[1], secret, memory_order_release);
    return secret;
}

uint64_t mt_hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t hash = mt_hash_u64(length), word = 0; /* also creates the key */
    uint64_t secret = atomic_load_explicit(&mt_hash_keys[1], memory_order_acquire);

    for (; length >= 8; length -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = mt_hash_fold(hash ^ word, secret);
    }
    word = 0;
    if (length)
        memcpy(&word, at, length);
    return mt_hash_u64(hash ^ word);
}
