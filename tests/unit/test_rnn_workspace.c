/* Compares workspaces and reserves of recurrent networks with those of an H200. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmocka_all.h"

#include "../../simulate/driver/cudnn/rnn_workspace.c"

enum { NETWORKS = 700, ALLOCATION_BYTES = 512 };

struct quality {
    int exact, same_allocation, near;
};

static size_t allocation(size_t bytes)
{
    return (bytes + ALLOCATION_BYTES - 1) / ALLOCATION_BYTES;
}

static void judge(struct quality *quality, size_t answer, size_t truth)
{
    size_t error = answer > truth ? answer - truth : truth - answer;

    quality->exact += error == 0;
    quality->same_allocation += allocation(answer) == allocation(truth);
    quality->near += error <= truth / 50;
}

static bool read_network(FILE *file, struct rnn_shape *shape, size_t truth[3])
{
    char line[256];

    while (fgets(line, sizeof line, file) != NULL) {
        int persistent = 0;
        int fields =
            sscanf(line, "%d %d %d %d %d %d %zu %zu %zu %d %zu %zu %zu", &shape->gates,
                   &shape->layers, &shape->directions, &shape->input_size, &shape->hidden_size,
                   &shape->projected_size, &shape->steps, &shape->batch, &shape->element_bytes,
                   &persistent, &truth[0], &truth[1], &truth[2]);
        shape->is_persistent = persistent != 0;
        if (fields == 13)
            return true;
    }
    return false;
}

TEST(networks_are_as_good_as_the_header_says)
{
    FILE *file = fopen(MEMTRACE_FIXTURES "/rnn_workspaces/h200.txt", "r");
    struct quality inference = {0}, training = {0}, reserve = {0};
    struct rnn_shape shape = {0};
    size_t truth[3];
    int networks = 0;

    assert_non_null(file);
    for (; read_network(file, &shape, truth); networks++) {
        judge(&inference, sim_rnn_workspace_bytes(&shape, false), truth[0]);
        judge(&training, sim_rnn_workspace_bytes(&shape, true), truth[1]);
        judge(&reserve, sim_rnn_reserve_bytes(&shape), truth[2]);
    }
    fclose(file);
    assert_int_equal(networks, NETWORKS);
    assert_int_equal(inference.exact, 619);
    assert_int_equal(inference.same_allocation, 692);
    assert_int_equal(inference.near, NETWORKS);
    assert_int_equal(training.exact, 567);
    assert_int_equal(training.same_allocation, 623);
    assert_int_equal(training.near, 695);
    assert_int_equal(reserve.exact, 681);
    assert_int_equal(reserve.same_allocation, NETWORKS);
}

/* The size of a very large network must not look small because a product overflowed. */
TEST(sizes_beyond_all_bounds_stay_large)
{
    struct rnn_shape shape = {.gates = 4,
                              .layers = INT32_MAX,
                              .directions = 2,
                              .input_size = INT32_MAX,
                              .hidden_size = INT32_MAX,
                              .projected_size = INT32_MAX - 1,
                              .steps = INT32_MAX,
                              .batch = INT32_MAX,
                              .element_bytes = 8};

    assert_true(sim_rnn_workspace_bytes(&shape, true) > (size_t)1 << 56);
    assert_true(sim_rnn_reserve_bytes(&shape) > (size_t)1 << 55);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
