#include "job_settings.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sorted.h"

bool mt_job_is_one_process(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return a->identity.process_id == b->identity.process_id &&
           a->identity.rank == b->identity.rank && !strcmp(a->trace_sha256, b->trace_sha256) &&
           !strcmp(a->trace_name, b->trace_name) && !strcmp(a->identity.host, b->identity.host);
}

/* Returns the need of the record in bytes. Rows are ordered by it. If the need of its allocator is
 * unknown, as for a long trace, the record has only a lower bound, and the result is at least the
 * reserved peak. */
static uint64_t largest_need(const struct mt_rank_record *record)
{
    uint64_t reserved = mt_add_most_u64(
        record->reserved_peak.bytes, mt_add_most_u64(record->outside_bytes, record->context_bytes));

    return record->allocator_need_is_known ? record->needed_bytes
                                           : mt_max_u64(record->needed_bytes, reserved);
}

/* A row that may be replayed. */
struct choice {
    uint64_t needed_bytes;
    uint32_t row;
};

MT_DEFINE_ORDER(by_need, struct choice, MT_DESCENDING(needed_bytes) || MT_ASCENDING(row))

/* How a row is replayed. */
enum request { NOTHING, REPLAY, TUNE };

/* The rows are sorted by need, so the first row of a cluster is the one that needs the most. */
static void request_rows(const struct mt_job_report *report, const struct choice *choices,
                         uint32_t count, bool *is_seen, unsigned char *requests)
{
    uint32_t tuned = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = choices[i].row, cluster = report->rows[row].cluster;

        if (i < MT_JOB_WORST)
            requests[row] = REPLAY;
        if (is_seen[cluster] || tuned == MT_JOB_TUNED)
            continue;
        is_seen[cluster] = true;
        requests[row] = TUNE;
        tuned++;
    }
}

static bool is_device_of(const struct mt_job_report *report, const unsigned char *requests,
                         const uint32_t *requested, uint32_t count, uint32_t row)
{
    for (uint32_t i = 0; i < count; i++)
        if (requests[requested[i]] &&
            mt_job_is_one_process(report->rows[row].record, report->rows[requested[i]].record))
            return true;
    return false;
}

void mt_job_settings_plan(const struct mt_job_report *report, const bool *can_replay,
                          struct mt_arena *arena, struct mt_job_check **checks, uint32_t *count)
{
    uint32_t rows = report->row_count, able = 0, requested_count = 0;
    struct choice *choices = mt_arena_array(arena, (size_t)rows + 1, sizeof *choices);
    unsigned char *requests = mt_arena_array(arena, (size_t)rows + 1, sizeof *requests);
    bool *is_seen = mt_arena_array(arena, (size_t)report->cluster_count + 1, sizeof *is_seen);
    uint32_t requested[MT_JOB_TUNED + MT_JOB_WORST];

    *count = 0;
    *checks = NULL;
    for (uint32_t i = 0; i < rows; i++)
        if (can_replay[i])
            choices[able++] = (struct choice){largest_need(report->rows[i].record), i};
    if (able)
        qsort(choices, able, sizeof *choices, by_need);
    request_rows(report, choices, able, is_seen, requests);
    for (uint32_t i = 0; i < able; i++)
        if (requests[choices[i].row])
            requested[requested_count++] = choices[i].row;
    for (uint32_t i = 0; i < able; i++) {
        uint32_t row = choices[i].row;

        if (requests[row] || is_device_of(report, requests, requested, requested_count, row))
            choices[(*count)++] = choices[i];
    }
    *checks = mt_arena_array(arena, (size_t)*count + 1, sizeof **checks);
    for (uint32_t i = 0; i < *count; i++)
        (*checks)[i] = (struct mt_job_check){choices[i].row, requests[choices[i].row] == TUNE};
}

static const struct mt_job_cell *cells_of(const struct mt_job_trial *trial, uint32_t setting)
{
    return trial->cells + (size_t)setting * trial->row_count;
}

uint64_t mt_job_trial_needed(const struct mt_job_trial *trial, const struct mt_job_cell *cell,
                             uint32_t row)
{
    return mt_add_most_u64(cell->need_bytes, trial->beside_bytes[row]);
}

static uint64_t largest_peak(const struct mt_job_trial *trial, uint32_t setting)
{
    uint64_t largest = 0;

    for (uint32_t row = 0; row < trial->row_count; row++)
        largest = mt_max_u64(largest, mt_add_most_u64(cells_of(trial, setting)[row].peak_bytes,
                                                      trial->beside_bytes[row]));
    return largest;
}

void mt_job_trial_shortlist(const struct mt_job_trial *trial, uint32_t most, bool *is_listed)
{
    for (uint32_t i = 0; i < trial->setting_count; i++)
        is_listed[i] = false;
    for (uint32_t listed = 0; listed < most && listed < trial->setting_count; listed++) {
        uint32_t best = MT_NO_SETTING;
        uint64_t best_bytes = 0;

        for (uint32_t i = 0; i < trial->setting_count; i++) {
            uint64_t bytes = largest_peak(trial, i);

            if (is_listed[i] || (best != MT_NO_SETTING && bytes >= best_bytes))
                continue;
            best = i;
            best_bytes = bytes;
        }
        is_listed[best] = true;
    }
}

/* A setting over some rows, with its criteria in their order. */
struct score {
    struct mt_job_largest largest;
    unsigned __int128 sum_bytes;
    uint64_t driver_calls;
    uint32_t options;
    bool serves; /* all rows, and all were searched */
};

static uint32_t count_options(const char *conf)
{
    uint32_t count = *conf != '\0';

    for (; *conf; conf++)
        count += *conf == ',';
    return count;
}

static void add_cell(struct score *score, const struct mt_job_trial *trial,
                     const struct mt_job_cell *cell, uint32_t row)
{
    struct mt_job_largest *largest = &score->largest;
    uint64_t needed = mt_job_trial_needed(trial, cell, row);

    if (largest->row == MT_NO_ROW || needed > largest->needed_bytes) {
        largest->row = row;
        largest->needed_bytes = needed;
    }
    largest->limit_bytes = mt_max_u64(largest->limit_bytes, cell->limit_bytes);
    largest->is_exact &= cell->is_exact;
    score->sum_bytes += needed;
    score->driver_calls = mt_add_most_u64(score->driver_calls, cell->driver_calls);
    score->serves &= cell->is_searched && cell->serves;
}

/* Over `count` rows since `first`. */
static struct score score_of(const struct mt_job_trial *trial, const struct mt_job_cell *cells,
                             const char *conf, uint32_t first, uint32_t count)
{
    struct score score = {.largest = {.row = MT_NO_ROW, .is_exact = true},
                          .options = count_options(conf),
                          .serves = count > 0};

    for (uint32_t row = first; row < first + count; row++)
        add_cell(&score, trial, &cells[row], row);
    return score;
}

static bool is_better(const struct score *a, const struct score *b)
{
    if (a->largest.needed_bytes != b->largest.needed_bytes)
        return a->largest.needed_bytes < b->largest.needed_bytes;
    if (a->largest.limit_bytes != b->largest.limit_bytes)
        return a->largest.limit_bytes < b->largest.limit_bytes;
    if (a->sum_bytes != b->sum_bytes)
        return a->sum_bytes < b->sum_bytes;
    if (a->driver_calls != b->driver_calls)
        return a->driver_calls < b->driver_calls;
    return a->options < b->options;
}

/* The best setting over rows; MT_NO_SETTING: none needs less than `before`. */
static uint32_t find_best(const struct mt_job_trial *trial, const struct score *before,
                          uint32_t first, uint32_t count, struct score *best)
{
    uint32_t found = MT_NO_SETTING;

    for (uint32_t i = 0; i < trial->setting_count; i++) {
        struct score score = score_of(trial, cells_of(trial, i), trial->confs[i], first, count);

        if (!score.serves ||
            (before->serves && score.largest.needed_bytes >= before->largest.needed_bytes))
            continue;
        if (found != MT_NO_SETTING && !is_better(&score, best))
            continue;
        found = i;
        *best = score;
    }
    return found;
}

void mt_job_trial_choose(const struct mt_job_trial *trial, struct mt_job_choice *choice)
{
    struct score before = score_of(trial, trial->before, "", 0, trial->row_count), best = before;

    choice->setting = find_best(trial, &before, 0, trial->row_count, &best);
    choice->before = before.largest;
    choice->after = best.largest;
}

uint32_t mt_job_trial_own_best(const struct mt_job_trial *trial, uint32_t row)
{
    struct score before = score_of(trial, trial->before, "", row, 1), best = before;

    MT_ASSERT(row < trial->row_count);
    return find_best(trial, &before, row, 1, &best);
}

void mt_job_settings_states(const struct mt_job_report *report, const struct mt_job_check *checks,
                            uint32_t count, struct mt_arena *arena, enum mt_job_row_check *states)
{
    bool *is_checked = mt_arena_array(arena, (size_t)report->cluster_count + 1, sizeof *is_checked);

    for (uint32_t i = 0; i < count; i++)
        is_checked[report->rows[checks[i].row].cluster] = true;
    for (uint32_t row = 0; row < report->row_count; row++)
        states[row] = is_checked[report->rows[row].cluster] ? MT_JOB_ALIKE : MT_JOB_NOT_CHECKED;
    for (uint32_t i = 0; i < count; i++)
        states[checks[i].row] = MT_JOB_CHECKED;
}

void mt_job_settings_free(struct mt_job_settings *settings)
{
    if (!settings)
        return;
    mt_arena_release(&settings->arena);
    free(settings);
}
