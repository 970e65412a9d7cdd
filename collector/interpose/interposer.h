/* libmemtrace-cuda.so: interposes libcuda where CUPTI cannot be used.
 *
 * Preload it together with libmemtrace-inject.so, which must come first:
 *
 *     LD_PRELOAD=.../libmemtrace-inject.so:.../libmemtrace-cuda.so MEMTRACE_CUPTI=none
 *
 * Programs reach libcuda in three ways, and each ends at one of these functions:
 *   - linked to it: the exported symbols of this library are found first;
 *   - dlopen and dlsym (as the CUDA runtime does): dlsym is interposed as well;
 *   - cuGetProcAddress, which is found in either way: the wrapper calls it and replaces the
 *     function that it returned.
 * Each function reports the call to libmemtrace-inject.so (driver_hooks.h) and forwards it. Calls
 * made within such a call are the driver's own and are not reported. Calls through cuGetExportTable
 * are not interposed.
 *
 * If libmemtrace-inject.so is missing or inactive, calls are only forwarded. Interposing dlsym in
 * every child process is the riskiest thing that memtrace can do, so this is a separate library,
 * for x86-64 and aarch64. */
#ifndef MT_INTERPOSE_INTERPOSER_H
#define MT_INTERPOSE_INTERPOSER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MT_HIDDEN __attribute__((visibility("hidden")))
#define MT_EXPORT __attribute__((visibility("default")))

typedef void *mt_dlsym_fn(void *handle, const char *name);

/* interposer_lookup.c: returns libc's dlsym, never NULL. */
MT_HIDDEN mt_dlsym_fn *mt_interposer_find_dlsym(void);
/* Returns an entry point of the loaded libcuda, or NULL. */
MT_HIDDEN void *mt_real_entry(const char *name);

/* One function that this library interposes. */
struct mt_interposed {
    const char *name;
    uint32_t since;        /* see interposed_list.h */
    const char *arguments; /* see interposed_list.h */
    void *ours;
    _Atomic(void *) real;
    _Atomic int number; /* the number from find() of driver_hooks.h, plus 2; 0 = not queried yet */
};

/* interposer_calls.c: all of them; the last entry is NULL. */
extern MT_HIDDEN struct mt_interposed mt_interposed[];
MT_HIDDEN struct mt_interposed *mt_interposed_find(const char *name);

#endif
