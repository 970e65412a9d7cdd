/* The same requests under several allocators: what each reserves, and the smallest
 * limit that it runs in. Every row is a replay (fit.h); a row that is what the run
 * itself did says so. */
#ifndef MT_ANALYZER_POLICY_TABLE_H
#define MT_ANALYZER_POLICY_TABLE_H

#include "replay.h"

struct mt_policy_row {
    char policy[MT_POLICY_TEXT]; /* canonical spelling */
    const char *what;            /* "what the run had", "PyTorch's defaults", ...; static */
    bool is_own;                 /* what the run had */
    bool is_measured;            /* and the replay is, event by event, what it did */
    bool exact;                  /* the rules of the policy are known */
    const char *doubt;           /* why they are not; static */
    bool fits;                   /* there is a limit that serves the trace */
    uint64_t requests;           /* of the trace, without... */
    uint64_t gaps_left_out;      /* what PyTorch allocates and frees at once when it restores a
                                    private pool, where the simulated pool is cut otherwise */
    uint64_t requested_peak_bytes, allocated_peak_bytes, reserved_peak_bytes; /* without a limit */
    uint64_t fit_bytes;     /* smallest limit from which on all that were tried serve it, in every
                               order of addresses that was tried (fit.h): the one to rely on */
    uint64_t fit_low_bytes; /* in the best of these orders */
    uint32_t order_count;   /* 1 also if addresses decide nothing */
    uint64_t smaller_fit_bytes; /* a limit below the failing ones that does, too; 0 = none */
    uint64_t larger_fail_bytes; /* one above that does not; 0 = none */
    uint64_t address_ties;      /* see replay.h */
    bool depends_on_memory;     /* the run reached the limit of its memory */
};

/* A size of memory that people know. */
struct mt_known_size {
    const char *name;
    uint64_t bytes;
};

#define MT_MAX_POLICY_ROWS 32

struct mt_policy_table {
    struct mt_arena arena;
    const char *name; /* of the trace */
    uint16_t device;
    bool starts_in_middle;
    struct mt_policy_row rows[MT_MAX_POLICY_ROWS]; /* smallest reserved peak first */
    uint32_t row_count;
    uint64_t bound_bytes;              /* peak of requested bytes: no allocator does with less */
    const struct mt_known_size *sizes; /* borrowed, ascending; ends with a NULL name */
    const char *finding[2];            /* a sentence each, made of the rows */
};

/* One policy (NULL: what the run had) over the whole source. `device` is that one, or
 * UINT64_MAX: the one that reserves most. Fills all of *row but `what`; *of: its device.
 * MT_END without requests on the device. */
enum mt_status mt_policy_row_measure(struct mt_source *source, const char *policy, uint64_t device,
                                     struct mt_policy_row *row, uint16_t *of,
                                     struct mt_error *error) MT_MUST_USE;

/* Of the trace, gaps that the policy leaves out included: equal for all policies. */
uint64_t mt_policy_row_requests(const struct mt_policy_row *row);

/* Does the policy serve fewer requests than the first row, because it runs out of the device's
 * memory? Its peaks are then not of this run. False if the trace starts in the middle: counts
 * differ there. */
bool mt_policy_row_refuses(const struct mt_policy_table *table, const struct mt_policy_row *row);

/* Rows are filled: drops those of equal spelling, sorts them and makes the sentences.
 * MT_ERR_USAGE if they are not of the same requests. */
enum mt_status mt_policy_table_finish(struct mt_policy_table *table,
                                      struct mt_error *error) MT_MUST_USE;
void mt_policy_table_release(struct mt_policy_table *table);

#endif
