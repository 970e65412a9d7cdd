/* Hooks through which libmemtrace-cuda.so, which interposes libcuda where CUPTI cannot be used,
 * reports driver calls to libmemtrace-inject.so. The only symbol that they share is
 * memtrace_driver_hooks, which is found with dlsym. Both libraries are from one build. */
#ifndef MT_INJECT_DRIVER_HOOKS_H
#define MT_INJECT_DRIVER_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "inject_source.h"

struct mt_interposed_call {
    const void *params; /* the arguments in their order, each at its alignment */
    uint64_t context;   /* current in the thread before the call; 0 = none */
    uint32_t result;    /* for `leave` only: CUresult */
    bool captured;      /* the stream is capturing, so the call adds a node to a graph */
};

enum { MT_INTERPOSED_UNKNOWN = -1 };

/* All may be called from any thread and while any lock is held. They preserve errno. */
struct mt_driver_hooks {
    /* Returns false if calls need not be reported, because CUPTI reports them or recording is
     * off. Cheap. */
    bool (*wanted)(void);
    /* Returns the number of the entry point that libcuda exports under `name`, or
     * MT_INTERPOSED_UNKNOWN. */
    int (*find)(const char *name);
    void (*enter)(int number, const struct mt_interposed_call *call);
    void (*leave)(int number, const struct mt_interposed_call *call);
};

const struct mt_driver_hooks *memtrace_driver_hooks(void);

extern const struct mt_inject_source mt_interposer_source; /* inside libmemtrace-inject.so */

#endif
