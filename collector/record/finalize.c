/* One pass over the trace: events are copied unchanged from the old file to the new one. The
 * symbols are defined again, in the order in which events need them. */
#include "finalize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "finalize_stacks.h"
#include "io.h"
#include "native_names.h"
#include "recover.h"
#include "symbols.h"
#include "trace.h"

struct rewriting {
    const struct mt_finalize_options *options;
    struct mt_finalize_result *result;
    struct mt_source *source;
    struct mt_symbols symbols; /* of the new file */
    struct mt_native_names *names;
    struct mt_stack_finalizer *stacks;
    struct mt_writer *writer;
    const char *path;
    int fd; /* of the trace */
    struct stat info;
    struct mt_replacement made;
};

static enum mt_status host_error(struct mt_error *error, enum mt_status status)
{
    return mt_fail(error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
}

/* If the trace has an index, only the definitions are read. */
static enum mt_status read_symbols(struct mt_source *source, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status = MT_OK;

    if (source->ops->seek)
        status = source->ops->seek(source, UINT64_MAX, false, error);
    while (status == MT_OK)
        status = mt_source_next(source, &batch, error);
    return status == MT_END ? mt_source_rewind(source, error) : status;
}

static bool has_native_frames(const struct mt_symbols *symbols)
{
    struct mt_native_frame native;
    uint32_t i;

    for (i = 0; i < symbols->frame_count; i++)
        if (mt_frame_is_native_address(symbols, i, &native))
            return true;
    return false;
}

static struct mt_symbols_copy symbols_copy(struct rewriting *self)
{
    return (struct mt_symbols_copy){&self->source->symbols, &self->symbols, NULL};
}

static enum mt_status copy_event(struct rewriting *self, struct mt_event event,
                                 struct mt_error *error)
{
    const struct mt_symbols_copy copy = symbols_copy(self);
    enum mt_status status = mt_stack_finalizer_get(self->stacks, event.stack, &event.stack);

    if (status == MT_OK)
        status = mt_symbols_copy_string(&copy, MT_TEXT_WORDS, event.name, &event.name);
    return status == MT_OK ? mt_writer_add(self->writer, &event, error) : host_error(error, status);
}

static void show_progress(const struct rewriting *self)
{
    if (self->options && self->options->progress)
        self->options->progress(self->options->context, self->source->progress_bytes,
                                self->source->input_bytes);
}

static enum mt_status copy_events(struct rewriting *self, struct mt_error *error)
{
    const struct mt_symbols_copy copy = symbols_copy(self);
    struct mt_event_batch batch;
    enum mt_status status;
    size_t i;

    while ((status = mt_source_next(self->source, &batch, error)) == MT_OK) {
        status = mt_symbols_copy_tables(&copy);
        if (status != MT_OK)
            return host_error(error, status);
        for (i = 0; i < batch.count && status == MT_OK; i++)
            status = copy_event(self, batch.events[i], error);
        if (status != MT_OK)
            return status;
        self->result->events += batch.count;
        show_progress(self);
    }
    return status == MT_END ? MT_OK : status;
}

/* The old trace is replaced, so data that is lost here is lost permanently. */
static enum mt_status check_whole(const struct mt_source *source, struct mt_error *error)
{
    const struct mt_integrity *integrity = &source->integrity;

    if (integrity->frames_damaged || integrity->events_invalid || integrity->events_unknown)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "the trace is damaged or has a later version, so it is not changed");
    return MT_OK;
}

static enum mt_status write_all(struct rewriting *self, struct mt_error *error)
{
    const struct mt_writer_options options = {0};
    enum mt_status status = mt_writer_new(self->made.file.fd, &self->source->header, &self->symbols,
                                          &options, &self->writer, error);

    if (status == MT_OK)
        status = copy_events(self, error);
    if (status == MT_OK)
        status = check_whole(self->source, error);
    if (status != MT_OK)
        return status;
    /* a trace without an end does not get one here */
    return self->source->integrity.closed ? mt_writer_finish(self->writer, error)
                                          : mt_writer_flush(self->writer, error);
}

static enum mt_status replace(struct rewriting *self, struct mt_error *error)
{
    enum mt_status status = mt_replacement_begin(
        &self->made, self->path, self->options ? self->options->unfinished : NULL, error);

    if (status == MT_OK)
        status = write_all(self, error);
    if (status == MT_OK) {
        const struct mt_replacement_facts facts = {.old = &self->info,
                                                   .events = self->result->events,
                                                   .ended = self->source->integrity.closed};
        status = mt_replacement_finish(&self->made, &facts, error);
    }
    self->result->rewritten = status == MT_OK;
    return status;
}

static enum mt_status prepare(struct rewriting *self, struct mt_error *error)
{
    self->names = mt_native_names_new((int64_t)self->info.st_mtime);
    self->stacks = mt_stack_finalizer_new(&self->source->symbols, &self->symbols, self->names);
    if (!self->names || !self->stacks || mt_symbols_init(&self->symbols) != MT_OK)
        return host_error(error, MT_ERR_MEMORY);
    return MT_OK;
}

static void report(struct rewriting *self)
{
    struct mt_finalize_result *result = self->result;
    struct mt_native_counts counts;

    mt_stack_finalizer_count(self->stacks, &result->native_frames, &result->named_frames);
    mt_native_names_count(self->names, &counts);
    result->modules = counts.modules;
    result->changed_modules = counts.changed;
    result->missing_modules = counts.missing;
    if (counts.example)
        snprintf(result->example, sizeof result->example, "%s", counts.example);
}

static enum mt_status open_trace(struct rewriting *self, struct mt_error *error)
{
    self->fd = mt_io_open(self->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (self->fd < 0 && errno == ELOOP)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "is a symbolic link");
    if (self->fd < 0 || fstat(self->fd, &self->info) < 0)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    return mt_trace_open_fd(self->fd, UINT64_MAX, &self->source, error);
}

static enum mt_status rewrite(struct rewriting *self, struct mt_error *error)
{
    enum mt_status status = open_trace(self, error);

    if (status == MT_OK)
        status = read_symbols(self->source, error);
    if (status != MT_OK || !has_native_frames(&self->source->symbols))
        return status;
    if (!mt_symbolize_available(error))
        return MT_ERR_UNSUPPORTED;
    status = prepare(self, error);
    if (status == MT_OK)
        status = replace(self, error);
    if (status == MT_OK)
        report(self);
    return status;
}

static void release(struct rewriting *self)
{
    mt_replacement_release(&self->made);
    mt_writer_free(self->writer);
    mt_stack_finalizer_free(self->stacks);
    mt_native_names_free(self->names);
    mt_symbols_release(&self->symbols);
    mt_source_close(self->source);
    if (self->fd >= 0)
        (void)mt_io_close(self->fd);
}

enum mt_status mt_trace_finalize(const char *path, const struct mt_finalize_options *options,
                                 struct mt_finalize_result *result, struct mt_error *error)
{
    struct mt_finalize_result unused;
    struct rewriting self = {.options = options,
                             .result = result ? result : &unused,
                             .path = path,
                             .fd = -1,
                             .made.file.fd = -1};
    enum mt_status status;

    memset(self.result, 0, sizeof *self.result);
    status = rewrite(&self, error);
    release(&self);
    return status;
}
