/* Questions that a finished part of a report answers without any other input. */
#ifndef MT_ANALYZER_REPORT_QUERY_H
#define MT_ANALYZER_REPORT_QUERY_H

#include "report.h"
#include "units.h"

/* Is the limit of the run known, if only as an interval? False without one, and
 * if all there is is one value of many that explains what was collected as
 * garbage. */
bool mt_limit_is_known(const struct mt_replay_result *replay);

/* The least and the most that the limit of the run can have been; 0: it had none. A replay that
 * serves the run under the least serves it under the limit of the run. */
uint64_t mt_least_limit_bytes(const struct mt_replay_result *replay);
uint64_t mt_most_limit_bytes(const struct mt_replay_result *replay);

/* "1,200 MiB", "1,690 MiB to 1,713 MiB": those of whole MiB in [least, most]. In the arena; NULL:
 * no memory. */
const char *mt_limit_range_text(struct mt_arena *arena, uint64_t least_bytes, uint64_t most_bytes);

/* The same as a clause: "the limit was 1,690 MiB to 1,713 MiB". */
const char *mt_limit_text(struct mt_arena *arena, uint64_t least_bytes, uint64_t most_bytes);

/* That clause of a limit that is known (mt_limit_is_known). */
const char *mt_replay_limit_text(struct mt_arena *arena, const struct mt_replay_result *replay);

/* "8.06 GiB", or "about 8.06 GiB" where the run may ask for other memory than it did. */
#define MT_NEED_TEXT (MT_UNITS_TEXT + sizeof "about ")
const char *mt_need_text(char text[MT_NEED_TEXT], const struct mt_need *need);

/* An arena in the memory of the host: no card and no CUDA has a part in it. */
bool mt_is_host_memory(const struct mt_device_report *device);
/* What a card must hold in all, of a report of one device: the need, what lay outside of the
 * framework at the allocated peak, and CUDA itself. False if one of them is not known; what is
 * known is filled then, and `bytes` is its sum. */
struct mt_card_need {
    uint64_t bytes, outside_bytes, context_bytes;
    bool has_outside, has_context;
};
bool mt_card_need(const struct mt_report *report, const struct mt_device_report *device,
                  struct mt_card_need *out);

/* Roles by their bytes, largest first; of the same bytes in the order of enum mt_role. */
void mt_roles_by_bytes(const uint64_t bytes[MT_ROLE_COUNT], enum mt_role order[MT_ROLE_COUNT]);

/* "activations", or "blocks of no known role" where those come first. */
const char *mt_holder_role_name(enum mt_role role, bool is_first);

/* What pictures call a trace: "runs/seq2seq.pickle.zst" -> "seq2seq". In the arena. */
const char *mt_report_name(struct mt_arena *arena, const char *path);

/* False for a phase or step that was over before the recorded history of the
 * device began: what memory did in it is not known, its bytes are those of the
 * start. */
bool mt_report_covers(const struct mt_report *report, const struct mt_device_report *device,
                      uint64_t end_event);

/* The request that the run died of on the device, NULL if it did not. */
const struct mt_oom *mt_fatal_oom(const struct mt_device_report *device);

/* Is it a snapshot of a program that did not record: what is alive, and nothing of what was? Its
 * peaks are not known. */
bool mt_is_one_instant(const struct mt_report *report, const struct mt_device_report *device);

/* The way from `first` on that gets past the request with the smallest limit; NULL if none does.
 * The way of number 0 is the run's own, and comes first among equals. */
const struct mt_oom_way *mt_best_oom_way(const struct mt_oom_answer *answer, uint32_t first);

/* Who was alive at that request, NULL if it is not in the report. */
const struct mt_instant *mt_oom_instant(const struct mt_device_report *device,
                                        const struct mt_oom *oom);

/* Is there an allocator above the driver's? Else nothing is reserved, and nothing tries again. */
bool mt_has_allocator(const struct mt_report *report);

/* Is device `a` shown before `b`? First those on which the run died, then by the reserved peak,
 * then by the allocated one, then by number. */
bool mt_device_comes_first(const struct mt_device_report *a, const struct mt_device_report *b);

/* The device that comes first; NULL if there is none. */
const struct mt_device_report *mt_worst_device(const struct mt_report *report);

/* Did an arena of XLA serve the device's requests, so that the trace lacks them? */
bool mt_lacks_requests(const struct mt_device_report *device);

/* The device with that number, NULL if the report has none. */
const struct mt_device_report *mt_report_device(const struct mt_report *report, uint16_t number);

/* What the trace holds of the device beside the framework's heap, NULL if nothing. */
const struct mt_driver_report *mt_driver_of(const struct mt_report *report, uint16_t device);

/* Bytes of the KV cache if it also took all that was free throughout the run. Means nothing if the
 * run died. */
uint64_t mt_largest_kv_cache(const struct mt_device_parts *device_parts);

/* What NCCL says of the communicator with that number; NULL: nothing. */
const struct mt_communicator_use *mt_told_communicator(const struct mt_driver_report *driver,
                                                       int32_t communicator);
/* Who asked, in words: "NCCL, communicator 2 of 3 with 8 ranks"; of one that is not known "a
 * library outside of the framework". NULL without memory. */
const char *mt_owner_text(struct mt_arena *arena, const struct mt_driver_report *driver,
                          const struct mt_owner_use *owner);

/* Old snapshots have no times; then events are counted. */
static inline bool mt_report_has_times(const struct mt_report *report)
{
    return report->last_t_ns > report->first_t_ns;
}

/* Are pictures of the device drawn over events, unless asked otherwise? Of a run that died, as what
 * matters is at its end, where events are many and time is short; and of a trace without times. A
 * device of NULL: of what is drawn without one. */
bool mt_is_shown_by_event(const struct mt_report *report, const struct mt_device_report *device);

/* The first event of a step. */
uint64_t mt_step_begin(const struct mt_report *report, const struct mt_step_use *step);

/* First of the device's steps that are covered by what was recorded and ascend
 * from there on to the last. */
uint32_t mt_first_step(const struct mt_report *report, const struct mt_device_report *device);

#endif
