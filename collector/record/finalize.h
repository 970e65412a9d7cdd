/* The last thing that happens to a recorded trace: native frames, which the
 * traced process could only leave as addresses, become functions, files and
 * lines, so that the trace reads on another machine. */
#ifndef MT_COLLECTOR_FINALIZE_H
#define MT_COLLECTOR_FINALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"
#include "temporary_file.h"

struct mt_finalize_options {
    /* Called now and then with how much of the file is done; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
    struct mt_unfinished *unfinished; /* lists the new file while it is written; may be NULL */
};

struct mt_finalize_result {
    bool rewritten;           /* the file at `path` is a new one */
    uint64_t events;          /* in it */
    uint32_t native_frames;   /* distinct addresses in stacks of events ... */
    uint32_t named_frames;    /* ... and how many got a name */
    uint32_t modules;         /* files that they lie in ... */
    uint32_t changed_modules; /* ... that are not what the process ran any more ... */
    uint32_t missing_modules; /* ... or cannot be read: their addresses stay */
    char example[256];        /* path of one of those, "" if there is none */
};

/* Can addresses be turned into names here? False if memtrace was built without
 * libdw: then mt_trace_finalize leaves every trace as it is. */
bool mt_finalize_available(void);

/* Rewrites the trace at `path` in place: a new file beside it is read back and then
 * replaces it in one step; on any failure it stays as it was, byte for byte.
 * Symbolic links are not followed. All facts and events
 * stay equal, except stacks with native frames:
 *   - a frame becomes its function, and the calls that the compiler inlined
 *     there become frames of their own; what has no line has the name of its
 *     module in brackets for a file: "cuMemAlloc_v2 [libcuda.so.1]";
 *   - behind Python frames all up to the interpreter's last one goes away, so
 *     that a stack reads Python, then what it called, then the driver's call;
 *   - what the collector put at the inner end goes away: trailing frames in
 *     libmemtrace-inject.so and libcupti.so.*, and of a trailing run in
 *     libcuda.so.* all but the outermost, which is the call into the driver.
 * A frame whose module was changed or removed since keeps its address, and a
 * later run resolves it if the file is there again. Without native frames in
 * the trace, or without libdw, nothing is done and MT_OK returned.
 *
 * `options`, `result` and `error` may be NULL. Costs about as much as reading
 * and writing the trace, and milliseconds for each distinct module; memory
 * grows with symbols, not with events. */
enum mt_status mt_trace_finalize(const char *path, const struct mt_finalize_options *options,
                                 struct mt_finalize_result *result,
                                 struct mt_error *error) MT_MUST_USE;

#endif
