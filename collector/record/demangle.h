/* Demangles C++ names. The demangler of the machine's C++ library is loaded at the first use;
 * without one, names stay mangled. */
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

/* Returns the demangled name, or `name` itself. Valid until the next call. */
const char *mt_demangle(struct mt_demangler *demangler, const char *name);
void mt_demangler_release(struct mt_demangler *demangler);

#endif
