/* See python_codes.h. New objects are read with guarded reads, because their texts and tables are
 * behind pointers that have not been checked. New objects are rare. */
#include "python_codes.h"

#include <errno.h>
#include <sys/mman.h>

#include "python_code.h"

enum {
    MAX_FILE_BYTES = 4096,
    MAX_NAME_BYTES = 1024,
    MAX_TABLE_BYTES = 1000000, /* longer tables are omitted: lines are unknown */
    TEXT_SPAN = 96,
    TEXT_COMPACT = 8,
    TEXT_ASCII = 16,
    CHUNK = 256
};

static const uint32_t replacement = 0xfffd;

static size_t put_utf8(uint32_t c, char out[4])
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = replacement;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

static uint32_t character(const char *at, unsigned kind)
{
    uint32_t wide;
    uint16_t half;

    if (kind == 1)
        return (uint8_t)*at;
    if (kind == 2) {
        memcpy(&half, at, sizeof half);
        return half;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

/* Gets address, width and number of the characters of a str. Returns false if it is not stored in
 * one piece (subclasses of str are not). */
static bool find_characters(const struct mt_python_view *view, uintptr_t text, uintptr_t *at,
                            unsigned *kind, size_t *count)
{
    const struct mt_python_layout *l = &view->layout;
    char head[TEXT_SPAN];
    uint32_t state;

    if (l->text_state + 4u > TEXT_SPAN || l->text_length + 8u > TEXT_SPAN ||
        l->object_type + 8u > TEXT_SPAN || !mt_python_plausible(text) ||
        !mt_python_copy(head, text, l->text_state + 4u) ||
        mt_python_pointer(head, l->object_type) != (uintptr_t)view->text_type)
        return false;
    state = mt_python_u32(head, l->text_state) >> l->text_kind_shift;
    *kind = state & 7;
    *count = mt_python_pointer(head, l->text_length);
    *at = text + (state & TEXT_ASCII ? l->text_ascii : l->text_wide);
    return (state & TEXT_COMPACT) && (*kind == 1 || *kind == 2 || *kind == 4) &&
           (!(state & TEXT_ASCII) || *kind == 1) && *count <= INT32_MAX;
}

bool mt_python_text(const struct mt_python_view *view, uintptr_t text, char *out, size_t capacity,
                    size_t *bytes)
{
    char chunk[CHUNK], utf8[4];
    uintptr_t at;
    unsigned kind;
    size_t count;

    *bytes = 0;
    if (!find_characters(view, text, &at, &kind, &count))
        return false;
    while (count > 0) {
        size_t here = count < CHUNK / kind ? count : CHUNK / kind;

        if (!mt_python_copy(chunk, at, here * kind))
            return false;
        for (size_t i = 0; i < here; i++) {
            size_t length = put_utf8(character(chunk + i * kind, kind), utf8);

            if (length > capacity - *bytes)
                return true;
            memcpy(out + *bytes, utf8, length);
            *bytes += length;
        }
        at += here * kind;
        count -= here;
    }
    return true;
}

bool mt_python_bytes(const struct mt_python_view *view, uintptr_t object, size_t *count)
{
    const struct mt_python_layout *l = &view->layout;
    char head[TEXT_SPAN];

    if (l->object_type + 16u > TEXT_SPAN || !mt_python_plausible(object) ||
        !mt_python_copy(head, object, l->object_type + 16u) ||
        mt_python_pointer(head, l->object_type) != (uintptr_t)view->bytes_type)
        return false;
    *count = mt_python_pointer(head, (uint16_t)(l->object_type + 8));
    return *count <= INT32_MAX;
}

/* The parts of a code object that define() has read. */
struct parts {
    uintptr_t file, name, table;
    size_t table_bytes;
    uint32_t first_line;
};

/* Builds the payload in a buffer that is large enough, and interns it. */
static uint32_t define_in(const struct mt_python_view *view, const struct parts *parts,
                          char *payload)
{
    struct mt_code_definition head = {.python_version = view->layout.version,
                                      .first_line = parts->first_line,
                                      .table_bytes = (uint32_t)parts->table_bytes};
    char *at = payload + sizeof head;
    size_t file_bytes, name_bytes;

    if (!mt_python_text(view, parts->file, at, MAX_FILE_BYTES, &file_bytes))
        return 0;
    at += file_bytes;
    if (!mt_python_text(view, parts->name, at, MAX_NAME_BYTES, &name_bytes))
        return 0;
    at += name_bytes;
    if (parts->table_bytes &&
        !mt_python_copy(at, parts->table + view->layout.bytes_data, parts->table_bytes))
        return 0;
    at += parts->table_bytes;
    head.file_bytes = (uint32_t)file_bytes;
    head.name_bytes = (uint32_t)name_bytes;
    memcpy(payload, &head, sizeof head);
    return mt_intern(MT_DEFINE_CODE, payload, (size_t)(at - payload));
}

static uint32_t define(const struct mt_python_view *view, struct mt_python_thread *thread,
                       const char *code)
{
    const struct mt_python_layout *l = &view->layout;
    struct parts parts = {.file = mt_python_pointer(code, l->code_file),
                          .name = mt_python_pointer(code, l->code_name),
                          .table = mt_python_pointer(code, l->code_table),
                          .first_line = mt_python_u32(code, l->code_first_line)};
    size_t bytes;
    char *large;
    uint32_t id;

    if (!mt_python_bytes(view, parts.table, &parts.table_bytes))
        return 0;
    if (parts.table_bytes > MAX_TABLE_BYTES)
        parts.table_bytes = 0;
    bytes = sizeof(struct mt_code_definition) + MAX_FILE_BYTES + MAX_NAME_BYTES + parts.table_bytes;
    if (bytes <= sizeof thread->payload)
        return define_in(view, &parts, thread->payload);
    large = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (large == MAP_FAILED)
        return 0;
    id = define_in(view, &parts, large);
    munmap(large, bytes);
    return id;
}

struct mt_python_code mt_python_bytecode(const struct mt_python_layout *l, uintptr_t address,
                                         const char *code)
{
    /* after the type: length of the bytecode in units, if the bytecode is inside the object */
    uintptr_t units = mt_python_pointer(code, (uint16_t)(l->object_type + 8));

    return (struct mt_python_code){.code = address,
                                   .begin = address + l->code_bytes,
                                   .bytes = units < INT32_MAX / 2 ? (uint32_t)units * 2 : 0};
}

uint64_t mt_python_define(const struct mt_python_view *view, struct mt_python_thread *thread,
                          const struct mt_python_frame *frame, uint64_t mark)
{
    const struct mt_python_layout *l = &view->layout;
    struct mt_python_code *set = thread->codes[mt_python_set(frame->code)];
    char code[MT_PYTHON_CODE_SPAN];
    struct mt_python_code entry;
    uint64_t word;
    int kept = errno;

    if (!mt_python_copy(code, frame->code, l->code_span) ||
        mt_python_pointer(code, l->object_type) != (uintptr_t)view->code_type)
        return 0;
    entry = mt_python_bytecode(l, frame->code, code);
    entry.mark = mark;
    entry.id = define(view, thread, code);
    errno = kept;
    if (!entry.id)
        return 0;
    word = (uint64_t)entry.id << 32 | mt_python_offset(l, &entry, frame);
    if (mark) {
        set[1] = set[0];
        set[0] = entry;
    }
    return word;
}

/* Hash and length of a str or bytes object. If its hash was never computed, the end of the data
 * replaces it. */
static uint64_t content(const char *object, uint16_t length_at, uint16_t data_at, bool in_one_piece)
{
    uint64_t length = mt_python_pointer(object, length_at);
    uint64_t hash = mt_python_pointer(object, (uint16_t)(length_at + 8));
    bool no_hash = hash == UINT64_MAX;

    if (no_hash && in_one_piece && length >= sizeof hash)
        memcpy(&hash, object + data_at + length - sizeof hash, sizeof hash);
    return hash ^ length << 56;
}

static uint64_t text_content(const struct mt_python_layout *l, uintptr_t text)
{
    const char *at = (const char *)text;
    uint32_t state = mt_python_u32(at, l->text_state) >> l->text_kind_shift;

    return content(at, l->text_length, l->text_ascii, (state & TEXT_COMPACT) != 0);
}

uint64_t mt_python_fingerprint(const struct mt_python_layout *l, const char *code)
{
    uintptr_t table = mt_python_pointer(code, l->code_table);
    uint64_t sum = mt_python_u32(code, l->code_first_line) * UINT64_C(0xd6e8feb86659fd93);

    sum += table * UINT64_C(0x9e3779b97f4a7c15);
    sum += content((const char *)table, (uint16_t)(l->object_type + 8), l->bytes_data, true) *
           UINT64_C(0xbf58476d1ce4e5b9);
    sum += text_content(l, mt_python_pointer(code, l->code_file)) * UINT64_C(0x94d049bb133111eb);
    sum += text_content(l, mt_python_pointer(code, l->code_name)) * UINT64_C(0xff51afd7ed558ccd);
    return sum ? sum : 1;
}

/* Free-threaded builds: code -> {count, copies of the bytecode}. */
static uintptr_t find_copy(const struct mt_python_layout *l, const struct mt_python_frame *frame)
{
    uintptr_t copies, count, copy;

    if (l->code_copies == MT_PYTHON_ABSENT ||
        !mt_python_copy(&copies, frame->code + l->code_copies, sizeof copies) ||
        !mt_python_plausible(copies) || !mt_python_copy(&count, copies, sizeof count) ||
        frame->copy >= count ||
        !mt_python_copy(&copy, copies + (1 + (uintptr_t)frame->copy) * sizeof copy, sizeof copy))
        return 0;
    return copy;
}

uint32_t mt_python_find_offset(const struct mt_python_layout *l, struct mt_python_code *entry,
                               const struct mt_python_frame *frame)
{
    uintptr_t begin = find_copy(l, frame);

    if (!begin || frame->instruction - begin >= entry->bytes)
        return 0;
    entry->begin = begin;
    return (uint32_t)(frame->instruction - begin);
}
