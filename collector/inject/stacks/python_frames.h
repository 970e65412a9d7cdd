/* Reads the frames of a thread from memory, innermost first. Never calls Python, and does not
 * depend on events. */
#ifndef MT_INJECT_PYTHON_FRAMES_H
#define MT_INJECT_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "python_layout.h"

/* The facts about the interpreter that a walk needs. */
struct mt_python_view {
    struct mt_python_layout layout;
    const void *code_type, *text_type, *bytes_type;
};

struct mt_python_frame {
    uintptr_t code;
    uintptr_t instruction; /* as stored in the frame: see enum mt_python_instruction */
    uint32_t copy;         /* number of the copy of the bytecode, in free-threaded builds */
};

/* A longer chain, counting frames of C code, is treated as a cycle. */
#define MT_PYTHON_MAX_STEPS 65536u

enum mt_python_step {
    MT_PYTHON_FRAME,
    MT_PYTHON_SKIP, /* a frame of C code */
    MT_PYTHON_BROKEN
};

static inline uintptr_t mt_python_pointer(const char *structure, uint16_t offset)
{
    uintptr_t pointer;

    memcpy(&pointer, structure + offset, sizeof pointer);
    return pointer;
}

static inline uint32_t mt_python_u32(const char *structure, uint16_t offset)
{
    uint32_t number;

    memcpy(&number, structure + offset, sizeof number);
    return number;
}

/* Returns true if an object of the interpreter could be at the address. */
static inline bool mt_python_plausible(uintptr_t address)
{
    return address >= 4096 && !(address & 7);
}

/* Sets *frame to the innermost frame of the thread, or to 0 if the thread runs no Python.
 * mt_python_step checks whether the address is valid. Returns false if memory could not be read, or
 * is not as expected. */
static inline bool mt_python_top(const struct mt_python_layout *l, const char *thread, bool guarded,
                                 uintptr_t *frame)
{
    uintptr_t at = (uintptr_t)thread + l->thread_frame;
    bool good = true;

    if (guarded)
        good = mt_python_copy(frame, at, sizeof *frame);
    else
        *frame = mt_python_pointer(thread, l->thread_frame);
    if (!good || l->cframe_frame == MT_PYTHON_ABSENT || !*frame)
        return good;
    if (!mt_python_plausible(*frame))
        return false;
    if (guarded)
        return mt_python_copy(frame, *frame + l->cframe_frame, sizeof *frame);
    *frame = mt_python_pointer((const char *)*frame, l->cframe_frame);
    return true;
}

/* Reads the frame at *frame and sets *frame to the caller's frame, or to 0 after the last one.
 * `guarded` is a constant: if true, reads go through the kernel and may fail; if false, the caller
 * guarantees that the memory can be read. */
static inline __attribute__((always_inline)) enum mt_python_step mt_python_step(
    const struct mt_python_layout *l, bool guarded, uintptr_t *frame, struct mt_python_frame *out)
{
    char copy[MT_PYTHON_FRAME_SPAN];
    const char *at = (const char *)*frame;

    if (!mt_python_plausible(*frame))
        return MT_PYTHON_BROKEN;
    if (guarded) {
        if (!mt_python_copy(copy, *frame, l->frame_span))
            return MT_PYTHON_BROKEN;
        at = copy;
    }
    *frame = mt_python_pointer(at, l->frame_previous);
    if (l->frame_owner != MT_PYTHON_ABSENT && (uint8_t)at[l->frame_owner] >= MT_PYTHON_OWNER_C)
        return guarded && (uint8_t)at[l->frame_owner] > MT_PYTHON_OWNER_LAST ? MT_PYTHON_BROKEN
                                                                             : MT_PYTHON_SKIP;
    /* the interpreter uses the low bits of a reference as tags */
    out->code = mt_python_pointer(at, l->frame_code) & ~(uintptr_t)7;
    if (l->instruction == MT_PYTHON_POINTER)
        out->instruction = mt_python_pointer(at, l->frame_instruction);
    else
        out->instruction = mt_python_u32(at, l->frame_instruction);
    out->copy = l->frame_copy == MT_PYTHON_ABSENT ? 0 : mt_python_u32(at, l->frame_copy);
    return mt_python_plausible(out->code) ? MT_PYTHON_FRAME : MT_PYTHON_BROKEN;
}

#endif
