/* Compares --pool with real runs on a GPU: the unchanged program was recorded, and its reserved
 * memory was measured with a function in a torch.cuda.MemPool (fixtures/pools). */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>

#include "import.h"
#include "replay.h"

static struct mt_replay_summary summary;

static const char *text_of(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static uint64_t number_of(const json_t *row, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(row, key));
}

static void check(const json_t *row)
{
    const struct mt_replay_result *result = &summary.devices[0];
    struct mt_replay_options options = {0};
    struct mt_error error = {0};
    struct mt_source *source;
    char path[512], policy[256];

    snprintf(path, sizeof path, "%s/pools/%s.pickle.zst", MEMTRACE_FIXTURES,
             text_of(row, "capture"));
    snprintf(policy, sizeof policy, "pytorch:%s --pool %s", text_of(row, "alloc_conf"),
             text_of(row, "pool"));
    options.policy = policy;
    if (mt_import_open_any(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    if (mt_replay_run(source, &options, NULL, &summary, &error) != MT_OK)
        fail_msg("%s: %s", policy, error.text);
    if (result->counters.reserved.peak != number_of(row, "reserved_peak"))
        fail_msg("%s, %s: %llu, real %llu", text_of(row, "capture"), policy,
                 (unsigned long long)result->counters.reserved.peak,
                 (unsigned long long)number_of(row, "reserved_peak"));
    assert_int_equal(result->counters.device_allocs + 1, number_of(row, "num_device_alloc"));
    assert_true(result->pools[0].requests > 0);
    mt_source_close(source);
}

TEST(peaks_and_calls_are_the_real_ones)
{
    json_error_t error;
    json_t *rows = json_load_file(MEMTRACE_FIXTURES "/pools/truth.json", 0, &error), *row;
    size_t i;

    assert_non_null(rows);
    assert_true(json_array_size(rows) == 9);
    json_array_foreach(rows, i, row) check(row);
    json_decref(rows);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
