/* What each line of the program did with memory, as a line profiler would have
 * seen it: a line is charged with all that happens while it is on the stack, so
 * a line that calls a function also has what the function did.
 *
 * What a thread without Python frames does while a line waits for backward
 * (autograd's own threads) is charged to that line: `engine_bytes` of it. */
#ifndef MT_ANALYZER_LINE_TABLE_H
#define MT_ANALYZER_LINE_TABLE_H

#include "arena.h"
#include "replay.h"
#include "site.h"

struct mt_line_use {
    uint32_t frame; /* id: function, file and line */
    /* Blocks handed out while the line was on the stack. */
    uint64_t allocations, allocated_bytes;
    uint64_t engine_bytes; /* of these: on a thread without the line's frames */
    uint64_t own_bytes;    /* of these: it was the innermost line of the user code, or of all */
    uint64_t site_bytes;   /* of these: it was the site (site.h) */
    int64_t growth_bytes;  /* change of active bytes, all in all; see has_frees */
    struct mt_bytes peak;  /* each level's largest within it, that on entering included */
    struct mt_bytes after; /* when it was last left */
    uint64_t last_event;   /* PRIVATE: number of the device's event + 1 */
};

struct mt_line_function {
    uint32_t function, file;   /* string ids */
    enum mt_origin origin;     /* of the code */
    struct mt_line_use *lines; /* those that did something, ascending */
    uint32_t line_count;
    uint64_t own_bytes, site_bytes; /* of its lines */
};

struct mt_line_device {
    uint16_t device;
    struct mt_line_function *functions; /* by site_bytes, largest first */
    uint32_t function_count;
    uint64_t allocations, allocated_bytes; /* of the whole trace */
    /* Of these: in no line, because there was no Python stack and no line that
     * waited for backward. */
    uint64_t unseen_allocations, unseen_bytes;
};

struct mt_line_table {
    struct mt_line_device *devices; /* those with memory events, ascending */
    uint32_t device_count;
    bool has_lines;       /* any Python line was recorded */
    bool has_frees;       /* frees have stacks: else no line is charged with them, growth and
                             `after` are those of allocations alone */
    bool sizes_are_exact; /* PyTorch's rules reproduce the trace, or sizes were recorded */
    char policy[MT_POLICY_TEXT];
    struct mt_arena arena;
};

/* Reads the source once or twice (mt_replay_as_run). Released whatever is
 * returned. Costs the depth of its stack for each event, and memory for each
 * frame and device. */
enum mt_status mt_line_table_read(struct mt_source *source, struct mt_line_table *table,
                                  struct mt_error *error) MT_MUST_USE;
/* Functions by own_bytes instead: the user's code as if it were all. */
void mt_line_table_sort_by_own(struct mt_line_table *table);
void mt_line_table_release(struct mt_line_table *table);

#endif
