/* One pass over the trace: events are copied unchanged from the old file to the new one. The
 * symbols are defined again, in the order in which events need them. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "finalize.h"
#include "grow.h"
#include "io.h"
#include "native_names.h"
#include "recover.h"
#include "status.h"
#include "symbols.h"
#include "trace.h"
#include "util.h"

/* Converts stacks of a recorded trace to stacks with names and without frames of the recorder
 * (rules: finalize.h). Each distinct stack and frame is converted once. */

/* A frame of the old trace: a sequence of named frames. */
struct frame_names {
    uint32_t first, count; /* in `expanded`; count 0 = not resolved yet */
    bool is_native, is_named;
    uint8_t role;
};

/* A named frame. Most resolved frames (main, those of the interpreter and of memtrace) are in no
 * stack of the new trace, so they are not defined in it. */
struct expanded {
    uint32_t frame;  /* in `looked_at` */
    uint32_t result; /* in the new trace, MT_NO_ID = not used so far */
};

struct stack_finalizer {
    const struct mt_symbols *from;
    struct mt_symbols *to;
    struct mt_native_names *names;
    struct frame_names *frames; /* by old frame */
    uint32_t *stacks;           /* by old stack: new one + 1, 0 = not resolved yet */
    struct expanded *expanded;
    struct mt_symbols looked_at; /* frames and their texts */
    size_t frame_capacity, frame_count, stack_capacity, stack_count;
    size_t expanded_capacity, expanded_count;
    uint32_t native, named;
    uint32_t path[MT_MAX_STACK_DEPTH]; /* old frames of the current stack, outermost first */
};

struct stack_finalizer;

/* All arguments are borrowed; `from` grows, and `to` gets the symbols that are needed. */
static struct stack_finalizer *stack_finalizer_new(const struct mt_symbols *from,
                                                   struct mt_symbols *to,
                                                   struct mt_native_names *names)
{
    struct stack_finalizer *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    self->from = from;
    self->to = to;
    self->names = names;
    return self;
}

static void stack_finalizer_free(struct stack_finalizer *self)
{
    if (!self)
        return;
    free(self->frames);
    free(self->stacks);
    free(self->expanded);
    mt_symbols_release(&self->looked_at);
    free(self);
}

/* Sets *native to the number of distinct native frames, and *named to how many of them got a
 * name. */
static void stack_finalizer_count(const struct stack_finalizer *self, uint32_t *native,
                                  uint32_t *named)
{
    *native = self->native;
    *named = self->named;
}

static void text_of(const struct mt_symbols *symbols, uint32_t string, const char **text,
                    size_t *length)
{
    bool known = string < symbols->strings.count;

    *text = known ? symbols->strings.texts[string] : "";
    *length = known ? symbols->strings.lengths[string] : 0;
}

/* Sets *native to the texts of a frame. Returns true if they have the form of a native frame
 * (modules.h). */
static bool frame_is_native_address(const struct mt_symbols *symbols, uint32_t frame,
                                    struct mt_native_frame *native)
{
    struct mt_native_position place;

    text_of(symbols, symbols->frames[frame].function, &native->function, &native->function_length);
    text_of(symbols, symbols->frames[frame].file, &native->file, &native->file_length);
    return symbols->frames[frame].line == 0 && mt_native_frame_parse(native, &place);
}

static enum mt_status copy_string(const struct mt_symbols *from, uint32_t string,
                                  struct mt_symbols *to, uint32_t *id)
{
    const char *text;
    size_t length;

    *id = MT_NO_ID;
    if (string == MT_NO_ID)
        return MT_OK;
    text_of(from, string, &text, &length);
    return mt_symbols_string(to, text, length, id);
}

static enum mt_status copy_frame(const struct mt_symbols *from, const struct mt_frame *frame,
                                 struct mt_symbols *to, uint32_t *id)
{
    uint32_t function, file;
    enum mt_status status = copy_string(from, frame->function, to, &function);

    if (status == MT_OK)
        status = copy_string(from, frame->file, to, &file);
    return status == MT_OK ? mt_symbols_frame(to, function, file, frame->line, id) : status;
}

static enum mt_status add_expanded(struct stack_finalizer *self, struct expanded **expanded)
{
    if (mt_grow(&self->expanded, &self->expanded_capacity, self->expanded_count + 1,
                sizeof *self->expanded))
        return MT_ERR_MEMORY;
    *expanded = &self->expanded[self->expanded_count++];
    (*expanded)->result = MT_NO_ID;
    return MT_OK;
}

static enum mt_status add_as_it_is(struct stack_finalizer *self, const struct mt_frame *frame)
{
    struct expanded *expanded;
    enum mt_status status = add_expanded(self, &expanded);

    return status == MT_OK ? copy_frame(self->from, frame, &self->looked_at, &expanded->frame)
                           : status;
}

static enum mt_status add_place(struct stack_finalizer *self, const struct mt_code_position *place)
{
    struct mt_symbols *symbols = &self->looked_at;
    struct expanded *expanded;
    uint32_t function, file;
    enum mt_status status = add_expanded(self, &expanded);

    if (status == MT_OK)
        status = mt_symbols_string(symbols, place->function, strlen(place->function), &function);
    if (status == MT_OK)
        status = mt_symbols_string(symbols, place->file, strlen(place->file), &file);
    return status == MT_OK
               ? mt_symbols_frame(symbols, function, file, place->line, &expanded->frame)
               : status;
}

static enum mt_status look_at_frame(struct stack_finalizer *self, uint32_t id)
{
    struct frame_names *frame = &self->frames[id];
    struct mt_native_frame native;
    struct mt_native_name name = {.count = 0};
    enum mt_status status = MT_OK;

    frame->first = (uint32_t)self->expanded_count;
    frame->is_native = frame_is_native_address(self->from, id, &native);
    if (frame->is_native)
        status = mt_native_names_get(self->names, &native, &name);
    for (size_t i = 0; i < name.count && status == MT_OK; i++)
        status = add_place(self, &name.places[i]);
    if (status == MT_OK && name.count == 0)
        status = add_as_it_is(self, &self->from->frames[id]);
    frame->is_named = name.count > 0;
    frame->role = (uint8_t)name.role;
    frame->count = (uint32_t)self->expanded_count - frame->first;
    self->native += frame->is_native;
    self->named += frame->is_named;
    return status;
}

static enum mt_status look_at_frames(struct stack_finalizer *self, size_t depth)
{
    enum mt_status status = MT_OK;

    if (mt_grow(&self->frames, &self->frame_capacity, self->from->frame_count,
                sizeof *self->frames))
        return MT_ERR_MEMORY;
    for (; self->frame_count < self->from->frame_count; self->frame_count++)
        self->frames[self->frame_count] = (struct frame_names){0};
    for (size_t i = 0; i < depth && status == MT_OK; i++)
        if (!self->frames[self->path[i]].count)
            status = look_at_frame(self, self->path[i]);
    return status;
}

static const struct frame_names *frame_at(const struct stack_finalizer *self, size_t i)
{
    return &self->frames[self->path[i]];
}

static bool is_inside_driver(const struct frame_names *frame)
{
    return frame->is_native &&
           (frame->role == MT_NATIVE_COLLECTOR || frame->role == MT_NATIVE_DRIVER);
}

/* Returns the depth of the path without frames inside the driver. The call into the driver is kept,
 * but not its callees, which include CUPTI and memtrace's library. */
static size_t find_end(struct stack_finalizer *self, size_t depth)
{
    size_t run = depth, i;

    while (run > 0 && is_inside_driver(frame_at(self, run - 1)))
        run--;
    for (i = run; i < depth && frame_at(self, i)->role != MT_NATIVE_DRIVER;)
        i++;
    if (i == depth)
        return run;
    self->path[run] = self->path[i];
    return run + 1;
}

static uint32_t file_of(const struct stack_finalizer *self, size_t i)
{
    return self->from->frames[self->path[i]].file;
}

/* Returns the start of the native part that continues after the Python frames. It follows the last
 * frame of the interpreter. Unnamed frames in the interpreter's file belong to the interpreter. */
static size_t find_native_begin(const struct stack_finalizer *self, size_t first, size_t depth)
{
    size_t begin = first, i;

    for (i = first; i < depth; i++)
        if (frame_at(self, i)->role == MT_NATIVE_INTERPRETER)
            begin = i + 1;
    if (begin == first)
        return begin;
    for (i = begin; i < depth && !frame_at(self, i)->is_named; i++)
        if (file_of(self, i) != file_of(self, begin - 1))
            break;
    return i;
}

static enum mt_status push(struct stack_finalizer *self, struct expanded *expanded, uint32_t *stack)
{
    enum mt_status status = MT_OK;

    if (expanded->result == MT_NO_ID)
        status = copy_frame(&self->looked_at, &self->looked_at.frames[expanded->frame], self->to,
                            &expanded->result);
    return status == MT_OK ? mt_symbols_stack(self->to, *stack, expanded->result, stack) : status;
}

static enum mt_status add_frames(struct stack_finalizer *self, size_t begin, size_t end,
                                 uint32_t *stack)
{
    enum mt_status status = MT_OK;

    for (size_t i = begin; i < end; i++) {
        const struct frame_names *frame = frame_at(self, i);
        for (uint32_t k = 0; k < frame->count && status == MT_OK; k++)
            status = push(self, &self->expanded[frame->first + k], stack);
    }
    return status;
}

static enum mt_status make_stack(struct stack_finalizer *self, uint32_t old, uint32_t *stack)
{
    size_t depth = self->from->stacks[old].depth, native;

    for (size_t i = depth; i > 0; old = self->from->stacks[old].parent)
        self->path[--i] = self->from->stacks[old].frame;
    enum mt_status status = look_at_frames(self, depth);
    if (status != MT_OK)
        return status;
    for (native = 0; native < depth && !frame_at(self, native)->is_native;)
        native++;
    size_t end = find_end(self, depth);
    size_t begin = native > 0 ? find_native_begin(self, native, end) : 0;
    *stack = MT_NO_ID;
    status = add_frames(self, 0, mt_min_u64(native, begin), stack);
    return status == MT_OK ? add_frames(self, begin, end, stack) : status;
}

/* Returns the stack of `to` for one of `from`. Returns MT_NO_ID for MT_NO_ID, and for stacks
 * without remaining frames. MT_ERR_UNSUPPORTED: deeper than any recorded stack. */
static enum mt_status stack_finalizer_get(struct stack_finalizer *self, uint32_t stack,
                                          uint32_t *result)
{
    enum mt_status status = MT_OK;

    *result = MT_NO_ID;
    if (stack >= self->from->stack_count)
        return MT_OK;
    if (mt_grow(&self->stacks, &self->stack_capacity, self->from->stack_count,
                sizeof *self->stacks))
        return MT_ERR_MEMORY;
    for (; self->stack_count < self->from->stack_count; self->stack_count++)
        self->stacks[self->stack_count] = 0;
    if (!self->stacks[stack]) {
        status = make_stack(self, stack, result);
        if (status == MT_OK)
            self->stacks[stack] = *result + 1; /* MT_NO_ID + 1 is 0: the stack is built again */
    } else {
        *result = self->stacks[stack] - 1;
    }
    return status;
}

struct rewriting {
    const struct mt_finalize_options *options;
    struct mt_finalize_result *result;
    struct mt_source *source;
    struct mt_symbols symbols; /* of the new file */
    struct mt_native_names *names;
    struct stack_finalizer *stacks;
    struct mt_writer *writer;
    const char *path;
    int fd; /* of the trace */
    struct stat info;
    struct mt_replacement made;
};

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

    for (uint32_t i = 0; i < symbols->frame_count; i++)
        if (frame_is_native_address(symbols, i, &native))
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
    enum mt_status status = stack_finalizer_get(self->stacks, event.stack, &event.stack);

    if (status == MT_OK)
        status = mt_symbols_copy_string(&copy, MT_TEXT_WORDS, event.name, &event.name);
    return status == MT_OK ? mt_writer_add(self->writer, &event, error)
                           : mt_fail_status(error, status);
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

    while ((status = mt_source_next(self->source, &batch, error)) == MT_OK) {
        status = mt_symbols_copy_tables(&copy);
        if (status != MT_OK)
            return mt_fail_status(error, status);
        for (size_t i = 0; i < batch.count && status == MT_OK; i++)
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
    self->stacks = stack_finalizer_new(&self->source->symbols, &self->symbols, self->names);
    if (!self->names || !self->stacks || mt_symbols_init(&self->symbols) != MT_OK)
        return mt_fail_memory(error);
    return MT_OK;
}

static void report(struct rewriting *self)
{
    struct mt_finalize_result *result = self->result;
    struct mt_native_counts counts;

    stack_finalizer_count(self->stacks, &result->native_frames, &result->named_frames);
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
    stack_finalizer_free(self->stacks);
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

    memset(self.result, 0, sizeof *self.result);
    enum mt_status status = rewrite(&self, error);
    release(&self);
    return status;
}
