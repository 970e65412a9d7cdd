#include "toolkit.h"

#include <string.h>

#define LENGTH(rows) (sizeof(rows) / sizeof *(rows))

enum { NVML_NOT_SUPPORTED = 3 };

static bool starts_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

bool mt_toolkit_has(const char *soname)
{
    static const char *const others[] = {"libcurl", "libcups", "libcunit", "libnvidia-egl"};

    for (size_t i = 0; i < LENGTH(others); i++)
        if (starts_with(soname, others[i]))
            return false;
    return starts_with(soname, "libcu") || starts_with(soname, "libnv") ||
           starts_with(soname, "libnccl");
}

/* Prefixes of functions, and names of libraries without their version. The first match counts.
 * `upper`: a capital letter follows. */
static const struct {
    const char *function;
    bool upper;
    const char *library;
} rows[] = {
    {"nccl", true, "libnccl"},
    {"pnccl", true, "libnccl"},
    {"nvml", true, "libnvidia-ml"},
    {"nvtx", true, "libnvToolsExt"},
    {"nvrtc", true, "libnvrtc"},
    {"nvJitLink", false, "libnvJitLink"},
    {"nvshmem", false, "libnvshmem_host"},
    {"cuFile", true, "libcufile"},
    {"cusparseLt", true, "libcusparseLt"},
    {"cusparse", true, "libcusparse"},
    {"cusolver", true, "libcusolver"},
    {"cublasLt", true, "libcublasLt"},
    {"cublas", true, "libcublas"},
    {"cudnn", true, "libcudnn"},
    {"cudss", true, "libcudss"},
    {"cufft", true, "libcufft"},
    {"curand", true, "libcurand"},
    {"cupti", true, "libcupti"},
    {"cutensor", true, "libcutensor"},
    {"cuda", true, "libcudart"},
    {"__cuda", true, "libcudart"},
    {"cu", true, "libcuda"},
};

static const char *library_stem(const char *function)
{
    for (size_t i = 0; i < LENGTH(rows); i++)
        if (starts_with(function, rows[i].function) &&
            (!rows[i].upper || is_upper(function[strlen(rows[i].function)])))
            return rows[i].library;
    return NULL;
}

bool mt_toolkit_is_of(const char *function, const char *soname)
{
    const char *stem = library_stem(function);

    /* Wheels rename copies: libcudart.faf08d9a.so.13, libcusparseLt-f80c68d1.so.0. */
    return stem && starts_with(soname, stem) && strchr(".-", soname[strlen(stem)]);
}

const char *mt_toolkit_library_of(const char *function, const char *const *needed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mt_toolkit_has(needed[i]) && mt_toolkit_is_of(function, needed[i]))
            return needed[i];
    return NULL;
}

/* "cublasCreate", "cufftInit", not "ncclGetCreated", "cufftInitialized". */
static bool makes_something(const char *function)
{
    static const char *const words[] = {"Create", "Init"};
    static const char not_followed_by[] = {'d', 'i'};

    for (size_t i = 0; i < LENGTH(words); i++)
        for (const char *at = function; (at = strstr(at, words[i])) != NULL; at++)
            if (at[strlen(words[i])] != not_followed_by[i])
                return true;
    return false;
}

struct mt_stub mt_toolkit_stub(const char *function, const char *version)
{
    bool is_nvml = starts_with(function, "nvml"), is_compiler = starts_with(function, "nvrtc");

    return (struct mt_stub){
        .name = function,
        .version = version,
        .kind = !is_nvml && !is_compiler && makes_something(function) ? MT_STUB_COUNTER
                                                                      : MT_STUB_ANSWER,
        .answer = is_nvml ? NVML_NOT_SUPPORTED : 0,
    };
}
