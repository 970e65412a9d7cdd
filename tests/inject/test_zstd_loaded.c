/* zstd that is loaded by the injected library itself: all functions that trace/ calls, and what
 * they return where there is no zstd. */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "zstd_library.h"

/* Runs first: nothing is loaded before mt_zstd_load. */
TEST(functions_fail_before_it_is_loaded)
{
    size_t code = ZSTD_compress(NULL, 0, NULL, 0, 1);

    assert_null(ZSTD_createCCtx());
    assert_null(ZSTD_createDCtx());
    assert_true(ZSTD_isError(code));
    assert_true(ZSTD_isError(ZSTD_CCtx_setParameter(NULL, ZSTD_c_compressionLevel, 1)));
    assert_true(ZSTD_isError(ZSTD_compress2(NULL, NULL, 0, NULL, 0)));
    assert_true(ZSTD_isError(ZSTD_decompressDCtx(NULL, NULL, 0, NULL, 0)));
    assert_true(ZSTD_isError(ZSTD_findFrameCompressedSize("", 0)));
    assert_true(ZSTD_getFrameContentSize("", 0) == ZSTD_CONTENTSIZE_ERROR);
    assert_int_equal(ZSTD_getErrorCode(code), ZSTD_error_GENERIC);
    assert_non_null(strstr(ZSTD_getErrorName(code), "is not loaded"));
    assert_false(ZSTD_isError(17));
    assert_int_equal(ZSTD_freeCCtx(NULL), 0);
    assert_int_equal(ZSTD_freeDCtx(NULL), 0);
}

#ifdef TEST_MISSING
TEST(a_missing_library_is_an_error)
{
    assert_false(mt_zstd_load());
    assert_false(mt_zstd_load());
    assert_null(ZSTD_createCCtx());
}
#else
/* As the writer and the reader of traces use it. */
TEST(what_is_compressed_comes_back)
{
    uint8_t raw[4096], small[8192], again[sizeof raw];
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;

    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (uint8_t)(i * i >> 5);
    assert_true(mt_zstd_load());
    compressor = ZSTD_createCCtx();
    decompressor = ZSTD_createDCtx();
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1)));
    assert_true(ZSTD_compressBound(sizeof raw) <= sizeof small);
    size_t length = ZSTD_compress2(compressor, small, sizeof small, raw, sizeof raw);
    assert_false(ZSTD_isError(length));
    assert_int_equal(ZSTD_findFrameCompressedSize(small, length), length);
    assert_true(ZSTD_getFrameContentSize(small, length) == sizeof raw);
    assert_int_equal(ZSTD_decompressDCtx(decompressor, again, sizeof again, small, length),
                     sizeof raw);
    assert_memory_equal(raw, again, sizeof raw);
    small[length - 1] ^= 1;
    length = ZSTD_decompressDCtx(decompressor, again, sizeof again, small, length);
    assert_int_equal(ZSTD_getErrorCode(length), ZSTD_error_checksum_wrong);
    assert_non_null(strstr(ZSTD_getErrorName(length), "checksum"));
    (void)ZSTD_freeCCtx(compressor);
    (void)ZSTD_freeDCtx(decompressor);
}

/* The program must not see names of this zstd. */
TEST(names_stay_hidden)
{
    assert_true(mt_zstd_load());
    assert_null(dlsym(RTLD_DEFAULT, "ZSTD_versionNumber"));
}
#endif

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
