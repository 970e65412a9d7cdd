/* --sweep: values, runs, the command of each run, and refused input. */
#include "cmocka_all.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sweep_plan.h"

static struct mt_sweep_plan plan;
static struct mt_sweep_grid grid;

static int make_of(const struct mt_text_list *options, char **command)
{
    grid = (struct mt_sweep_grid){.option = "--sweep",
                                  .values = *options,
                                  .command = command,
                                  .most_values = MT_MAX_SWEEP_RUNS};
    int code = mt_sweep_plan_make(&plan, &grid);
    return code < 0 ? mt_sweep_plan_add_all(&plan) : code;
}

/* 1, 2 or 3 options, and a command of one or two words. */
static int make(const char *first, const char *second, char *word, char *other)
{
    static char *command[3];
    struct mt_text_list options = {.count = 0};

    command[0] = word;
    command[1] = other;
    options.items[options.count++] = first;
    if (second)
        options.items[options.count++] = second;
    return make_of(&options, command);
}

static char *values(void)
{
    static char text[1024];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < plan.sweep.run_count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " " : "",
                                   plan.sweep.runs[i].values[0]);
    return text;
}

TEST(ranges_are_values)
{
    static const char *const rows[][2] = {
        {"n=1,2,4", "1 2 4"},
        {"n=7..9,30", "7 8 9 30"},
        {"n=1..64*2", "1 2 4 8 16 32 64"},
        {"n=3..100*10", "3 30"},
        {"n=5..5", "5"},
        {"n=fp16,bf16", "fp16 bf16"},
        {"n=a..b,../2,1..x*2", "a..b ../2 1..x*2"},
        {"n=999999999999999999..999999999999999999*9", "999999999999999999"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(make(rows[i][0], NULL, (char *)"{n}", NULL), -1);
        assert_string_equal(values(), rows[i][1]);
        mt_sweep_plan_release(&plan);
    }
}

TEST(several_names_are_combined)
{
    char first[] = "--b={b}/{b}", second[] = "{{s}{other}{b";
    char **words;

    assert_int_equal(make("b=1,2", "s=x/y,{b}", first, second), -1);
    assert_int_equal(plan.sweep.run_count, 4);
    assert_string_equal(plan.sweep.runs[0].label, "b=1, s=x/y");
    assert_string_equal(plan.sweep.runs[1].label, "b=1, s={b}");
    assert_string_equal(plan.sweep.runs[2].label, "b=2, s=x/y");
    words = mt_sweep_plan_command(&plan, &plan.sweep.runs[2]);
    assert_string_equal(words[0], "--b=2/2");
    assert_string_equal(words[1], "{x/y{other}{b");
    assert_null(words[2]);
    words = mt_sweep_plan_command(&plan, &plan.sweep.runs[1]);
    assert_string_equal(words[1], "{{b}{other}{b"); /* values are not parsed */
    assert_string_equal(mt_sweep_plan_file(&plan, &plan.sweep.runs[2]), "b=2,s=x%2Fy");
    mt_sweep_plan_release(&plan);
}

TEST(invalid_sweeps_are_refused)
{
    static const char *const wrong[] = {"n",
                                        "n=",
                                        "=1",
                                        "n=1,",
                                        "n=,1",
                                        "1n=2",
                                        "n=1,1",
                                        "n=1..65",
                                        "n=1..3,2",
                                        "n=8..1",
                                        "n=64..1*2",
                                        "n=1..8*1",
                                        "n=0..8*2",
                                        "n n=1",
                                        "m=1",
                                        ("n=a-value-that-is-longer-than-64-bytes-"
                                         "and-that-no-name-of-a-file-can-have"),
                                        "a-name-that-is-longer-than-32-bytes=1"};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            make(wrong[i], NULL, (char *)"{n}{a-name-that-is-longer-than-32-bytes}", NULL),
            MT_EXIT_USAGE);
        mt_sweep_plan_release(&plan);
    }
    assert_int_equal(make("n=1", "n=2", (char *)"{n}", NULL), MT_EXIT_USAGE);
    mt_sweep_plan_release(&plan);
    assert_int_equal(make("n=1..13", "m=1..5", (char *)"{n}{m}", NULL), MT_EXIT_USAGE);
    mt_sweep_plan_release(&plan);
    assert_int_equal(make("n=1..16", "m=1..4", (char *)"{n}{m}", NULL), -1);
    mt_sweep_plan_release(&plan);
}

/* Room for "~early-4194303-100.trace.zst.tape" and two bytes. */
enum { SUFFIX_BYTES = 35 };

/* Names of 32 bytes with values that are all escaped as %XX. */
TEST(names_of_files_are_bounded)
{
    struct mt_text_list options = {.count = 0};
    char texts[4][80], word[160] = "", *command[2] = {word, NULL};

    for (size_t i = 0; i < 4; i++) {
        char name[33];

        memset(name, 'a' + (char)i, 32);
        name[32] = '\0';
        snprintf(texts[i], sizeof texts[i], "%s=////////////////////////////////", name);
        snprintf(word + 34 * i, sizeof word - 34 * i, "{%s}", name);
        options.items[options.count++] = texts[i];
    }
    assert_int_equal(make_of(&options, command), MT_EXIT_USAGE);
    mt_sweep_plan_release(&plan);
    options.count = 2;
    texts[1][33 + 19] = '\0'; /* 32 + 1 + 3 * 32 bytes, a comma, and 32 + 1 + 3 * 19 bytes */
    word[2 * 34] = '\0';
    assert_int_equal(make_of(&options, command), -1);
    assert_int_equal(strlen(mt_sweep_plan_file(&plan, plan.sweep.runs)), NAME_MAX - SUFFIX_BYTES);
    mt_sweep_plan_release(&plan);
    texts[1][33 + 19] = '-';
    texts[1][33 + 20] = '\0';
    assert_int_equal(make_of(&options, command), MT_EXIT_USAGE);
    mt_sweep_plan_release(&plan);
}

/* One range is searched; a list, and a list with a range, are tried in turn. */
TEST(ranges_are_searched)
{
    static const struct {
        const char *option;
        bool is_range;
    } rows[] = {{"n=1..8", true},    {"n=1..64*2", true}, {"n=1,2,4", false}, {"n=5..5", false},
                {"n=1..4,9", false}, {"n=9,1..4", false}, {"n=a..b", false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(make(rows[i].option, NULL, (char *)"{n}", NULL), -1);
        assert_int_equal(plan.axes[0].is_range, rows[i].is_range);
        mt_sweep_plan_release(&plan);
    }
}

static int make_ranks(const char *ranks, uint64_t world, char **command)
{
    grid = (struct mt_sweep_grid){.option = "--try",
                                  .values = {.items = {"tp=1,2,8"}, .count = 1},
                                  .command = command,
                                  .ranks = ranks,
                                  .world = world,
                                  .chooses_ranks = true,
                                  .most_values = 8};
    return mt_sweep_plan_make(&plan, &grid);
}

static const char *labels(void)
{
    static char text[1024];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < plan.sweep.run_count; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s|", plan.sweep.runs[i].label);
    return text;
}

/* The world of a point follows from its launcher, and of each only ranks that differ run. */
TEST(points_have_ranks)
{
    char *command[] = {(char *)"python3",
                       (char *)"-m",
                       (char *)"torch.distributed.run",
                       (char *)"--nproc-per-node={tp}",
                       (char *)"t.py",
                       (char *)"{tp}/{rank}",
                       NULL};
    char *plain[] = {(char *)"python3", (char *)"t.py", (char *)"{tp}", NULL};
    char *other[] = {(char *)"accelerate", (char *)"launch", (char *)"{tp}", NULL};
    char **words;

    assert_int_equal(make_ranks(NULL, 0, command), -1);
    assert_int_equal(mt_sweep_plan_add_all(&plan), -1);
    assert_string_equal(labels(), "tp=1, rank 0|tp=2, rank 0|tp=2, rank 1|tp=8, rank 0|tp=8, rank "
                                  "4|tp=8, rank 7|");
    assert_string_equal(plan.sweep.names[1], "rank");
    assert_int_equal(plan.sweep.runs[4].point, 2);
    assert_int_equal(plan.sweep.runs[4].rank.world, 8);
    assert_int_equal(plan.sweep.world, 8);
    words = mt_sweep_plan_command(&plan, &plan.sweep.runs[4]);
    assert_string_equal(words[1], "-u");
    assert_string_equal(words[2], "t.py");
    assert_string_equal(words[3], "8/4");
    assert_string_equal(mt_sweep_plan_typed(&plan, &plan.sweep.runs[4])[3], "--nproc-per-node=8");
    assert_string_equal(mt_sweep_plan_file(&plan, &plan.sweep.runs[4]), "tp=8,rank=4");
    mt_sweep_plan_release(&plan);

    assert_int_equal(make_ranks(NULL, 0, plain), -1); /* its processes are the user's */
    assert_int_equal(mt_sweep_plan_add_all(&plan), -1);
    assert_string_equal(labels(), "tp=1|tp=2|tp=8|");
    assert_int_equal(plan.sweep.world, 0);
    mt_sweep_plan_release(&plan);

    assert_int_equal(make_ranks("0,3", 4, plain), -1);
    assert_int_equal(mt_sweep_plan_add_all(&plan), -1);
    assert_int_equal(plan.sweep.run_count, 6);
    mt_sweep_plan_release(&plan);

    assert_int_equal(make_ranks(NULL, 0, other), -1); /* runs as it is */
    assert_int_equal(mt_sweep_plan_add_all(&plan), -1);
    assert_int_equal(plan.sweep.run_count, 3);
    mt_sweep_plan_release(&plan);
    assert_int_equal(make_ranks(NULL, 4, other), -1);
    assert_int_equal(mt_sweep_plan_add_all(&plan), MT_EXIT_USAGE);
    mt_sweep_plan_release(&plan);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
