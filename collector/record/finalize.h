/* The last step of a recording: replaces native addresses with functions, files and lines, so that
 * the trace can be read on another machine. A traced process can record only addresses. */
#ifndef MT_COLLECTOR_FINALIZE_H
#define MT_COLLECTOR_FINALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"
#include "temporary_file.h"

struct mt_finalize_options {
    /* Called occasionally with the processed part of the file; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
    struct mt_unfinished *unfinished; /* lists the new file while it is written; may be NULL */
};

struct mt_finalize_result {
    bool rewritten;           /* the file at `path` is a new one */
    uint64_t events;          /* in the file at `path` */
    uint32_t native_frames;   /* distinct addresses in stacks of events */
    uint32_t named_frames;    /* of these addresses, those that got a name */
    uint32_t modules;         /* files that contain these addresses */
    uint32_t changed_modules; /* of these files, those that changed since the process ran */
    uint32_t missing_modules; /* of these files, those that cannot be read: their addresses stay */
    char example[256];        /* path of a changed or missing file, "" if there is none */
};

/* Rewrites the trace at `path` in place: writes a new file beside it, reads it back, and replaces
 * the trace in one step. On any failure the trace stays unchanged, byte for byte. Symbolic links
 * are not followed. All facts and events stay equal, except stacks with native frames:
 *   - A frame becomes its function, and inlined calls become frames of their own. If there is no
 *     line, the file is the module in brackets: "cuMemAlloc_v2 [libcuda.so.1]".
 *   - After Python frames, all frames up to the last one of the interpreter are removed. The stack
 *     then has the Python code, the native code that it called, and the call into the driver.
 *   - At the inner end, frames in libmemtrace-inject.so and libcupti.so.* are removed. If the stack
 *     then ends with frames in libcuda.so.*, only the outermost of these stays, which is the call
 *     into the driver.
 * A frame whose module was changed or removed keeps its address; a later run resolves it if the
 * file is back. Without native frames in the trace, returns MT_OK and does nothing. Without
 * libdw, returns MT_ERR_UNSUPPORTED and the reason.
 *
 * `options`, `result` and `error` may be NULL. Costs about as much as reading and writing the
 * trace, plus milliseconds for each distinct module. Memory grows with symbols, not with events. */
enum mt_status mt_trace_finalize(const char *path, const struct mt_finalize_options *options,
                                 struct mt_finalize_result *result,
                                 struct mt_error *error) MT_MUST_USE;

#endif
