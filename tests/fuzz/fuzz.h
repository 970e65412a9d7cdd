/* What the fuzz targets share: taking values from an input, and checks that
 * stop the target. A target must not keep state from one input to the next. */
#ifndef MT_TESTS_FUZZ_H
#define MT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops the target if a property does not hold. Unlike assert, it is active in every build. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The part of the input that is not consumed yet. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* A little-endian number of 1..8 bytes. Bytes behind the end of the input are 0. */
static inline uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes && input->left; i++, input->left--)
        value |= (uint64_t)*input->at++ << (8 * i);
    return value;
}

/* The next `length` bytes, or what is left of the input, as a copy of exactly
 * that size, so that AddressSanitizer sees its end. Free it. */
static inline uint8_t *fuzz_copy(struct fuzz_input *input, size_t length, size_t *got)
{
    *got = length < input->left ? length : input->left;
    uint8_t *copy = calloc(*got ? *got : 1, 1);
    FUZZ_CHECK(copy);
    if (*got)
        memcpy(copy, input->at, *got);
    input->at += *got;
    input->left -= *got;
    return copy;
}

/* A copy of the bytes, terminated with a NUL. Free it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
