/* Plans of a convolution through cuDNN's graph interface, in PyTorch's sequence of calls:
 * heuristics, configurations, engines with their notes, workspaces. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "fake_cudnn.h"
#include "util.h"

typedef void *descriptor;

static struct {
    int (*create)(int, descriptor *);
    int (*destroy)(descriptor);
    int (*set)(descriptor, int, int, int64_t, const void *);
    int (*get)(descriptor, int, int, int64_t, int64_t *, void *);
} api;

enum { DATA_TYPE = 1, INT64 = 3, HEURISTICS_MODE = 8, NOTE = 11, DESCRIPTOR = 15 };
enum { MAX_MADE = 128, FALLBACK = 2 };

static descriptor made[MAX_MADE];
static int made_count;

static descriptor make(int type)
{
    descriptor d = NULL;

    assert_int_equal(api.create(type, &d), 0);
    assert_true(made_count < MAX_MADE);
    made[made_count++] = d;
    return d;
}

static void give_back(void)
{
    while (made_count)
        api.destroy(made[--made_count]);
}

static void set_other(descriptor to, int attribute, descriptor other)
{
    assert_int_equal(api.set(to, attribute, DESCRIPTOR, 1, &other), 0);
}

static descriptor tensor(int64_t batch, int64_t channels)
{
    descriptor d = make(17);
    const int64_t sizes[] = {batch, channels, 20, 20}, strides[] = {channels * 400, 400, 20, 1};
    int type = 0;

    api.set(d, 901, DATA_TYPE, 1, &type);
    api.set(d, 902, INT64, 4, sizes);
    api.set(d, 903, INT64, 4, strides);
    return d;
}

static descriptor heuristics(int64_t batch, int operations, int mode)
{
    const int64_t ones[] = {1, 1};
    descriptor geometry = make(1), graph = make(15), asked = make(4), operation[2];

    for (int attribute = 102; attribute < 106; attribute++)
        api.set(geometry, attribute, INT64, 2, ones);
    for (int i = 0; i < operations; i++) {
        operation[i] = make(10);
        set_other(operation[i], 702, geometry);
        set_other(operation[i], 703, tensor(7, 3));
        set_other(operation[i], 704, tensor(batch, 3));
        set_other(operation[i], 705, tensor(batch, 7));
    }
    api.set(graph, 801, DESCRIPTOR, operations, operation);
    set_other(asked, 201, graph);
    api.set(asked, 200, HEURISTICS_MODE, 1, &mode);
    return asked;
}

static int64_t workspace_of(descriptor configuration)
{
    descriptor plan = make(5);
    int64_t count = 0, bytes = -1;

    set_other(plan, 401, configuration);
    assert_int_equal(api.get(plan, 402, INT64, 1, &count, &bytes), 0);
    return bytes;
}

static int note_of(descriptor configuration)
{
    descriptor engine = make(2);
    int64_t count = -1;
    int notes[10];

    api.get(configuration, 300, DESCRIPTOR, 1, &count, &engine);
    api.get(engine, 1303, NOTE, 10, &count, notes);
    return count == 1 ? notes[0] : -1;
}

static int64_t count_of(descriptor asked)
{
    int64_t count = -1;

    assert_int_equal(api.get(asked, 202, DESCRIPTOR, 0, &count, NULL), 0);
    return count;
}

static void take(descriptor asked, int64_t wanted, descriptor *configurations)
{
    int64_t count = -1;

    for (int64_t i = 0; i < wanted; i++)
        configurations[i] = make(3);
    api.get(asked, 202, DESCRIPTOR, wanted, &count, configurations);
    assert_int_equal(count, wanted);
}

static int64_t by_rule(int64_t batch)
{
    descriptor configuration;

    unsetenv("MEMTRACE_DRY_RUN_ASKER");
    take(heuristics(batch, 1, 0), 1, &configuration);
    int64_t bytes = workspace_of(configuration);
    setenv("MEMTRACE_DRY_RUN_ASKER", ASKER, 1);
    return bytes;
}

TEST(every_proposal_is_a_plan)
{
    descriptor asked = heuristics(5, 1, 0), configurations[2];

    assert_int_equal(count_of(asked), 2);
    take(asked, 2, configurations);
    assert_int_equal(workspace_of(configurations[0]), 48);
    assert_int_equal(note_of(configurations[0]), 0);
    assert_int_equal(workspace_of(configurations[1]), 96);
    assert_int_equal(note_of(configurations[1]), 4);
    give_back();
}

TEST(only_the_first_is_returned_if_one_is_requested)
{
    descriptor configuration;

    take(heuristics(6, 1, 0), 1, &configuration);
    assert_int_equal(workspace_of(configuration), 49);
    give_back();
}

/* 32 tiles of 38 steps on 132 multiprocessors: each tile is split in two and has a flag. On the 18
 * multiprocessors that a described card has per cluster, the last 14 tiles are not split. */
TEST(workspace_of_split_tiles_is_added)
{
    descriptor configuration;

    take(heuristics(FAKE_STREAM_K, 1, 0), 1, &configuration);
    assert_int_equal(workspace_of(configuration), 53 + 32 * (2 * 65536 + 4));
    give_back();
}

/* Graphs of several operations, heuristics of last resort, convolutions without a proposal. */
TEST(other_convolutions_have_one_plan_by_the_rule)
{
    const descriptor asked[] = {heuristics(5, 2, 0), heuristics(5, 1, FALLBACK),
                                heuristics(FAKE_NOTHING, 1, 0)};
    const int64_t batches[] = {5, 5, FAKE_NOTHING};

    for (size_t i = 0; i < MT_ARRAY_LEN(asked); i++) {
        descriptor configuration;

        assert_int_equal(count_of(asked[i]), 1);
        take(asked[i], 1, &configuration);
        assert_int_equal(workspace_of(configuration), by_rule(batches[i]));
        assert_int_equal(note_of(configuration), -1);
    }
    give_back();
}

static int64_t attention(int64_t heads_of_keys, int products)
{
    descriptor graph = make(15), asked = make(4), operation[5], configuration;

    for (int i = 0; i < products; i++) {
        operation[i] = make(19);
        set_other(operation[i], 1520, tensor(3, 4));
        set_other(operation[i], 1521, tensor(3, heads_of_keys));
    }
    api.set(graph, 801, DESCRIPTOR, products, operation);
    set_other(asked, 201, graph);
    take(asked, 1, &configuration);
    return workspace_of(configuration);
}

/* The forward pass has two products, the backward pass five. */
TEST(shared_keys_have_gradients_of_each_head)
{
    const int64_t gradients = 2 * 3 * 4 * 20 * 20 * (int64_t)sizeof(float);

    assert_int_equal(attention(2, 2), 256);
    assert_int_equal(attention(4, 5), 256);
    assert_int_equal(attention(2, 5), 256 + gradients);
    give_back();
}

static int open_library(void **state)
{
    void *library = dlopen(SIMULATED_LIBRARY, RTLD_NOW);

    (void)state;
    if (!library)
        return -1;
    *(void **)&api.create = dlsym(library, "cudnnBackendCreateDescriptor");
    *(void **)&api.destroy = dlsym(library, "cudnnBackendDestroyDescriptor");
    *(void **)&api.set = dlsym(library, "cudnnBackendSetAttribute");
    *(void **)&api.get = dlsym(library, "cudnnBackendGetAttribute");
    setenv("MEMTRACE_DRY_RUN_ASKER", ASKER, 1);
    setenv("MEMTRACE_DRY_RUN_CUDNN", FAKE_CUDNN, 1);
    return api.create && api.destroy && api.set && api.get ? 0 : -1;
}

int main(void)
{
    return run_tests_of_file(open_library, NULL);
}
