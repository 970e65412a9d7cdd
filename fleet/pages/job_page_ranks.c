#include "job_page_ranks.h"

#include <string.h>

#include "check.h"
#include "units.h"

enum {
    MAX_WHY_BYTES = 160, /* further reasons are omitted */
    MAX_OF_A_KIND = 64   /* maximum number of ranks for a reason that thousands of ranks may have */
};

struct chooser {
    const struct mt_job_report *report;
    struct mt_arena *arena;
    struct mt_page_ranks *ranks;
    uint32_t *places; /* for each row: 1 + index in the list; 0 = not in the list */
};

static struct mt_page_rank *take(struct chooser *chooser, uint32_t row)
{
    struct mt_page_ranks *ranks = chooser->ranks;

    MT_ASSERT(row < chooser->report->row_count);
    if (!chooser->places[row]) {
        ranks->list[ranks->count++] = (struct mt_page_rank){row, NULL};
        chooser->places[row] = ranks->count;
    }
    return &ranks->list[chooser->places[row] - 1];
}

/* Adds a reason why a rank is notable. */
static void note(struct chooser *chooser, uint32_t row, const char *why)
{
    struct mt_page_rank *rank;

    if (row == MT_NO_ROW || !why)
        return;
    rank = take(chooser, row);
    if (rank->why && (strlen(rank->why) + strlen(why) > MAX_WHY_BYTES || strstr(rank->why, why)))
        return;
    rank->why = rank->why ? mt_arena_printf(chooser->arena, "%s, %s", rank->why, why) : why;
}

static void note_deaths(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;
    uint32_t count = 0;

    if (!report->death)
        return;
    note(chooser, report->death->row, "ran out of memory first");
    note(chooser, report->death->contested_row, "may have run out of memory first");
    for (uint32_t i = 0; i < report->row_count && count < MAX_OF_A_KIND; i++) {
        if (!report->rows[i].record->has_death || chooser->places[i])
            continue;
        note(chooser, i, "ran out of memory");
        count++;
    }
}

static void note_extremes(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;

    if (report->row_count == 1) {
        note(chooser, 0, "the only rank that was read");
    } else {
        note(chooser, report->reserved.max_row, "highest reserved peak");
        note(chooser, report->reserved.min_row, "lowest reserved peak");
        note(chooser, report->reserved.median_row, "median reserved peak");
        note(chooser, report->allocated.max_row, "highest allocated peak");
        note(chooser, report->needed.max_row, "needs the most");
    }
    if (report->growing_count)
        note(chooser, report->growth.max_row, "grows most");
}

static void note_outliers(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;

    for (uint32_t i = 0; i < report->outlier_count && i < MAX_OF_A_KIND; i++) {
        const struct mt_job_outlier *outlier = &report->outliers[i];
        const char *name = mt_job_row_name(chooser->arena, report, outlier->row);

        note(chooser, outlier->row, "differs from its replicas");
        note(chooser, outlier->typical_row,
             name ? mt_arena_printf(chooser->arena, "typical replica of %.60s", name) : NULL);
    }
}

static void note_groups(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;

    for (uint32_t a = 0; a < report->axis_count; a++) {
        const struct mt_job_axis *axis = &report->axes[a];

        for (uint32_t g = 0; axis->separates && g < axis->group_count && g < MAX_OF_A_KIND; g++)
            note(chooser, axis->groups[g].reserved.max_row,
                 mt_arena_printf(chooser->arena, "highest of %.40s %u", axis->name,
                                 (unsigned)axis->groups[g].coordinate));
    }
}

static void note_strange(struct chooser *chooser)
{
    const struct mt_job_report *report = chooser->report;
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->row_count && count < MAX_OF_A_KIND; i++) {
        const struct mt_rank_record *record = report->rows[i].record;
        const char *why = record->identity.rank < 0              ? "its rank is unknown"
                          : !record->is_complete                 ? "its trace is not complete"
                          : record->outcome == MT_OUTCOME_FAILED ? "ended with an error"
                                                                 : NULL;

        if (!why)
            continue;
        note(chooser, i, why);
        count++;
    }
}

void mt_page_ranks_choose(const struct mt_job_report *report, struct mt_arena *arena,
                          struct mt_page_ranks *ranks)
{
    struct chooser chooser = {.report = report, .arena = arena, .ranks = ranks};
    size_t count = (size_t)report->row_count + 1;

    *ranks = (struct mt_page_ranks){.list = mt_arena_array(arena, count, sizeof *ranks->list)};
    chooser.places = mt_arena_array(arena, count, sizeof *chooser.places);
    note_deaths(&chooser);
    note_extremes(&chooser);
    note_outliers(&chooser);
    note_groups(&chooser);
    note_strange(&chooser);
    ranks->notable_count = ranks->count;
    for (uint32_t i = 0; i < report->cluster_count; i++)
        (void)take(&chooser, report->clusters[i].first_row);
    for (uint32_t i = 0; i < report->row_count; i++)
        (void)take(&chooser, i);
    MT_ASSERT(ranks->count == report->row_count);
}

static const char *end_of_oom(struct mt_arena *arena, const struct mt_job_report *report,
                              const struct mt_rank_record *record)
{
    const char *site = mt_job_site_text(arena, report, record->death_site);
    char after[MT_UNITS_TEXT], wanted[MT_UNITS_TEXT], left[MT_UNITS_TEXT];

    if (!site)
        return NULL;
    mt_format_duration(after, mt_sub_or_0_u64(record->death_t_ns, record->begin_t_ns));
    return mt_arena_printf(arena, "ran out of memory after %s: it requested %s%s%s; %s were free",
                           after, mt_format_bytes(wanted, record->death_wanted_bytes),
                           *site ? " in " : "", site,
                           mt_format_bytes(left, record->death_free_bytes));
}

const char *mt_page_rank_end(struct mt_arena *arena, const struct mt_job_report *report,
                             uint32_t row)
{
    const struct mt_rank_record *record = report->rows[row].record;
    int number = (int)record->identity.ended_number;

    switch (record->outcome) {
    case MT_OUTCOME_OOM:
        if (record->has_death)
            return end_of_oom(arena, report, record);
        return "ran out of memory";
    case MT_OUTCOME_FINISHED: return "finished";
    case MT_OUTCOME_FAILED: return mt_arena_printf(arena, "ended with exit status %d", number);
    case MT_OUTCOME_CUT: return "the recording was cut off";
    case MT_OUTCOME_UNKNOWN: return "how it ended is unknown";
    case MT_OUTCOME_KILLED: break;
    }
    switch (record->identity.ended) {
    case MT_ENDED_TIMEOUT: return "memtrace ended it after its timeout";
    case MT_ENDED_OOM_KILLED: return "killed by the kernel because the host ran out of memory";
    case MT_ENDED_SIGNAL: return mt_arena_printf(arena, "ended by signal %d", number);
    case MT_ENDED_UNKNOWN:
    case MT_ENDED_EXIT: break;
    }
    return "ended by a signal";
}
