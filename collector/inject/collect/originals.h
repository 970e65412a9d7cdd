/* Finds the original versions of the functions that this library interposes. Frameworks load their
 * libraries with RTLD_LOCAL, so RTLD_NEXT alone does not find them. These functions take the
 * loader's lock; errno may change. */
#ifndef MT_INJECT_ORIGINALS_H
#define MT_INJECT_ORIGINALS_H

/* Returns a handle, for dlsym, of the library that contains an address. The caller closes it with
 * dlclose. Returns NULL if the address is in the program itself or in no library. */
void *mt_original_library(const void *address);

/* Returns the function that `library` (may be NULL) would call if this library did not interpose
 * it, or NULL if there is none. Never returns a function of this library. */
void *mt_original_symbol(void *library, const char *name);

/* Like mt_original_symbol, for the library that contains the address `caller`. */
void *mt_original_for(const void *caller, const char *name);

#endif
