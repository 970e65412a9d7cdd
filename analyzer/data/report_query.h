/* Queries on finished parts of a report, without other input. */
#ifndef MT_ANALYZER_REPORT_QUERY_H
#define MT_ANALYZER_REPORT_QUERY_H

#include "report.h"
#include "units.h"

/* Returns whether the limit of the run is known, at least as an interval. Returns false if there
 * was no limit, or if the limit is only one of many values that explain the garbage collection. */
bool mt_limit_is_known(const struct mt_replay_result *replay);

/* Return the lower and the upper bound of the run's limit, or 0 if it had none. A policy that
 * serves the run under the lower bound also serves it under the actual limit. */
uint64_t mt_least_limit_bytes(const struct mt_replay_result *replay);
uint64_t mt_most_limit_bytes(const struct mt_replay_result *replay);

/* Returns "the limit was 1,200 MiB", or "... 1,690 MiB to 1,713 MiB": the whole numbers of MiB in
 * [least, most]. The text is in the arena. */
const char *mt_limit_text(struct mt_arena *arena, uint64_t least_bytes, uint64_t most_bytes);

/* The same for the answer after an out-of-memory error. If only the device bounds the limit: "the
 * limit was at most 1,713 MiB", which is what was reserved and free. */
const char *mt_oom_limit_text(struct mt_arena *arena, const struct mt_oom_answer *answer);

/* That clause for a known limit (mt_limit_is_known). */
const char *mt_replay_limit_text(struct mt_arena *arena, const struct mt_replay_result *replay);

/* "8.06 GiB", or "about 8.06 GiB" if the run may request other memory than it did. */
#define MT_NEED_TEXT (MT_UNITS_TEXT + sizeof "about ")
const char *mt_need_text(char text[MT_NEED_TEXT], const struct mt_need *need);

/* How the roles at the allocated peak are known, in bytes; they sum to the peak. Recorded: the
 * program or its framework said so. Inferred: from where blocks were allocated, used and freed.
 * Guessed: from sizes and names alone, because there is no history of these blocks. */
struct mt_role_origins {
    uint64_t recorded_bytes, inferred_bytes, guessed_bytes;
};
struct mt_role_origins mt_role_origins_of(const struct mt_report *report,
                                          const struct mt_device_report *device);

/* Sorts roles by their bytes, largest first; equal ones in the order of enum mt_role. */
void mt_roles_by_bytes(const uint64_t bytes[MT_ROLE_COUNT], enum mt_role order[MT_ROLE_COUNT]);

/* Returns "activations", ...; for MT_ROLE_OTHER "blocks of unknown role" if it is the first role in
 * the sentence. */
const char *mt_holder_role_name(enum mt_role role, bool is_first);

/* The name of a trace in pictures: "runs/seq2seq.pickle.zst" -> "seq2seq". In the arena. */
const char *mt_report_name(struct mt_arena *arena, const char *path);

/* False for a phase or step that ended before the recorded history of the device began: its memory
 * is unknown, and its bytes are those at the start. */
bool mt_report_covers(const struct mt_report *report, const struct mt_device_report *device,
                      uint64_t end_event);

/* The request that ended the run on the device, or NULL. */
const struct mt_oom *mt_fatal_oom(const struct mt_device_report *device);

/* The end of what pictures show: shortly after the last out-of-memory error, if only frees follow.
 * These are the teardown of the program, which would take most of the axis. */
struct mt_shown_end {
    uint64_t t_ns, event;
    bool is_cut; /* events follow */
};
struct mt_shown_end mt_shown_end(const struct mt_oom *ooms, uint32_t count, uint64_t first_event,
                                 struct mt_shown_end all);
struct mt_shown_end mt_device_shown_end(const struct mt_device_report *device);

/* Whether nothing was allocated or freed after the beginning of the recording, which shows only the
 * live blocks at an instant. A refused request may follow. */
bool mt_lacks_history(const struct mt_report *report, const struct mt_device_report *device);

/* Whether it is a snapshot of a program that did not record, or whose history has one entry (the
 * default of PyTorch 2.0): it shows live blocks at an instant. Its peaks are unknown. */
bool mt_is_one_instant(const struct mt_report *report, const struct mt_device_report *device);

/* The words for a place: "step 1, backward", "step 1, between phases", "forward", "outside any
 * phase". Ranges of the framework have the name of the range around them. */
const char *mt_phase_where(struct mt_arena *arena, const struct mt_phase *phases, int32_t phase,
                           int64_t step);

/* Among the ways at index `first` and later, the one that gets past the request with the smallest
 * limit, or NULL. Way 0 is the run's own, and comes first among equals. */
const struct mt_oom_way *mt_best_oom_way(const struct mt_oom_answer *answer, uint32_t first);

/* The blocks alive at that request, or NULL if they are not in the report. */
const struct mt_instant *mt_oom_instant(const struct mt_device_report *device,
                                        const struct mt_oom *oom);

/* Whether there is an allocator above the driver. Otherwise nothing is reserved, and there are no
 * retries. */
bool mt_has_allocator(const struct mt_report *report);

/* Whether what it reserved is known: segments were recorded, or a what-if replay makes them. */
bool mt_knows_reserved(const struct mt_report *report);

/* The share of reserved memory that was unused at an instant: its fragmentation. */
double mt_unused_share(const struct mt_bytes *then);

/* The peak at which unused memory is a loss, and its name: the allocated peak if 99% of the
 * reserved peak was reserved then, else the reserved peak. */
const struct mt_peak *mt_fragmentation_peak(const struct mt_device_report *device);
const char *mt_fragmentation_instant(const struct mt_device_report *device);

/* Whether device `a` is shown before `b`: first those on which the run ended, then by reserved
 * peak, allocated peak, and number. */
bool mt_device_comes_first(const struct mt_device_report *a, const struct mt_device_report *b);

/* The device that is shown first, or NULL. */
const struct mt_device_report *mt_worst_device(const struct mt_report *report);

/* Whether an arena of XLA served the device's requests, so that they are missing in the trace. */
bool mt_lacks_requests(const struct mt_device_report *device);

/* The device with that number, or NULL. */
const struct mt_device_report *mt_report_device(const struct mt_report *report, uint16_t number);

/* Memory of the device outside of the framework's heap, or NULL if none is in the trace. */
const struct mt_driver_report *mt_driver_of(const struct mt_report *report, uint16_t device);

/* Bytes of the KV cache if it also took everything that was free throughout the run. Meaningless if
 * the run ended out of memory. */
uint64_t mt_largest_kv_cache(const struct mt_device_parts *device_parts);

/* The owner in words: "NCCL, communicator 2 of 3 with 8 ranks"; "a library outside of the
 * framework" if unknown. */
const char *mt_owner_text(struct mt_arena *arena, const struct mt_driver_report *driver,
                          const struct mt_owner_use *owner);

/* Old snapshots have no times. Their axes count events instead. */
static inline bool mt_report_has_times(const struct mt_report *report)
{
    return report->last_t_ns > report->first_t_ns;
}

/* Returns whether the axis of pictures counts events by default. This is so in a trace without
 * times, and after an out-of-memory error: the interesting part is then at the end, where many
 * events happen in a short time. device NULL: for pictures without a device. */
bool mt_is_shown_by_event(const struct mt_report *report, const struct mt_device_report *device);

/* The first event of a step. */
uint64_t mt_step_begin(const struct mt_report *report, const struct mt_step_use *step);

/* Returns the smallest index of a device's step such that this step and all later ones are recorded
 * and begin one after the other; step_count if there is none. */
uint32_t mt_first_step(const struct mt_report *report, const struct mt_device_report *device);

/* The same of the steps that are compared with each other: those of one loop. */
struct mt_step_list {
    const struct mt_step_use *list;
    uint32_t count;
};
struct mt_step_list mt_judged_steps(const struct mt_report *report,
                                    const struct mt_device_report *device);

/* "peak_allocated", "peak_reserved", "oom", "phase_peak", "phase_end", "step_peak", "asked". */
const char *mt_instant_name(enum mt_instant_kind kind);

#endif
