/* Values of a pickle as entries of the symbol tables. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "event.h"
#include "grow.h"
#include "torch.h"
#include "torch_facts.h"
#include "torch_names.h"
#include "util.h"

const char *const mt_torch_words[MT_WORD_COUNT] = {
    [MT_WORD_ACTION] = "action",
    [MT_WORD_ADDR] = "addr",
    [MT_WORD_SIZE] = "size",
    [MT_WORD_STREAM] = "stream",
    [MT_WORD_TIME_US] = "time_us",
    [MT_WORD_FRAMES] = "frames",
    [MT_WORD_DEVICE_FREE] = "device_free",
    [MT_WORD_POOL_ID] = "pool_id",
    [MT_WORD_CATEGORY] = "category",
    [MT_WORD_SEGMENT_POOL_ID] = "segment_pool_id",
    [MT_WORD_DEVICE] = "device",
    [MT_WORD_ADDRESS] = "address",
    [MT_WORD_TOTAL_SIZE] = "total_size",
    [MT_WORD_ALLOCATED_SIZE] = "allocated_size",
    [MT_WORD_ACTIVE_SIZE] = "active_size",
    [MT_WORD_REQUESTED_SIZE] = "requested_size",
    [MT_WORD_REAL_SIZE] = "real_size",
    [MT_WORD_IS_EXPANDABLE] = "is_expandable",
    [MT_WORD_BLOCKS] = "blocks",
    [MT_WORD_STATE] = "state",
    [MT_WORD_HISTORY] = "history",
    [MT_WORD_FILENAME] = "filename",
    [MT_WORD_NAME] = "name",
    [MT_WORD_LINE] = "line",
    [MT_WORD_STAGE] = "stage",
    [MT_WORD_SEGMENTS] = "segments",
    [MT_WORD_DEVICE_TRACES] = "device_traces",
    [MT_WORD_ALLOCATOR_SETTINGS] = "allocator_settings",
    [MT_WORD_EXTERNAL_ANNOTATIONS] = "external_annotations",
    [MT_WORD_USER_METADATA] = "user_metadata",
    [MT_WORD_INTERNAL_METADATA] = "internal_metadata",
    [MT_WORD_FX_ORIGINAL_TRACE] = "fx_original_trace",
    [MT_WORD_HOST_SEGMENTS] = "host_segments",
    [MT_WORD_HOST_TRACES] = "host_traces",
    [MT_WORD_ALLOC] = "alloc",
    [MT_WORD_FREE_REQUESTED] = "free_requested",
    [MT_WORD_FREE_COMPLETED] = "free_completed",
    [MT_WORD_SEGMENT_ALLOC] = "segment_alloc",
    [MT_WORD_SEGMENT_FREE] = "segment_free",
    [MT_WORD_SEGMENT_MAP] = "segment_map",
    [MT_WORD_SEGMENT_UNMAP] = "segment_unmap",
    [MT_WORD_OOM] = "oom",
    [MT_WORD_SNAPSHOT] = "snapshot",
    [MT_WORD_ANNOTATE] = "annotate",
    [MT_WORD_USER_DEFINED] = "user_defined",
    [MT_WORD_UNKNOWN] = "unknown",
    [MT_WORD_MALLOC_WITH_ADDRESS] = "mallocWithAddress",
    [MT_WORD_ACTIVE_ALLOCATED] = "active_allocated",
    [MT_WORD_ACTIVE_PENDING_FREE] = "active_pending_free",
    [MT_WORD_ACTIVE_AWAITING_FREE] = "active_awaiting_free",
    [MT_WORD_START] = "START",
    [MT_WORD_END] = "END",
};

enum { MAX_NAME_BYTES = 64 };

void mt_torch_note_unused(struct mt_torch_records *r, enum mt_torch_record of,
                          const struct mt_pickle_value *key)
{
    size_t i;

    if (key->kind != MT_PICKLE_TEXT)
        return;
    for (i = 0; i < r->unused_count; i++)
        if (r->unused[i].text == key->bits && r->unused[i].of == of)
            return;
    if (i < MT_TORCH_MAX_UNUSED)
        r->unused[r->unused_count++] = (struct mt_torch_unused){key->bits, of};
}

static void add_name(const struct mt_torch_unused *unused, const struct mt_pickle *pickle,
                     struct mt_buf *out)
{
    const struct mt_pickle_value key = {.bits = unused->text, .kind = MT_PICKLE_TEXT};
    size_t length;
    const char *name = mt_pickle_text(pickle, key, &length);

    for (size_t i = 0; i < length && i < MAX_NAME_BYTES; i++) /* no line breaks within a line */
        mt_buf_add_char(out, (unsigned char)name[i] < ' ' ? ' ' : name[i]);
}

void mt_torch_add_unused(const struct mt_torch_records *r, const struct mt_pickle *pickle,
                         struct mt_buf *out)
{
    static const char *const records[] = {"snapshot", "entry", "segment",
                                          "block",    "frame", "annotation"};
    _Static_assert(MT_ARRAY_LEN(records) == MT_TORCH_RECORD_COUNT, "one name for each");

    for (size_t of = 0; of < MT_TORCH_RECORD_COUNT; of++) {
        bool first = true;

        for (size_t i = 0; i < r->unused_count; i++) {
            if (r->unused[i].of != of)
                continue;
            if (first)
                mt_buf_printf(out, "%s%s: ", out->length ? "\n" : "", records[of]);
            else
                mt_buf_add_text(out, ", ");
            add_name(&r->unused[i], pickle, out);
            first = false;
        }
    }
}

static const char begins[] = "File \"", counts[] = "\", line ", names[] = ", in ";

/* Reads at most nine digits. Sets *after to the text after them. */
static bool read_number(const char *at, uint32_t *number, const char **after)
{
    const char *digit = at;

    for (*number = 0; *digit >= '0' && *digit <= '9' && digit - at < 9; digit++)
        *number = *number * 10 + (uint32_t)(*digit - '0');
    *after = digit;
    return digit > at;
}

/* `at` is after the opening quotation mark. */
static bool read_line(const char *at, struct mt_source_line *found)
{
    const char *end = at + strcspn(at, "\n"), *close = at, *after;

    while ((close = memchr(close, '"', (size_t)(end - close))) != NULL &&
           strncmp(close, counts, strlen(counts)) != 0)
        close++;
    if (!close || close == at || !read_number(close + strlen(counts), &found->line, &after) ||
        strncmp(after, names, strlen(names)) != 0)
        return false;
    found->file = at;
    found->file_length = (size_t)(close - at);
    found->function = after + strlen(names);
    found->function_length = strcspn(found->function, "\r\n");
    return found->function_length > 0;
}

bool mt_source_line_last(const char *text, struct mt_source_line *found)
{
    const char *at = text;
    struct mt_source_line line;
    bool any = false;

    while ((at = strstr(at, begins)) != NULL) {
        at += strlen(begins);
        if (read_line(at, &line)) {
            *found = line;
            any = true;
        }
        at += strcspn(at, "\n"); /* one match per line, so the time stays linear */
    }
    return any;
}

/* String id of a pickled text. Other values are the empty string. */
enum mt_status mt_torch_string(struct mt_torch_records *r, struct mt_pickle *pickle,
                               const struct mt_pickle_value *value, uint32_t *id)
{
    size_t length;
    enum mt_status status;

    if (value->kind != MT_PICKLE_TEXT) {
        *id = 0;
        return MT_OK;
    }
    if (value->bits >= r->string_id_count) {
        status = mt_grow_zeroed(&r->string_ids, &r->string_id_count, (size_t)value->bits + 1,
                                sizeof *r->string_ids);
        if (status != MT_OK)
            return status;
    }
    if (!r->string_ids[value->bits]) {
        const char *text = mt_pickle_text(pickle, *value, &length);
        status = mt_symbols_string(r->symbols, text, length, id);
        if (status != MT_OK)
            return status;
        r->string_ids[value->bits] = *id + 1;
    }
    *id = r->string_ids[value->bits] - 1;
    return MT_OK;
}

/* "<built-in method mm of type object at 0x7f...>", "<built-in function linear>". */
static bool built_in_name(char *name)
{
    static const char *const kinds[] = {"<built-in method ", "<built-in function "};

    for (size_t i = 0; i < MT_ARRAY_LEN(kinds); i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(name, kinds[i], length) == 0) {
            memmove(name, name + length, strlen(name + length) + 1);
            name[strcspn(name, " >")] = 0;
            return name[0] != 0;
        }
    }
    return false;
}

/* "file.py(7): function": returns the start of the line's digits, NULL if the text has another
 * form. */
static char *line_of(char *name, char **close)
{
    char *digit;

    *close = strstr(name, "): ");
    for (digit = *close; digit && digit > name && digit[-1] >= '0' && digit[-1] <= '9'; digit--)
        ;
    return digit && digit != *close && *close - digit < 10 && digit > name && digit[-1] == '('
               ? digit
               : NULL;
}

enum mt_status mt_torch_split_frame(struct mt_symbols *symbols, uint32_t *function, uint32_t *file,
                                    uint32_t *line)
{
    char name[1024], *close;

    *file = 0;
    if (strlen(mt_symbols_text(symbols, *function)) >= sizeof name)
        return MT_OK;
    strcpy(name, mt_symbols_text(symbols, *function));
    char *digit = line_of(name, &close);
    if (!digit)
        return built_in_name(name) ? mt_symbols_string(symbols, name, strlen(name), function)
                                   : MT_OK;
    *line = (uint32_t)strtoul(digit, NULL, 10);
    enum mt_status status = mt_symbols_string(symbols, name, (size_t)(digit - 1 - name), file);
    close += strlen("): ");
    return status == MT_OK ? mt_symbols_string(symbols, close, strlen(close), function) : status;
}

/* In the map of origins: a text without a line. */
static const uint32_t NO_ORIGIN = UINT32_MAX - 1;

static enum mt_status find_origin(struct mt_symbols *symbols, const char *text, uint32_t *frame)
{
    struct mt_source_line origin;
    uint32_t function, file;

    *frame = NO_ORIGIN;
    if (!mt_source_line_last(text, &origin))
        return MT_OK;
    if (mt_symbols_string(symbols, origin.file, origin.file_length, &file) ||
        mt_symbols_string(symbols, origin.function, origin.function_length, &function))
        return MT_ERR_MEMORY;
    return mt_symbols_frame(symbols, function, file, origin.line, frame);
}

/* Generated code (FX) records the line of the model that it was made from, which becomes its frame.
 * Frames share such texts, so each text is read once. *frame: NO_ORIGIN if there is none. */
static enum mt_status read_origin(struct mt_torch_records *r, struct mt_pickle *pickle,
                                  const struct mt_pickle_value *value, uint32_t *frame)
{
    size_t length;

    *frame = NO_ORIGIN;
    if (!value || value->kind != MT_PICKLE_TEXT)
        return MT_OK;
    *frame = mt_map_get(&r->origins, value->bits);
    if (*frame != MT_MAP_NONE)
        return MT_OK;
    enum mt_status status = find_origin(r->symbols, mt_pickle_text(pickle, *value, &length), frame);
    return status ? status : mt_map_set(&r->origins, value->bits, *frame);
}

enum mt_status mt_torch_frame(struct mt_torch_records *r, struct mt_pickle *pickle,
                              const struct mt_pickle_value *items, size_t count,
                              struct mt_pickle_value *value)
{
    uint32_t file = 0, function = 0, line = 0, id;
    const struct mt_pickle_value *origin = NULL;
    enum mt_status status = MT_OK;

    for (size_t i = 0; i + 1 < count && status == MT_OK; i += 2) {
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_FILENAME: status = mt_torch_string(r, pickle, &items[i + 1], &file); break;
        case MT_WORD_NAME: status = mt_torch_string(r, pickle, &items[i + 1], &function); break;
        case MT_WORD_LINE:
            line = (uint32_t)mt_min_u64(mt_torch_number(items[i + 1]), UINT32_MAX - 1);
            break;
        case MT_WORD_FX_ORIGINAL_TRACE: origin = &items[i + 1]; break;
        default: mt_torch_note_unused(r, MT_TORCH_OF_FRAME, &items[i]); break;
        }
    }
    /* a frame of torch.profiler */
    if (status == MT_OK && !line && !strcmp(mt_symbols_text(r->symbols, file), "none"))
        status = mt_torch_split_frame(r->symbols, &function, &file, &line);
    if (status == MT_OK)
        status = read_origin(r, pickle, origin, &id);
    if (status == MT_OK && id == NO_ORIGIN)
        status = mt_symbols_frame(r->symbols, function, file, line, &id);
    if (status == MT_OK)
        mt_torch_set(value, MT_TORCH_FRAME, id);
    return status;
}

/* Returns whether `stack` has exactly these frames, up to the maximum depth, the first one
 * innermost. */
static bool is_stack_of(const struct mt_symbols *symbols, uint32_t stack,
                        const struct mt_pickle_value *frames, size_t count)
{
    if (count > MT_MAX_STACK_DEPTH)
        count = MT_MAX_STACK_DEPTH;
    if (symbols->stacks[stack].depth != count)
        return false;
    for (size_t i = 0; i < count; i++, stack = symbols->stacks[stack].parent)
        if (symbols->stacks[stack].frame != frames[i].bits)
            return false;
    return true;
}

/* Keeps the inner frames of a stack that is too deep: they show the allocating code. */
static enum mt_status intern_stack(struct mt_torch_records *r, const struct mt_pickle_value *frames,
                                   size_t count, uint32_t *stack)
{
    enum mt_status status = MT_OK;

    if (count > MT_MAX_STACK_DEPTH) {
        r->symbols->frames_cut += count - MT_MAX_STACK_DEPTH;
        count = MT_MAX_STACK_DEPTH;
    }
    *stack = MT_NO_ID;
    while (count-- && status == MT_OK)
        status = mt_symbols_stack(r->symbols, *stack, (uint32_t)frames[count].bits, stack);
    return status;
}

/* PyTorch lists frames innermost first; the tree of stacks grows from the outermost frame. Equal
 * lists are frequent, so one lookup finds the whole stack. */
enum mt_status mt_torch_stack(struct mt_torch_records *r, const struct mt_pickle_value *frames,
                              size_t count, struct mt_pickle_value *value)
{
    uint64_t hash = count;
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < count; i++)
        hash = mt_hash_u64(hash * UINT64_C(0xD6E8FEB86659FD93) + frames[i].bits);
    uint32_t stack = mt_map_get(&r->stacks, hash);
    if (stack == MT_MAP_NONE || !is_stack_of(r->symbols, stack, frames, count)) {
        status = intern_stack(r, frames, count, &stack);
        if (status == MT_OK)
            status = mt_map_set(&r->stacks, hash, stack);
    }
    if (status == MT_OK)
        mt_torch_set(value, MT_TORCH_STACK, stack);
    return status;
}

enum mt_status mt_torch_stream(struct mt_torch_records *r, const struct mt_pickle_value *value,
                               uint32_t *stream)
{
    uint64_t handle = value->kind == MT_PICKLE_INT ? value->bits : mt_torch_number(*value);

    if (handle != r->last_stream_handle) {
        enum mt_status status = mt_symbols_stream(r->symbols, handle, &r->last_stream);
        if (status != MT_OK)
            return status;
        r->last_stream_handle = handle;
    }
    *stream = r->last_stream;
    return MT_OK;
}

static bool pair_of(struct mt_pickle *pickle, const struct mt_pickle_value *value, uint64_t pair[2])
{
    size_t count;

    if (mt_torch_is(value, MT_TORCH_PAIR)) {
        pair[0] = value->bits >> 24;
        pair[1] = value->bits & 0xffffff;
        return true;
    }
    const struct mt_pickle_value *items = mt_pickle_items(pickle, *value, &count);
    if (value->kind == MT_PICKLE_DICT || count != 2)
        return false;
    pair[0] = mt_torch_number(items[0]);
    pair[1] = mt_torch_number(items[1]);
    return true;
}

/* mt_symbols_pool searches all pools, so it is called once for each pool. */
static enum mt_status pool_of_pair(struct mt_torch_records *r, const uint64_t pair[2],
                                   uint32_t *pool)
{
    uint64_t key = pair[0] << 32 | pair[1];

    *pool = mt_map_get(&r->pools, key);
    if (*pool != MT_MAP_NONE)
        return MT_OK;
    enum mt_status status = mt_symbols_pool(r->symbols, pair[0], pair[1], pool);
    return status == MT_OK ? mt_map_set(&r->pools, key, *pool) : status;
}

/* None is not a pool id, and neither is a number that no counter reaches. */
enum mt_status mt_torch_pool(struct mt_torch_records *r, struct mt_pickle *pickle,
                             const struct mt_pickle_value *value, uint16_t *pool, bool *known)
{
    uint64_t pair[2];

    if (!pair_of(pickle, value, pair) || (pair[0] | pair[1]) > UINT32_MAX)
        return MT_OK;
    if (pair[0] != r->last_pool[0] || pair[1] != r->last_pool[1]) {
        enum mt_status status = pool_of_pair(r, pair, &r->last_pool_id);
        if (status != MT_OK)
            return status;
        memcpy(r->last_pool, pair, sizeof pair);
    }
    *pool = (uint16_t)r->last_pool_id;
    *known = true;
    return MT_OK;
}

enum {
    GONE = 0,              /* in the map of live blocks: freed, and not allocated again */
    MAX_JOINED_BYTES = 512 /* of one block; above it, only the newest text is kept */
};

static enum mt_status set_tag(struct mt_torch_records *r, size_t entry, uint32_t text)
{
    if (entry >= r->tag_count) {
        enum mt_status status = mt_grow_zeroed(&r->tags, &r->tag_count, entry + 1, sizeof *r->tags);
        if (status != MT_OK)
            return status;
    }
    r->tags[entry] = text;
    return MT_OK;
}

enum mt_status mt_torch_read_tag(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *value, size_t entry)
{
    uint32_t text;
    enum mt_status status = mt_torch_string(r, pickle, value, &text);

    return status || !text ? status : set_tag(r, entry, text);
}

enum mt_status mt_torch_copy_tag(struct mt_torch_records *r, size_t from)
{
    uint32_t text = mt_torch_tag(r, from);

    return text ? set_tag(r, r->entry_count - 1, text) : MT_OK;
}

/* "old; added" as a string. A text that is already there is not repeated. */
static enum mt_status join(struct mt_symbols *symbols, uint32_t old, uint32_t added,
                           uint32_t *joined)
{
    const char *before = old ? mt_symbols_text(symbols, old) : "";
    const char *after = mt_symbols_text(symbols, added);
    struct mt_buf text = {0};
    enum mt_status status = MT_ERR_MEMORY;

    *joined = added;
    if (!*before || strcmp(before, after) == 0 ||
        strlen(before) + strlen(after) + 2 > MAX_JOINED_BYTES)
        return MT_OK;
    mt_buf_printf(&text, "%s; %s", before, after);
    if (!text.failed)
        status = mt_symbols_string(symbols, text.data, text.length, joined);
    mt_buf_release(&text);
    return status;
}

/* Adds the text of `entry` to the block that is alive at its address: `live` has the allocation of
 * each block of the window, as its index + 1. */
static enum mt_status annotate(struct mt_torch *torch, const struct mt_torch_device *device,
                               size_t entry, struct mt_map *live, struct mt_map *initial)
{
    struct mt_torch_records *r = &torch->records;
    uint64_t addr = r->entries[entry].addr;
    uint32_t added = mt_torch_tag(r, entry), at = mt_map_get(live, addr), joined;
    enum mt_status status;

    if (!added || at == GONE)
        return MT_OK;
    if (at != MT_MAP_NONE) {
        status = join(r->symbols, mt_torch_tag(r, device->first + at - 1), added, &joined);
        return status ? status : set_tag(r, device->first + at - 1, joined);
    }
    uint32_t old = mt_map_get(initial, addr);
    status = join(r->symbols, old == MT_MAP_NONE ? 0 : old, added, &joined);
    return status ? status : mt_map_set(initial, addr, joined);
}

static bool has_annotations(const struct mt_torch *torch, const struct mt_torch_device *device)
{
    for (size_t i = 0; i < device->count; i++)
        if (torch->records.entries[device->first + i].kind == MT_TORCH_ANNOTATE)
            return true;
    return false;
}

enum mt_status mt_torch_apply_annotations(struct mt_torch *torch, uint32_t device,
                                          struct mt_map *initial)
{
    const struct mt_torch_device *d = &torch->devices[device];
    struct mt_map live = {0};
    enum mt_status status = MT_OK;

    if (!torch->records.tag_count || d->count > UINT32_MAX - 2 || !has_annotations(torch, d))
        return MT_OK;
    for (size_t i = 0; i < d->count && !status; i++) {
        const struct mt_torch_entry *entry = &torch->records.entries[d->first + i];

        if (entry->kind == MT_EVENT_ALLOC)
            status = mt_map_set(&live, entry->addr, (uint32_t)i + 1);
        else if (entry->kind == MT_EVENT_FREE_COMPLETED)
            status = mt_map_set(&live, entry->addr, GONE);
        else if (entry->kind == MT_TORCH_ANNOTATE)
            status = annotate(torch, d, d->first + i, &live, initial);
    }
    mt_map_release(&live);
    return status;
}
