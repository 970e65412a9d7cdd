/* Code objects of Python by address, and the check of the frames that are read. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ascii.h"
#include "intern.h"
#include "python_check.h"
#include "python_code.h"
#include "python_frames.h"

/* Stores the address of a function in a pointer to function, in the way that POSIX requires. */
static bool find(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);

    memcpy(pointer, &address, sizeof address);
    return address != NULL;
}

/* "3.11.7 (main, ..." from Py_GetVersion: 3.9 and 3.10 have no Py_Version. */
static uint32_t parse_version(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, &end, 10) : 0;

    return major < 256 && minor < 256 ? (uint32_t)(major << 24 | minor << 16) : 0;
}

static uint32_t read_version(void *library)
{
    const char *(*get_version)(void);
    const unsigned long *version;

    if (find(library, "Py_Version", &version))
        return (uint32_t)*version;
    if (find(library, "Py_GetVersion", &get_version))
        return parse_version(get_version());
    return 0;
}

static bool find_in(void *library, struct mt_python_api *api)
{
    void *type;

    if (!find(library, "PyCode_Type", &type))
        return false;
    api->code_type = type;
    api->version = read_version(library);
    find(library, "_PyRuntime", &api->runtime);
    find(library, "PyGC_Disable", &api->gc_disable);
    find(library, "PyGC_Enable", &api->gc_enable);
    return find(library, "PyUnicode_Type", &api->text_type) &&
           find(library, "PyBytes_Type", &api->bytes_type) &&
           find(library, "Py_IsInitialized", &api->is_initialized) &&
           (find(library, "Py_IsFinalizing", &api->is_finalizing) ||
            find(library, "_Py_IsFinalizing", &api->is_finalizing)) &&
           find(library, "PyGILState_GetThisThreadState", &api->this_thread) &&
           find(library, "Py_AddPendingCall", &api->add_pending) &&
           (find(library, "PyThreadState_GetUnchecked", &api->current_thread) ||
            find(library, "_PyThreadState_UncheckedGet", &api->current_thread)) &&
           find(library, "PyEval_GetFrame", &api->get_frame) &&
           find(library, "PyFrame_GetBack", &api->get_back) &&
           find(library, "PyFrame_GetCode", &api->get_code) &&
           find(library, "PyFrame_GetLineNumber", &api->get_line) &&
           find(library, "PyObject_GetAttrString", &api->get_attribute) &&
           find(library, "PyUnicode_AsUTF8AndSize", &api->get_text) &&
           find(library, "PyBytes_AsString", &api->get_bytes) &&
           find(library, "PyLong_AsLong", &api->get_long) &&
           find(library, "PyErr_Occurred", &api->error) &&
           find(library, "PyErr_Clear", &api->clear_error) &&
           find(library, "Py_IncRef", &api->increase) && find(library, "Py_DecRef", &api->decrease);
}

/* Copies the path of the first library called libpython3... to `data`. */
static int remember_library(struct dl_phdr_info *info, size_t bytes, void *data)
{
    const char *name = mt_base_name(info->dlpi_name);
    size_t length = strlen(info->dlpi_name);

    (void)bytes;
    if (strncmp(name, "libpython3", 10) != 0 || length >= 4096)
        return 0;
    memcpy(data, info->dlpi_name, length + 1);
    return 1;
}

bool mt_python_api_find(struct mt_python_api *api)
{
    char path[4096];

    *api = (struct mt_python_api){0};
    if (find_in(RTLD_DEFAULT, api))
        return true;
    /* a program that embeds Python may not export its symbols */
    if (!dl_iterate_phdr(remember_library, path))
        return false;
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD); /* open, so that it is not unloaded */
    return library && find_in(library, api);
}

/* New objects are read with guarded reads, because their texts and tables are behind pointers that
 * have not been checked. New objects are rare. */

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

    if (l->text_state + 4u > TEXT_SPAN || l->text_length + 8u > TEXT_SPAN ||
        l->object_type + 8u > TEXT_SPAN || !mt_python_plausible(text) ||
        !mt_python_copy(head, text, l->text_state + 4u) ||
        mt_python_pointer(head, l->object_type) != (uintptr_t)view->text_type)
        return false;
    uint32_t state = mt_python_u32(head, l->text_state) >> l->text_kind_shift;
    *kind = state & 7;
    *count = mt_python_pointer(head, l->text_length);
    *at = text + (state & TEXT_ASCII ? l->text_ascii : l->text_wide);
    return (state & TEXT_COMPACT) && (*kind == 1 || *kind == 2 || *kind == 4) &&
           (!(state & TEXT_ASCII) || *kind == 1) && *count <= INT32_MAX;
}

/* Converts a str object to UTF-8, at most `capacity` bytes of whole characters. Lone surrogates
 * become U+FFFD. Returns false if the object is not a str, or cannot be read. */
static bool python_text(const struct mt_python_view *view, uintptr_t text, char *out,
                        size_t capacity, size_t *bytes)
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

/* Sets *count to the length of a bytes object. Returns false if the object is not a bytes object,
 * or cannot be read. */
static bool python_bytes(const struct mt_python_view *view, uintptr_t object, size_t *count)
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

    if (!python_text(view, parts->file, at, MAX_FILE_BYTES, &file_bytes))
        return 0;
    at += file_bytes;
    if (!python_text(view, parts->name, at, MAX_NAME_BYTES, &name_bytes))
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

    if (!python_bytes(view, parts.table, &parts.table_bytes))
        return 0;
    if (parts.table_bytes > MAX_TABLE_BYTES)
        parts.table_bytes = 0;
    size_t bytes =
        sizeof(struct mt_code_definition) + MAX_FILE_BYTES + MAX_NAME_BYTES + parts.table_bytes;
    if (bytes <= sizeof thread->payload)
        return define_in(view, &parts, thread->payload);
    char *large = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (large == MAP_FAILED)
        return 0;
    uint32_t id = define_in(view, &parts, large);
    munmap(large, bytes);
    return id;
}

/* Returns an entry, still without mark and id, for the code object at `address`, of which `code` is
 * a copy. */
static struct mt_python_code python_bytecode(const struct mt_python_layout *l, uintptr_t address,
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
    int kept = errno;

    if (!mt_python_copy(code, frame->code, l->code_span) ||
        mt_python_pointer(code, l->object_type) != (uintptr_t)view->code_type)
        return 0;
    struct mt_python_code entry = python_bytecode(l, frame->code, code);
    entry.mark = mark;
    entry.id = define(view, thread, code);
    errno = kept;
    if (!entry.id)
        return 0;
    uint64_t word = (uint64_t)entry.id << 32 | mt_python_offset(l, &entry, frame);
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

enum { COMPARED_BYTES = 1024 };

bool mt_python_walk(const struct mt_python_view *view, const char *state,
                    struct mt_python_thread *thread, size_t *count)
{
    uintptr_t frame, type;

    *count = 0;
    if (!mt_python_top(&view->layout, state, true, &frame))
        return false;
    for (unsigned steps = 0; frame && *count < MT_MAX_STACK_FRAMES; steps++) {
        struct mt_python_frame *out = &thread->frames[*count];
        enum mt_python_step step = mt_python_step(&view->layout, true, &frame, out);

        if (step == MT_PYTHON_BROKEN || steps == MT_PYTHON_MAX_STEPS)
            return false;
        if (step == MT_PYTHON_SKIP)
            continue;
        if (!mt_python_copy(&type, out->code + view->layout.object_type, sizeof type) ||
            type != (uintptr_t)view->code_type)
            return false;
        (*count)++;
    }
    return true;
}

/* Compares the line of an offset. A table that is too long for the buffer counts as correct. */
static bool same_line(const struct mt_python_view *view, struct mt_python_thread *thread,
                      const char *code, uint32_t offset, int theirs)
{
    const struct mt_python_layout *l = &view->layout;
    struct mt_code_definition definition = {.python_version = l->version,
                                            .first_line = mt_python_u32(code, l->code_first_line)};
    uintptr_t table = mt_python_pointer(code, l->code_table);
    size_t bytes;

    if (!python_bytes(view, table, &bytes))
        return false;
    if (bytes > sizeof thread->payload)
        return true;
    if (!mt_python_copy(thread->payload, table + l->bytes_data, bytes))
        return false;
    definition.table_bytes = (uint32_t)bytes;
    return mt_python_line(&definition, (const uint8_t *)thread->payload, offset) ==
           (uint32_t)(theirs > 0 ? theirs : 0);
}

/* Compares the position of a frame in its bytecode, and its line. */
static bool same_place(const struct mt_python_view *view, const struct mt_python_api *api,
                       struct mt_python_thread *thread, const struct mt_python_frame *ours,
                       void *theirs)
{
    const struct mt_python_layout *l = &view->layout;
    char code[MT_PYTHON_CODE_SPAN];

    if (!mt_python_copy(code, ours->code, l->code_span))
        return false;
    struct mt_python_code entry = python_bytecode(l, ours->code, code);
    uint32_t offset = mt_python_offset(l, &entry, ours);
    void *number = api->get_attribute(theirs, "f_lasti");
    if (!number)
        return false;
    long last = api->get_long(number);
    api->decrease(number);
    return offset == (last > 0 ? (uint32_t)last : 0) &&
           same_line(view, thread, code, offset, api->get_line(theirs));
}

/* Compares an attribute of a code object with the object at `offset`, by identity and text. */
static bool same_text(const struct mt_python_view *view, const struct mt_python_api *api,
                      uintptr_t code, const char *name, uint16_t offset)
{
    void *text = api->get_attribute((void *)code, name);
    char ours[COMPARED_BYTES];
    uintptr_t object;
    intptr_t length;
    size_t bytes;

    if (!text)
        return false;
    bool same = mt_python_copy(&object, code + offset, sizeof object) &&
                object == (uintptr_t)text && python_text(view, object, ours, sizeof ours, &bytes);
    const char *theirs = same ? api->get_text(text, &length) : NULL;
    if (theirs && (size_t)length <= sizeof ours)
        same = bytes == (size_t)length && !memcmp(ours, theirs, bytes);
    api->decrease(text);
    return same;
}

/* Compares the addresses of the line table and its bytes. */
static bool same_table(const struct mt_python_view *view, const struct mt_python_api *api,
                       uintptr_t code)
{
    const struct mt_python_layout *l = &view->layout;
    void *table =
        api->get_attribute((void *)code, l->version < 0x030a ? "co_lnotab" : "co_linetable");
    uintptr_t object;

    if (!table)
        return false;
    bool same = mt_python_copy(&object, code + l->code_table, sizeof object) &&
                object == (uintptr_t)table &&
                (uintptr_t)api->get_bytes(table) == object + l->bytes_data;
    api->decrease(table);
    return same;
}

static bool same_texts(const struct mt_python_view *view, const struct mt_python_api *api,
                       uintptr_t code)
{
    const struct mt_python_layout *l = &view->layout;

    return same_text(view, api, code, "co_filename", l->code_file) &&
           same_text(view, api, code, "co_name", l->code_plain_name) &&
           same_text(view, api, code, l->version < 0x030b ? "co_name" : "co_qualname",
                     l->code_name);
}

static bool same_frame(const struct mt_python_view *view, const struct mt_python_api *api,
                       struct mt_python_thread *thread, const struct mt_python_frame *ours,
                       void *theirs)
{
    void *code = api->get_code(theirs);
    bool same = (uintptr_t)code == ours->code && same_place(view, api, thread, ours, theirs) &&
                same_texts(view, api, ours->code) && same_table(view, api, ours->code);

    api->decrease(code);
    return same;
}

/* Call it with the lock held. Releases the reference to `frame`. */
static bool same_frames(const struct mt_python_view *view, const struct mt_python_api *api,
                        struct mt_python_thread *thread, size_t count, void *frame)
{
    bool same = true;

    for (size_t i = 0; i < count && same; i++) {
        if (!frame)
            return false;
        same = same_frame(view, api, thread, &thread->frames[i], frame);
        void *caller = api->get_back(frame);
        api->decrease(frame);
        frame = caller;
    }
    if (!frame)
        return same;
    api->decrease(frame);
    return same && count == MT_MAX_STACK_FRAMES;
}

static bool compare(const struct mt_python_view *view, const struct mt_python_api *api,
                    struct mt_python_thread *thread, size_t count)
{
    /* up to 3.11, allocation may collect garbage */
    bool pause = api->gc_disable && api->gc_enable && api->version < 0x030c0000;
    int enabled = pause ? api->gc_disable() : 0;
    void *frame = api->get_frame();
    bool same = false;

    if (frame) {
        api->increase(frame);
        same = same_frames(view, api, thread, count, frame);
    }
    api->clear_error(); /* the exception comes from this function: there was none before */
    if (enabled)
        api->gc_enable();
    return same;
}

enum mt_python_verdict mt_python_check(const struct mt_python_view *view,
                                       const struct mt_python_api *api,
                                       struct mt_python_thread *thread)
{
    const char *state = api->this_thread();
    size_t count;

    if (!state || api->current_thread() != state || api->error())
        return MT_PYTHON_UNSURE;
    if (!mt_python_walk(view, state, thread, &count))
        return MT_PYTHON_DIFFERENT;
    if (!count)
        return MT_PYTHON_UNSURE;
    if (!compare(view, api, thread, count))
        return MT_PYTHON_DIFFERENT;
    return count < 2 ? MT_PYTHON_SHALLOW : MT_PYTHON_EQUAL;
}
