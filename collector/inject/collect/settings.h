/* Settings of `memtrace record`, from the environment (collector/record/environment.h writes
 * them). Read once, in the constructor; no other part of the collector reads its options from the
 * environment. */
#ifndef MT_INJECT_SETTINGS_H
#define MT_INJECT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct mt_inject_settings {
    bool asked;          /* MEMTRACE_OUTPUT is set: a trace is requested */
    char output[4096];   /* MEMTRACE_OUTPUT: absolute; a file, or a folder if it ends in / */
    char manifest[4096]; /* MEMTRACE_MANIFEST: each process appends the path of its trace */
    bool python_stacks;  /* MEMTRACE_STACKS=python,native (either, both, none) */
    bool native_stacks;
    bool native_without_python; /* MEMTRACE_STACKS=auto (default): Python stacks, or native stacks
                                   while there is no Python */
    bool free_stacks;           /* MEMTRACE_STACKS contains "frees": frees get stacks */
    bool phases_nvtx;           /* MEMTRACE_PHASES=nvtx,torch,autograd */
    bool phases_torch;          /* RecordFunction with USER_SCOPE */
    bool phases_autograd;       /* RecordFunction with BACKWARD_FUNCTION */
    bool follow;                /* MEMTRACE_FOLLOW=all|none: record children (default all) */
    bool idle;                  /* MEMTRACE_IDLE=1: do not record before mt_tape_ask */
    bool quiet;                 /* MEMTRACE_QUIET=1 */
    bool with_command;          /* MEMTRACE_WITH_ENV=1: the command line goes into the header */
    uint32_t sample_hz;         /* MEMTRACE_SAMPLE_HZ: NVML, 0 = never; default 10 */
    uint32_t flush_ms;          /* MEMTRACE_FLUSH_MS, default 100, at most 200 */
    uint32_t arena_mib;         /* MEMTRACE_ARENA_MIB, default 32 */
    uint32_t ring_seconds;      /* MEMTRACE_RING_SECONDS: keep this time of events; 0 = all */
    uint64_t ring_above_bytes;  /* MEMTRACE_RING_ABOVE: save the ring if the memory that the process
                                   has on a device rises above this; 0 = no limit */
    uint32_t root_process;      /* MEMTRACE_ROOT: pid of the command; others are children */
    char dry_run[256];    /* MEMTRACE_DRY_RUN_FACT: see trace/header.h; empty: a real device */
    char cupti[4096];     /* MEMTRACE_CUPTI: path, "none", or empty */
    char next_cuda[4096]; /* MEMTRACE_CUDA_NEXT: injection library that was set before this one */
    char next_nvtx[4096]; /* MEMTRACE_NVTX_NEXT */
};

extern const struct mt_inject_settings *const mt_recorder_settings;

#endif
