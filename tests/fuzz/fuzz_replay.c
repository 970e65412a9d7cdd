/* Random events replayed with every policy, compared and not, with and without a
 * limit. The assertions of the program are active in this build; what is checked
 * here holds of every result. */
#include "event_input.h"
#include "replay.h"

/* An input chooses a row by its number: add new rows at the end. */
static const char *const policies[] = {
    NULL,
    "recorded",
    "pytorch:expandable_segments:True",
    "pytorch:max_split_size_mb:20,garbage_collection_threshold:0.5",
    "pytorch:roundup_power2_divisions:[1:2,16:4,>:1]",
    "bfc",
    "ort",
    "cuda-async",
    "cupy",
    "cub",
    "rmm-pool",
    "rmm-arena",
    "rmm-binning",
    "first-fit",
    "next-fit",
    "best-fit:segment=20MiB",
    "worst-fit",
    "buddy",
    "segregated",
    "tlsf",
    "paged",
    "planned",
    "none",
    "bfc:preallocate=False,garbage_collection=True"};

static void check_level(const struct mt_level *level)
{
    FUZZ_CHECK(level->now <= level->peak);
}

static void check_result(const struct mt_replay_result *result)
{
    const struct mt_counters *counters = &result->counters;

    check_level(&counters->requested);
    check_level(&counters->allocated);
    check_level(&counters->active);
    check_level(&counters->reserved);
    FUZZ_CHECK(counters->allocated.now <= counters->active.now);
    FUZZ_CHECK(!result->verify.wanted ||
               result->verify.addresses_exact <= result->verify.allocations);
}

static void replay(struct event_input *events, const struct mt_replay_options *options)
{
    static struct mt_replay_summary summary;
    struct mt_error error = {0};

    enum mt_status status = mt_replay_run(&events->memory.source, options, NULL, &summary, &error);

    if (status == MT_OK) {
        FUZZ_CHECK(summary.device_count <= MT_MAX_DEVICES && summary.policy[0]);
        for (uint32_t i = 0; i < summary.device_count; i++)
            check_result(&summary.devices[i]);
    } else {
        FUZZ_CHECK(error.status == status);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned policy = (unsigned)fuzz_number(&input, 1), how = (unsigned)fuzz_number(&input, 1);
    struct mt_replay_options options = {
        .policy = policies[policy % MT_ARRAY_LEN(policies)],
        .limit_bytes = how & 1 ? (uint64_t)(how >> 4) * 64 * MT_MIB : 0,
        .blind = how & 2,
        .verify = how & 4,
        .no_inferred_pools = how & 8,
    };
    struct event_input *events = malloc(sizeof *events);

    FUZZ_CHECK(events);
    event_input_make(events, &input);
    replay(events, &options);
    event_input_release(events);
    free(events);
    return 0;
}
