/* The original functions that this library interposes. Frameworks load their libraries with
 * RTLD_LOCAL, so RTLD_NEXT alone does not find them. These functions take the loader's lock;
 * errno may change. */
#ifndef MT_INJECT_ORIGINALS_H
#define MT_INJECT_ORIGINALS_H

/* The library that an address is in, for dlsym; dlclose it. NULL for the program
 * itself, and for what is no library's. */
void *mt_original_library(const void *address);

/* What that library would have got if we were not there; `library` may be NULL.
 * NULL if there is none: never a function of ours. */
void *mt_original_symbol(void *library, const char *name);

/* The same for who called: an address in it. */
void *mt_original_for(const void *caller, const char *name);

#endif
