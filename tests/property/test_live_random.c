/* Live blocks at an instant, in any grouping, equal the replay's count there to the byte. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "fake_trace.h"
#include "report.h"
#include "source.h"

/* What an observer of a replay of its own saw after every event. */
struct history {
    struct mt_bytes bytes[MAX_EVENTS][2]; /* by event, by device */
    uint64_t t_ns[MAX_EVENTS];
    size_t count;
    size_t initial;  /* as many events tell what the trace begins with */
    size_t first[2]; /* event of a device */
};

static enum mt_status note(void *context, const struct mt_event *event,
                           const struct mt_replay_view *view)
{
    struct history *history = context;

    assert_true(event->seq == history->count && history->count < MAX_EVENTS);
    if (history->count)
        memcpy(history->bytes[history->count], history->bytes[history->count - 1],
               sizeof history->bytes[0]);
    if (mt_event_is_memory(event) && history->first[event->device] > history->count)
        history->first[event->device] = history->count;
    if (mt_event_is_memory(event))
        history->bytes[history->count][event->device] = mt_counters_bytes(view->counters);
    history->t_ns[history->count++] = event->t_ns;
    if (event->flags & MT_EVENT_INITIAL)
        history->initial = history->count;
    return MT_OK;
}

static void read_history(struct fake *fake, const char *policy, struct history *history)
{
    struct mt_replay_options options = {.policy = policy, .verify = true};
    struct mt_replay_observer observer = {.context = history, .event = note};
    static struct mt_replay_summary summary;
    struct mt_error error;

    memset(history, 0, sizeof *history);
    history->first[0] = history->first[1] = SIZE_MAX;
    assert_int_equal(mt_heap_view_choose(&fake->source, &error), MT_OK);
    assert_int_equal(mt_replay_run(&fake->source, &options, &observer, &summary, &error), MT_OK);
    assert_int_equal(mt_source_rewind(&fake->source, &error), MT_OK);
}

static bool is_then(const struct history *history, const struct mt_question *question, size_t i)
{
    const uint64_t half_ns = question->half_ns;
    uint64_t t_ns = history->t_ns[i] - history->t_ns[0];

    if (t_ns + half_ns >= question->value)
        return t_ns < question->value + half_ns;
    return i + 1 == history->count ||
           history->t_ns[i + 1] - history->t_ns[0] + half_ns > question->value;
}

/* Index of the event after which things are told. */
static size_t instant_of(const struct history *history, const struct mt_question *question,
                         uint16_t device)
{
    size_t begin = history->initial ? history->initial - 1 : 0;
    size_t at = question->half_ns ? begin : 0; /* never a part of the initial state */
    bool found = false;

    for (size_t i = begin; question->half_ns && i < history->count; i++)
        if (i >= history->first[device] && is_then(history, question, i) &&
            (!found ||
             history->bytes[i][device].allocated > history->bytes[at][device].allocated)) {
            at = i;
            found = true;
        }
    for (size_t i = 1; !question->half_ns && i < history->count; i++) {
        bool by_then = question->at == MT_AT_EVENT
                           ? i <= question->value
                           : history->t_ns[i] - history->t_ns[0] <= question->value;
        at = by_then || i < history->initial ? i : at;
    }
    return at;
}

static void check(const struct mt_answer *answer, const struct mt_bytes *wanted)
{
    uint64_t bytes = 0, requested = 0, blocks = 0, holdings = 0;

    assert_int_equal(answer->missing, MT_ANSWERED);
    assert_memory_equal(&answer->instant.bytes, wanted, sizeof *wanted);
    for (uint32_t i = 0; i < answer->row_count; i++) {
        bytes += answer->rows[i].bytes;
        requested += answer->rows[i].requested_bytes;
        blocks += answer->rows[i].blocks;
        assert_non_null(answer->rows[i].label);
        assert_true(!i || answer->rows[i].bytes <= answer->rows[i - 1].bytes);
    }
    for (uint32_t i = 0; i < answer->instant.holding_count; i++)
        holdings += answer->instant.holdings[i].blocks;
    assert_int_equal(bytes, wanted->allocated);
    assert_int_equal(bytes + answer->waiting_bytes, wanted->active);
    assert_int_equal(requested + answer->waiting_requested_bytes, wanted->requested);
    assert_int_equal(blocks, holdings);
    assert_true(wanted->reserved >= wanted->active);
    assert_true(answer->told_count <= answer->row_count);
}

static void ask(struct fake *fake, const char *policy, const struct history *history,
                const struct mt_question *question)
{
    struct mt_analyze_options options = {.path = "random", .question = question};
    struct mt_report *report;
    struct mt_error error;

    options.replay.policy = policy;
    assert_int_equal(mt_analyze(&fake->source, &options, &report, &error), MT_OK);
    for (uint32_t i = 0; i < report->device_count; i++) {
        uint16_t device = report->devices[i].device;

        check(report->devices[i].answer,
              &history->bytes[instant_of(history, question, device)][device]);
    }
    mt_report_release(report);
    assert_int_equal(mt_source_rewind(&fake->source, &error), MT_OK);
}

static void run(uint64_t round, bool middle)
{
    const char *policy = middle || round % 2 ? "recorded" : "pytorch";
    static struct history history;
    struct mt_question question;
    static struct fake fake;

    seed = 88172645463325252u + round * 7919 + middle;
    make(&fake, false, middle, false);
    read_history(&fake, policy, &history);
    for (int by = 0; by < MT_GROUP_BY_COUNT && history.count; by++) {
        size_t event = (size_t)below(history.count);

        question =
            (struct mt_question){.at = MT_AT_EVENT, .value = event, .by = (enum mt_group_by)by};
        ask(&fake, policy, &history, &question);
        question.at = MT_AT_TIME;
        question.value = history.t_ns[event] - history.t_ns[0];
        ask(&fake, policy, &history, &question);
        question.half_ns = history.t_ns[event] - history.t_ns[below(event + 1)];
        ask(&fake, policy, &history, &question);
    }
    unmake(&fake);
}

TEST(random_instants)
{
    for (uint64_t round = 0; round < 60; round++)
        run(round, false);
}

TEST(random_instants_of_a_ring)
{
    for (uint64_t round = 0; round < 60; round++)
        run(round, true);
}

/* With any trace and any query, nothing crashes. */
TEST(wild_traces)
{
    static struct fake fake;

    for (uint64_t round = 0; round < 200; round++) {
        struct mt_question question = {.at = (enum mt_question_at)(round % 7),
                                       .value = round * 3,
                                       .phase = round % 3 ? "backward" : "/",
                                       .by = (enum mt_group_by)(round % MT_GROUP_BY_COUNT)};
        struct mt_analyze_options options = {.path = "wild", .question = &question};
        struct mt_report *report;
        struct mt_error error;

        seed = 99172645463325252u + round * 104729;
        make(&fake, true, round % 3 == 0, round % 5 > 2);
        if (!mt_analyze(&fake.source, &options, &report, &error))
            mt_report_release(report);
        unmake(&fake);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
