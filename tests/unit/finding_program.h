/* A training step and expected findings, shared by tests of findings. Include after cmocka. */
#ifndef MT_TESTS_FINDING_PROGRAM_H
#define MT_TESTS_FINDING_PROGRAM_H

#include "step_program.h"
#include "util.h"

#define STEPS 6

static inline void expect_finding(const char *id, uint64_t bytes)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, id);

    assert_non_null(finding);
    assert_int_equal(finding->bytes, bytes);
    program_end(report);
}

static inline void expect_nothing(const char *id)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, id);

    if (finding)
        fail_msg("%s", finding->title);
    program_end(report);
}

static inline uint64_t take_in(const char *phase, const char *line, uint64_t bytes)
{
    phase_begins(phase);
    uint64_t addr = take(line, bytes);
    phase_ends(phase);
    return addr;
}

/* Allocates and frees what every training step needs. */
static inline void train(void)
{
    uint64_t hidden = take_in("forward", "model.py:hidden:9", 100 * MT_MIB);

    phase_begins("backward");
    give(take(NULL, 20 * MT_MIB));
    give(hidden);
    phase_ends("backward");
}

static inline void begin(void)
{
    program_begin();
    (void)take("model.py:init:1", 50 * MT_MIB);
}

/* A replay confirms the bytes that the finding claims. */
static inline void begin_replayable(void)
{
    program_begin();
    program_with_segments();
    (void)take("model.py:init:1", 50 * MT_MIB);
}

#endif
