/* The self-check: compares the frames that the collector reads with those that Python reports. */
#ifndef MT_INJECT_PYTHON_CHECK_H
#define MT_INJECT_PYTHON_CHECK_H

#include "python_api.h"
#include "python_codes.h"

enum mt_python_verdict {
    MT_PYTHON_UNSURE,  /* the caller does not have the GIL, or runs no Python code */
    MT_PYTHON_SHALLOW, /* equal, but the stack has only one frame: callers were not checked */
    MT_PYTHON_EQUAL,
    MT_PYTHON_DIFFERENT
};

/* Reads the frames of a thread with guarded reads, innermost first, into thread->frames, and
 * sets *count. Returns false if the memory is not as expected. */
bool mt_python_walk(const struct mt_python_view *view, const char *state,
                    struct mt_python_thread *thread, size_t *count);

/* Compares code objects, lines and names of all frames of the calling thread. Calls Python only if
 * the thread has the GIL. Never runs Python code or starts a garbage collection. In 3.11 and later
 * it may allocate frame objects. */
enum mt_python_verdict mt_python_check(const struct mt_python_view *view,
                                       const struct mt_python_api *api,
                                       struct mt_python_thread *thread);

#endif
