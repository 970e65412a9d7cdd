/* A simulated H200 has the attributes of a real one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

static int (*attribute)(int *value, int number, int device);

static void *function_of(void *library, const char *name)
{
    void *function = dlsym(library, name);

    assert_non_null(function);
    return function;
}

static int load(void **state)
{
    int (*init)(unsigned);
    void *library, *function;

    (void)state;
    setenv("MEMTRACE_SIMULATED_DEVICE", "H200 141 GB", 1);
    library = dlopen(SIMULATED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return -1;
    function = function_of(library, "cuInit");
    memcpy(&init, &function, sizeof function);
    function = function_of(library, "cuDeviceGetAttribute");
    memcpy(&attribute, &function, sizeof function);
    return init(0);
}

TEST(attributes_equal_those_of_an_h200)
{
    FILE *file = fopen(MEMTRACE_FIXTURES "/device_attributes/h200.txt", "re");
    int number, value, answer, compared = 0;
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (*line == '#')
            continue;
        assert_int_equal(sscanf(line, "%d %d", &number, &value), 2);
        assert_int_equal(attribute(&answer, number, 0), 0);
        if (answer != value)
            fail_msg("attribute %d: %d instead of %d", number, answer, value);
        compared++;
    }
    fclose(file);
    assert_int_equal(compared, 141);
    for (number = 148; number < 200; number++)
        assert_int_not_equal(attribute(&answer, number, 0), 0);
}

int main(void)
{
    return run_tests_of_file(load, NULL);
}
