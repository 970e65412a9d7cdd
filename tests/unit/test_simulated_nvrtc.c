/* Simulated NVRTC: the calls of PyTorch when it first compiles a kernel. */
#include <dlfcn.h>
#include <string.h>

#include "cmocka_all.h"
#include "util.h"

static struct {
    int (*version)(int *, int *);
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*destroy)(void **);
    int (*lowered_name)(void *, const char *, const char **);
    int (*code_size)(void *, size_t *);
    int (*code)(void *, char *);
} api;

static const struct {
    const char *name;
    void *function;
} functions[] = {{"nvrtcVersion", &api.version},        {"nvrtcCreateProgram", &api.create},
                 {"nvrtcDestroyProgram", &api.destroy}, {"nvrtcGetLoweredName", &api.lowered_name},
                 {"nvrtcGetCUBINSize", &api.code_size}, {"nvrtcGetCUBIN", &api.code}};

static int load(void **state)
{
    void *library = dlopen(SIMULATED_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (!library)
        return -1;
    for (size_t i = 0; i < MT_ARRAY_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function)
            return -1;
        memcpy(functions[i].function, &function, sizeof function);
    }
    return 0;
}

/* PyTorch refuses versions below 6. */
TEST(the_version_is_that_of_cuda)
{
    int major = 0, minor = -1;

    assert_int_equal(api.version(&major, &minor), 0);
    assert_int_equal(major, 13);
    assert_int_equal(minor, 0);
}

TEST(a_program_compiles_to_nothing)
{
    void *program = NULL;
    const char *name = NULL;
    size_t size_bytes = 0;
    char code[2] = {'x', 'x'};

    assert_int_equal(api.create(&program, "source", "name", 0, NULL, NULL), 0);
    assert_non_null(program);
    assert_int_equal(api.lowered_name(program, "kernel<float>", &name), 0);
    assert_non_null(name);
    assert_int_equal(api.code_size(program, &size_bytes), 0);
    assert_int_equal(size_bytes, 1);
    assert_int_equal(api.code(program, code), 0);
    assert_memory_equal(code, "\0x", 2);
    assert_int_equal(api.destroy(&program), 0);
    assert_null(program);
    assert_int_not_equal(api.destroy(NULL), 0);
}

int main(void)
{
    return run_tests_of_file(load, NULL);
}
