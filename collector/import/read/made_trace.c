#include "made_trace.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "util.h"

enum { HEADER_ROOM = 60 * 1024 };

static ssize_t append(void *context, const void *bytes, size_t length, uint64_t offset)
{
    struct mt_made_trace *made = context;

    MT_ASSERT(offset == made->bytes.length);
    mt_buf_add(&made->bytes, bytes, length);
    if (!made->bytes.failed)
        return (ssize_t)length;
    errno = ENOMEM;
    return -1;
}

static ssize_t overwrite(void *context, const void *bytes, size_t length, uint64_t offset)
{
    struct mt_made_trace *made = context;

    MT_ASSERT(offset <= made->bytes.length && length <= made->bytes.length - offset);
    memcpy(made->bytes.data + offset, bytes, length);
    return (ssize_t)length;
}

enum mt_status mt_made_trace_start(struct mt_made_trace *made, struct mt_error *error)
{
    const struct mt_writer_options options = {.header_bytes = HEADER_ROOM};
    const struct mt_trace_output output = {append, overwrite, made};

    if (mt_symbols_init(&made->symbols) != MT_OK)
        return mt_fail_memory(error);
    made->header.rank = made->header.world_size = -1;
    return mt_writer_new_output(&output, &made->header, &made->symbols, &options, &made->writer,
                                error);
}

enum mt_status mt_made_trace_add(struct mt_made_trace *made, struct mt_event *event,
                                 struct mt_error *error)
{
    event->seq = made->event_count++;
    event->t_ns = mt_max_u64(event->t_ns, made->last_t_ns);
    if (!event->seq && !made->header.start_t_ns)
        made->header.start_t_ns = event->t_ns;
    made->last_t_ns = event->t_ns;
    return mt_writer_add(made->writer, event, error);
}

void mt_made_trace_skip(struct mt_made_trace *made, uint64_t offset, const char *why)
{
    made->integrity.records_damaged++;
    if (made->integrity.first_error.status == MT_OK)
        (void)mt_fail(&made->integrity.first_error, MT_ERR_FORMAT, offset, "%s", why);
}

void mt_made_trace_cut(struct mt_made_trace *made, const struct mt_feed *feed,
                       const struct mt_json_reader *json, const struct mt_error *error)
{
    if (!json->cut && !mt_feed_is_cut(feed))
        mt_made_trace_skip(made, error->offset, error->text);
    made->integrity.cut = true;
    /* in the file, which may be compressed; of damage, the decoded offset is known */
    made->integrity.cut_offset = json->cut ? mt_feed_raw_bytes(feed) : error->offset;
}

/* What a later reader of the trace must know about the file, for example after `import`. */
static enum mt_status add_damage(struct mt_made_trace *made, struct mt_error *error)
{
    static const char unread[] = "unreadable records", cut[] = "the file is cut";
    const struct mt_integrity *integrity = &made->integrity;
    const char *why = integrity->records_damaged ? unread : cut;
    struct mt_event event = {.kind = MT_EVENT_DROPPED, .stack = MT_NO_ID};

    if (!integrity->records_damaged && !integrity->cut)
        return MT_OK;
    event.size_bytes = mt_max_u64(integrity->records_damaged, 1);
    if (mt_symbols_string(&made->symbols, why, strlen(why), &event.name) != MT_OK)
        return mt_fail_memory(error);
    return mt_made_trace_add(made, &event, error);
}

enum mt_status mt_made_trace_finish(struct mt_made_trace *made, const char *importer,
                                    struct mt_source **source, struct mt_error *error)
{
    made->header.sources = importer;
    enum mt_status status = add_damage(made, error);
    if (status != MT_OK)
        return status;
    status = mt_writer_set_header(made->writer, &made->header, error);
    if (status == MT_ERR_USAGE)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "its names and facts need more than the 60 KiB of a header");
    if (status == MT_OK)
        status = mt_writer_finish(made->writer, error);
    if (status != MT_OK)
        return status;
    status = mt_trace_open_owned(made->bytes.data, made->bytes.length, source, error);
    made->bytes = (struct mt_buf){0};
    if (status != MT_OK)
        return status;
    mt_trace_set_input_damage(*source, &made->integrity);
    (*source)->format = importer;
    (*source)->symbols.frames_cut = made->symbols.frames_cut; /* no record has it */
    return MT_OK;
}

void mt_made_trace_release(struct mt_made_trace *made)
{
    mt_writer_free(made->writer);
    mt_symbols_release(&made->symbols);
    mt_buf_release(&made->bytes);
    *made = (struct mt_made_trace){0};
}
