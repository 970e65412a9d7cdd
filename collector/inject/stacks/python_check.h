/* The self-check: compares the frames that the collector reads with those that Python reports. */
#ifndef MT_INJECT_PYTHON_CHECK_H
#define MT_INJECT_PYTHON_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "intern.h"
#include "python_frames.h"

/* The interpreter's functions that may be called without the GIL, and those of the self-check. They
 * are found by name, because this library is not linked to Python. */

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

/* A cache, one for each thread, that maps the address of a code object to the id of its definition.
 * Addresses are reused: a program that executes many snippets in sequence may have all of their
 * code objects, texts and tables at the same addresses. So an entry is valid only while the object
 * has the same mark. The mark is the number that the interpreter assigned (3.12 and later), or a
 * hash of the object's references. */

struct mt_python_code {
    uintptr_t code;
    uint64_t mark;
    uintptr_t begin; /* start of the bytecode that this thread runs */
    uint32_t bytes;  /* length of that bytecode */
    uint32_t id;
};

/* An earlier stack of the thread, identified by a hash of 96 bits. */
struct mt_python_stack {
    uint64_t hash;
    uint32_t more_hash;
    uint32_t id; /* 0 = empty */
};

/* A frame of a stack, with the fields as they are in memory. */
struct mt_python_kept {
    uintptr_t frame, code, instruction;
    uint32_t number; /* of the code object */
    bool is_python;
};

enum {
    MT_PYTHON_SETS = 512,
    MT_PYTHON_WAYS = 2,
    /* a step of a training loop has up to thousands of stacks */
    MT_PYTHON_STACK_SETS = 1024,
    MT_PYTHON_STACK_WAYS = 4,
    MT_PYTHON_KEPT = 256, /* frames; a longer stack is not kept */
    MT_PYTHON_PAYLOAD_BYTES = 16384
};

/* The caches of a thread. Zeroed memory is empty. A set is a cache line. */
struct mt_python_thread {
    struct mt_python_code codes[MT_PYTHON_SETS][MT_PYTHON_WAYS];
    struct mt_python_stack stacks[MT_PYTHON_STACK_SETS][MT_PYTHON_STACK_WAYS];
    /* the last stack that occurred twice in succession; count 0: it could not be kept */
    struct mt_python_kept kept[MT_PYTHON_KEPT];
    uint32_t kept_count, kept_id;
    uint32_t previous_id; /* of the stack before */
    uint64_t words[MT_MAX_STACK_FRAMES];
    struct mt_python_frame frames[MT_MAX_STACK_FRAMES];
    char payload[MT_PYTHON_PAYLOAD_BYTES];
};

/* Returns the stack word of a frame that is not in the cache; 0 if the frame has no code object, or
 * if the definition does not fit. Caches it under `mark` unless that is 0. Reads are guarded. */
uint64_t mt_python_define(const struct mt_python_view *view, struct mt_python_thread *thread,
                          const struct mt_python_frame *frame, uint64_t mark);

/* Returns the offset of a frame whose instruction is outside of the bytecode at entry->begin. Such
 * a frame runs another copy of the bytecode, or has not begun. */
uint32_t mt_python_find_offset(const struct mt_python_layout *l, struct mt_python_code *entry,
                               const struct mt_python_frame *frame);

/* Returns a mark for a code object without a number, computed from its first line, texts and
 * line table. Reads are not guarded: the layout has been checked. */
uint64_t mt_python_fingerprint(const struct mt_python_layout *l, const char *code);

static inline size_t mt_python_set(uintptr_t code)
{
    return (size_t)((code >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 55);
}

static inline uint64_t mt_python_mark(const struct mt_python_layout *l, const char *code)
{
    uint32_t number = l->code_number == MT_PYTHON_ABSENT ? 0 : mt_python_u32(code, l->code_number);

    return number ? number : mt_python_fingerprint(l, code);
}

static inline uint32_t mt_python_offset(const struct mt_python_layout *l,
                                        struct mt_python_code *entry,
                                        const struct mt_python_frame *frame)
{
    if (l->instruction == MT_PYTHON_POINTER) {
        uintptr_t offset = frame->instruction - entry->begin;

        return offset < entry->bytes ? (uint32_t)offset : mt_python_find_offset(l, entry, frame);
    }
    /* -1: the frame has not begun */
    return (int32_t)frame->instruction < 0
               ? 0
               : (uint32_t)frame->instruction << (l->instruction == MT_PYTHON_UNITS);
}

/* Returns the stack word of a frame, code id << 32 | offset; 0 if the frame has no code object.
 * Reads are not guarded. */
static inline uint64_t mt_python_word(const struct mt_python_view *view,
                                      struct mt_python_thread *thread,
                                      const struct mt_python_frame *frame)
{
    const struct mt_python_layout *l = &view->layout;
    struct mt_python_code *set = thread->codes[mt_python_set(frame->code)];
    const char *code = (const char *)frame->code;

    if (mt_python_pointer(code, l->object_type) != (uintptr_t)view->code_type)
        return 0;
    uint64_t mark = mt_python_mark(l, code);
    for (int way = 0; way < MT_PYTHON_WAYS; way++)
        if (set[way].code == frame->code && set[way].mark == mark)
            return (uint64_t)set[way].id << 32 | mt_python_offset(l, &set[way], frame);
    return mt_python_define(view, thread, frame, mark);
}

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
