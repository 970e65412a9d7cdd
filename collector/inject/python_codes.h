/* A cache, one for each thread, that maps the address of a code object to the id of its definition.
 * Addresses are reused: a program that executes many snippets in sequence may have all of their
 * code objects, texts and tables at the same addresses. So an entry is valid only while the object
 * has the same mark. The mark is the number that the interpreter assigned (3.12 and later), or a
 * hash of the object's references. */
#ifndef MT_INJECT_PYTHON_CODES_H
#define MT_INJECT_PYTHON_CODES_H

#include "intern.h"
#include "python_frames.h"

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

enum {
    MT_PYTHON_SETS = 512,
    MT_PYTHON_WAYS = 2,
    MT_PYTHON_STACKS = 1024,
    MT_PYTHON_PAYLOAD_BYTES = 16384
};

/* The caches of a thread. Zeroed memory is empty. A set is a cache line. */
struct mt_python_thread {
    struct mt_python_code codes[MT_PYTHON_SETS][MT_PYTHON_WAYS];
    struct mt_python_stack stacks[MT_PYTHON_STACKS];
    uint64_t words[MT_MAX_STACK_FRAMES];
    struct mt_python_frame frames[MT_MAX_STACK_FRAMES];
    char payload[MT_PYTHON_PAYLOAD_BYTES];
};

/* Returns the stack word of a frame that is not in the cache; 0 if the frame has no code object, or
 * if the definition does not fit. Caches it under `mark` unless that is 0. Reads are guarded. */
uint64_t mt_python_define(const struct mt_python_view *view, struct mt_python_thread *thread,
                          const struct mt_python_frame *frame, uint64_t mark);

/* Returns an entry, still without mark and id, for the code object at `address`, of which `code`
 * is a copy. */
struct mt_python_code mt_python_bytecode(const struct mt_python_layout *l, uintptr_t address,
                                         const char *code);

/* Returns the offset of a frame whose instruction is outside of the bytecode at entry->begin. Such
 * a frame runs another copy of the bytecode, or has not begun. */
uint32_t mt_python_find_offset(const struct mt_python_layout *l, struct mt_python_code *entry,
                               const struct mt_python_frame *frame);

/* Returns a mark for a code object without a number, computed from its first line, texts and
 * line table. Reads are not guarded: the layout has been checked. */
uint64_t mt_python_fingerprint(const struct mt_python_layout *l, const char *code);

/* Converts a str object to UTF-8, at most `capacity` bytes of whole characters. Lone surrogates
 * become U+FFFD. Returns false if the object is not a str, or cannot be read. */
bool mt_python_text(const struct mt_python_view *view, uintptr_t text, char *out, size_t capacity,
                    size_t *bytes);

/* Sets *count to the length of a bytes object. Returns false if the object is not a bytes object,
 * or cannot be read. */
bool mt_python_bytes(const struct mt_python_view *view, uintptr_t object, size_t *count);

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
    uint64_t mark;

    if (mt_python_pointer(code, l->object_type) != (uintptr_t)view->code_type)
        return 0;
    mark = mt_python_mark(l, code);
    for (int way = 0; way < MT_PYTHON_WAYS; way++)
        if (set[way].code == frame->code && set[way].mark == mark)
            return (uint64_t)set[way].id << 32 | mt_python_offset(l, &set[way], frame);
    return mt_python_define(view, thread, frame, mark);
}

#endif
