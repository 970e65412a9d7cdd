#include "symbols_copy.h"

#include <string.h>

#include "util.h"

enum mt_status mt_symbols_copy_string(const struct mt_symbols_copy *copy, enum mt_text_kind kind,
                                      uint32_t string, uint32_t *id)
{
    const struct mt_strings *strings = &copy->from->strings;
    struct mt_buf text = {0};
    enum mt_status status;

    *id = MT_NO_ID;
    if (string >= strings->count)
        return MT_OK;
    if (!copy->redaction)
        return mt_symbols_string(copy->to, strings->texts[string], strings->lengths[string], id);
    mt_redact(copy->redaction, kind, strings->texts[string], strings->lengths[string], &text);
    status = text.failed ? MT_ERR_MEMORY
                         : mt_symbols_string(copy->to, text.data ? text.data : "", text.length, id);
    mt_buf_release(&text);
    return status;
}

/* Events refer to small tables by id, so the ids must not change. */
static enum mt_status same_id(enum mt_status status, const uint32_t *id, uint32_t wanted)
{
    return status == MT_OK && *id != wanted ? MT_ERR_FORMAT : status;
}

static enum mt_status copy_threads(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = MT_OK;
    uint32_t i, name, id;

    for (i = 0; i < from->thread_count && status == MT_OK; i++) {
        const struct mt_thread_info *thread = &from->threads[i];
        if (i > 0 && i < copy->to->thread_count)
            continue; /* only thread 0 gets its description later */
        status = mt_symbols_copy_string(copy, MT_TEXT_THREAD, thread->name, &name);
        if (status == MT_OK && i == copy->to->thread_count)
            status = same_id(mt_symbols_thread(copy->to, name, thread->os_id, &id), &id, i);
        if (status == MT_OK)
            copy->to->threads[i] = (struct mt_thread_info){name, thread->os_id};
    }
    return status;
}

static enum mt_status copy_devices(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = MT_OK;
    uint32_t i, name;

    for (i = 0; i < from->device_count && status == MT_OK; i++) {
        status = mt_symbols_copy_string(copy, MT_TEXT_WORDS, from->devices[i].name, &name);
        if (status == MT_OK)
            status = mt_symbols_device(copy->to, i, name, from->devices[i].total_memory_bytes);
    }
    return status;
}

/* Two heaps of one name would be one heap, and redaction can make names equal. */
static enum mt_status add_heap(const struct mt_symbols_copy *copy, uint32_t name, uint32_t wanted)
{
    struct mt_buf text = {0};
    enum mt_status status;
    uint32_t id;

    status = mt_symbols_heap(copy->to, name, &id);
    if (status != MT_OK || id == wanted)
        return status;
    mt_buf_printf(&text, "%s#%u", mt_symbols_text(copy->to, name), wanted);
    status =
        text.failed ? MT_ERR_MEMORY : mt_symbols_string(copy->to, text.data, text.length, &name);
    mt_buf_release(&text);
    return status == MT_OK ? same_id(mt_symbols_heap(copy->to, name, &id), &id, wanted) : status;
}

static enum mt_status copy_heaps(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = MT_OK;
    uint32_t i, name;

    for (i = copy->to->heap_count; i < from->heap_count && status == MT_OK; i++) {
        status = mt_symbols_copy_string(copy, MT_TEXT_WORDS, from->heaps[i].name, &name);
        if (status == MT_OK)
            status = add_heap(copy, name, i);
    }
    return status;
}

enum mt_status mt_symbols_copy_tables(const struct mt_symbols_copy *copy)
{
    const struct mt_symbols *from = copy->from;
    enum mt_status status = copy_threads(copy);
    uint32_t i, id;

    copy->to->frames_cut = mt_max_u64(copy->to->frames_cut, from->frames_cut);
    if (status == MT_OK)
        status = copy_devices(copy);
    if (status == MT_OK)
        status = copy_heaps(copy);
    for (i = copy->to->end_count; i < from->end_count && status == MT_OK; i++)
        status = mt_symbols_end(copy->to, &from->ends[i], &id);
    for (i = copy->to->stream_count; i < from->stream_count && status == MT_OK; i++)
        status = same_id(mt_symbols_stream(copy->to, from->streams[i].handle, &id), &id, i);
    for (i = copy->to->pool_count; i < from->pool_count && status == MT_OK; i++)
        status = same_id(mt_symbols_pool(copy->to, from->pools[i].id[0], from->pools[i].id[1], &id),
                         &id, i);
    return status;
}
