#include "redact_trace.h"

#include "output_file.h"
#include "recover.h"
#include "redacted_source.h"
#include "trace.h"

static enum mt_status copy_events(struct mt_source *source, struct mt_writer *writer,
                                  struct mt_error *error)
{
    uint64_t events;
    enum mt_status status = mt_writer_copy(writer, source, true, &events, error);

    if (status != MT_OK)
        return status;
    if (source->integrity.frames_damaged || source->integrity.events_invalid ||
        source->integrity.events_unknown)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "it is damaged; use 'memtrace import --redact' to write a redacted copy");
    return source->integrity.closed ? mt_writer_finish(writer, error)
                                    : mt_writer_flush(writer, error);
}

static enum mt_status write_redacted(struct mt_source *source, int fd, struct mt_error *error)
{
    struct mt_writer *writer = NULL;
    enum mt_status status =
        mt_writer_new(fd, &source->header, &source->symbols, NULL, &writer, error);

    if (status == MT_OK)
        status = copy_events(source, writer, error);
    mt_writer_free(writer);
    return status;
}

enum mt_status mt_trace_redact(const char *path, const struct mt_redaction *redaction,
                               struct mt_unfinished *unfinished, struct mt_error *error)
{
    const struct mt_output_rules rules = {.is_private = true,
                                          .is_durable = true,
                                          .kind = "a trace",
                                          .is_own = mt_trace_probe,
                                          .unfinished = unfinished};
    struct mt_output output;
    struct mt_source *source = NULL;
    enum mt_status status;

    if (mt_recover_is_needed(path))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "its tape is not merged into it: run 'memtrace recover' first");
    status = mt_trace_open(path, &source, error);
    if (status != MT_OK)
        return status;
    source = mt_redacted_source(source, redaction);
    if (!source)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "%s", mt_status_text(MT_ERR_MEMORY));
    status = mt_output_open(&output, path, &rules, error);
    if (status == MT_OK) {
        status = write_redacted(source, output.fd, error);
        if (status == MT_OK)
            status = mt_output_finish(&output, error);
        else
            mt_output_abandon(&output);
    }
    mt_source_close(source);
    return status;
}
