/* The fuzz targets without libFuzzer, for ctest: every seed as it is, cut at many places, and with
 * many single bytes changed; every input of a packed corpus (corpus.py) as it is. Deterministic.
 *
 *     fuzz_tests TARGET TRIES SEED|NAME.corpus...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int fuzz_target(const uint8_t *data, size_t size);
#define TARGET(name) fuzz_target fuzz_##name;
#include FUZZ_TARGETS
#undef TARGET

enum { MAX_FILE_BYTES = 1 << 20 };

static fuzz_target *target;

static fuzz_target *find_target(const char *name)
{
    static const struct {
        const char *name;
        fuzz_target *run;
    } targets[] = {
#define TARGET(name) {#name, fuzz_##name},
#include FUZZ_TARGETS
    };

    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return targets[i].run;
    return NULL;
}

/* A copy of exactly the size, so that AddressSanitizer sees its end. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    target(copy, size);
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

/* Inputs one after another, each behind its length in four bytes, little-endian. */
static size_t run_packed(const uint8_t *bytes, size_t size)
{
    size_t count = 0, at = 0;

    for (; size - at >= 4; count++) {
        size_t length = bytes[at] | (size_t)bytes[at + 1] << 8 | (size_t)bytes[at + 2] << 16 |
                        (size_t)bytes[at + 3] << 24;
        at += 4;
        if (length > size - at)
            break;
        run(bytes + at, length);
        at += length;
    }
    return at == size ? count : 0;
}

static int run_file(const char *path, size_t tries)
{
    static uint8_t bytes[MAX_FILE_BYTES];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0, count = 1;
    const char *ending = strrchr(path, '.');

    if (file)
        fclose(file);
    if (ending && !strcmp(ending, ".corpus"))
        count = run_packed(bytes, size);
    else if (size)
        run_variants(bytes, size, tries);
    if (!size || !count) {
        fprintf(stderr, "cannot read '%s'\n", path);
        return 1;
    }
    printf("%s: %zu bytes, %zu inputs\n", path, size, count);
    return 0;
}

int main(int argc, char **argv)
{
    size_t tries = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

    target = argc > 3 ? find_target(argv[1]) : NULL;
    if (!tries || !target) {
        fprintf(stderr, "usage: %s TARGET TRIES SEED|NAME.corpus...\n", argv[0]);
        return 2;
    }
    for (int i = 3; i < argc; i++)
        if (run_file(argv[i], tries))
            return 1;
    return 0;
}
