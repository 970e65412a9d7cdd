/* An estimate of the memory of one device, by a formula or another program, in a file
 * (memtrace.estimate/1), and its comparison with the blocks of an instant. */
#ifndef MT_ANALYZER_ESTIMATE_H
#define MT_ANALYZER_ESTIMATE_H

#include "report.h"
#include "settings_text.h"

#define MT_ESTIMATE_SCHEMA "memtrace.estimate/1"

/* The measured number that the total of the estimate is compared with. */
enum mt_estimate_level { MT_ESTIMATE_ALLOCATED, MT_ESTIMATE_RESERVED, MT_ESTIMATE_CARD };

/* "allocated", "reserved", "card". */
const char *mt_estimate_level_name(enum mt_estimate_level level);

struct mt_estimate_row {
    const char *name; /* of a module, or of roles: "parameters + gradients" */
    unsigned roles;   /* set of enum mt_role; 0: a module */
    uint64_t bytes;
};

/* Each number is at most MT_MAX_ESTIMATE_BYTES. */
struct mt_estimate {
    struct mt_arena arena;
    const char *source; /* NULL = unknown */
    enum mt_estimate_level compared_with;
    struct mt_estimate_row *rows; /* roles and modules in the order of the file */
    uint32_t row_count, module_count;
    uint64_t total_bytes; /* without one in the file: the sum of the roles, or that of the modules
                             if it is larger */
};

/* More than any card has. The sum of all numbers of a file is below 2^63. */
#define MT_MAX_ESTIMATE_BYTES ((uint64_t)1 << 48)

/* Reads the entries of mt_settings_parse_members. Returns MT_ERR_UNSUPPORTED for another schema, or
 * MT_ERR_FORMAT with the line and the reason. Null is treated as a missing member. Release
 * *estimate even after an error. */
enum mt_status mt_estimate_read(struct mt_estimate *estimate, const struct mt_settings *settings,
                                struct mt_error *error) MT_MUST_USE;
void mt_estimate_release(struct mt_estimate *estimate);

/* A row of the estimate, or of the run if the estimate has none for it. */
struct mt_estimate_line {
    const char *name;
    unsigned roles;    /* as in struct mt_estimate_row */
    bool is_estimated; /* otherwise estimated_bytes is 0 */
    uint64_t estimated_bytes, measured_bytes;
};

/* By |difference| descending. measured_bytes sum to the allocated bytes of the instant;
 * estimated_bytes and rest_bytes sum to total_bytes of the estimate. */
struct mt_estimate_table {
    struct mt_estimate_line *lines;
    uint32_t count;
    uint64_t rest_bytes;
};

/* measured - estimated. */
static inline int64_t mt_estimate_difference(const struct mt_estimate_line *line)
{
    return (int64_t)(line->measured_bytes - line->estimated_bytes);
}

/* Compares the roles of the estimate with an answer. *table is in the arena. */
void mt_estimate_by_role(struct mt_arena *arena, const struct mt_estimate *estimate,
                         const struct mt_answer *answer, struct mt_estimate_table *table);

/* The same for modules. The answer must be by module and have rows. A row of the estimate means the
 * row of the run that has this label, or else all rows with this path: "GPT/Block" has the layers
 * that the estimate does not name one by one. */
void mt_estimate_by_module(struct mt_arena *arena, const struct mt_estimate *estimate,
                           const struct mt_answer *answer, struct mt_estimate_table *table);

#endif
