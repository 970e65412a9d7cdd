/* Calls that keep a graph until the program drops their result, and calls that do not. */
#include "cmocka_all.h"

#include "dropped_graphs.h"

struct run {
    struct mt_dropped_graphs graphs;
    uint64_t blocks, kept[128];
    uint32_t kept_count;
};

static uint64_t made(struct run *run)
{
    mt_dropped_graphs_birth(&run->graphs, true);
    return run->blocks++;
}

static void ended(struct run *run, uint64_t block)
{
    mt_dropped_graphs_end(&run->graphs, block);
}

/* A layer makes blocks, some of which stay. */
static void layer(struct run *run, uint32_t kept, uint32_t temporary)
{
    for (uint32_t i = 0; i < kept; i++)
        run->kept[run->kept_count++] = made(run);
    for (uint32_t i = 0; i < temporary; i++)
        ended(run, made(run));
}

static void layers(struct run *run, uint32_t count, uint32_t kept, uint32_t temporary)
{
    for (uint32_t i = 0; i < count; i++)
        layer(run, kept, temporary);
}

static void drop(struct run *run)
{
    while (run->kept_count)
        ended(run, run->kept[--run->kept_count]);
}

static void expect(struct run *run, size_t graph_blocks)
{
    mt_dropped_graphs_finish(&run->graphs);
    assert_int_equal(run->graphs.graph_count, graph_blocks);
    mt_dropped_graphs_release(&run->graphs);
}

TEST(a_graph_ends_as_a_whole)
{
    struct run run = {.blocks = 0};

    for (int call = 0; call < 3; call++) {
        layers(&run, 10, 3, 2);
        drop(&run);
    }
    assert_false(mt_dropped_graphs_keeps_none(&run.graphs));
    /* and the temporaries that end in the same row: one for each call */
    expect(&run, 3 * 31);
}

TEST(without_a_graph_blocks_end_while_the_call_runs)
{
    struct run run = {.blocks = 0};

    for (int i = 0; i < 100; i++) {
        layer(&run, 1, 1);
        if (run.kept_count == 3)
            drop(&run);
    }
    assert_true(mt_dropped_graphs_keeps_none(&run.graphs));
    expect(&run, 0);
}

TEST(a_short_history_shows_nothing)
{
    struct run run = {.blocks = 0};

    layers(&run, 35, 0, 2);
    assert_false(mt_dropped_graphs_keeps_none(&run.graphs));
    layers(&run, 1, 0, 2);
    assert_true(mt_dropped_graphs_keeps_none(&run.graphs));
    expect(&run, 0);
}

/* One result for each layer, all of which end together. */
TEST(a_list_of_results_is_no_graph)
{
    struct run run = {.blocks = 0};

    layers(&run, 30, 1, 3);
    drop(&run);
    assert_true(mt_dropped_graphs_keeps_none(&run.graphs));
    expect(&run, 0);
}

TEST(variables_of_a_function_are_no_graph)
{
    struct run run = {.blocks = 0};

    layers(&run, 1, 22, 0);
    drop(&run);
    expect(&run, 0);
}

/* Blocks of the call remain, so it has not ended. */
TEST(the_whole_graph_has_to_end)
{
    struct run run = {.blocks = 0};

    layers(&run, 10, 1, 0);
    run.kept_count = 0;
    layers(&run, 10, 3, 0);
    drop(&run);
    expect(&run, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
