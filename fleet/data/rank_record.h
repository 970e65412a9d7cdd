/* The record of one device of one process of a job: plain data, integers and texts.
 *
 * A rank is a process of a job; with N devices it has N records. A record has the identity of the
 * process, its outcome, its memory, and the call paths that held the memory at the peak. Records
 * live in a set (rank_set.h), which owns all memory and the tree of call paths. Times are Unix
 * times in nanoseconds, or have no epoch if the trace has no time of day. `event` is a sequence
 * number of the trace. */
#ifndef MT_FLEET_RANK_RECORD_H
#define MT_FLEET_RANK_RECORD_H

#include <stddef.h>

#include "arena.h"
#include "counters.h"
#include "holding.h"
#include "identity.h"

#define MT_RECORD_COLUMNS       512  /* parts of the time of a run */
#define MT_RECORD_LEVELS        2048 /* changes of the reserved level; above that, none are kept */
#define MT_RECORD_STEPS         256  /* above that, neighbors are merged */
#define MT_RECORD_LEAVES        256  /* above that, the smallest leaves of a role become one */
#define MT_RECORD_OWNERS        64
#define MT_RECORD_COMMUNICATORS 64
#define MT_RECORD_FINDINGS      32 /* above that, the most severe are kept, then the largest */

/* How a process ended, according to its identity and its trace. */
enum mt_outcome {
    MT_OUTCOME_UNKNOWN,
    MT_OUTCOME_FINISHED, /* exit status 0 */
    MT_OUTCOME_OOM,      /* a request was refused, and only frees followed */
    MT_OUTCOME_FAILED,   /* another exit status, and not OOM */
    MT_OUTCOME_KILLED,   /* by a signal */
    MT_OUTCOME_CUT       /* the trace has no end: the recording was cut off */
};
enum { MT_OUTCOME_COUNT = MT_OUTCOME_CUT + 1 };

/* "unknown", "finished", "oom", "failed", "killed", "cut" */
const char *mt_outcome_name(enum mt_outcome outcome);

/* A level of memory, and its time. */
struct mt_record_peak {
    uint64_t bytes, t_ns, event;
    int64_t step; /* MT_NO_STEP: outside of all steps */
};

/* A step, or neighboring steps that were merged. The peaks are the largest of these steps. */
struct mt_record_step {
    int64_t first, last; /* numbers of the program's steps */
    uint64_t begin_t_ns, end_t_ns;
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t end_allocated_bytes; /* of the last of these steps */
};

/* The largest levels in one of MT_RECORD_COLUMNS equal parts of the time from begin_t_ns to
 * end_t_ns. */
struct mt_record_column {
    uint64_t allocated_bytes, reserved_bytes;
};

/* The reserved level from t_ns to the t_ns of the next element. */
struct mt_record_level {
    uint64_t t_ns, reserved_bytes;
};

/* Blocks alive at the allocated peak with the same call path and role.
 *
 * A site is a separate call path: the frame that `analyze` names, with the user's frame as its
 * caller if that is a different frame. So all leaves that share a site, on any rank, have the same
 * index. */
struct mt_record_leaf {
    uint32_t path; /* index into the set's paths; MT_NO_PATH: rest of the role, or no stack */
    enum mt_role role;
    uint64_t bytes, blocks;
    uint32_t site; /* index into the set's paths; MT_NO_PATH if `path` is */
};
#define MT_NO_PATH UINT32_MAX

/* For qsort: by role, then by path. Leaves without a path are last. */
int mt_record_leaf_compare(const void *a, const void *b);

/* Memory outside the framework's allocator at its peak, by the library that requested it from
 * the driver. */
struct mt_record_owner {
    const char *library; /* "NCCL"; "" = not known */
    uint64_t bytes;
};

/* A communicator of NCCL that the rank is in. Ranks with the same id are its members. */
struct mt_record_communicator {
    uint64_t id;          /* never 0 */
    uint32_t ranks, rank; /* number of its ranks, and the number of this rank in it */
    uint64_t bytes;       /* device memory that it took from the driver */
};

struct mt_record_finding {
    const char *id, *title; /* as in struct mt_finding */
    uint64_t bytes;
};

/* A process group of the framework that the rank is in: see struct mt_identity_group. */
struct mt_record_group {
    const char *name;
    uint32_t size, first, stride;
    int32_t position;
    uint64_t members_hash;
};

/* Position of the rank on an axis of the mesh: see struct mt_mesh_axis. */
struct mt_record_axis {
    const char *name;
    uint32_t coordinate, size;
};

/* Identity of the process: struct mt_identity without its fixed arrays. Texts are "" if unknown. */
struct mt_record_identity {
    const char *host, *boot_id, *job;
    uint64_t process_id;                      /* 0 = unknown */
    int32_t rank, local_rank, world, restart; /* -1 = unknown */
    enum mt_rank_origin rank_origin;
    uint64_t memory_limit_bytes, cgroup_limit_bytes; /* 0 = unknown or none */
    enum mt_ending ended;
    int32_t ended_number;
    uint64_t ended_t_ns;
    struct mt_record_axis *axes; /* of the mesh that the launcher or the user named */
    uint32_t axis_count;
    struct mt_record_group *groups; /* by name */
    uint32_t group_count;
};

struct mt_rank_record {
    struct mt_record_identity identity;
    const char *trace_name;   /* file name without its folder */
    const char *trace_sha256; /* 64 digits; "" = not known */
    uint16_t device;          /* number in the process */
    const char *device_name, *device_uuid, *device_pci, *device_mig; /* "" = not known */
    uint64_t device_bytes;                                           /* total; 0 = unknown */
    bool is_dry_run;                                                 /* planned: no device */
    bool is_complete;     /* recorded from the start, nothing is missing */
    bool is_driver_level; /* there is no allocator above the driver: levels are those of the driver
                           */
    uint64_t lost_events; /* known to be missing */
    uint64_t begin_t_ns, end_t_ns;

    enum mt_outcome outcome;
    bool has_death; /* outcome OOM: the last request is known; otherwise the members below are 0 */
    uint64_t death_t_ns, death_event, death_wanted_bytes, death_free_bytes;
    uint32_t death_path, death_site; /* MT_NO_PATH = not known */
    int64_t last_step;               /* the last step that began; MT_NO_STEP: none */
    uint64_t ooms, retries;

    struct mt_record_peak requested_peak, allocated_peak, active_peak, reserved_peak;
    uint64_t allocated_at_reserved_peak_bytes;
    uint64_t role_bytes[MT_ROLE_COUNT]; /* at the allocated peak; sums to it */
    struct mt_bytes end;                /* after the last event */

    /* Outside the allocator. */
    bool has_driver;
    uint64_t driver_peak_bytes; /* the most that the process had from the driver */
    uint64_t outside_bytes;     /* outside the framework, at its allocated peak */
    bool has_context;           /* NVML was sampled */
    uint64_t context_bytes;     /* memory that no allocation explains, at the highest use */

    /* Memory of a card that this process needs as it ran: `bytes` of struct mt_card_use. */
    bool needed_is_known; /* otherwise a lower bound */
    uint64_t needed_bytes;
    bool allocator_need_is_known;
    uint64_t allocator_need_bytes, allocator_need_low_bytes; /* struct mt_need */

    bool growth_is_judged;
    uint64_t growth_bytes_per_step;
    uint32_t growth_site; /* site that leaves the most bytes behind in each step; MT_NO_PATH: none,
                             or unknown */

    /* Hashes that are equal for ranks that do the same work: of the sizes that the last complete
     * step requested, in order, and of the sizes of parameters, in any order. 0 = unknown. */
    uint64_t step_hash, parameter_hash;

    struct mt_record_step *steps; /* by number */
    uint32_t step_count;
    struct mt_record_column *columns;
    uint32_t column_count;          /* MT_RECORD_COLUMNS, or 0: the run has no duration */
    struct mt_record_level *levels; /* of the whole run, by time; none if there are too many */
    uint32_t level_count;
    struct mt_record_leaf *leaves; /* by role and path; they sum to the allocated peak */
    uint32_t leaf_count;
    struct mt_record_owner *owners; /* by library */
    uint32_t owner_count;
    struct mt_record_communicator *communicators; /* by id, then rank */
    uint32_t communicator_count;
    struct mt_record_finding *findings; /* by id, then bytes descending */
    uint32_t finding_count;

    /* Steps, columns, levels and leaves of a record in packed form: bits that all numbers of a
     * field share are stored once. NULL: the list has an array, or is empty. Read them with
     * mt_step_at and so on. */
    struct mt_packed_list *packed[4];
};

/* The fields of a record as tables. All code that compares, copies, writes or reads records
 * iterates over these tables, so no code can omit a field. A new field is one line in
 * rank_record.c and changes the format (docs/internals/rank-summary.md, "Versions"). */

enum mt_field_kind {
    MT_FIELD_U64,
    MT_FIELD_I64,
    MT_FIELD_U32,
    MT_FIELD_I32,
    MT_FIELD_U16,
    MT_FIELD_BOOL,
    MT_FIELD_TEXT, /* const char *, never NULL */
    MT_FIELD_PATH, /* uint32_t: an index into the paths of the set, or MT_NO_PATH */
    MT_FIELD_ENUM  /* below `limit` */
};

struct mt_record_field {
    const char *name;
    size_t offset; /* in the structure that holds it */
    enum mt_field_kind kind;
    uint32_t limit; /* MT_FIELD_ENUM: the number of its values */
};

/* An array that a record points to. */
struct mt_record_list {
    const char *name;
    size_t array_offset, count_offset, element_bytes; /* in the record; count is a uint32_t */
    const struct mt_record_field *fields;             /* of an element */
    uint32_t field_count;
    uint32_t most;  /* elements that a list may have */
    int packed;     /* index into `packed` of the record; -1: never packed */
    bool has_links; /* to texts or paths of the set */
};
#define MT_ELEMENT_BYTES sizeof(struct mt_record_step) /* of the largest element */
#define MT_LIST_BYTES                                                                              \
    ((size_t)MT_RECORD_LEVELS * sizeof(struct mt_record_level)) /* of the longest */

/* Fields and lists of struct mt_rank_record, in the order in which records are compared. */
extern const struct mt_record_field mt_record_fields[];
extern const uint32_t mt_record_field_count;
extern const struct mt_record_list mt_record_lists[];
extern const uint32_t mt_record_list_count;

/* Returns the number in a field of `object`. Negative numbers are sign-extended. Not for texts. */
uint64_t mt_field_get(const void *object, const struct mt_record_field *field);
/* The same for the file: paths count from 1, and none is 0. */
uint64_t mt_field_number(const void *object, const struct mt_record_field *field);
const char *mt_field_text(const void *object, const struct mt_record_field *field);

/* Sets a field. Returns false and changes nothing if the field cannot hold the number. Does not
 * check that a path exists. Not for texts. */
bool mt_field_set(void *object, const struct mt_record_field *field, uint64_t value) MT_MUST_USE;
void mt_field_set_text(void *object, const struct mt_record_field *field, const char *text);

/* Get and set the array and length of a list of `record`. */
void *mt_list_array(const struct mt_rank_record *record, const struct mt_record_list *list);
uint32_t mt_list_count(const struct mt_rank_record *record, const struct mt_record_list *list);
void mt_list_set(struct mt_rank_record *record, const struct mt_record_list *list, void *array,
                 uint32_t count);

/* Copies element i of a list, packed or not. O(fields). */
void mt_list_get(const struct mt_rank_record *record, const struct mt_record_list *list, uint32_t i,
                 void *element);

/* Copies a whole list to `array`, which has room for MT_LIST_BYTES. */
void mt_list_read(const struct mt_rank_record *record, const struct mt_record_list *list,
                  void *array);

/* Replaces the elements of a list, whose number stays. The list is packed if it was or if
 * `packs` is set. Uses its old memory if that suffices, otherwise the arena. */
void mt_list_write(struct mt_rank_record *record, const struct mt_record_list *list,
                   const void *array, bool packs, struct mt_arena *arena);

/* Forgets the memory of a list, so that mt_list_write takes other memory. */
void mt_list_forget(struct mt_rank_record *record, const struct mt_record_list *list);

/* Returns the record with arrays instead of packed lists. They are in `room`. */
struct mt_record_room {
    uint64_t lists[4][MT_LIST_BYTES / sizeof(uint64_t)];
};
struct mt_rank_record mt_rank_record_open(const struct mt_rank_record *record,
                                          struct mt_record_room *room);

struct mt_record_step mt_step_at(const struct mt_rank_record *record, uint32_t i);
struct mt_record_column mt_column_at(const struct mt_rank_record *record, uint32_t i);
struct mt_record_level mt_level_at(const struct mt_rank_record *record, uint32_t i);
struct mt_record_leaf mt_leaf_at(const struct mt_rank_record *record, uint32_t i);

#endif
