/* NVRTC for a simulated device. PyTorch compiles some kernels when they are first used (products of
 * integers, gcd, special functions). Every program compiles, to an empty result. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>

#include "wheel_versions.h"

typedef int result;
enum { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3 };

struct program {
    char unused;
};

result nvrtcVersion(int *major, int *minor)
{
    enum { MAJOR = 1000, MINOR = 10 };
    *major = sim_cuda_version() / MAJOR;
    *minor = sim_cuda_version() % MAJOR / MINOR;
    return SUCCESS;
}

const char *nvrtcGetErrorString(result error)
{
    return error == SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}

result nvrtcCreateProgram(struct program **made, const char *source, const char *name,
                          int header_count, const char *const *headers, const char *const *names)
{
    (void)source, (void)name, (void)header_count, (void)headers, (void)names;
    *made = calloc(1, sizeof **made);
    return *made != NULL ? SUCCESS : OUT_OF_MEMORY;
}

result nvrtcDestroyProgram(struct program **program)
{
    if (program == NULL) {
        return INVALID_INPUT;
    }
    free(*program);
    *program = NULL;
    return SUCCESS;
}

result nvrtcGetLoweredName(struct program *program, const char *expression, const char **lowered)
{
    (void)program, (void)expression;
    *lowered = "kernel";
    return SUCCESS;
}

/* The size of an empty text, including the NUL. */
static result size_of_nothing(size_t *bytes)
{
    *bytes = 1;
    return SUCCESS;
}

static result nothing(char *text)
{
    *text = '\0';
    return SUCCESS;
}

#define NOTHING(size_function, function)                                                           \
    result size_function(struct program *program, size_t *bytes)                                   \
    {                                                                                              \
        (void)program;                                                                             \
        return size_of_nothing(bytes);                                                             \
    }                                                                                              \
    result function(struct program *program, char *text)                                           \
    {                                                                                              \
        (void)program;                                                                             \
        return nothing(text);                                                                      \
    }

NOTHING(nvrtcGetPTXSize, nvrtcGetPTX)
NOTHING(nvrtcGetCUBINSize, nvrtcGetCUBIN)
NOTHING(nvrtcGetProgramLogSize, nvrtcGetProgramLog)
