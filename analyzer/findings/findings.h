/* Findings: what is worth a change in the program or its settings, each with
 * evidence, and with the replay that proves what it saves. One file a finding;
 * the table of them is in findings.c. */
#ifndef MT_ANALYZER_FINDINGS_H
#define MT_ANALYZER_FINDINGS_H

#include "analysis.h"
#include "stack_marks.h"
#include "trend.h"
#include "util.h"

/* Most findings of one kind on one device. */
#define MT_FINDINGS_MAX 4

/* Stacks by what several findings look for in them; made when one asks. */
struct mt_finding_marks {
    struct mt_stack_marks loss, foreach;
};

/* What a finding is made from. */
struct mt_finding_search {
    struct mt_analysis *analysis;             /* both readings are over, the report is filled;
                                                 mt_ask_*: before the second, only facts are */
    const struct mt_device_report *device;    /* the one that is looked at */
    struct mt_holders_device *held;           /* what was asked of the second reading */
    struct mt_finding_marks *marks;           /* shared by all devices; NULL in mt_ask_* */
    struct mt_finding found[MT_FINDINGS_MAX]; /* texts: of the report's arena */
    uint32_t count;
    bool growth_judged; /* see mt_device_report */
};

/* Before the second reading: asks for what findings need of it. */
enum mt_status mt_findings_begin(struct mt_analysis *analysis) MT_MUST_USE;

/* Fills devices[].findings, the severest first, then the largest. Reads the source again, from its
 * start, if a finding has to: last of all. */
enum mt_status mt_findings_fill(struct mt_analysis *analysis) MT_MUST_USE;

/* The findings: each adds what it finds on one device. */
enum mt_status mt_find_growth(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_kept_values(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_settings(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_pinned_segments(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_optimizer_state(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_loss_peak(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_foreach_peak(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_held_activations(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_cache_flushes(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_first_steps(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_kept_gradients(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_idle_state(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_exception_frames(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_large_layer(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_dtype_copies(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_cast_weights(struct mt_finding_search *search) MT_MUST_USE;
enum mt_status mt_find_outside_memory(struct mt_finding_search *search) MT_MUST_USE;

/* Does what lies where at the reserved peak matter? */
void mt_ask_pins(struct mt_finding_search *search);

/* Would other settings reserve less? */
void mt_ask_settings(struct mt_finding_search *search);

/* What outlives its step on that device. */
enum mt_status mt_finding_lives(struct mt_finding_search *search,
                                const struct mt_lives **lives) MT_MUST_USE;

/* Only of a run whose allocator the replay explains in full is it known what
 * something else would have done to it. */
bool mt_finding_replayable(const struct mt_finding_search *search);

/* A path as one word of a shell's line, which is never read as an option. NULL if
 * quotes are not enough, if a character of it is not shown as it is (foreign_text.h),
 * so that the line could not be copied, or without memory. */
const char *mt_shell_word(struct mt_arena *arena, const char *text);

/* The line of a shell that replays the run as it was and under the policy; of the
 * report's arena. */
const char *mt_finding_command(const struct mt_finding_search *search, const char *policy);

/* Marks the stacks with cross_entropy or its like in them, for mt_finding_is_loss. */
enum mt_status mt_finding_mark_losses(struct mt_finding_search *search) MT_MUST_USE;
bool mt_finding_is_loss(const struct mt_finding_search *search, uint32_t stack);

/* Are bytes worth a word, or a change of the program? Of a peak of so many; less
 * may be an accident of one run, too. */
static inline uint64_t mt_finding_least(uint64_t peak_bytes)
{
    return mt_max_u64(64 * MT_MIB, peak_bytes / 20);
}

static inline bool mt_finding_matters(uint64_t bytes, uint64_t peak_bytes)
{
    return bytes >= mt_finding_least(peak_bytes);
}

/* One more, if there is room: a copy, with a copy of its evidence, in the report's
 * arena. MT_ERR_MEMORY if a text is NULL: there was no memory for it. */
enum mt_status mt_finding_say(struct mt_finding_search *search,
                              const struct mt_finding *finding) MT_MUST_USE;

/* Room for one more, NULL if there is none. */
static inline struct mt_finding *mt_finding_add(struct mt_finding_search *search)
{
    return search->count < MT_FINDINGS_MAX ? &search->found[search->count++] : NULL;
}

#endif
