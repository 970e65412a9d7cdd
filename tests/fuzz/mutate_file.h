/* Mutators that know the format of a file. */
#ifndef MT_TESTS_MUTATE_FILE_H
#define MT_TESTS_MUTATE_FILE_H

#include "mutate.h"

/* As LLVMFuzzerCustomMutator: changes the file in place, returns its new size. */
size_t mutate_trace(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t mutate_pickle(uint8_t *data, size_t size, size_t max_size, unsigned seed);

struct mutate_crossing {
    const uint8_t *one, *other;
    size_t one_size, other_size;
};

/* As LLVMFuzzerCustomCrossOver: what comes of two files goes to `out`; 0 = nothing. */
size_t mutate_cross_pickles(const struct mutate_crossing *crossing, uint8_t *out, size_t room,
                            unsigned seed);

#endif
