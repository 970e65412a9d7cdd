/* See python_check.h. */
#include "python_check.h"

#include "python_code.h"

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

    if (!mt_python_bytes(view, table, &bytes))
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
    struct mt_python_code entry;
    char code[MT_PYTHON_CODE_SPAN];
    uint32_t offset;
    void *number;
    long last;

    if (!mt_python_copy(code, ours->code, l->code_span))
        return false;
    entry = mt_python_bytecode(l, ours->code, code);
    offset = mt_python_offset(l, &entry, ours);
    number = api->get_attribute(theirs, "f_lasti");
    if (!number)
        return false;
    last = api->get_long(number);
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
    const char *theirs;
    uintptr_t object;
    intptr_t length;
    size_t bytes;
    bool same;

    if (!text)
        return false;
    same = mt_python_copy(&object, code + offset, sizeof object) && object == (uintptr_t)text &&
           mt_python_text(view, object, ours, sizeof ours, &bytes);
    theirs = same ? api->get_text(text, &length) : NULL;
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
    bool same;

    if (!table)
        return false;
    same = mt_python_copy(&object, code + l->code_table, sizeof object) &&
           object == (uintptr_t)table && (uintptr_t)api->get_bytes(table) == object + l->bytes_data;
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
        void *caller;

        if (!frame)
            return false;
        same = same_frame(view, api, thread, &thread->frames[i], frame);
        caller = api->get_back(frame);
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
