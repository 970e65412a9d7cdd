/* See zstd_library.h. If this library were linked to libzstd.so.1, the loader would put zstd's
 * names before those of the program's own libraries, which may use another version of zstd. So it
 * is loaded here: RTLD_LOCAL hides its names from the program, and RTLD_DEEPBIND hides the
 * program's names from it. Both copies of zstd use separate memory.
 *
 * The functions below have the names that trace/ calls. They are hidden, like everything in this
 * library. */
#include "zstd_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include <zstd.h>
#include <zstd_errors.h>

/* An error code for which ZSTD_isError is true; its name is that of a generic error. */
#define NOT_LOADED ((size_t)-ZSTD_error_GENERIC)

static struct {
    pthread_once_t once;
    bool is_loaded;
    ZSTD_CCtx *(*create_cctx)(void);
    size_t (*free_cctx)(ZSTD_CCtx *);
    size_t (*set_parameter)(ZSTD_CCtx *, ZSTD_cParameter, int);
    size_t (*compress2)(ZSTD_CCtx *, void *, size_t, const void *, size_t);
    size_t (*compress)(void *, size_t, const void *, size_t, int);
    size_t (*compress_bound)(size_t);
    ZSTD_DCtx *(*create_dctx)(void);
    size_t (*free_dctx)(ZSTD_DCtx *);
    size_t (*decompress_dctx)(ZSTD_DCtx *, void *, size_t, const void *, size_t);
    size_t (*frame_compressed_size)(const void *, size_t);
    unsigned long long (*frame_content_size)(const void *, size_t);
    unsigned (*is_error)(size_t);
    ZSTD_ErrorCode (*error_code)(size_t);
    const char *(*error_name)(size_t);
} zstd = {.once = PTHREAD_ONCE_INIT};

static void *open_library(void)
{
    int flags = RTLD_NOW | RTLD_LOCAL;

    /* AddressSanitizer stops a process that uses RTLD_DEEPBIND. */
    if (!dlsym(RTLD_DEFAULT, "__asan_init"))
        flags |= RTLD_DEEPBIND;
    return dlopen(MEMTRACE_ZSTD_LIBRARY, flags);
}

static void load(void)
{
    const struct {
        void *target;
        const char *name;
    } functions[] = {
        {&zstd.create_cctx, "ZSTD_createCCtx"},
        {&zstd.free_cctx, "ZSTD_freeCCtx"},
        {&zstd.set_parameter, "ZSTD_CCtx_setParameter"},
        {&zstd.compress2, "ZSTD_compress2"},
        {&zstd.compress, "ZSTD_compress"},
        {&zstd.compress_bound, "ZSTD_compressBound"},
        {&zstd.create_dctx, "ZSTD_createDCtx"},
        {&zstd.free_dctx, "ZSTD_freeDCtx"},
        {&zstd.decompress_dctx, "ZSTD_decompressDCtx"},
        {&zstd.frame_compressed_size, "ZSTD_findFrameCompressedSize"},
        {&zstd.frame_content_size, "ZSTD_getFrameContentSize"},
        {&zstd.is_error, "ZSTD_isError"},
        {&zstd.error_code, "ZSTD_getErrorCode"},
        {&zstd.error_name, "ZSTD_getErrorName"},
    };
    void *library = open_library();

    if (!library)
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);

        if (!found)
            return;
        *(void **)functions[i].target = found;
    }
    zstd.is_loaded = true;
}

bool mt_zstd_load(void)
{
    return !pthread_once(&zstd.once, load) && zstd.is_loaded;
}

ZSTD_CCtx *ZSTD_createCCtx(void)
{
    return zstd.is_loaded ? zstd.create_cctx() : NULL;
}

size_t ZSTD_freeCCtx(ZSTD_CCtx *context)
{
    return zstd.is_loaded ? zstd.free_cctx(context) : 0;
}

size_t ZSTD_CCtx_setParameter(ZSTD_CCtx *context, ZSTD_cParameter parameter, int value)
{
    return zstd.is_loaded ? zstd.set_parameter(context, parameter, value) : NOT_LOADED;
}

size_t ZSTD_compress2(ZSTD_CCtx *context, void *to, size_t capacity, const void *from,
                      size_t length)
{
    return zstd.is_loaded ? zstd.compress2(context, to, capacity, from, length) : NOT_LOADED;
}

size_t ZSTD_compress(void *to, size_t capacity, const void *from, size_t length, int level)
{
    return zstd.is_loaded ? zstd.compress(to, capacity, from, length, level) : NOT_LOADED;
}

size_t ZSTD_compressBound(size_t length)
{
    return zstd.is_loaded ? zstd.compress_bound(length) : ZSTD_COMPRESSBOUND(length);
}

ZSTD_DCtx *ZSTD_createDCtx(void)
{
    return zstd.is_loaded ? zstd.create_dctx() : NULL;
}

size_t ZSTD_freeDCtx(ZSTD_DCtx *context)
{
    return zstd.is_loaded ? zstd.free_dctx(context) : 0;
}

size_t ZSTD_decompressDCtx(ZSTD_DCtx *context, void *to, size_t capacity, const void *from,
                           size_t length)
{
    return zstd.is_loaded ? zstd.decompress_dctx(context, to, capacity, from, length) : NOT_LOADED;
}

size_t ZSTD_findFrameCompressedSize(const void *from, size_t length)
{
    return zstd.is_loaded ? zstd.frame_compressed_size(from, length) : NOT_LOADED;
}

unsigned long long ZSTD_getFrameContentSize(const void *from, size_t length)
{
    return zstd.is_loaded ? zstd.frame_content_size(from, length) : ZSTD_CONTENTSIZE_ERROR;
}

unsigned ZSTD_isError(size_t code)
{
    return zstd.is_loaded ? zstd.is_error(code) : code > (size_t)-ZSTD_error_maxCode;
}

ZSTD_ErrorCode ZSTD_getErrorCode(size_t code)
{
    return zstd.is_loaded ? zstd.error_code(code) : ZSTD_error_GENERIC;
}

const char *ZSTD_getErrorName(size_t code)
{
    return zstd.is_loaded ? zstd.error_name(code) : MEMTRACE_ZSTD_LIBRARY " is not loaded";
}
