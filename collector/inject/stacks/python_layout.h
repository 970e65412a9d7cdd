/* Offsets of a thread's frames and code objects in CPython 3.9 to 3.15 (64-bit), for a reader
 * that must not call Python. Up to 3.12 they are a table, checked against the headers of those
 * releases; since 3.13 the interpreter publishes them in `_PyRuntime`. */
#ifndef MT_INJECT_PYTHON_LAYOUT_H
#define MT_INJECT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_PYTHON_ABSENT UINT16_MAX /* this version has no such field */

/* How a frame stores its position in the bytecode. */
enum mt_python_instruction {
    MT_PYTHON_BYTES,  /* i32 byte offset (3.9) */
    MT_PYTHON_UNITS,  /* i32 offset in units of two bytes (3.10) */
    MT_PYTHON_POINTER /* pointer into the bytecode (3.11 and later) */
};

struct mt_python_layout {
    uint32_t version; /* 0x030b = 3.11 */
    enum mt_python_instruction instruction;
    /* thread state: pointer to the innermost frame, or (3.11, 3.12) to a
     * structure that holds it at `cframe_frame` */
    uint16_t thread_frame, cframe_frame;
    /* frame */
    uint16_t frame_previous, frame_code, frame_instruction, frame_owner, frame_copy;
    /* any object */
    uint16_t object_type;
    /* code object. code_name: the qualified name if the version has one. code_number: u32, unique
     * in the interpreter */
    uint16_t code_first_line, code_file, code_plain_name, code_name, code_table, code_bytes,
        code_copies, code_number;
    /* bytes object, and text: see unicodeobject.h */
    uint16_t bytes_data, text_length, text_state, text_ascii, text_wide;
    uint8_t text_kind_shift; /* position of the kind in the state: 3 bits, then 1 bit compact and 1
                                bit ASCII */
    /* sizes of the parts of a frame and of a code object that contain all fields above */
    uint16_t frame_span, code_span;
};

/* A frame whose owner is at least this number belongs to C code, not to a Python function. */
#define MT_PYTHON_OWNER_C    3u
#define MT_PYTHON_OWNER_LAST 4u

/* Upper bounds of frame_span and code_span. */
#define MT_PYTHON_FRAME_SPAN 128u
#define MT_PYTHON_CODE_SPAN  256u

/* The number of bytes of `_PyRuntime` that mt_python_layout() may read. */
#define MT_PYTHON_RUNTIME_BYTES 1024u

/* Sets the layout for `version` (0x030b07f0 = 3.11.7 final). `runtime` is a copy of the start of
 * `_PyRuntime`; needed since 3.13, otherwise it may be NULL. Returns false if the version is
 * unknown or the published offsets are invalid. */
bool mt_python_layout(uint32_t version, const void *runtime, struct mt_python_layout *layout);

/* Guarded reads: a wrong address is an error, not a crash. A read takes about 0.1 us. */

/* Copies `bytes` bytes from `address`. Returns false if some of them cannot be read. Preserves
 * errno. */
bool mt_python_copy(void *to, uintptr_t address, size_t bytes);

/* Returns true if the word that contains `address` can be read. Changes errno. Use it only if
 * mt_python_memory_works() returns true. */
bool mt_python_readable(uintptr_t address);

/* Returns true if the system behaves as the functions above expect. If not, every mt_python_copy()
 * fails. */
bool mt_python_memory_works(void);

#endif
