/* Findings about what a model is made of, its optimizer's state, its layers, its
 * dtypes, against real runs:
 * in every capture those that are there, and no others; and what the program took
 * when it did what they say. */
#include "cmocka_all.h"

#include <dirent.h>

#include "finding_runs.h"

static const char *const kinds[] = {"idle-state", "large-layer", "dtype-copies", "cast-weights"};

struct expected {
    const char *id, *name, *title;
    uint16_t device;
    bool seen;
};

#define COPIES(name, bytes)                                                                        \
    {                                                                                              \
        "dtype-copies", name,                                                                      \
            bytes " less at the peak if setup does not hold the model in two dtypes at once", 0,   \
            false                                                                                  \
    }
#define LAYER(name, bytes, share, each)                                                            \
    {                                                                                              \
        "large-layer", name,                                                                       \
            bytes " (" share                                                                       \
                  ") of the peak: the largest parameter and other blocks of its size, " each       \
                  " each",                                                                         \
            0, false                                                                               \
    }
#define ENDS(name, bytes, share, each)                                                             \
    {                                                                                              \
        "large-layer", name,                                                                       \
            bytes                                                                                  \
            " (" share                                                                             \
            ") of the peak: the two largest parameters and other blocks of their size, " each      \
            " each",                                                                               \
            0, false                                                                               \
    }
#define STATE(name, device, bytes)                                                                 \
    {                                                                                              \
        "idle-state", name,                                                                        \
            bytes " less at the peak if the optimizer state is on the device only during the "     \
                  "optimizer step",                                                                \
            device, false                                                                          \
    }

static struct expected list[] = {
    STATE("accumulate", 0, "356 MiB"),
    STATE("ddp_rank1", 1, "456 MiB"),
    STATE("gpt_cap", 0, "1.00 GiB"),
    STATE("gpt_default", 0, "622 MiB"),
    STATE("gpt_expandable", 0, "607 MiB"),
    STATE("gpt_gc", 0, "1.02 GiB"),
    STATE("gpt_large40", 0, "1.02 GiB"),
    STATE("gpt_nonsplit", 0, "1.01 GiB"),
    STATE("gpt_round4", 0, "719 MiB"),
    STATE("gpt_seed2", 0, "1.01 GiB"),
    STATE("gpt_split200_cap", 0, "1.01 GiB"),
    STATE("gpt_split64", 0, "634 MiB"),
    STATE("lengths", 0, "354 MiB"),
    STATE("lstm", 0, "116 MiB"),
    STATE("resnet50_cap1900", 0, "93.7 MiB"),
    STATE("seq2seq", 0, "561 MiB"),
    STATE("seq2seq_cap", 0, "561 MiB"),
    STATE("seq2seq_native", 0, "561 MiB"),
    STATE("host_state", 0, "233 MiB"),
    STATE("two_states", 0, "292 MiB"),
    LAYER("adam_table", "781 MiB", "52.6%", "156 MiB"),
    STATE("host_stream", 0, "233 MiB"),
    STATE("restarted", 0, "149 MiB"),
    LAYER("embedding", "781 MiB", "91.9%", "391 MiB"),
    LAYER("embedding_clean", "391 MiB", "83.6%", "391 MiB"),
    LAYER("labels", "1.15 GiB", "87.8%", "195 MiB"),
    LAYER("labels_clean", "120 MiB", "61.4%", "19.5 MiB"),
    LAYER("made_there", "1.43 GiB", "95.7%", "244 MiB"),
    LAYER("users", "1.43 GiB", "95.7%", "244 MiB"),
    LAYER("users_clean", "732 MiB", "91.3%", "244 MiB"),
    ENDS("first", "250 MiB", "44.7%", "62.5 MiB"),
    ENDS("first_clean", "250 MiB", "61.9%", "62.5 MiB"),
    COPIES("halved", "175 MiB"),
    COPIES("halved_native", "175 MiB"),
    COPIES("halved_beside", "193 MiB"),
    COPIES("halved_equal", "192 MiB"),
    COPIES("loaded", "312 MiB"),
    COPIES("loaded_four", "559 MiB"),
    COPIES("loaded_around", "288 MiB"),
    {"cast-weights", "autocast",
     "211 MiB (29.4%) of the peak: half-precision copies of the weights", 0, false},
};

static void expect(const char *name, uint16_t device, const struct mt_finding *finding)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++)
        if (!strcmp(list[i].name, name) && !strcmp(list[i].id, finding->id) &&
            list[i].device == device && !strcmp(list[i].title, finding->title)) {
            list[i].seen = true;
            return;
        }
    fail_msg("%s, device %u: %s: %s", name, device, finding->id, finding->title);
}

static bool is_of_them(const char *id)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i], id) == 0)
            return true;
    return false;
}

static void expect_those_of(const char *folder, const char *name)
{
    struct mt_report *report = analyze(folder, name);

    for (uint32_t i = 0; i < report->device_count; i++)
        for (uint32_t j = 0; j < report->devices[i].finding_count; j++)
            if (is_of_them(report->devices[i].findings[j].id))
                expect(name, report->devices[i].device, &report->devices[i].findings[j]);
    mt_report_release(report);
    mt_source_close(source);
}

static uint32_t expect_all_of(const char *folder)
{
    static const char ending[] = ".pickle.zst";
    char path[512], name[256];
    struct dirent *entry;
    uint32_t count = 0;
    DIR *directory;

    snprintf(path, sizeof path, "%s/%s", MEMTRACE_FIXTURES, folder);
    directory = opendir(path);
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (length < sizeof ending || strcmp(entry->d_name + length + 1 - sizeof ending, ending))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(length + 1 - sizeof ending), entry->d_name);
        expect_those_of(folder, name);
        count++;
    }
    closedir(directory);
    return count;
}

TEST(every_run_has_those_that_it_has)
{
    assert_true(expect_all_of("captures") > 40);
    assert_true(expect_all_of("findings") > 30);
    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++)
        if (!list[i].seen)
            fail_msg("%s: no %s", list[i].name, list[i].id);
}

/* What the same program took when it did what is said: to the byte. */
static void expect_change(const char *name, const char *id)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *finding = find(report, id);

    assert_non_null(finding);
    assert_int_equal(report->devices[0].allocated_peak.bytes, truth(name, "allocated_peak"));
    assert_int_equal(finding->bytes,
                     truth(name, "allocated_peak") - truth(name, "allocated_peak_clean"));
    mt_report_release(report);
    mt_source_close(source);
}

static void expect_state(const char *name)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *finding = find(report, "idle-state");

    assert_non_null(finding);
    assert_int_equal(finding->evidence_count, 4);
    assert_string_equal(finding->evidence[0],
                        "234 MiB of it stays allocated throughout step#1/backward, where the peak "
                        "is, and is not used there");
    assert_int_equal(truth(name, "reserved_peak_clean"), 2097152000);
    assert_string_equal(finding->evidence[2],
                        "in the same replay: 1.95 GiB reserved instead of 2.20 GiB");
    assert_string_equal(finding->evidence[3],
                        "229 MiB to transfer in each direction for each optimizer step");
    mt_report_release(report);
    mt_source_close(source);
    expect_change(name, "idle-state");
}

TEST(state_on_the_host_saves_what_it_saved)
{
    expect_state("host_state");
    expect_state("host_stream");
    expect_change("two_states", "idle-state");
}

/* What the run did not do says nothing of what it would have done. */
TEST(a_simulation_claims_nothing)
{
    static const char *const names[] = {"host_state", "halved"};
    const struct mt_analyze_options options = {
        .replay = {.policy = "pytorch:expandable_segments:True"}};
    struct mt_report *report = NULL;
    struct mt_error error = {0};
    char path[512];

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/findings/%s.pickle.zst", MEMTRACE_FIXTURES, names[i]);
        assert_int_equal(mt_import_open_any(path, &source, &error), MT_OK);
        assert_int_equal(mt_analyze(source, &options, &report, &error), MT_OK);
        assert_null(find(report, "idle-state"));
        assert_null(find(report, "dtype-copies"));
        mt_report_release(report);
        mt_source_close(source);
    }
}

/* The change is not the replay: other blocks are cut from other places. */
static void expect_about(const char *name, const char *advice)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *finding = find(report, "dtype-copies");
    uint64_t saved = truth(name, "allocated_peak") - truth(name, "allocated_peak_clean");

    assert_non_null(finding);
    assert_int_equal(report->devices[0].allocated_peak.bytes, truth(name, "allocated_peak"));
    assert_in_range(finding->bytes, saved - saved / 100, saved + saved / 100);
    assert_memory_equal(finding->advice, advice, strlen(advice));
    mt_report_release(report);
    mt_source_close(source);
}

TEST(a_model_in_one_dtype_saves_about_what_it_saved)
{
    expect_about("halved", "give the model its final dtype before it reaches the device");
    expect_about("loaded", "load the checkpoint with map_location");
}

static void expect_evidence(const char *name, const char *id, size_t at, const char *text)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *finding = find(report, id);

    assert_non_null(finding);
    assert_true(at < finding->evidence_count);
    assert_string_equal(finding->evidence[at], text);
    mt_report_release(report);
    mt_source_close(source);
}

TEST(the_evidence_is_what_is_there)
{
    expect_evidence("users", "large-layer", 0,
                    "blocks of this size, by role: parameters 1, gradients 1, optimizer state 2, "
                    "temporaries 2");
    expect_evidence("users", "large-layer", 1,
                    "the recording does not show which module created it; it reached the device at "
                    "w_users worth.py:184");
    expect_evidence("made_there", "large-layer", 1,
                    "created by an embedding: w_made_there worth.py:268");
    expect_evidence("halved_beside", "dtype-copies", 0,
                    "at the peak, before the first phase, 77 blocks (356 MiB) are alive that setup "
                    "frees later; each is twice as large as a block that stays");
    expect_evidence("autocast", "cast-weights", 0, "65 blocks, each half as large as a parameter");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
