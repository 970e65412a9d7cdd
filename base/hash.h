/* Hashes for tables in memory. They are keyed with a key that differs between processes, so the
 * author of a file cannot choose values that collide. No result may depend on a hash value or on
 * the order of a table. */
#ifndef MT_BASE_HASH_H
#define MT_BASE_HASH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* PRIVATE: the key; [1] is 0 until it exists. */
extern _Atomic uint64_t mt_hash_keys[2];

/* PRIVATE: creates the key and returns its second word. Every call in a process creates the same
 * key, so threads may race here. */
uint64_t mt_hash_make_key(void);

/* PRIVATE: multiplies and folds the 128-bit product: the mixer of wyhash (Wang Yi, public domain)
 * and of the fallback of aHash (Tom Kaitchuck), both designed to resist chosen input. */
static inline uint64_t mt_hash_fold(uint64_t value, uint64_t secret)
{
    unsigned __int128 product = (unsigned __int128)value * secret;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Uses two rounds. With only one, 3% of the process keys would make values cluster that are
 * multiples of a power of two, as addresses are. */
static inline uint64_t mt_hash_u64(uint64_t value)
{
    uint64_t secret = atomic_load_explicit(&mt_hash_keys[1], memory_order_acquire), other;

    if (__builtin_expect(!secret, 0))
        secret = mt_hash_make_key();
    other = atomic_load_explicit(&mt_hash_keys[0], memory_order_relaxed);
    return mt_hash_fold(mt_hash_fold(value ^ other, secret) ^ other, secret);
}

/* Returns the hash of `length` bytes. O(length). */
uint64_t mt_hash_bytes(const void *bytes, size_t length);

#endif
