#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "phases.h"
#include "survey.h"

TEST(paths_by_the_words_of_reports)
{
    static const struct {
        const char *path, *asked;
        bool matches;
    } cases[] = {
        {"step#2/backward", "step#2/backward", true},
        {"run/step#2/backward", "step#2/backward", true},
        {"run/step#12/backward", "step#2/backward", false},
        {"step#2/backward", "step 2, backward", true},
        {"ProfilerStep#2/fwd/backward", "step 2, backward", true},
        {"epoch 1/step 2/backward", "step 2, backward", true},
        {"epoch 2/step 5/backward", "step 2, backward", false},
        {"step#12/backward", "step 2, backward", false},
        {"step#2/backward", "step 2, back", false},
        {"step#2/backward", "step 2", false},
        {"ProfilerStep#2", "step 2", true},
        {"ProfilerStep#2", "step 2, between phases", true},
        {"epoch 2/step 5", "step 2", false},
        {"backward", "step 2, backward", false},
        {"step#2/backward", "step 99999999999999999999, backward", false},
        {"step#2/backward", "", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (mt_phase_path_matches(cases[i].path, cases[i].asked) != cases[i].matches)
            fail_msg("'%s' for '%s'", cases[i].path, cases[i].asked);
}

TEST(step_numbers)
{
    static const struct {
        const char *name;
        int rank;
        int64_t number;
    } cases[] = {
        {"step#3", 3, 3},
        {"step 3", 3, 3},
        {"Step: 12", 3, 12},
        {"ProfilerStep#3", 3, 3},
        {"iteration 3", 3, 3},
        {"iter_0003", 3, 3},
        {"train_step[7]", 3, 7},
        {"step 3/100", 3, 3},
        {"training step=0", 3, 0},
        {"batch 9", 2, 9},
        {"epoch 2", 1, 2},
        {"epoch 2 step 5", 3, 5},
        {"request 17", 3, 17},
        {"STEP#4", 3, 4},
        {"step", 0, 0},
        {"timestep 3", 0, 0},
        {"micro_batch 3", 0, 0},
        {"MicroBatch 3", 0, 0},
        {"step 3x", 0, 0},
        {"Optimizer.step#Adam.step", 0, 0},
        {"step2_conv", 0, 0},
        {"step 99999999999999999999", 0, 0},
        {"", 0, 0},
        {"3", 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t number = 0;

        if (mt_phase_step_rank(cases[i].name, &number) != cases[i].rank)
            fail_msg("rank of '%s'", cases[i].name);
        assert_int_equal(number, cases[i].number);
    }
}

TEST(kinds)
{
    static const struct {
        const char *name;
        enum mt_phase_kind kind;
        bool plumbing;
    } cases[] = {
        {"forward", MT_PHASE_FORWARD, false},
        {"fwd", MT_PHASE_FORWARD, false},
        {"Forward pass", MT_PHASE_FORWARD, false},
        {"validate", MT_PHASE_FORWARD, false},
        {"loss", MT_PHASE_LOSS, false},
        {"backward", MT_PHASE_BACKWARD, false},
        {"optimizer", MT_PHASE_OPTIMIZER, false},
        {"Optimizer.step#Adam.step", MT_PHASE_OPTIMIZER, true},
        {"Optimizer.zero_grad#Adam.zero_grad", MT_PHASE_ZERO_GRAD, true},
        {"zero_grad", MT_PHASE_ZERO_GRAD, false},
        {"DistributedDataParallel.forward", MT_PHASE_FORWARD, true},
        {"nccl:all_reduce", MT_PHASE_UNKNOWN, true},
        {"aten::mm", MT_PHASE_UNKNOWN, true},
        {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", MT_PHASE_DATA, true},
        {"shrink", MT_PHASE_UNKNOWN, false},
        {"TSL: XlaPass:#name=optimize-input-output-buffer-alias#", MT_PHASE_UNKNOWN, true},
        {"CCCL: cub::DeviceReduce::Sum", MT_PHASE_UNKNOWN, true},
        {"", MT_PHASE_UNKNOWN, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (mt_phase_kind_of(cases[i].name) != cases[i].kind)
            fail_msg("kind of '%s'", cases[i].name);
        assert_int_equal(mt_phase_name_is_plumbing(cases[i].name), cases[i].plumbing);
    }
}

struct fixture {
    struct mt_arena arena;
    struct mt_symbols symbols;
    struct mt_phases phases;
    uint64_t seq;
};

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(mt_symbols_init(&f->symbols), MT_OK);
    mt_phases_init(&f->phases, &f->arena, &f->symbols);
}

static void end(struct fixture *f)
{
    mt_phases_release(&f->phases);
    mt_symbols_release(&f->symbols);
    mt_arena_release(&f->arena);
}

static struct mt_event range(struct fixture *f, const char *name, uint16_t thread)
{
    struct mt_event event = {.seq = f->seq, .t_ns = 10 * f->seq, .thread = thread};

    f->seq++;
    assert_int_equal(mt_symbols_string(&f->symbols, name, strlen(name), &event.name), MT_OK);
    return event;
}

static int32_t push(struct fixture *f, const char *name, uint16_t thread)
{
    struct mt_event event = range(f, name, thread);
    int32_t phase;

    mt_phases_push(&f->phases, &event, &phase);
    return phase;
}

static void pop(struct fixture *f, const char *name, uint16_t thread)
{
    struct mt_event event = range(f, name, thread);

    mt_phases_pop(&f->phases, &event);
}

TEST(nesting)
{
    struct fixture f;

    begin(&f);
    assert_int_equal(mt_phases_current(&f.phases, 0), MT_NO_PHASE);
    assert_int_equal(push(&f, "step#7", 0), 0);
    assert_int_equal(push(&f, "forward", 0), 1);
    assert_int_equal(push(&f, "layer", 0), 2);
    assert_int_equal(mt_phases_current(&f.phases, 0), 2);
    pop(&f, "layer", 0);
    assert_int_equal(mt_phases_current(&f.phases, 0), 1);
    pop(&f, "forward", 0);
    pop(&f, "step#7", 0);
    pop(&f, "step#7", 0); /* one too many */
    assert_int_equal(mt_phases_current(&f.phases, 0), MT_NO_PHASE);
    mt_phases_finish(&f.phases, 1000, 100);
    assert_string_equal(f.phases.phases[2].path, "step#7/forward/layer");
    assert_int_equal(f.phases.phases[2].step, 7);
    assert_int_equal(f.phases.phases[2].depth, 2);
    assert_int_equal(f.phases.phases[1].end_event, 4);
    assert_true(f.phases.phases[0].is_step);
    assert_false(f.phases.phases[1].is_step);
    assert_false(f.phases.phases[0].cut);
    assert_int_equal(f.phases.unmatched, 1);
    end(&f);
}

/* A range without an end ends with its parent, or with the trace. */
TEST(cut_ranges)
{
    struct fixture f;

    begin(&f);
    push(&f, "outer", 0);
    push(&f, "lost", 0);
    pop(&f, "outer", 0);
    assert_int_equal(f.phases.ended_count, 2);
    assert_int_equal(f.phases.ended[0], 1);
    push(&f, "open", 0);
    mt_phases_finish(&f.phases, 1000, 100);
    assert_true(f.phases.phases[1].cut);
    assert_int_equal(f.phases.phases[1].end_event, 2);
    assert_true(f.phases.phases[2].cut);
    assert_int_equal(f.phases.phases[2].end_t_ns, 1000);
    assert_int_equal(f.phases.phases[0].step, MT_NO_STEP);
    end(&f);
}

/* Backward runs on its own threads, without ranges or with those of nodes. */
TEST(threads_without_ranges_inherit)
{
    static const char node[] = "autograd::engine::evaluate_function: MmBackward0";
    struct fixture f;
    int32_t backward;

    begin(&f);
    push(&f, "step#4", 1);
    backward = push(&f, "backward", 1);
    assert_int_equal(mt_phases_current(&f.phases, 2), backward);
    assert_int_equal(mt_phases_current(&f.phases, 900), backward);
    int32_t inner = push(&f, node, 2);
    assert_int_equal(f.phases.phases[inner].parent, backward);
    assert_int_equal(f.phases.facts[inner].kind, MT_PHASE_BACKWARD);
    assert_int_equal(mt_phases_current(&f.phases, 1), backward);
    assert_int_equal(mt_phases_current(&f.phases, 2), inner);
    pop(&f, node, 2);
    assert_int_equal(mt_phases_current(&f.phases, 2), backward);
    pop(&f, "backward", 1);
    pop(&f, "step#4", 1);
    assert_int_equal(mt_phases_current(&f.phases, 2), MT_NO_PHASE);
    inner = push(&f, node, 2);
    assert_int_equal(f.phases.phases[inner].parent, MT_NO_PHASE);
    pop(&f, node, 2);
    mt_phases_finish(&f.phases, 100, 100);
    assert_int_equal(f.phases.phases[backward + 1].step, 4);
    end(&f);
}

/* Two sources report the same range, or a function calls itself: there is one range, whose end is
 * the later of the two. */
TEST(ranges_that_are_reported_twice)
{
    struct fixture f;
    int32_t forward;

    begin(&f);
    push(&f, "step#0", 1);
    forward = push(&f, "forward", 1);
    assert_int_equal(push(&f, "forward", 1), MT_NO_PHASE);
    assert_int_equal(mt_phases_current(&f.phases, 1), forward);
    int32_t inner = push(&f, "attention", 1);
    assert_int_equal(f.phases.phases[inner].parent, forward);
    pop(&f, "attention", 1);
    pop(&f, "forward", 1);
    assert_int_equal(f.phases.ended_count, 0);
    assert_int_equal(mt_phases_current(&f.phases, 1), forward);
    pop(&f, "forward", 1);
    assert_int_equal(f.phases.ended_count, 1);
    assert_int_equal(mt_phases_current(&f.phases, 1), 0);
    pop(&f, "step#0", 1);
    assert_int_equal(f.phases.count, 3);
    assert_int_equal(f.phases.not_recorded, 0);
    assert_int_equal(f.phases.unmatched, 0);
    end(&f);
}

/* A user range on another thread is no part of the main thread's work: loading continues while
 * steps begin and end. */
/* Names of XLA contain numbers that differ between calls: reports show the module. */
TEST(names_of_xla_lose_their_numbers)
{
    static const char *const opened[] = {
        "TSL: XlaCompile:#module=jit_step#",
        "TSL: XlaPass:#name=fusion,module=jit_step,program_id=7#",
        "TSL: XlaCompileBackend:#module=gemm_fusion_dot.2,program_id=8#",
        "TSL: XlaModule:#prefix=args[0],hlo_module=jit_dot,program_id=9#",
        "TSL: Thunk:#name=jit(f)/x=y,hlo_op=copy.1,unique_hlo_op_id=1#"};
    struct fixture f;

    begin(&f);
    for (size_t i = 0; i < 5; i++)
        push(&f, opened[i], 0);
    for (size_t i = 5; i-- > 0;)
        pop(&f, opened[i], 0);
    push(&f, "TSL: XlaModule:#hlo_module=jit_dot,program_id=10#", 0);
    pop(&f, "TSL: XlaModule:#hlo_module=jit_dot,program_id=10#", 0);
    push(&f, "TSL: XlaModule:#program_id=11#", 0);
    push(&f, "TSL: XlaPass", 1);
    push(&f, "TSL: Thunk:#hlo_op=copy.1#", 2);
    mt_phases_finish(&f.phases, 10 * f.seq, f.seq);
    assert_int_equal(f.phases.count, 6);
    assert_string_equal(f.phases.phases[0].name, "compile jit_step");
    assert_string_equal(f.phases.phases[1].path, "compile jit_step/jit_dot");
    assert_string_equal(f.phases.phases[2].name, "jit_dot");
    assert_ptr_equal(f.phases.phases[1].name, f.phases.phases[2].name);
    assert_false(f.phases.phases[0].cut || f.phases.phases[1].cut || f.phases.phases[2].cut);
    assert_string_equal(f.phases.phases[3].name, "XLA");
    assert_string_equal(f.phases.phases[4].name, "compile");
    assert_string_equal(f.phases.phases[5].name, "thunk copy.1");
    for (uint32_t i = 0; i < f.phases.count; i++)
        assert_true(f.phases.phases[i].is_plumbing && !f.phases.phases[i].is_step);
    assert_int_equal(f.phases.unmatched, 0);
    end(&f);
}

TEST(ranges_of_other_threads_stand_alone)
{
    struct fixture f;
    int32_t load, step;

    begin(&f);
    step = push(&f, "step#1", 1);
    load = push(&f, "load", 2);
    assert_int_equal(f.phases.phases[load].parent, MT_NO_PHASE);
    assert_int_equal(mt_phases_current(&f.phases, 1), step);
    assert_int_equal(mt_phases_current(&f.phases, 2), load);
    pop(&f, "step#1", 1);
    assert_int_equal(mt_phases_current(&f.phases, 2), load);
    pop(&f, "load", 2);
    assert_int_equal(f.phases.unmatched, 0);
    end(&f);
}

/* A range that begins on one thread and ends on another belongs to the first thread: the trace has
 * its end on that thread. Ranges that overlap without nesting are cut: the end of the outer range
 * also ends the inner one, whose own end then has no begin. */
TEST(ranges_end_on_the_thread_that_began_them)
{
    struct fixture f;

    begin(&f);
    int32_t first = push(&f, "request 1", 1);
    int32_t second = push(&f, "request 2", 2);
    pop(&f, "request 1", 1); /* ended by thread 2, recorded as thread 1 */
    assert_false(f.phases.phases[first].cut);
    assert_int_equal(mt_phases_current(&f.phases, 2), second);
    assert_int_equal(mt_phases_current(&f.phases, 1), second); /* inherited */
    pop(&f, "request 2", 2);
    first = push(&f, "a", 1);
    second = push(&f, "b", 1);
    pop(&f, "a", 1);
    assert_true(f.phases.phases[second].cut);
    assert_int_equal(mt_phases_current(&f.phases, 1), MT_NO_PHASE);
    pop(&f, "b", 1);
    assert_int_equal(f.phases.unmatched, 1);
    end(&f);
}

/* The framework's range from another thread does not end the user's range. */
TEST(plumbing_ends_alone)
{
    struct fixture f;

    begin(&f);
    push(&f, "nccl:all_reduce", 0);
    push(&f, "optimizer", 0);
    pop(&f, "nccl:all_reduce", 0);
    assert_int_equal(mt_phases_current(&f.phases, 0), 1);
    pop(&f, "optimizer", 0);
    assert_int_equal(mt_phases_current(&f.phases, 0), MT_NO_PHASE);
    mt_phases_finish(&f.phases, 1000, 100);
    assert_false(f.phases.phases[1].cut);
    end(&f);
}

TEST(inheritance)
{
    struct fixture f;

    begin(&f);
    int32_t a = push(&f, "backward", 1);
    assert_int_equal(mt_phases_current(&f.phases, 9), a); /* never seen */
    int32_t b = push(&f, "other", 2);
    assert_int_equal(mt_phases_current(&f.phases, 9), b); /* the last active one */
    int32_t own = push(&f, "mine", 9);
    assert_int_equal(mt_phases_current(&f.phases, 9), own);
    pop(&f, "mine", 9);
    assert_int_equal(mt_phases_current(&f.phases, 9), b);
    pop(&f, "other", 2);
    assert_int_equal(mt_phases_current(&f.phases, 9), a);
    assert_int_equal(mt_phases_current(&f.phases, 2), a);
    pop(&f, "backward", 1);
    assert_int_equal(mt_phases_current(&f.phases, 9), MT_NO_PHASE);
    end(&f);
}

/* Epochs are steps only if there is nothing better. */
TEST(epochs)
{
    struct fixture f;

    begin(&f);
    push(&f, "epoch 1", 0);
    push(&f, "step 5", 0);
    push(&f, "forward", 0);
    pop(&f, "epoch 1", 0);
    mt_phases_finish(&f.phases, 1000, 100);
    assert_false(f.phases.phases[0].is_step);
    assert_int_equal(f.phases.phases[0].step, MT_NO_STEP);
    assert_int_equal(f.phases.phases[2].step, 5);
    end(&f);
    begin(&f);
    push(&f, "epoch 1", 0);
    push(&f, "forward", 0);
    mt_phases_finish(&f.phases, 1000, 100);
    assert_true(f.phases.phases[0].is_step);
    assert_int_equal(f.phases.phases[1].step, 1);
    end(&f);
}

TEST(owners)
{
    struct fixture f;

    begin(&f);
    push(&f, "step#0", 0);
    push(&f, "optimizer", 0);
    push(&f, "Optimizer.step#Adam.step", 0);
    pop(&f, "optimizer", 0);
    push(&f, "backward", 0);
    push(&f, "nccl:all_reduce", 0);
    assert_int_equal(f.phases.facts[2].owner, 1);
    assert_int_equal(f.phases.facts[4].kind, MT_PHASE_BACKWARD);
    assert_int_equal(f.phases.facts[4].owner, 3);
    end(&f);
}

/* Hostile depth and numbers: bounded, and names still match. */
TEST(too_deep)
{
    struct fixture f;

    begin(&f);
    for (int i = 0; i < 3 * MT_PHASES_MAX_DEPTH; i++)
        push(&f, i % 2 ? "deeper" : "and deeper", 0);
    assert_int_equal(f.phases.count, MT_PHASES_MAX_DEPTH);
    assert_int_equal(f.phases.not_recorded, 2 * MT_PHASES_MAX_DEPTH);
    for (int i = 0; i < 3 * MT_PHASES_MAX_DEPTH; i++)
        pop(&f, i % 2 ? "and deeper" : "deeper", 0);
    assert_int_equal(mt_phases_current(&f.phases, 0), MT_NO_PHASE);
    assert_int_equal(f.phases.unmatched, 0);
    for (unsigned i = 0; i < 2 * MT_PHASES_MAX; i++) {
        push(&f, "again", 3);
        pop(&f, "again", 3);
    }
    assert_int_equal(f.phases.count, MT_PHASES_MAX);
    assert_int_equal(mt_phases_current(&f.phases, 3), MT_NO_PHASE);
    end(&f);
}

TEST(rewinding)
{
    struct fixture f;

    begin(&f);
    for (int reading = 0; reading < 2; reading++) {
        f.seq = 0;
        assert_int_equal(push(&f, "step#0", 0), 0);
        assert_int_equal(push(&f, "forward", 0), 1);
        pop(&f, "forward", 0);
        assert_int_equal(push(&f, "backward", 1), 2);
        assert_int_equal(mt_phases_current(&f.phases, 5), 2);
        if (reading == 0) {
            mt_phases_finish(&f.phases, 1000, 100);
            mt_phases_rewind(&f.phases);
            assert_int_equal(mt_phases_current(&f.phases, 0), MT_NO_PHASE);
        }
    }
    assert_int_equal(f.phases.count, 3);
    end(&f);
}

/* Compares with the naive algorithm: every window's first largest value, for random walks. */
TEST(window_maxima)
{
    enum { LENGTH = 400 };
    unsigned random = 7;

    for (int round = 0; round < 50; round++) {
        struct mt_peak_windows window = {0};
        uint64_t values[LENGTH], begins[LENGTH];
        size_t begin_count = 0;

        for (uint64_t t = 0; t < LENGTH; t++) {
            random = random * 1103515245u + 12345u;
            values[t] = t ? values[t - 1] : 100;
            if ((random >> 16) % 7 == 0) {
                struct mt_high now = {.begin = begin_count + 1, .value = values[t], .event = t};

                mt_peak_windows_begin(&window, &now);
                begins[begin_count++] = t;
            } else {
                values[t] += (random >> 18) % 9;
                values[t] -= (random >> 22) % 9;
                if (t == 0 || mt_peak_windows_is_higher(&window, values[t])) {
                    window.top.value = values[t];
                    window.top.event = t;
                }
            }
            for (size_t b = 0; b < begin_count; b++) {
                const struct mt_high *high = mt_peak_windows_since(&window, b + 1);
                uint64_t best = begins[b];

                for (uint64_t i = begins[b]; i <= t; i++)
                    best = values[i] > values[best] ? i : best;
                assert_int_equal(high->value, values[best]);
                assert_int_equal(high->event < begins[b] ? begins[b] : high->event, best);
            }
        }
        mt_peak_windows_release(&window);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
