/* Text output of a sweep, for results that fake devices cannot produce: required memory, failed
 * requests, cards. */
#include "cmocka_all.h"

#include <signal.h>
#include <string.h>

#include "sweep_output.h"
#include "util.h"

static struct mt_sweep_run runs[MT_MAX_SWEEP_RUNS];
static struct mt_sweep sweep;

static struct mt_sweep_result *add(const char *value, const char *label, uint64_t activations)
{
    struct mt_sweep_run *run = &sweep.runs[sweep.run_count++];
    struct mt_sweep_result *result = &run->result;

    *run = (struct mt_sweep_run){.values = {value}, .label = label};
    result->outcome = MT_SWEEP_FINISHED;
    result->is_measured = result->has_need = true;
    result->role_bytes[MT_ROLE_PARAMETERS] = 2 * MT_GIB;
    result->role_bytes[MT_ROLE_ACTIVATIONS] = activations;
    result->allocated_peak_bytes = 2 * MT_GIB + activations;
    result->reserved_peak_bytes = result->card.allocator_bytes = 3 * MT_GIB + activations;
    result->card.bytes = result->card.allocator_bytes + MT_GIB / 2;
    result->card.cuda_from = MT_CUDA_ASSUMED;
    return result;
}

static void fill(void)
{
    const char *near;

    memset(&sweep, 0, sizeof sweep);
    sweep.runs = runs;
    sweep.names[0] = "batch";
    sweep.name_count = 1;
    sweep.card = mt_card_find("RTX 4090", &near);
    sweep.devices = 1;
    sweep.memory_bytes = sweep.card->memory_bytes;
    add("4", "batch=4", 4 * MT_GIB)->card.cuda_from = MT_CUDA_TABLE;
    add("8", "batch=8", 8 * MT_GIB)->sizes_from_data = 3;
    add("16", "batch=16", 16 * MT_GIB)->has_doubts = true;
    struct mt_sweep_result *last = add("32", "batch=32", 17 * MT_GIB);
    last->outcome = MT_SWEEP_OUT_OF_MEMORY;
    last->exit_status = last->exit_code = 1;
    last->has_need = false;
    last->oom_request_bytes = 4 * MT_GIB;
    strcpy(last->oom_site, "forward m.py:7");
    strcpy(last->oom_phase, "step 0, forward");
}

/* The tests' standard output is no terminal: 100 columns. */
TEST(all_of_it)
{
    static const char wanted[] =
        "4 dry runs on a simulated RTX 4090 24 GB with 23.5 GiB: times and values are meaningless\n"
        "batch  outcome        allocated  reserved  smallest limit       card\n"
        "4      finished        6.00 GiB  7.00 GiB        7.00 GiB   7.50 GiB\n"
        "8      finished        10.0 GiB  11.0 GiB        11.0 GiB  ~11.5 GiB\n"
        "16     finished        18.0 GiB  19.0 GiB        19.0 GiB  ~19.5 GiB\n"
        "32     out of memory   19.0 GiB  20.0 GiB\n"
        "  batch=32: out of memory at a request of 4.00 GiB from forward m.py:7, step 0, forward\n"
        "In 1 run, sizes or decisions depended on data that a dry run does not have: peaks may "
        "differ.\n"
        "In 1 run, a process is missing from the peaks, or ran without the simulated device or "
        "without the\n"
        "Python part of the dry run: peaks may differ. For details, make a dry run of that value "
        "alone.\n"
        "A run that did not finish has the peaks up to its end; its full need is unknown. If it "
        "ran out of\n"
        "memory, try a larger card (--device).\n"
        "~ is an estimate: the memory of CUDA and its libraries beside the allocator was not "
        "measured for RTX\n"
        "4090 24 GB, and counts as 1 GiB.\n"
        "\n"
        "At the allocated peak\n"
        "batch  parameters  activations\n"
        "4        2.00 GiB     4.00 GiB\n"
        "8        2.00 GiB     8.00 GiB\n"
        "16       2.00 GiB     16.0 GiB\n"
        "32       2.00 GiB     17.0 GiB\n"
        "\n"
        "Each +1 of batch changes the allocated peak by +1.00 GiB (1,073,741,824 B): exactly "
        "linear over 3\n"
        "values\n"
        "Each +1 of batch changes the reserved peak by +1.00 GiB (1,073,741,824 B): exactly linear "
        "over 3\n"
        "values\n"
        "\n"
        "card              memory  largest batch that fits\n"
        "RTX 3060 12 GB  11.8 GiB  8\n"
        "T4 16 GB        14.6 GiB  8\n"
        "V100 16 GB      15.8 GiB  8\n"
        "L4 24 GB        22.0 GiB  16\n"
        "RTX 4090 24 GB  23.5 GiB  16\n"
        "RTX 3090 24 GB  23.7 GiB  16 or more\n";
    struct mt_buf out = {0};

    fill();
    mt_sweep_add_text(&out, &sweep);
    mt_buf_add_char(&out, '\0');
    out.data[strlen(wanted)] = '\0'; /* larger cards follow, and a note */
    assert_string_equal(out.data, wanted);
    mt_buf_release(&out);
}

TEST(signals_have_names)
{
    struct mt_buf out = {0};

    fill();
    for (size_t i = 0; i < 3; i++)
        sweep.runs[i].result.outcome = MT_SWEEP_FAILED;
    sweep.runs[0].result.exit_status = 128 + SIGSEGV;
    sweep.runs[0].result.signal = SIGSEGV;
    sweep.runs[1].result.exit_status = 128 + 40;
    sweep.runs[1].result.signal = 40;
    sweep.runs[2].result.exit_status = 139; /* of the command's own */
    mt_sweep_add_text(&out, &sweep);
    mt_buf_add_char(&out, '\0');
    assert_false(out.failed);
    assert_non_null(strstr(out.data, "killed by SIGSEGV "));
    assert_non_null(strstr(out.data, "killed by signal 40 "));
    assert_non_null(strstr(out.data, "failed with 139 "));
    mt_buf_release(&out);
}

TEST(peaks_that_depend_on_timing_are_in_a_table)
{
    static const char wanted[] = "once:\n"
                                 "batch  outcome    allocated  reserved\n"
                                 "4      finished    5.00 GiB  6.00 GiB\n"
                                 "8      failed\n"
                                 "16     not known\n";
    struct mt_buf out = {0};

    fill();
    for (size_t i = 0; i < 3; i++) {
        struct mt_sweep_result *result = &sweep.runs[i].result;

        result->undecided.blocks = 1;
        result->assumed[MT_ASSUMED_EARLY] =
            (struct mt_assumed_peaks){.outcome = MT_SWEEP_FINISHED,
                                      .allocated_bytes = result->allocated_peak_bytes,
                                      .reserved_bytes = result->reserved_peak_bytes};
    }
    sweep.runs[0].result.assumed[MT_ASSUMED_EARLY].allocated_bytes -= MT_GIB;
    sweep.runs[0].result.assumed[MT_ASSUMED_EARLY].reserved_bytes -= MT_GIB;
    sweep.runs[1].result.assumed[MT_ASSUMED_EARLY].outcome =
        MT_SWEEP_FAILED; /* its peaks are not those of a run */
    sweep.runs[1].result.assumed[MT_ASSUMED_EARLY].allocated_bytes = 1;
    sweep.runs[2].result.assumed[MT_ASSUMED_EARLY].outcome = MT_SWEEP_NOT_RUN;
    mt_sweep_add_text(&out, &sweep);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, "The peaks depend on timing"));
    assert_non_null(strstr(out.data, wanted));
    mt_buf_release(&out);
}

static void assume(struct mt_sweep_result *result, enum mt_assumed which, int64_t change_bytes)
{
    result->assumed[which] = (struct mt_assumed_peaks){
        .outcome = MT_SWEEP_FINISHED,
        .allocated_bytes = result->allocated_peak_bytes + (uint64_t)change_bytes,
        .reserved_bytes = result->reserved_peak_bytes,
        .card_bytes = result->card.bytes};
}

/* Only guesses that move a peak by more than 1% are in a table. */
TEST(peaks_that_depend_on_data_are_in_a_table)
{
    static const char wanted[] =
        "leave:\n"
        "batch  of data  outcome    allocated  reserved  place\n"
        "8      25%      finished    9.00 GiB  11.0 GiB  9,903 of 19,806 at train.py:37 "
        "(selection)\n"
        "8      100%     timed out                       9,903 of 19,806 at train.py:37 "
        "(selection)\n";
    struct mt_sweep_result *result = &sweep.runs[1].result;
    struct mt_buf out = {0};

    fill();
    assert_int_equal(mt_sweep_guess_weight(&sweep.runs[0].result), MT_GUESSES_NONE);
    assert_int_equal(mt_sweep_guess_weight(result), MT_GUESSES_UNTRIED);
    assume(result, MT_ASSUMED_LESS, -(int64_t)(result->allocated_peak_bytes / 200));
    assume(result, MT_ASSUMED_MORE, 0);
    assert_int_equal(mt_sweep_guess_weight(result), MT_GUESSES_HARMLESS);
    assume(result, MT_ASSUMED_MORE, (int64_t)MT_GIB); /* another phase has the peak with less */
    assert_int_equal(mt_sweep_guess_weight(result), MT_GUESSES_BOUNDED);
    assume(result, MT_ASSUMED_LESS, -(int64_t)MT_GIB);
    assume(result, MT_ASSUMED_MORE, 0);
    assert_int_equal(mt_sweep_guess_weight(result), MT_GUESSES_BOUNDED);
    result->assumed[MT_ASSUMED_MORE].outcome = MT_SWEEP_TIMED_OUT;
    assert_int_equal(mt_sweep_guess_weight(result), MT_GUESSES_UNBOUNDED);
    result->cause = (struct mt_guess_cause){
        .place = "/u/train.py:37", .kind = "selection", .size = 9903, .of = 19806};
    mt_sweep_add_text(&out, &sweep);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, wanted));
    assert_null(strstr(out.data, "In 1 run, sizes"));
    mt_buf_release(&out);
}

/* Two points are always on a line. */
TEST(two_values_are_no_line)
{
    struct mt_buf out = {0};

    fill();
    sweep.run_count = 2;
    mt_sweep_add_text(&out, &sweep);
    mt_buf_add_char(&out, '\0');
    assert_false(out.failed);
    assert_null(strstr(out.data, "linear"));
    assert_null(strstr(out.data, "Each +1"));
    mt_buf_release(&out);
}

TEST(changes_that_differ_look_different)
{
    struct mt_buf out = {0};

    fill();
    sweep.runs[2].result.allocated_peak_bytes += 8192;
    mt_sweep_add_text(&out, &sweep);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, "by between +1,073,741,824 B and"));
    assert_non_null(strstr(out.data, "+1,073,742,848 B: not"));
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
