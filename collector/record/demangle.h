/* C++ names for people. The demangler is that of the machine's C++ library,
 * loaded when the first name asks for it; without one names stay as they are. */
#ifndef MT_COLLECTOR_DEMANGLE_H
#define MT_COLLECTOR_DEMANGLE_H

#include <stddef.h>

/* Longer results are cut. */
#define MT_MAX_DEMANGLED_BYTES 2048u

/* Zeroed memory is ready. */
struct mt_demangler {
    void *library;
    char *(*demangle)(const char *name, char *buffer, size_t *length, int *status);
    char *result;
    int tried;
};

/* The name demangled, or `name` itself. Valid until the next call. */
const char *mt_demangle(struct mt_demangler *demangler, const char *name);
void mt_demangler_release(struct mt_demangler *demangler);

#endif
