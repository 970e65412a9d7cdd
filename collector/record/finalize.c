/* One pass over the trace: events go from the old file to the new one as they
 * are, symbols are made anew, in the order in which events need them. */
#include "finalize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "finalize_stacks.h"
#include "native_names.h"
#include "trace.h"

struct rewriting {
    const struct mt_finalize_options *options;
    struct mt_finalize_result *result;
    struct mt_source *source;
    struct mt_symbols symbols; /* of the new file */
    struct mt_native_names *names;
    struct mt_stack_finalizer *stacks;
    struct mt_writer *writer;
    char *path;      /* absolute, without symbolic links */
    char *temporary; /* the new file until it is whole */
    struct stat info;
};

bool mt_finalize_available(void)
{
    return mt_symbolize_available();
}

static enum mt_status host_error(struct mt_error *error, enum mt_status status)
{
    return mt_fail(error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
}

static enum mt_status output_error(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
}

/* ---- is there anything to do? ----------------------------------------- */

/* Definitions alone are read where the trace has an index. */
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

/* ---- symbols ---------------------------------------------------------- */

static enum mt_status copy_string(struct rewriting *self, uint32_t string, uint32_t *id)
{
    const struct mt_strings *strings = &self->source->symbols.strings;

    *id = MT_NO_ID;
    if (string >= strings->count)
        return MT_OK;
    return mt_symbols_string(&self->symbols, strings->texts[string], strings->lengths[string], id);
}

/* Ids of small tables stay as they are: events refer to them. */
static enum mt_status same_id(enum mt_status status, const uint32_t *id, uint32_t wanted)
{
    return status == MT_OK && *id != wanted ? MT_ERR_FORMAT : status;
}

static enum mt_status copy_threads(struct rewriting *self)
{
    const struct mt_symbols *from = &self->source->symbols;
    enum mt_status status = MT_OK;
    uint32_t i, name, id;

    for (i = 0; i < from->thread_count && status == MT_OK; i++) {
        const struct mt_thread_info *thread = &from->threads[i];
        if (i > 0 && i < self->symbols.thread_count)
            continue; /* only thread 0 is described late */
        status = copy_string(self, thread->name, &name);
        if (status == MT_OK && i == self->symbols.thread_count)
            status = same_id(mt_symbols_thread(&self->symbols, name, thread->os_id, &id), &id, i);
        if (status == MT_OK)
            self->symbols.threads[i] = (struct mt_thread_info){name, thread->os_id};
    }
    return status;
}

static enum mt_status copy_devices(struct rewriting *self)
{
    const struct mt_symbols *from = &self->source->symbols;
    enum mt_status status = MT_OK;
    uint32_t i, name;

    for (i = 0; i < from->device_count && status == MT_OK; i++) {
        status = copy_string(self, from->devices[i].name, &name);
        if (status == MT_OK)
            status =
                mt_symbols_device(&self->symbols, i, name, from->devices[i].total_memory_bytes);
    }
    return status;
}

static enum mt_status copy_heaps(struct rewriting *self)
{
    const struct mt_symbols *from = &self->source->symbols;
    enum mt_status status = MT_OK;
    uint32_t i, name, id;

    for (i = self->symbols.heap_count; i < from->heap_count && status == MT_OK; i++) {
        status = copy_string(self, from->heaps[i].name, &name);
        if (status == MT_OK)
            status = same_id(mt_symbols_heap(&self->symbols, name, &id), &id, i);
    }
    return status;
}

static enum mt_status copy_tables(struct rewriting *self)
{
    const struct mt_symbols *from = &self->source->symbols;
    enum mt_status status = copy_threads(self);
    uint32_t i, id;

    if (status == MT_OK)
        status = copy_devices(self);
    if (status == MT_OK)
        status = copy_heaps(self);
    for (i = self->symbols.stream_count; i < from->stream_count && status == MT_OK; i++)
        status = same_id(mt_symbols_stream(&self->symbols, from->streams[i].handle, &id), &id, i);
    for (i = self->symbols.pool_count; i < from->pool_count && status == MT_OK; i++)
        status = same_id(
            mt_symbols_pool(&self->symbols, from->pools[i].id[0], from->pools[i].id[1], &id), &id,
            i);
    return status;
}

/* ---- events ----------------------------------------------------------- */

static enum mt_status copy_event(struct rewriting *self, struct mt_event event,
                                 struct mt_error *error)
{
    enum mt_status status = mt_stack_finalizer_get(self->stacks, event.stack, &event.stack);

    if (status == MT_OK)
        status = copy_string(self, event.name, &event.name);
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
    struct mt_event_batch batch;
    enum mt_status status;
    size_t i;

    while ((status = mt_source_next(self->source, &batch, error)) == MT_OK) {
        status = copy_tables(self);
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

/* What is lost would be lost for good, and nobody would know. */
static enum mt_status check_whole(const struct mt_source *source, struct mt_error *error)
{
    const struct mt_integrity *integrity = &source->integrity;

    if (integrity->frames_damaged || integrity->events_invalid || integrity->events_unknown)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "the trace is damaged, or of a later version: it stays as it is");
    return MT_OK;
}

/* ---- files ------------------------------------------------------------ */

static enum mt_status write_all(struct rewriting *self, int fd, struct mt_error *error)
{
    const struct mt_writer_options options = {0};
    enum mt_status status =
        mt_writer_new(fd, &self->source->header, &self->symbols, &options, &self->writer, error);

    if (status == MT_OK)
        status = copy_events(self, error);
    if (status == MT_OK)
        status = check_whole(self->source, error);
    if (status != MT_OK)
        return status;
    /* a trace that nobody ended is not ended by us */
    return self->source->integrity.closed ? mt_writer_finish(self->writer, error)
                                          : mt_writer_flush(self->writer, error);
}

static enum mt_status replace(struct rewriting *self, struct mt_error *error)
{
    int fd = mkstemp(self->temporary);
    enum mt_status status;

    if (fd < 0) {
        self->temporary[0] = '\0';
        return output_error(error);
    }
    status = write_all(self, fd, error);
    if (status == MT_OK && fchmod(fd, self->info.st_mode & 07777) < 0)
        status = output_error(error);
    if (close(fd) < 0 && status == MT_OK)
        status = output_error(error);
    if (status == MT_OK && rename(self->temporary, self->path) < 0)
        status = output_error(error);
    if (status != MT_OK)
        unlink(self->temporary);
    self->result->rewritten = status == MT_OK;
    return status;
}

static enum mt_status prepare(struct rewriting *self, struct mt_error *error)
{
    size_t length = strlen(self->path);
    static const char suffix[] = ".names-XXXXXX";

    self->temporary = malloc(length + sizeof suffix);
    self->names = mt_native_names_new((int64_t)self->info.st_mtime);
    self->stacks = mt_stack_finalizer_new(&self->source->symbols, &self->symbols, self->names);
    if (!self->temporary || !self->names || !self->stacks ||
        mt_symbols_init(&self->symbols) != MT_OK)
        return host_error(error, MT_ERR_MEMORY);
    memcpy(self->temporary, self->path, length);
    memcpy(self->temporary + length, suffix, sizeof suffix);
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

static enum mt_status rewrite(struct rewriting *self, struct mt_error *error)
{
    enum mt_status status = mt_trace_open(self->path, &self->source, error);

    if (status == MT_OK && stat(self->path, &self->info) < 0)
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    if (status == MT_OK)
        status = read_symbols(self->source, error);
    if (status != MT_OK || !has_native_frames(&self->source->symbols))
        return status;
    status = prepare(self, error);
    if (status == MT_OK)
        status = replace(self, error);
    if (status == MT_OK)
        report(self);
    return status;
}

static void release(struct rewriting *self)
{
    mt_writer_free(self->writer);
    mt_stack_finalizer_free(self->stacks);
    mt_native_names_free(self->names);
    mt_symbols_release(&self->symbols);
    mt_source_close(self->source);
    free(self->temporary);
    free(self->path);
}

enum mt_status mt_trace_finalize(const char *path, const struct mt_finalize_options *options,
                                 struct mt_finalize_result *result, struct mt_error *error)
{
    struct mt_finalize_result unused;
    struct rewriting self = {.options = options, .result = result ? result : &unused};
    enum mt_status status;

    memset(self.result, 0, sizeof *self.result);
    if (!mt_finalize_available())
        return MT_OK;
    self.path = realpath(path, NULL);
    if (!self.path)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    status = rewrite(&self, error);
    release(&self);
    return status;
}
