/* The memory use of each line of the program, as in a line profiler. All events that occur while a
 * line is on the stack are charged to the line, so a line that calls a function includes the
 * function.
 *
 * The work of a thread without Python frames while a line waits for backward (autograd's threads)
 * is charged to that line as its `engine_bytes`. */
#ifndef MT_ANALYZER_LINE_TABLE_H
#define MT_ANALYZER_LINE_TABLE_H

#include "arena.h"
#include "replay.h"
#include "site.h"

struct mt_line_use {
    uint32_t frame; /* id: function, file and line */
    /* Blocks allocated while the line was on the stack. */
    uint64_t allocations, allocated_bytes;
    uint64_t engine_bytes; /* of these, bytes allocated on a thread without the line's frames */
    uint64_t own_bytes; /* of these, bytes for which the line was the innermost one of user code, or
                           of all code */
    uint64_t site_bytes;   /* of these, bytes for which the line was the site (site.h) */
    int64_t growth_bytes;  /* total change of active bytes; see has_frees */
    struct mt_bytes peak;  /* largest of each level inside the line, including the level on entry */
    struct mt_bytes after; /* when the line was last exited */
    uint64_t last_event;   /* PRIVATE: number of the device's event + 1 */
};

struct mt_line_function {
    uint32_t function, file;   /* string ids */
    enum mt_origin origin;     /* of the code */
    struct mt_line_use *lines; /* lines with memory activity, ascending */
    uint32_t line_count;
    uint64_t own_bytes, site_bytes; /* sums over its lines */
};

struct mt_line_device {
    uint16_t device;
    struct mt_line_function *functions; /* by site_bytes, largest first */
    uint32_t function_count;
    uint64_t allocations, allocated_bytes; /* of the whole trace */
    /* Allocations outside of any line: without a Python stack, and while no line waited for
     * backward. */
    uint64_t unseen_allocations, unseen_bytes;
};

struct mt_line_table {
    struct mt_line_device *devices; /* those with memory events, ascending */
    uint32_t device_count;
    bool has_lines; /* any Python line was recorded */
    bool has_frees; /* frees have stacks; otherwise frees are charged to no line, and growth and
                       `after` are those of allocations alone */
    bool sizes_are_exact; /* PyTorch's rules reproduce the trace, or block sizes were recorded */
    char policy[MT_POLICY_TEXT];
    struct mt_arena arena;
};

/* Reads the source once or twice (mt_replay_as_run). Release *table even after an error. Time is
 * O(depth of the stack) for each event. Memory is O(frames * devices). */
enum mt_status mt_line_table_read(struct mt_source *source, struct mt_line_table *table,
                                  struct mt_error *error) MT_MUST_USE;
/* Sorts the functions of each device by own_bytes instead of site_bytes, largest first. */
void mt_line_table_sort_by_own(struct mt_line_table *table);
void mt_line_table_release(struct mt_line_table *table);

#endif
