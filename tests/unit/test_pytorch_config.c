#include "cmocka_all.h"

#include <string.h>

#include "pytorch_config.h"
#include "util.h"

static struct mt_pytorch_config parsed(const char *text)
{
    struct mt_pytorch_config config;
    struct mt_error error;

    if (mt_pytorch_config_parse(text, &config, &error) != MT_OK)
        fail_msg("'%s': %s", text, error.text);
    return config;
}

static void refused(const char *text, const char *reason)
{
    struct mt_pytorch_config config;
    struct mt_error error;

    if (mt_pytorch_config_parse(text, &config, &error) != MT_ERR_USAGE)
        fail_msg("'%s' was accepted", text);
    if (!strstr(error.text, reason))
        fail_msg("'%s': '%s' does not say '%s'", text, error.text, reason);
}

TEST(options_are_read_in_both_spellings)
{
    struct mt_pytorch_config config = parsed("expandable_segments:True,max_split_size_mb:64");

    assert_true(config.expandable_segments);
    assert_int_equal(config.max_split_bytes, 64 * MT_MIB);
    config = parsed(" garbage_collection_threshold = 0.6 , max_split_size_mb=200 ");
    assert_true(config.gc_threshold > 0.5999 && config.gc_threshold < 0.6001);
    assert_int_equal(config.max_split_bytes, 200 * MT_MIB);
    config = parsed("");
    assert_int_equal(config.max_split_bytes, MT_PYTORCH_UNLIMITED);
    config = parsed("pinned_use_cuda_host_register:True,pinned_num_register_threads:8,"
                    "release_lock_on_cudamalloc:True,expandable_segments:False");
    assert_false(config.expandable_segments);
}

TEST(large_segment_size_comes_first_wherever_it_stands)
{
    struct mt_pytorch_config config = parsed("max_split_size_mb:41,large_segment_size_mb:40");

    assert_int_equal(config.large_segment_bytes, 40 * MT_MIB);
    assert_int_equal(config.max_non_split_rounding_bytes, 40 * MT_MIB);
    config = parsed("large_segment_size_mb:40,max_non_split_rounding_mb:64");
    assert_int_equal(config.max_non_split_rounding_bytes, 64 * MT_MIB);
    refused("max_split_size_mb:30,large_segment_size_mb:40", "at least 40 MiB");
}

TEST(bad_options_are_refused_with_a_reason)
{
    refused("max_split_size_mb:10", "at least 20 MiB");
    refused("max_split_size_mb", "has no value");
    refused("max_split_size_mb:ten", "number of MiB");
    refused("max_split_size_mb:99999999999999999999", "number of MiB");
    refused("large_segment_size_mb:10", "at least 11 MiB");
    refused("expandable_segments:true", "True or False");
    refused("throw_on_cudamalloc_oom:1", "True or False");
    refused("throw_on_cudamaloc_oom:True", "did you mean 'throw_on_cudamalloc_oom'?");
    refused("garbage_collection_threshold:1.0", "between 0 and 1");
    refused("garbage_collection_threshold:0", "between 0 and 1");
    refused("garbage_collection_threshold:0,5", "");
    refused("roundup_power2_divisions:3", "power of two");
    refused("roundup_power2_divisions:[256:3]", "powers of two");
    refused("roundup_power2_divisions:[100:2]", "powers of two");
    refused("roundup_power2_divisions:[256:1", "without a closing bracket");
    refused("roundup_power2_divisions:[>:1]", "before any size");
    refused("no_such_option:1", "not one of PyTorch's");
    refused("backend:jemalloc", "native or cudaMallocAsync");
    refused("expandable_segments:True]", "after its value");
    refused(":", "");
}

TEST(division_lists_fill_as_pytorch_does)
{
    struct mt_pytorch_config config = parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");

    for (size_t i = 0; i <= 8; i++)
        assert_int_equal(config.divisions[i], 1); /* the first pair fills below */
    assert_int_equal(config.divisions[9], 2);
    assert_int_equal(config.divisions[10], 4);
    for (size_t i = 11; i < MT_PYTORCH_DIVISIONS; i++)
        assert_int_equal(config.divisions[i], 8);
    config = parsed("roundup_power2_divisions:[64:8,1024:4]");
    assert_int_equal(config.divisions[7], 0); /* not named by any pair */
    assert_int_equal(config.divisions[15], 0);
}

TEST(sizes_are_rounded_as_pytorch_does)
{
    struct mt_pytorch_config config = parsed("");

    assert_int_equal(mt_pytorch_round_size(&config, 1), 512);
    assert_int_equal(mt_pytorch_round_size(&config, 512), 512);
    assert_int_equal(mt_pytorch_round_size(&config, 513), 1024);
    config = parsed("roundup_power2_divisions:4");
    assert_int_equal(mt_pytorch_round_size(&config, 2048), 2048); /* not above 512 * 4 */
    assert_int_equal(mt_pytorch_round_size(&config, 1200), 1536);
    assert_int_equal(mt_pytorch_round_size(&config, 1200 * MT_KIB), 1280 * MT_KIB);
    assert_int_equal(mt_pytorch_round_size(&config, 4 * MT_MIB), 4 * MT_MIB);
    assert_int_equal(mt_pytorch_round_size(&config, 5 * MT_MIB + 1), 6 * MT_MIB);
}

TEST(segments_have_pytorchs_sizes)
{
    struct mt_pytorch_config config = parsed("");

    assert_int_equal(mt_pytorch_segment_size(&config, 512), 2 * MT_MIB);
    assert_int_equal(mt_pytorch_segment_size(&config, MT_MIB), 2 * MT_MIB);
    assert_int_equal(mt_pytorch_segment_size(&config, MT_MIB + 512), 20 * MT_MIB);
    assert_int_equal(mt_pytorch_segment_size(&config, 10 * MT_MIB - 512), 20 * MT_MIB);
    assert_int_equal(mt_pytorch_segment_size(&config, 10 * MT_MIB), 10 * MT_MIB);
    assert_int_equal(mt_pytorch_segment_size(&config, 11 * MT_MIB), 12 * MT_MIB);
}

TEST(splits_follow_pool_and_options)
{
    struct mt_pytorch_config config = parsed("max_split_size_mb:64");

    assert_true(mt_pytorch_should_split(&config, 1024, 512, false));
    assert_false(mt_pytorch_should_split(&config, 3 * MT_MIB, 2 * MT_MIB, false));
    assert_true(mt_pytorch_should_split(&config, 3 * MT_MIB + 512, 2 * MT_MIB, false));
    assert_true(mt_pytorch_should_split(&config, 3 * MT_MIB, 2 * MT_MIB, true));
    assert_false(mt_pytorch_should_split(&config, 100 * MT_MIB, 64 * MT_MIB, false));
}

TEST(the_spelling_says_what_differs_from_the_defaults)
{
    struct mt_pytorch_config config = parsed("max_split_size_mb=64,expandable_segments=True,"
                                             "garbage_collection_threshold:0.80");
    char text[160], small[8];

    mt_pytorch_config_spell(&config, text, sizeof text);
    assert_string_equal(text, "expandable_segments:True,max_split_size_mb:64,"
                              "garbage_collection_threshold:0.8");
    mt_pytorch_config_spell(&config, small, sizeof small);
    assert_string_equal(small, "expanda");
    config = parsed(text);
    assert_true(config.expandable_segments);
    config = parsed("roundup_power2_divisions:8");
    mt_pytorch_config_spell(&config, text, sizeof text);
    assert_string_equal(text, "roundup_power2_divisions:8");
    config = parsed("throw_on_cudamalloc_oom:True");
    mt_pytorch_config_spell(&config, text, sizeof text);
    assert_string_equal(text, "throw_on_cudamalloc_oom:True");
    config = parsed("throw_on_cudamalloc_oom:False");
    mt_pytorch_config_spell(&config, text, sizeof text);
    assert_string_equal(text, "");
}

/* `fit` and `tune` read a spelling again, and so do people who repeat a command. */
TEST(tiny_fractions_are_spelled_as_fractions)
{
    static const char *const texts[] = {
        "garbage_collection_threshold:.0000000001", "garbage_collection_threshold:0.9999999",
        "per_process_memory_fraction:.0000000001", "per_process_memory_fraction:0.9999999"};
    char first[200], second[200];

    for (size_t i = 0; i < MT_ARRAY_LEN(texts); i++) {
        struct mt_pytorch_config config = parsed(texts[i]);
        mt_pytorch_config_spell(&config, first, sizeof first);
        config = parsed(first);
        mt_pytorch_config_spell(&config, second, sizeof second);
        assert_string_equal(first, second);
    }
}

TEST(recorded_settings_win_over_the_string)
{
    struct mt_trace_header header = {0};
    struct mt_pytorch_config config;
    struct mt_error error;

    header.allocator_options = "max_split_size_mb:64,large_segment_size_mb:40";
    header.settings = "max_split_size=134217728\ngarbage_collection_threshold=0.7\n"
                      "expandable_segments=True\nroundup_power2_divisions=1:0,2:0,4:8\n";
    assert_int_equal(mt_pytorch_config_recorded(&header, &config, &error), MT_OK);
    assert_int_equal(config.max_split_bytes, 128 * MT_MIB);
    assert_int_equal(config.large_segment_bytes, 40 * MT_MIB);
    assert_true(config.expandable_segments);
    assert_true(config.gc_threshold > 0.69 && config.gc_threshold < 0.71);
    assert_int_equal(config.divisions[2], 8);
    header.settings = "max_split_size=-1\nnonsense\n=\n";
    assert_int_equal(mt_pytorch_config_recorded(&header, &config, &error), MT_OK);
    assert_int_equal(config.max_split_bytes, MT_PYTORCH_UNLIMITED);
}

/* Options of a newer PyTorch are ignored in its snapshots, but refused on the command line. */
TEST(unknown_recorded_options_are_ignored)
{
    static const char *const recorded[] = {
        "max_split_size_mb:64,foo:1,expandable_segments:True",
        "foo:[1:2,3:4],max_split_size_mb:64,expandable_segments:True",
        "max_split_size_mb:64,foo,expandable_segments:True",
        "max_split_size_mb:64,expandable_segments:True,foo:"};
    struct mt_trace_header header = {0};
    struct mt_pytorch_config config;
    struct mt_error error;

    for (size_t i = 0; i < MT_ARRAY_LEN(recorded); i++) {
        header.allocator_options = recorded[i];
        assert_int_equal(mt_pytorch_config_recorded(&header, &config, &error), MT_OK);
        assert_string_equal(config.unknown, "foo");
        assert_int_equal(config.max_split_bytes, 64 * MT_MIB);
        assert_true(config.expandable_segments);
        assert_int_equal(mt_pytorch_config_parse(recorded[i], &config, &error), MT_ERR_USAGE);
    }
    header.allocator_options = "max_split_size_mb:much,expandable_segments:True";
    assert_int_equal(mt_pytorch_config_recorded(&header, &config, &error), MT_OK);
    assert_string_equal(config.unknown, "max_split_size_mb");
    assert_true(config.expandable_segments);
    header.allocator_options = "expandable_segments:True";
    assert_int_equal(mt_pytorch_config_recorded(&header, &config, &error), MT_OK);
    assert_string_equal(config.unknown, "");
}

/* Dividing by a segment size of 0 would crash. */
TEST(refused_recorded_options_change_nothing)
{
    struct mt_trace_header header = {0};
    struct mt_pytorch_config config, defaults;
    struct mt_error error;

    mt_pytorch_config_defaults(&defaults);
    header.allocator_options = "large_segment_size_mb:0,max_split_size_mb:1,"
                               "garbage_collection_threshold:7,per_process_memory_fraction:9,"
                               "roundup_power2_divisions:[2:4,4:3],backend:other";
    assert_int_equal(mt_pytorch_config_recorded(&header, &config, &error), MT_OK);
    assert_string_equal(config.unknown, "large_segment_size_mb");
    memset(config.unknown, 0, sizeof config.unknown);
    assert_memory_equal(&config, &defaults, sizeof config);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
