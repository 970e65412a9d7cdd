/* libmemtrace-cuda.so: stands before libcuda where CUPTI cannot be used.
 *
 * Preloaded together with libmemtrace-inject.so, which must come first:
 *
 *     LD_PRELOAD=.../libmemtrace-inject.so:.../libmemtrace-cuda.so MEMTRACE_CUPTI=none
 *
 * Programs come to libcuda in three ways, and each ends at a function of ours:
 *   - linked to it: the symbols that we export are found first;
 *   - dlopen and dlsym (as the CUDA runtime does): dlsym is ours, too;
 *   - cuGetProcAddress, which is found in either way: we call it and put our
 *     function in place of what it gave.
 * Each tells the call to libmemtrace-inject.so (driver_hooks.h) and passes it
 * on. Calls from within such a call are the driver's own, and not told. What
 * goes through cuGetExportTable is not seen.
 *
 * Nothing is told, and everything passed on, if that library is not there or
 * does not want it. To interpose dlsym in every child process is the riskiest
 * thing that memtrace can do: so this is a library of its own, for x86-64 only. */
#ifndef MT_INTERPOSE_INTERPOSER_H
#define MT_INTERPOSE_INTERPOSER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MT_HIDDEN __attribute__((visibility("hidden")))
#define MT_EXPORT __attribute__((visibility("default")))

typedef void *mt_dlsym_fn(void *handle, const char *name);

/* interposer_lookup.c: libc's dlsym. Never NULL. */
MT_HIDDEN mt_dlsym_fn *mt_find_real_dlsym(void);
/* An entry point of the libcuda that is loaded, NULL if there is none. */
MT_HIDDEN void *mt_real_entry(const char *name);

/* One function that we stand before. */
struct mt_interposed {
    const char *name;
    uint32_t since;        /* see interposed_list.h */
    const char *arguments; /* ... */
    void *ours;
    _Atomic(void *) real;
    _Atomic int number; /* of driver_hooks.h, + 2; 0 = not asked yet */
};

/* interposer_calls.c: all of them; NULL behind the last one. */
extern MT_HIDDEN struct mt_interposed mt_interposed[];
MT_HIDDEN struct mt_interposed *mt_interposed_find(const char *name);

#endif
