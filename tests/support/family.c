/* The tests of a family in one program: `unit_tests test_replay` runs unit/test_replay.c. CMake
 * renames the `main` of each file after the file, and lists the files in FAMILY. */
#include <stdio.h>
#include <string.h>

#define TEST(name) int name##_main(void);
#include FAMILY
#undef TEST

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } tests[] = {
#define TEST(name) {#name, name##_main},
#include FAMILY
    };

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (argc == 2 && !strcmp(argv[1], tests[i].name))
            return tests[i].run();
    fprintf(stderr, "usage: %s TEST\n\ntests:\n", argv[0]);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        fprintf(stderr, "  %s\n", tests[i].name);
    return 2;
}
