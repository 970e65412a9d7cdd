/* The answer of a plan, for results that fake devices cannot produce. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "plan_text.h"
#include "util.h"

static struct mt_sweep_plan plan;
static struct mt_sweep_grid grid;
static struct mt_search search;
static struct mt_sweep points;
static const struct mt_card *cards[3];
static struct mt_plan_answer answer;
static const uint64_t amounts[] = {1, 2, 3, 4};

static const struct mt_card *card_of(const char *name)
{
    const char *near;

    return mt_card_find(name, &near);
}

/* Two GiB, and some more for each of `batch`; with more devices, half as much. */
static void fill_result(struct mt_sweep_run *run, uint64_t batch, uint64_t gib, bool is_known)
{
    struct mt_sweep_result *result = &run->result;

    run->is_ended = true;
    result->outcome = MT_SWEEP_FINISHED;
    result->is_measured = result->has_need = true;
    result->role_bytes[MT_ROLE_PARAMETERS] = MT_GIB;
    result->role_bytes[MT_ROLE_ACTIVATIONS] = batch * gib * MT_GIB;
    result->allocated_peak_bytes = MT_GIB + batch * gib * MT_GIB;
    result->card.allocator_bytes = 2 * MT_GIB + batch * gib * MT_GIB;
    result->card.cuda_bytes = 769339908;
    result->card.bytes = result->card.allocator_bytes + result->card.cuda_bytes;
    result->card.cuda_from = is_known ? MT_CUDA_TABLE : MT_CUDA_ASSUMED;
    result->cuda_major = is_known ? 13 : 0;
    result->cuda_kind = MT_COST_CUDA;
}

static void take(size_t point, const struct mt_sweep_run *run)
{
    struct mt_search_point *known = &search.points[point];

    *known =
        (struct mt_search_point){.state = MT_SEARCH_NEED, .need_bytes = run->result.card.bytes};
    for (size_t card = 0; card < search.card_count; card++) {
        const struct mt_card_use use =
            mt_sweep_need_on(&run->result, cards[search.card_count - 1], cards[card]);

        if (mt_card_use_fits(&use, cards[card]))
            known->cards |= UINT32_C(1) << card;
    }
}

/* All points of batch=1..4 and tp=1,2 are known. */
static void make(char **command, bool is_known)
{
    size_t round[8];

    memset(&search, 0, sizeof search);
    grid = (struct mt_sweep_grid){.option = "--try",
                                  .values = {.items = {"batch=1..4", "tp=1,2"}, .count = 2},
                                  .command = command,
                                  .chooses_ranks = true,
                                  .most_values = 8};
    assert_int_equal(mt_sweep_plan_make(&plan, &grid), -1);
    assert_int_equal(mt_sweep_plan_add_all(&plan), -1);
    cards[0] = card_of("T4");
    cards[1] = card_of("H100");
    cards[2] = card_of("H200");
    plan.sweep.card = cards[2];
    plan.sweep.devices = 1;
    search.axis_count = 2;
    search.axes[0] = (struct mt_search_axis){4, amounts};
    search.axes[1] = (struct mt_search_axis){2, NULL};
    search.card_count = 3;
    for (size_t i = 0; i < 3; i++)
        search.card_bytes[i] = cards[i]->memory_bytes;
    mt_search_init(&search);
    for (size_t i = 0; i < plan.sweep.run_count; i++) {
        struct mt_sweep_run *run = &plan.sweep.runs[i];

        fill_result(run, run->point / 2 + 1, run->point % 2 ? 20 : 30, is_known);
        take(run->point, run);
        search.combinations[run->point % 2].devices = mt_max_u64(run->rank.world, 1);
    }
    assert_int_equal(mt_search_next(&search, 8, round), 0);
    mt_sweep_take_points(&plan.sweep, &points);
    answer = (struct mt_plan_answer){.plan = &plan,
                                     .search = &search,
                                     .points = &points,
                                     .cards = cards,
                                     .runs = 3,
                                     .cached = 5};
    mt_plan_find_front(&answer);
}

static void release(void)
{
    free(points.runs);
    free(answer.rows);
    mt_search_release(&search);
    mt_sweep_plan_release(&plan);
}

static void assert_text(const char *wanted)
{
    struct mt_buf out = {0};

    mt_plan_add_text(&out, &answer);
    mt_buf_add_char(&out, '\0');
    assert_string_equal(out.data, wanted);
    mt_buf_release(&out);
}

TEST(fronts_of_cards)
{
    char *command[] = {(char *)"train it", (char *)"{batch}", (char *)"{tp}", NULL};

    make(command, true);
    assert_text("3 dry runs, and 5 from the cache, for 8 of 8 points on a simulated H200 141 GB\n"
                "card         batch  tp     needs  to spare  most at the peak\n"
                "H100 80 GB   2      1   62.6 GiB  16.5 GiB  activations 98%\n"
                "H100 80 GB   3      2   62.6 GiB  16.5 GiB  activations 98%\n"
                "H200 141 GB  4      1    123 GiB  17.1 GiB  activations 99%\n"
                "No point was found that fits on T4 16 GB.\n"
                "\nCommands\n"
                "  'train it' 4 1\n"
                "  'train it' 3 2\n"
                "  'train it' 2 1\n");
    release();
}

/* The row of an H100 is not the one that was simulated, and nothing was measured. */
TEST(what_is_not_exact_is_marked)
{
    char *command[] = {(char *)"train", (char *)"{batch}", (char *)"{tp}", NULL};
    struct mt_buf out = {0};

    make(command, false);
    search.combinations[0].is_exact[1] = false;
    search.combinations[0].is_contradicted = true;
    search.combinations[1].gave_up = true;
    search.points[1].state = MT_SEARCH_FAILED;
    answer.is_cut = true;
    answer.shard = "1/4";
    answer.no_cache = "a reason";
    mt_plan_add_text(&out, &answer);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, "H100 80 GB   2 or more  1   ~62.7 GiB"));
    assert_non_null(strstr(out.data, "tp=1: a larger value needed less memory, so every value"));
    assert_non_null(strstr(out.data, "\n1 point failed: what it needs is not known.\n"));
    assert_non_null(strstr(out.data, "tp=2: most runs failed"));
    assert_non_null(strstr(out.data, "The search ended after 3 dry runs"));
    assert_non_null(strstr(out.data, "\"or more\": a larger value was not tried, or failed."));
    assert_non_null(strstr(out.data, "~ is an estimate: the memory of CUDA was not measured for "
                                     "this card.\n"));
    assert_non_null(strstr(out.data, "This is part 1/4."));
    assert_non_null(strstr(out.data, "No result is kept for later: a reason."));
    assert_null(strstr(out.data, "Name the card alone"));
    points.card = cards[0]; /* its kernels are others than those of the cards with rows */
    mt_plan_add_text(&out, &answer);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data + strlen(out.data) + 1, "Name the card alone"));
    mt_buf_release(&out);
    release();
}

/* The number of devices is a column, and fewer are better. */
TEST(jobs_have_devices)
{
    char *command[] = {(char *)"python3",
                       (char *)"-m",
                       (char *)"torch.distributed.run",
                       (char *)"--nproc-per-node={tp}",
                       (char *)"t.py",
                       (char *)"{batch}",
                       NULL};
    struct mt_buf out = {0};

    make(command, true);
    assert_int_equal(points.run_count, 8);
    mt_plan_add_text(&out, &answer);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, "card         batch  tp  devices"));
    assert_non_null(strstr(out.data, "H100 80 GB   3      2         2"));
    assert_non_null(
        strstr(out.data, "  python3 -m torch.distributed.run --nproc-per-node=2 t.py 3"));
    mt_buf_release(&out);
    release();
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
