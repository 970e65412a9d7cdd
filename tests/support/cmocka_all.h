/* cmocka, and the headers that it requires. */
#ifndef MT_TESTS_CMOCKA_ALL_H
#define MT_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka 2 deprecates assert_in_range for functions that cmocka 1 lacks. */
#define CMOCKA_DISABLE_DEPRECATION_WARNINGS
#include <cmocka.h>
/* cmocka 2 has this macro; sources of the recorder have a member of this name. */
#undef stop

/* The name of one of the files of a family (family.c). */
#ifdef main
int main(void);
#endif

#endif
