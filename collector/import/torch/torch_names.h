/* Converts values of a pickle to symbols: strings, frames, stacks, streams and pools. */
#ifndef MT_COLLECTOR_TORCH_NAMES_H
#define MT_COLLECTOR_TORCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "torch_facts.h"

static inline bool mt_torch_is(const struct mt_pickle_value *value, enum mt_torch_host host)
{
    return value->kind == MT_PICKLE_HOST && value->host == host;
}

static inline void mt_torch_set(struct mt_pickle_value *value, enum mt_torch_host host,
                                uint64_t bits)
{
    *value = (struct mt_pickle_value){bits, MT_PICKLE_HOST, (uint8_t)host};
}

/* Addresses may be negative numbers in the file, because some devices have addresses beyond
 * 2^63. */
static inline uint64_t mt_torch_address(const struct mt_pickle_value *value)
{
    return value->kind == MT_PICKLE_INT || value->kind == MT_PICKLE_UINT ? value->bits : 0;
}

/* Returns MT_WORD_COUNT for texts that are not keywords. */
static inline enum mt_torch_word mt_torch_word_of(const struct mt_pickle_value *value)
{
    return value->kind == MT_PICKLE_TEXT && value->bits < MT_WORD_COUNT
               ? (enum mt_torch_word)value->bits
               : MT_WORD_COUNT;
}

/* Sets *id to the string id of a text; values of other kinds become the empty string. */
enum mt_status mt_torch_string(struct mt_torch_records *r, struct mt_pickle *pickle,
                               const struct mt_pickle_value *value, uint32_t *id) MT_MUST_USE;

/* Turns a dictionary with the key "filename" into a FRAME. */
enum mt_status mt_torch_frame(struct mt_torch_records *r, struct mt_pickle *pickle,
                              const struct mt_pickle_value *items, size_t count,
                              struct mt_pickle_value *value) MT_MUST_USE;

/* Splits the name of a frame of torch.profiler, "train.py(47): forward", into function, file and
 * line. Those of built-in functions lose what is not their name; others stay as they are. */
enum mt_status mt_torch_split_frame(struct mt_symbols *symbols, uint32_t *function, uint32_t *file,
                                    uint32_t *line) MT_MUST_USE;

/* Turns a list of FRAMEs, innermost first, into a STACK. */
enum mt_status mt_torch_stack(struct mt_torch_records *r, const struct mt_pickle_value *frames,
                              size_t count, struct mt_pickle_value *value) MT_MUST_USE;

/* Sets *stream to the id of a stream handle. */
enum mt_status mt_torch_stream(struct mt_torch_records *r, const struct mt_pickle_value *value,
                               uint32_t *stream) MT_MUST_USE;

/* Sets *pool to the id of a pair of numbers, and *known. Leaves both unchanged if the value is not
 * a pair. */
enum mt_status mt_torch_pool(struct mt_torch_records *r, struct mt_pickle *pickle,
                             const struct mt_pickle_value *value, uint16_t *pool,
                             bool *known) MT_MUST_USE;

/* A line of a traceback as Python prints it:   File "model.py", line 12, in forward */

/* Borrowed from the text, not NUL-terminated. */
struct mt_source_line {
    const char *file, *function;
    size_t file_length, function_length;
    uint32_t line;
};

/* Finds the last such line of a text, which is the innermost call. Returns false if there is
 * none. */
bool mt_source_line_last(const char *text, struct mt_source_line *found);

/* A program's own descriptions of blocks: PyTorch's user_metadata, set before an allocation (2.10
 * and later), and `annotate` entries, recorded while the block is alive (2.14 and later). */

struct mt_torch;

/* Returns the string id of an entry's tag; 0 = none. */
static inline uint32_t mt_torch_tag(const struct mt_torch_records *r, size_t entry)
{
    return entry < r->tag_count ? r->tags[entry] : 0;
}

/* Stores a nonempty text as the tag of an entry. */
enum mt_status mt_torch_read_tag(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *value, size_t entry) MT_MUST_USE;

/* Copies the tag of entry `from` to the newest entry, which is a copy of it. */
enum mt_status mt_torch_copy_tag(struct mt_torch_records *r, size_t from) MT_MUST_USE;

/* Attaches the texts of a device's `annotate` entries to the allocations of the blocks that they
 * name. Several texts of a block are joined by "; ", the newest last. Texts for initial blocks are
 * added to `initial` (address -> string id), which the caller releases. O(entries of the device);
 * does nothing if there are no annotations. */
enum mt_status mt_torch_apply_annotations(struct mt_torch *torch, uint32_t device,
                                          struct mt_map *initial) MT_MUST_USE;

/* Collects the names of fields of a snapshot that no code reads, for the report. */

struct mt_buf;

/* Notes the field `key` of a record once. Notes at most MT_TORCH_MAX_UNUSED fields: real
 * snapshots have fewer than ten. */
void mt_torch_note_unused(struct mt_torch_records *r, enum mt_torch_record of,
                          const struct mt_pickle_value *key);

/* Appends lines such as "entry: compile_context", by kind of record; nothing if there are none. */
void mt_torch_add_unused(const struct mt_torch_records *r, const struct mt_pickle *pickle,
                         struct mt_buf *out);

#endif
