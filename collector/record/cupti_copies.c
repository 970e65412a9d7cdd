/* See cupti_copies.h. */
#include "cupti_copies.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "util.h"

struct search {
    bool (*visit)(void *context, const char *name);
    void *context;
};

/* The pattern is `rest` after the first `length` bytes of `folder`. */
static bool visit_pattern(const struct search *search, const char *folder, size_t length,
                          const char *rest)
{
    struct mt_buf pattern = {0};
    glob_t found = {0};
    bool done = false;
    size_t i;

    mt_buf_add(&pattern, folder, length);
    mt_buf_add(&pattern, rest, strlen(rest) + 1);
    if (!pattern.failed && glob(pattern.data, 0, NULL, &found) == 0)
        for (i = found.gl_pathc; i > 0 && !done; i--) /* the highest version first */
            done = search->visit(search->context, found.gl_pathv[i - 1]);
    globfree(&found);
    mt_buf_release(&pattern);
    return done;
}

/* The vendor's wheels are beside the framework; conda's package is in `lib`. */
static bool visit_packages(const struct search *search, const char *interpreter)
{
    static const char *const rests[] = {
        "/../lib/python3*/*-packages/nvidia/cu1*/lib/libcupti.so.1*",
        "/../lib/python3*/*-packages/nvidia/cuda_cupti/lib/libcupti.so.1*",
        "/../lib/libcupti.so.1*"};
    const char *slash = strrchr(interpreter, '/');
    size_t i;

    for (i = 0; slash && i < MT_ARRAY_LEN(rests); i++)
        if (visit_pattern(search, interpreter, (size_t)(slash - interpreter), rests[i]))
            return true;
    return false;
}

/* Searches the folder of a script (torchrun) and the folder of a link, because the interpreter of a
 * virtual environment is a link. */
static bool visit_python(const struct search *search, const struct mt_program *program)
{
    char real[PATH_MAX];

    return visit_packages(search, program->path) || visit_packages(search, program->binary) ||
           (realpath(program->binary, real) && visit_packages(search, real));
}

static bool visit_toolkits(const struct search *search)
{
    static const char *const rests[] = {"/extras/CUPTI/lib64/libcupti.so", "/lib64/libcupti.so.1*",
                                        "/targets/*/lib/libcupti.so.1*"};
    const char *folders[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
                             "/usr/local/cuda-*"};
    size_t i, k;

    for (i = 0; i < MT_ARRAY_LEN(folders); i++)
        for (k = 0; folders[i] && *folders[i] && k < MT_ARRAY_LEN(rests); k++)
            if (visit_pattern(search, folders[i], strlen(folders[i]), rests[k]))
                return true;
    return false;
}

static bool visit_names(const struct search *search)
{
    static const char *const names[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                        "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5",
                                        "libcupti.so.11.4", "libcupti.so.11.3", "libcupti.so.11.2",
                                        "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so"};
    size_t i;

    for (i = 0; i < MT_ARRAY_LEN(names); i++)
        if (search->visit(search->context, names[i]))
            return true;
    return false;
}

bool mt_cupti_copies(const struct mt_program *program,
                     bool (*visit)(void *context, const char *name), void *context)
{
    const struct search search = {visit, context};
    const char *told = getenv("MEMTRACE_CUPTI");

    if (told && *told)
        return strcmp(told, "none") != 0 && visit(context, told);
    return (program && visit_python(&search, program)) || visit_toolkits(&search) ||
           visit_names(&search);
}
