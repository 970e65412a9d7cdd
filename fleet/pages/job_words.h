/* Sentences about a job, shared by text, page and summary. Texts from files are unescaped;
 * writers escape them.
 *
 *     struct mt_job_words words = {.report = report};
 *     mt_job_describe_death(&words);
 *     ... words.first, its next, ...
 *     mt_job_words_release(&words); */
#ifndef MT_RENDER_JOB_WORDS_H
#define MT_RENDER_JOB_WORDS_H

#include "job_report.h"

/* The topic of a sentence. The page groups sentences by topic. */
enum mt_job_topic {
    MT_JOB_TOPIC_DEATH,
    MT_JOB_TOPIC_PEAK,
    MT_JOB_TOPIC_RANKS, /* which ranks are present, and problems with their files */
    MT_JOB_TOPIC_NEED,
    MT_JOB_TOPIC_OUTLIERS,
    MT_JOB_TOPIC_AXES,
    MT_JOB_TOPIC_GROWTH,
    MT_JOB_TOPIC_STEPS,
    MT_JOB_TOPIC_DEVICES
};

struct mt_job_sentence {
    enum mt_job_topic topic;
    const char *text;
    struct mt_job_sentence *next;
};

struct mt_job_words {
    const struct mt_job_report *report;
    bool all; /* no limits on lists of ranks */
    struct mt_arena arena;
    struct mt_job_sentence *first, *last;
};

/* Each function adds the sentences of its topics. It adds none if the report has no data for
 * them. */
void mt_job_describe_death(struct mt_job_words *words);
/* Adds sentences of the topics PEAK, RANKS, NEED, and RANKS again, in this order. */
void mt_job_describe_peak(struct mt_job_words *words);
void mt_job_describe_outliers(struct mt_job_words *words);
void mt_job_describe_axis(struct mt_job_words *words, const struct mt_job_axis *axis);
/* Adds a sentence if the shares of the axes overlap and therefore do not add up. Call it after
 * mt_job_describe_axis was called for every axis. */
void mt_job_describe_overlap(struct mt_job_words *words);
void mt_job_describe_growth(struct mt_job_words *words);
void mt_job_describe_steps(struct mt_job_words *words);
void mt_job_describe_device(struct mt_job_words *words, const struct mt_job_device *device);

/* Returns the title of the section about axes: "axes, as recorded"; "" if the job has no axes. */
const char *mt_job_axes_title(const struct mt_job_report *report);
/* Returns a note about memory that the sums over shared devices do not include. */
const char *mt_job_devices_caveat(const struct mt_job_report *report);

/* Removes the sentences. */
void mt_job_words_reset(struct mt_job_words *words);
void mt_job_words_release(struct mt_job_words *words);

/* Returns "rank 0 (pp 0, dp 3, tp 0; node12)" in the arena. */
const char *mt_job_rank_name(struct mt_arena *arena, const struct mt_job_report *report,
                             uint32_t row);
/* Returns "0-2, 17 and 31 more", or all ranges if `all` is set, in the arena. */
const char *mt_job_ranges(struct mt_arena *arena, const struct mt_job_range *ranges, uint32_t count,
                          uint32_t ranks, bool all);

/* Returns the noun for the rows of the report: "ranks", "processes", or "devices of processes". */
const char *mt_job_rows_noun(const struct mt_job_report *report);

#endif
