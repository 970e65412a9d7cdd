/* A zstd-compressed text of the fixtures, for tests that read one. */
#ifndef MT_TESTS_PACKED_TEXT_H
#define MT_TESTS_PACKED_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

/* The text of MEMTRACE_FIXTURES/`file`, of less than `most` bytes, packed and not,
 * with a 0 behind it; the caller frees it. Fails the test that calls. */
static inline char *read_packed_text(const char *file, size_t most)
{
    char path[512], *packed = malloc(most), *text = malloc(most);

    snprintf(path, sizeof path, "%s/%s", MEMTRACE_FIXTURES, file);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    assert_non_null(packed);
    assert_non_null(text);
    size_t size = ZSTD_decompress(text, most - 1, packed, fread(packed, 1, most, in));
    assert_false(ZSTD_isError(size));
    text[size] = 0;
    fclose(in);
    free(packed);
    return text;
}

#endif
