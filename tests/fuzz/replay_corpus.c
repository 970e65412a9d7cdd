/* A fuzz target without libFuzzer, for ctest: every seed as it is, cut at
 * many places, and with many single bytes changed. Deterministic.
 *
 *     replay_<target> TRIES SEED...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SEED_BYTES = 1 << 20 };

/* A copy of exactly the size, so that AddressSanitizer sees its end. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_variants(uint8_t *bytes, size_t size, size_t tries)
{
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    size_t step = size / tries + 1, at, i;

    run(bytes, size);
    for (at = 0; at < size; at += step) {
        run(bytes, at);
        for (i = 0; i < sizeof flips; i++) {
            bytes[at] ^= flips[i];
            run(bytes, size);
            bytes[at] ^= flips[i];
        }
    }
}

int main(int argc, char **argv)
{
    static uint8_t bytes[MAX_SEED_BYTES];
    size_t tries = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    int i;

    if (!tries || argc < 3) {
        fprintf(stderr, "usage: %s TRIES SEED...\n", argv[0]);
        return 2;
    }
    for (i = 2; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (!size) {
            fprintf(stderr, "cannot read '%s'\n", argv[i]);
            return 1;
        }
        fclose(file);
        run_variants(bytes, size, tries);
        printf("%s: %zu bytes\n", argv[i], size);
    }
    return 0;
}
