/* A trace file as a source of events: one batch per frame; damage is counted and skipped. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "codec.h"
#include "container.h"
#include "zstd_frames.h"

enum skip { SKIP_NONE, SKIP_TO_SEQ, SKIP_TO_TIME };

struct trace_source {
    struct mt_source base; /* first: the ops get a pointer to it */
    struct mt_input input;
    struct mt_zstd_frames frames;
    struct mt_decoder *decoder;
    struct mt_ids ids;
    struct mt_arena arena;
    size_t next;                  /* index in frames.found */
    uint64_t next_seq, last_t_ns; /* lower bounds of the next event */
    enum skip skip;               /* events before the target of a seek are dropped */
    uint64_t skip_target;
    /* frames without the damage between them, for mt_trace_frames and seek */
    struct mt_zstd_frame_info *infos;
    size_t *places; /* indices of infos in frames.found */
    size_t info_count;
    struct mt_check_pace pace;    /* of mt_symbols_is_sound */
    struct mt_integrity of_input; /* every reading begins with it */
};

static struct trace_source *from_base(struct mt_source *base)
{
    return (struct trace_source *)(void *)base;
}

/* Counts damage with its place: "frame 12: checksum mismatch". A damaged header does not count as a
 * frame. */
static void count_damage(struct trace_source *source, size_t i, const char *reason)
{
    struct mt_integrity *integrity = &source->base.integrity;
    const struct mt_found *found = source->frames.found;
    uint64_t offset = found[i].entry.info.offset;
    size_t number = i - (found[0].damage && !strcmp(found[0].what, "header"));

    integrity->frames_damaged++;
    integrity->header_damaged |= !strcmp(found[i].what, "header");
    if (integrity->first_error.status != MT_OK)
        return;
    if (strcmp(found[i].what, "frame") != 0)
        mt_fail(&integrity->first_error, MT_ERR_FORMAT, offset, "%s: %s", found[i].what, reason);
    else
        mt_fail(&integrity->first_error, MT_ERR_FORMAT, offset, "frame %zu: %s", number, reason);
}

/* Whether this is damage of the file, which is counted, and not a failure of the host. */
static bool is_damage(enum mt_status status)
{
    return status == MT_ERR_FORMAT || status == MT_ERR_UNSUPPORTED;
}

/* Loads frame i and its definitions. MT_ERR_FORMAT: damaged, counted. */
static enum mt_status load(struct trace_source *source, size_t i, struct mt_event_block *block,
                           struct mt_error *error)
{
    struct mt_found *found = &source->frames.found[i];
    const char *reason = found->damage;
    enum mt_status status = MT_ERR_FORMAT;

    if (!reason)
        status = mt_zstd_frames_load(&source->frames, i, block, &reason, error);
    if (status == MT_OK && !found->defined) {
        status = mt_ids_define(&source->ids, &source->base.symbols, block->definitions, &reason);
        found->defined = status == MT_OK;
        if (status == MT_ERR_MEMORY)
            return mt_fail_status(error, status);
    }
    if (!is_damage(status))
        return status;
    count_damage(source, i, reason);
    return MT_ERR_FORMAT;
}

static enum mt_status decode(struct trace_source *source, size_t i,
                             const struct mt_event_block *block, struct mt_decoded *decoded,
                             struct mt_error *error)
{
    const char *reason = NULL;
    enum mt_status status = MT_ERR_FORMAT;

    if (block->header.event_count && block->header.base_t_ns < source->last_t_ns)
        reason = "goes back in time";
    else if (block->header.event_count && block->header.first_seq < source->next_seq)
        reason = "its sequence numbers go back";
    else
        status = mt_event_block_decode(source->decoder, block, &source->ids, &source->base.symbols,
                                       decoded, &reason);
    if (status == MT_ERR_MEMORY)
        return mt_fail_status(error, status);
    if (status == MT_OK || status == MT_END)
        return status;
    count_damage(source, i, reason);
    return MT_ERR_FORMAT;
}

static void count_frame(struct trace_source *source, const struct mt_found *found,
                        const struct mt_decoded *decoded)
{
    struct mt_integrity *integrity = &source->base.integrity;

    MT_ASSERT(decoded->count + decoded->unknown <= found->entry.info.event_count);
    MT_ASSERT(decoded->invalid <= found->entry.info.event_count);
    integrity->frames_read++;
    integrity->events_read += decoded->count;
    integrity->events_unknown += decoded->unknown;
    integrity->events_invalid += decoded->invalid;
    integrity->events_dropped += decoded->dropped;
    integrity->closed |= decoded->closed;
    /* input_bytes: of the file from which an importer made the trace */
    source->base.progress_bytes =
        (uint64_t)((double)(found->entry.info.offset + found->entry.info.compressed_bytes) *
                   (double)source->base.input_bytes / (double)source->input.size);
}

/* Events ascend and every id refers to a symbol. All readers of a source rely on this. */
static bool batch_is_sound(const struct mt_symbols *symbols, const struct mt_decoded *decoded,
                           const char **why)
{
    for (size_t i = 0; i < decoded->count; i++) {
        const struct mt_event *event = &decoded->events[i];
        MT_SOUND(why, !i || event->seq > event[-1].seq);
        MT_SOUND(why, !i || event->t_ns >= event[-1].t_ns);
        MT_SOUND(why, event->stack == MT_NO_ID || event->stack < symbols->stack_count);
        MT_SOUND(why, event->name == MT_NO_ID || event->name < symbols->strings.count);
        MT_SOUND(why, event->stream < symbols->stream_count);
        MT_SOUND(why, event->pool < symbols->pool_count && event->heap < symbols->heap_count);
        MT_SOUND(why, event->thread < symbols->thread_count);
        MT_SOUND(why, event->device < symbols->device_count);
    }
    return true;
}

static void check_batch(struct trace_source *source, const struct mt_decoded *decoded)
{
    const struct mt_symbols *symbols = &source->base.symbols;
    uint64_t cost = (symbols->strings.count + symbols->stack_count) / (decoded->count + 1u);
    const char *why = "";

    MT_ASSERT_SOUND(batch_is_sound(symbols, decoded, &why), why);
    if (mt_check_is_due(&source->pace, cost))
        MT_ASSERT_SOUND(mt_symbols_is_sound(symbols, &why), why);
}

/* Drops the events before the target of a seek. */
static void skip_events(struct trace_source *source, struct mt_event_batch *batch)
{
    while (source->skip != SKIP_NONE && batch->count) {
        const struct mt_event *event = &batch->events[0];
        uint64_t value = source->skip == SKIP_TO_SEQ ? event->seq : event->t_ns;
        if (value >= source->skip_target) {
            source->skip = SKIP_NONE;
            return;
        }
        MT_ASSERT(source->base.integrity.events_read > 0);
        batch->events++;
        batch->count--;
        source->base.integrity.events_read--;
    }
}

static enum mt_status finish(struct trace_source *source)
{
    struct mt_integrity *integrity = &source->base.integrity;

    if (source->frames.cut) {
        integrity->cut = true;
        integrity->cut_offset = source->input.size;
    }
    source->base.progress_bytes = source->base.input_bytes;
    return MT_END;
}

static enum mt_status trace_next(struct mt_source *base, struct mt_event_batch *batch,
                                 struct mt_error *error)
{
    struct trace_source *source = from_base(base);

    for (;;) {
        size_t i = source->next;
        struct mt_decoded decoded;
        struct mt_event_block block;
        enum mt_status status = mt_zstd_frames_get(&source->frames, i, error);
        if (status != MT_OK)
            return status == MT_END ? finish(source) : status;
        source->next++;
        status = load(source, i, &block, error);
        if (status == MT_OK)
            status = decode(source, i, &block, &decoded, error);
        if (status == MT_ERR_FORMAT)
            continue;
        if (status != MT_OK)
            return status;
        count_frame(source, &source->frames.found[i], &decoded);
        if (!decoded.count)
            continue;
        check_batch(source, &decoded);
        MT_ASSERT(decoded.events[0].t_ns >= source->last_t_ns);
        MT_ASSERT(decoded.events[0].seq >= source->next_seq);
        source->next_seq = decoded.events[decoded.count - 1].seq + 1;
        source->last_t_ns = decoded.events[decoded.count - 1].t_ns;
        *batch = (struct mt_event_batch){decoded.events, decoded.count, decoded.only_heap};
        skip_events(source, batch);
        if (batch->count)
            return MT_OK;
    }
}

static enum mt_status trace_rewind(struct mt_source *base, struct mt_error *error)
{
    struct trace_source *source = from_base(base);

    (void)error;
    base->integrity = source->of_input;
    base->progress_bytes = 0;
    source->next = 0;
    source->next_seq = source->last_t_ns = 0;
    source->skip = SKIP_NONE;
    return MT_OK;
}

static enum mt_status find_all_frames(struct trace_source *source, struct mt_error *error)
{
    struct mt_zstd_frames *frames = &source->frames;
    enum mt_status status = mt_zstd_frames_get(frames, SIZE_MAX, error);

    if (status != MT_END)
        return status;
    if (source->infos)
        return MT_OK;
    source->infos = malloc((frames->count + 1) * sizeof *source->infos);
    source->places = malloc((frames->count + 1) * sizeof *source->places);
    if (!source->infos || !source->places)
        return mt_fail_memory(error);
    for (size_t i = 0; i < frames->count; i++) {
        if (frames->found[i].damage)
            continue;
        source->places[source->info_count] = i;
        source->infos[source->info_count++] = frames->found[i].entry.info;
    }
    return MT_OK;
}

enum mt_status mt_trace_frames(struct mt_source *base, const struct mt_zstd_frame_info **frames,
                               size_t *count, struct mt_error *error)
{
    struct trace_source *source = from_base(base);
    enum mt_status status = find_all_frames(source, error);

    if (status != MT_OK)
        return status;
    *frames = source->infos;
    *count = source->info_count;
    return MT_OK;
}

/* Defines the symbols that events of frame `end` and later may refer to. Most frames define nothing
 * and are not read. */
static enum mt_status define_before(struct trace_source *source, size_t end, struct mt_error *error)
{
    for (size_t i = 0; i < end; i++) {
        const struct mt_found *found = &source->frames.found[i];
        struct mt_event_block block;
        if (found->damage || found->defined || !found->entry.definition_bytes)
            continue;
        enum mt_status status = load(source, i, &block, error);
        if (status != MT_OK && status != MT_ERR_FORMAT)
            return status;
    }
    return MT_OK;
}

/* Returns the last frame that starts before the target (by seq: at or before it). By time, equal
 * instants may be on both sides of a border. */
static size_t frame_before(const struct trace_source *source, uint64_t target, bool by_time)
{
    size_t low = 0, high = source->info_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct mt_zstd_frame_info *info = &source->infos[middle];
        bool before = by_time ? info->first_t_ns < target : info->first_seq <= target;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    MT_ASSERT(low <= source->info_count);
    return low ? low - 1 : 0;
}

static enum mt_status trace_seek(struct mt_source *base, uint64_t target, bool by_time,
                                 struct mt_error *error)
{
    struct trace_source *source = from_base(base);
    enum mt_status status = find_all_frames(source, error);

    if (status == MT_OK)
        status = trace_rewind(base, error);
    if (status != MT_OK || !source->info_count)
        return status;
    size_t frame = source->places[frame_before(source, target, by_time)];
    MT_ASSERT(frame < source->frames.count && !source->frames.found[frame].damage);
    status = define_before(source, frame, error);
    if (status != MT_OK)
        return status;
    source->next = frame;
    source->skip = by_time ? SKIP_TO_TIME : SKIP_TO_SEQ;
    source->skip_target = target;
    return MT_OK;
}

static enum mt_status trace_complete_symbols(struct mt_source *base, struct mt_error *error)
{
    struct trace_source *source = from_base(base);
    enum mt_status status;
    bool damaged = false;

    for (size_t i = 0; (status = mt_zstd_frames_get(&source->frames, i, error)) == MT_OK; i++) {
        struct mt_event_block block;

        status = load(source, i, &block, error);
        if (status != MT_OK && status != MT_ERR_FORMAT)
            return status;
        if (status == MT_OK)
            status = mt_event_block_resolve(source->decoder, &block, &source->ids, &base->symbols);
        if (status == MT_ERR_MEMORY)
            return mt_fail_status(error, status);
        damaged |= status != MT_OK;
    }
    base->symbols_complete = status == MT_END && !damaged;
    return status == MT_END ? MT_OK : status;
}

static void trace_close(struct mt_source *base)
{
    struct trace_source *source = from_base(base);

    mt_zstd_frames_release(&source->frames);
    mt_input_close(&source->input);
    mt_decoder_free(source->decoder);
    mt_ids_release(&source->ids);
    mt_symbols_release(&base->symbols);
    mt_arena_release(&source->arena);
    free(source->infos);
    free(source->places);
    free(source);
}

static const struct mt_source_ops trace_ops = {trace_next, trace_rewind, trace_seek, trace_close,
                                               trace_complete_symbols};

static struct trace_source *new_source(void)
{
    struct trace_source *source = calloc(1, sizeof *source);

    if (!source)
        return NULL;
    source->base.ops = &trace_ops;
    source->base.format = "memtrace/1";
    source->base.announces_changes = true;
    source->base.header.rank = source->base.header.world_size = -1;
    source->input.fd = -1;
    return source;
}

/* The header is lost, so its facts are unknown. Assumes what a trace usually has, so that no
 * existing data is ignored. */
static void assume_usual_header(struct mt_trace_header *header)
{
    header->format_version = MT_FORMAT_VERSION;
    header->has_stacks = header->has_segments = true;
    header->has_free_requested = header->has_free_completed = true;
}

static bool header_is_lost(const struct mt_zstd_frames *frames)
{
    return frames->count && frames->found[0].damage && frames->found[0].entry.info.offset == 0;
}

/* If the header is damaged, the first frame must be intact: otherwise the file could be
 * anything. */
static enum mt_status check_is_trace(struct trace_source *source, struct mt_error *error)
{
    struct mt_zstd_frames *frames = &source->frames;

    if (!header_is_lost(frames))
        return MT_OK;
    enum mt_status status = mt_zstd_frames_get(frames, 1, error);
    if (status == MT_END)
        return mt_fail(error, MT_ERR_FORMAT, 0, "not a memtrace trace: %s",
                       frames->found[0].damage);
    if (status != MT_OK)
        return status;
    assume_usual_header(&source->base.header);
    source->base.header.start_t_ns = frames->found[1].entry.info.first_t_ns;
    return MT_OK;
}

static enum mt_status open_input(struct trace_source *source, struct mt_error *error)
{
    struct mt_zstd_frames *frames = &source->frames;

    source->base.input_bytes = source->input.size;
    mt_ids_init(&source->ids, source->input.size);
    source->ids.source = &source->base;
    source->decoder = mt_decoder_new();
    if (!source->decoder || mt_symbols_init(&source->base.symbols) != MT_OK ||
        mt_zstd_frames_init(frames, &source->input) != MT_OK)
        return mt_fail_memory(error);
    enum mt_status status =
        mt_zstd_frames_read_header(frames, &source->arena, &source->base.header, error);
    if (status == MT_OK)
        status = mt_zstd_frames_use_index(frames, error);
    if (status == MT_OK)
        status = check_is_trace(source, error);
    for (size_t i = 0; frames->indexed && i < frames->count; i++)
        source->base.decoded_bytes += frames->found[i].entry.info.raw_bytes;
    return status;
}

/* Continues with an input that was opened with `status`. */
static enum mt_status open_source(struct trace_source *source, enum mt_status status,
                                  struct mt_source **out, struct mt_error *error)
{
    if (status == MT_OK)
        status = open_input(source, error);
    if (status == MT_OK)
        *out = &source->base;
    else
        trace_close(&source->base);
    return status;
}

enum mt_status mt_trace_open(const char *path, struct mt_source **out, struct mt_error *error)
{
    struct trace_source *source = new_source();

    if (!source)
        return mt_fail_memory(error);
    return open_source(source, mt_input_open(&source->input, path, error), out, error);
}

enum mt_status mt_trace_open_fd(int fd, uint64_t limit_bytes, struct mt_source **out,
                                struct mt_error *error)
{
    struct trace_source *source = new_source();

    if (!source)
        return mt_fail_memory(error);
    return open_source(source, mt_input_open_fd(&source->input, fd, limit_bytes, error), out,
                       error);
}

enum mt_status mt_trace_open_memory(const void *bytes, size_t length, struct mt_source **out,
                                    struct mt_error *error)
{
    struct trace_source *source = new_source();

    if (!source)
        return mt_fail_memory(error);
    mt_input_open_memory(&source->input, bytes, length);
    return open_source(source, MT_OK, out, error);
}

void mt_trace_set_input_damage(struct mt_source *base, const struct mt_integrity *damage)
{
    from_base(base)->of_input = *damage;
    base->integrity = *damage;
}

enum mt_status mt_trace_open_owned(void *bytes, size_t length, struct mt_source **out,
                                   struct mt_error *error)
{
    enum mt_status status = mt_trace_open_memory(bytes, length, out, error);

    if (status == MT_OK)
        ((struct trace_source *)*out)->input.owned = bytes;
    else
        free(bytes);
    return status;
}
