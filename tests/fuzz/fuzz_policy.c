/* Any bytes as the options of each policy: what a policy accepts, it spells in a
 * way that it accepts as the same options. */
#include "fuzz.h"
#include "policy.h"

enum { SPELLING = 1024 };

static bool create(const struct mt_policy_ops *ops, const char *options,
                   const struct mt_symbols *symbols, char spelling[SPELLING])
{
    struct mt_trace_header header = {.rank = -1, .world_size = -1};
    struct mt_policy *policy = NULL;
    struct mt_device_model device;
    struct mt_error error = {0};

    mt_device_init(&device, 0, 0, false);
    enum mt_status status = mt_policy_create(
        ops, &(struct mt_policy_setup){options, &header, symbols, &device, spelling, SPELLING},
        &policy, &error);
    if (status == MT_OK)
        ops->destroy(policy);
    else
        FUZZ_CHECK(error.text[0]);
    mt_device_release(&device);
    return status == MT_OK;
}

/* "name:options" -> options, NULL if the name stands alone. */
static const char *options_of(const char *spelling)
{
    const char *colon = strchr(spelling, ':');

    return colon ? colon + 1 : NULL;
}

static void check_policy(const struct mt_policy_ops *ops, const char *options,
                         const struct mt_symbols *symbols)
{
    char first[SPELLING], second[SPELLING];

    if (!create(ops, options, symbols, first))
        return;
    FUZZ_CHECK(create(ops, options_of(first), symbols, second));
    FUZZ_CHECK(strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_symbols symbols;
    size_t count = 0;

    if (size < 1)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    while (mt_policies[count])
        count++;
    FUZZ_CHECK(mt_symbols_init(&symbols) == MT_OK);
    check_policy(mt_policies[data[0] % count], text, &symbols);
    mt_symbols_release(&symbols);
    free(text);
    return 0;
}
