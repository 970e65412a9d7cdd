/* The interpreter's functions that may be called without the GIL, and those of the self-check. They
 * are found by name, because this library is not linked to Python. */
#ifndef MT_INJECT_PYTHON_API_H
#define MT_INJECT_PYTHON_API_H

#include <stdbool.h>
#include <stdint.h>

struct mt_python_api {
    uint32_t version; /* 0x030b07f0 */
    const void *runtime;
    const void *code_type, *text_type, *bytes_type;
    /* to be called without the GIL, from any thread */
    int (*is_initialized)(void);
    int (*is_finalizing)(void);
    void *(*this_thread)(void); /* thread state of the caller; NULL: the thread runs no Python */
    int (*add_pending)(int (*call)(void *), void *argument);
    void *(*current_thread)(void); /* equals this_thread() if the caller has the GIL */
    /* to be called with the GIL */
    void *(*get_frame)(void); /* borrowed */
    void *(*get_back)(void *frame);
    void *(*get_code)(void *frame);
    int (*get_line)(void *frame);
    void *(*get_attribute)(void *object, const char *name);
    const char *(*get_text)(void *text, intptr_t *bytes);
    const char *(*get_bytes)(void *bytes);
    long (*get_long)(void *number);
    void *(*error)(void); /* borrowed; NULL: none is set */
    void (*clear_error)(void);
    void (*increase)(void *object);
    void (*decrease)(void *object);
    int (*gc_disable)(void); /* NULL in 3.9 */
    int (*gc_enable)(void);
};

/* Looks for an interpreter: in the program and its linked libraries, then in the first loaded
 * library named libpython3*. Returns false if there is none yet. Also returns false, but with
 * api->version set, if the interpreter lacks functions. Takes the loader's lock: call it from a
 * constructor, or from a thread of the collector. */
bool mt_python_api_find(struct mt_python_api *api);

#endif
