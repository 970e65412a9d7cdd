/* Offsets of frames and code objects in CPython, and guarded reads of its memory. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "python_layout.h"

/* Lets the kernel test the address: rt_sigprocmask reads the given set before it checks its first
 * argument, which is invalid here. So it returns EFAULT or EINVAL, and changes nothing. Unlike
 * process_vm_readv, no sandbox forbids it. */

/* The smallest page of a kernel. Larger ones are only tested more often. */
enum { PAGE = 4096, MASK_BYTES = 8 };

bool mt_python_readable(uintptr_t address)
{
    uintptr_t aligned = address & ~(uintptr_t)(MASK_BYTES - 1);

    return syscall(SYS_rt_sigprocmask, ~0, aligned, NULL, MASK_BYTES) == -1 && errno == EINVAL;
}

bool mt_python_copy(void *to, uintptr_t address, size_t bytes)
{
    uintptr_t end = address + bytes;
    int kept = errno;
    bool good = end >= address && address >= PAGE;

    for (uintptr_t at = address; good && at < end; at = (at | (PAGE - 1)) + 1)
        good = mt_python_readable(at);
    if (good)
        memcpy(to, (const void *)address, bytes);
    errno = kept;
    return good;
}

bool mt_python_memory_works(void)
{
    static const char there = 'x';
    char copy = 0;
    int kept = errno;
    bool works = !mt_python_readable(MASK_BYTES);

    errno = kept;
    return works && mt_python_copy(&copy, (uintptr_t)&there, 1) && copy == there;
}

#define NONE MT_PYTHON_ABSENT

/* A release that does not publish its offsets. All have the same offsets of the type of an object,
 * of bytes, and of the length and state of a text. Before 3.11 the plain name is also the qualified
 * one. Copies of code came later. */
#define RELEASE(release, kind, thread, cframe, previous, code, at, owner, line, file, plain, name, \
                table, bytes, number, ascii, wide)                                                 \
    {                                                                                              \
        .version = release, .instruction = kind, .thread_frame = thread, .cframe_frame = cframe,   \
        .frame_previous = previous, .frame_code = code, .frame_instruction = at,                   \
        .frame_owner = owner, .frame_copy = NONE, .object_type = 8, .code_first_line = line,       \
        .code_file = file, .code_plain_name = plain, .code_name = name, .code_table = table,       \
        .code_bytes = bytes, .code_copies = NONE, .code_number = number, .bytes_data = 32,         \
        .text_length = 16, .text_state = 32, .text_ascii = ascii, .text_wide = wide,               \
        .text_kind_shift = 2                                                                       \
    }

static const struct mt_python_layout old_layouts[] = {
    RELEASE(0x0309, MT_PYTHON_BYTES, 24, NONE, 24, 32, 104, NONE, 40, 104, 112, 112, 120, 48, NONE,
            48, 72),
    RELEASE(0x030a, MT_PYTHON_UNITS, 24, NONE, 24, 32, 96, NONE, 40, 104, 112, 112, 120, 48, NONE,
            48, 72),
    RELEASE(0x030b, MT_PYTHON_POINTER, 56, 8, 48, 32, 56, 69, 72, 112, 120, 128, 136, 184, NONE, 48,
            72),
    RELEASE(0x030c, MT_PYTHON_POINTER, 56, 0, 8, 0, 56, 70, 68, 112, 120, 128, 136, 192, 92, 40,
            56),
};

/* Offsets in `struct _Py_DebugOffsets` of each release. Members that are adjacent in all releases
 * are named after the first. */
struct published {
    uint32_t version;
    uint16_t thread_frame; /* thread_state.current_frame */
    uint16_t frame;        /* interpreter_frame: previous, executable, instr_ptr */
    uint16_t frame_owner;
    uint16_t frame_copy; /* interpreter_frame.tlbc_index */
    uint16_t code;       /* code_object: filename, name, qualname, linetable, firstlineno, argcount,
                            localsplusnames */
    uint16_t code_bytes; /* code_object.co_code_adaptive, then co_tlbc if there is one */
    uint16_t object_type;
    uint16_t bytes_data;
    uint16_t text; /* unicode_object: state, length, asciiobject_size */
};

static const struct published published_layouts[] = {
    {0x030d, 184, 232, 264, NONE, 280, 344, 360, 528, 544},
    {0x030e, 208, 256, 288, 304, 320, 384, 408, 608, 624},
    {0x030f, 208, 320, 352, 368, 384, 448, 472, 704, 720},
};

enum { COOKIE_BYTES = 8, VERSION_AT = 8, FREE_THREADED_AT = 16, WORD = 8, MAX_OFFSET = 1024 };

static uint64_t word_at(const void *runtime, int at)
{
    uint64_t word;

    memcpy(&word, (const char *)runtime + at, sizeof word);
    return word;
}

/* Reads a published offset. Clears *good if it is implausible. */
static uint16_t offset_at(const void *runtime, int at, bool *good)
{
    uint64_t offset = word_at(runtime, at);

    *good &= offset < MAX_OFFSET;
    return offset < MAX_OFFSET ? (uint16_t)offset : 0;
}

static void cover(uint16_t *span, uint16_t offset, uint16_t field_bytes)
{
    if (offset != NONE && offset + field_bytes > *span)
        *span = (uint16_t)(offset + field_bytes);
}

/* Computes the spans. Returns false if they exceed those of any real Python. */
static bool measure(struct mt_python_layout *l)
{
    cover(&l->frame_span, l->frame_previous, 8);
    cover(&l->frame_span, l->frame_code, 8);
    cover(&l->frame_span, l->frame_instruction, l->instruction == MT_PYTHON_POINTER ? 8 : 4);
    cover(&l->frame_span, l->frame_owner, 1);
    cover(&l->frame_span, l->frame_copy, 4);
    cover(&l->code_span, l->object_type, 16); /* the type and the size after it */
    cover(&l->code_span, l->code_first_line, 4);
    cover(&l->code_span, l->code_file, 8);
    cover(&l->code_span, l->code_plain_name, 8);
    cover(&l->code_span, l->code_name, 8);
    cover(&l->code_span, l->code_table, 8);
    cover(&l->code_span, l->code_copies, 8);
    cover(&l->code_span, l->code_number, 4);
    return l->frame_span <= MT_PYTHON_FRAME_SPAN && l->code_span <= MT_PYTHON_CODE_SPAN;
}

static bool read_published(const struct published *p, const void *runtime,
                           struct mt_python_layout *l)
{
    bool free_threaded = word_at(runtime, FREE_THREADED_AT) != 0;
    bool has_copies = free_threaded && p->frame_copy != NONE;
    bool good = true;

    *l = (struct mt_python_layout){
        .version = p->version,
        .instruction = MT_PYTHON_POINTER,
        .thread_frame = offset_at(runtime, p->thread_frame, &good),
        .cframe_frame = NONE,
        .frame_previous = offset_at(runtime, p->frame, &good),
        .frame_code = offset_at(runtime, p->frame + WORD, &good),
        .frame_instruction = offset_at(runtime, p->frame + 2 * WORD, &good),
        .frame_owner = offset_at(runtime, p->frame_owner, &good),
        .frame_copy = has_copies ? offset_at(runtime, p->frame_copy, &good) : NONE,
        .object_type = offset_at(runtime, p->object_type, &good),
        .code_first_line = offset_at(runtime, p->code + 4 * WORD, &good),
        .code_file = offset_at(runtime, p->code, &good),
        .code_plain_name = offset_at(runtime, p->code + WORD, &good),
        .code_name = offset_at(runtime, p->code + 2 * WORD, &good),
        .code_table = offset_at(runtime, p->code + 3 * WORD, &good),
        .code_bytes = offset_at(runtime, p->code_bytes, &good),
        .code_copies = has_copies ? offset_at(runtime, p->code_bytes + WORD, &good) : NONE,
        /* precedes the names of the variables */
        .code_number = (uint16_t)(offset_at(runtime, p->code + 6 * WORD, &good) - 4),
        .bytes_data = offset_at(runtime, p->bytes_data, &good),
        .text_state = offset_at(runtime, p->text, &good),
        .text_length = offset_at(runtime, p->text + WORD, &good),
        .text_ascii = offset_at(runtime, p->text + 2 * WORD, &good),
        /* 3.14 made "interned" a separate byte in free-threaded builds */
        .text_kind_shift = has_copies ? 8 : 2,
    };
    /* PyCompactUnicodeObject adds the length of its UTF-8 and a pointer to it */
    l->text_wide = (uint16_t)(l->text_ascii + 2 * WORD);
    return good && measure(l);
}

bool mt_python_layout(uint32_t version, const void *runtime, struct mt_python_layout *layout)
{
    uint32_t minor = version >> 16;

    if (sizeof(void *) != WORD)
        return false;
    for (size_t i = 0; i < sizeof old_layouts / sizeof *old_layouts; i++)
        if (old_layouts[i].version == minor) {
            *layout = old_layouts[i];
            return measure(layout);
        }
    if (!runtime || memcmp(runtime, "xdebugpy", COOKIE_BYTES) != 0 ||
        word_at(runtime, VERSION_AT) >> 16 != minor)
        return false;
    for (size_t i = 0; i < sizeof published_layouts / sizeof *published_layouts; i++)
        if (published_layouts[i].version == minor)
            return read_published(&published_layouts[i], runtime, layout);
    return false;
}
