#include "redacted_source.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "grow.h"
#include "symbols.h"

struct redacted {
    struct mt_source source; /* first: what the reader sees */
    struct mt_source *inner;
    const struct mt_redaction *redaction;
    struct mt_arena texts;    /* of the header */
    uint32_t *stacks, *names; /* new ids by old stack and string; see NOT_YET */
    size_t stack_capacity, name_capacity;
    uint32_t stack_count, name_count; /* entries that are set */
};

#define NOT_YET (MT_NO_ID - 1)

static struct mt_symbols_copy copy_of(struct redacted *self)
{
    return (struct mt_symbols_copy){&self->inner->symbols, &self->source.symbols, self->redaction};
}

static enum mt_status copy_frame(const struct mt_symbols_copy *copy, uint32_t frame, uint32_t *id)
{
    const struct mt_frame *from = &copy->from->frames[frame];
    uint32_t function, file;
    enum mt_status status = mt_symbols_copy_string(copy, MT_TEXT_WORDS, from->function, &function);

    if (status == MT_OK)
        status = mt_symbols_copy_string(copy, MT_TEXT_FILE, from->file, &file);
    return status == MT_OK ? mt_symbols_frame(copy->to, function, file, from->line, id) : status;
}

/* Parents have smaller ids than their children. */
static enum mt_status copy_stacks(struct redacted *self)
{
    const struct mt_symbols_copy copy = copy_of(self);
    enum mt_status status = MT_OK;
    uint32_t frame;

    if (mt_grow(&self->stacks, &self->stack_capacity, copy.from->stack_count, sizeof *self->stacks))
        return MT_ERR_MEMORY;
    for (; self->stack_count < copy.from->stack_count && status == MT_OK; self->stack_count++) {
        const struct mt_stack *stack = &copy.from->stacks[self->stack_count];
        uint32_t parent = stack->parent == MT_NO_ID ? MT_NO_ID : self->stacks[stack->parent];

        status = copy_frame(&copy, stack->frame, &frame);
        if (status == MT_OK)
            status = mt_symbols_stack(copy.to, parent, frame, &self->stacks[self->stack_count]);
        if (status != MT_OK)
            break;
    }
    return status;
}

static enum mt_status copy_name(struct redacted *self, uint32_t *name)
{
    const struct mt_symbols_copy copy = copy_of(self);
    uint32_t old = *name;

    if (old >= copy.from->strings.count) {
        *name = MT_NO_ID;
        return MT_OK;
    }
    if (mt_grow(&self->names, &self->name_capacity, copy.from->strings.count, sizeof *self->names))
        return MT_ERR_MEMORY;
    while (self->name_count < copy.from->strings.count)
        self->names[self->name_count++] = NOT_YET;
    *name = self->names[old];
    if (*name != NOT_YET)
        return MT_OK;
    if (mt_symbols_copy_string(&copy, MT_TEXT_WORDS, old, name) != MT_OK)
        return MT_ERR_MEMORY;
    self->names[old] = *name;
    return MT_OK;
}

/* Copies what the last call of mt_source_next defined. The last frames may define symbols and have
 * no events. */
static enum mt_status copy_symbols(struct redacted *self)
{
    const struct mt_symbols_copy copy = copy_of(self);

    if (self->source.symbols_complete) /* other threads may read them */
        return MT_OK;
    enum mt_status status = mt_symbols_copy_tables(&copy);
    return status == MT_OK ? copy_stacks(self) : status;
}

static enum mt_status redact_batch(struct redacted *self, struct mt_event_batch *batch)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < batch->count && status == MT_OK; i++) {
        struct mt_event *event = &batch->events[i];

        event->stack = event->stack < self->stack_count ? self->stacks[event->stack] : MT_NO_ID;
        status = copy_name(self, &event->name);
    }
    return status;
}

static void follow(struct redacted *self)
{
    self->source.integrity = self->inner->integrity;
    self->source.decoded_bytes = self->inner->decoded_bytes;
    self->source.progress_bytes = self->inner->progress_bytes;
}

static enum mt_status next(struct mt_source *source, struct mt_event_batch *batch,
                           struct mt_error *error)
{
    struct redacted *self = (struct redacted *)source;
    const enum mt_status read = mt_source_next(self->inner, batch, error);

    follow(self);
    if (read < 0)
        return read;
    enum mt_status status = copy_symbols(self);
    if (status == MT_OK && read == MT_OK)
        status = redact_batch(self, batch);
    return status == MT_OK ? read : mt_fail_status(error, status);
}

static enum mt_status rewind_inner(struct mt_source *source, struct mt_error *error)
{
    struct redacted *self = (struct redacted *)source;
    enum mt_status status = mt_source_rewind(self->inner, error);

    follow(self);
    return status;
}

static void close_both(struct mt_source *source)
{
    struct redacted *self = (struct redacted *)source;

    mt_source_close(self->inner);
    mt_symbols_release(&self->source.symbols);
    mt_arena_release(&self->texts);
    free(self->stacks);
    free(self->names);
    free(self);
}

static bool redact_fact(struct redacted *self, enum mt_text_kind kind, const char **text)
{
    struct mt_buf out = {0};

    if (!*text)
        return true;
    mt_redact(self->redaction, kind, *text, strlen(*text), &out);
    *text = out.failed ? NULL : mt_arena_text(&self->texts, out.data ? out.data : "", out.length);
    mt_buf_release(&out);
    return *text != NULL;
}

/* A PCI address is the same on every machine of a kind. */
static bool redact_devices(struct redacted *self)
{
    struct mt_trace_header *header = &self->source.header;
    bool done = true;

    for (size_t i = 0; i < MT_IDENTITY_DEVICES && done; i++)
        done = redact_fact(self, MT_TEXT_UUID, &header->device_uuid[i]) &&
               redact_fact(self, MT_TEXT_WORDS, &header->device_pci[i]) &&
               redact_fact(self, MT_TEXT_WORDS, &header->device_mig[i]);
    return done;
}

static bool redact_header(struct redacted *self)
{
    struct mt_trace_header *header = &self->source.header;

    return redact_fact(self, MT_TEXT_WORDS, &header->framework) &&
           redact_fact(self, MT_TEXT_WORDS, &header->allocator_options) &&
           redact_fact(self, MT_TEXT_HOST, &header->host) &&
           redact_fact(self, MT_TEXT_BOOT, &header->boot_id) &&
           redact_fact(self, MT_TEXT_JOB, &header->job) &&
           redact_fact(self, MT_TEXT_WORDS, &header->local_rank) &&
           redact_fact(self, MT_TEXT_WORDS, &header->restart) &&
           redact_fact(self, MT_TEXT_WORDS, &header->mesh) &&
           redact_fact(self, MT_TEXT_WORDS, &header->process_groups) &&
           redact_fact(self, MT_TEXT_WORDS, &header->ended) && redact_devices(self) &&
           redact_fact(self, MT_TEXT_COMMAND, &header->command) &&
           redact_fact(self, MT_TEXT_WORDS, &header->sources) &&
           redact_fact(self, MT_TEXT_WORDS, &header->driver_calls) &&
           redact_fact(self, MT_TEXT_WORDS, &header->not_recorded) &&
           redact_fact(self, MT_TEXT_WORDS, &header->not_used) &&
           redact_fact(self, MT_TEXT_WORDS, &header->dry_run) &&
           redact_fact(self, MT_TEXT_WORDS, &header->settings);
}

struct mt_source *mt_redacted_source(struct mt_source *inner, const struct mt_redaction *redaction)
{
    static const struct mt_source_ops ops = {next, rewind_inner, NULL, close_both, NULL};
    struct redacted *self = calloc(1, sizeof *self);

    if (!self) {
        mt_source_close(inner);
        return NULL;
    }
    self->source.ops = &ops;
    self->source.format = inner->format;
    self->source.header = inner->header;
    self->source.input_bytes = inner->input_bytes;
    self->source.in_memory = inner->in_memory;
    self->inner = inner;
    self->redaction = redaction;
    follow(self);
    if (mt_symbols_init(&self->source.symbols) == MT_OK && redact_header(self))
        return &self->source;
    close_both(&self->source);
    return NULL;
}
