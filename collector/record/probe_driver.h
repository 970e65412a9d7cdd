/* The part of libcuda that the checks need. It is not linked: a missing library is a result, not
 * an error. */
#ifndef MT_RECORD_PROBE_DRIVER_H
#define MT_RECORD_PROBE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

struct mt_driver_library {
    void *library;
    int (*init)(unsigned flags);
    int (*version)(int *version); /* 13000 = CUDA 13.0; works before init */
    int (*count)(int *count);
    int (*name)(char *name, int length, int device); /* these three may be NULL */
    int (*total)(size_t *bytes, int device);
    int (*error_text)(int error, const char **text);
};

/* Loads libcuda. Returns false if the library or one of its first three functions is missing.
 * Call it only in a separate process. */
bool mt_driver_open(struct mt_driver_library *driver);

/* Like dlsym, but stores the result at `function`, the address of a function pointer. ISO C does
 * not allow the conversion of a void pointer to a function pointer; POSIX does. */
void mt_find_function(void *library, const char *name, void *function);

#endif
