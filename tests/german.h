/* A locale whose numbers have decimal commas: it must change nothing. The test
 * project.locale makes one; a test that runs without it is skipped, not passed. */
#ifndef MT_TESTS_GERMAN_H
#define MT_TESTS_GERMAN_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* False where there is no such locale. */
static inline bool set_german(void)
{
    char text[8];

    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        return false;
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(text, "0,5") == 0;
}

#endif
