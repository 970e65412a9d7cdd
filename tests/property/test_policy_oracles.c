/* Random traces against every policy and its model (oracle.h): the same answer
 * and the same address for every request, the same calls to the device, the
 * same counters after every event. An observer that knows no rules looks on.
 *
 *     test_policy_oracles                all models, the same seeds every time
 *     test_policy_oracles SEED           all models, other traces
 *     test_policy_oracles POLICY SEED    one trace, told event by event */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "policy_play.h"

enum { TRACES = 450, SEEDS_APART = 1000000 };

static uint64_t first_seed = 1;

static void report(const struct oracle_rules *rules, uint64_t seed, const struct played *played)
{
    print_error("%s:%s, seed %llu, event %u: %s\nto see it: test_policy_oracles %s %llu\n",
                rules->policy, played->options, (unsigned long long)seed, played->event,
                played->trouble, rules->policy, (unsigned long long)seed);
}

/* What the traces of one model came to: they are no test if nothing happens. */
struct tally {
    size_t traces;
    uint64_t requests, served, retries, device_allocs, device_frees;
};

static void count_trace(struct tally *tally, const struct mt_counters *counters)
{
    tally->traces++;
    tally->requests += counters->allocations + counters->ooms;
    tally->served += counters->allocations;
    tally->retries += counters->retries;
    tally->device_allocs += counters->device_allocs;
    tally->device_frees += counters->device_frees;
}

static void print_tally(const char *name, const struct tally *tally)
{
    print_message("%-12s %6zu traces, %7llu requests, %7llu served, %6llu retries, "
                  "%7llu device allocs, %7llu frees\n",
                  name, tally->traces, (unsigned long long)tally->requests,
                  (unsigned long long)tally->served, (unsigned long long)tally->retries,
                  (unsigned long long)tally->device_allocs,
                  (unsigned long long)tally->device_frees);
}

/* The traces of the n-th model; how many went wrong. */
static size_t play_model(size_t n, struct tally *tally)
{
    const struct oracle_rules *rules = oracle_models[n];
    struct played played;
    size_t traces = rules->weight ? rules->weight * TRACES : TRACES, k, failed = 0;

    for (k = 0; k < traces && failed < 3; k++) {
        uint64_t seed = first_seed + n * SEEDS_APART + k;
        if (!play_trace(rules, seed, false, &played)) {
            report(rules, seed, &played);
            failed++;
        }
        count_trace(tally, &played.counters);
    }
    print_tally(rules->policy, tally);
    return failed;
}

TEST(policies_answer_like_their_models)
{
    size_t n, failed = 0, traces = 0;

    print_message("seeds from %llu on\n", (unsigned long long)first_seed);
    for (n = 0; oracle_models[n]; n++) {
        struct tally tally = {0};
        failed += play_model(n, &tally);
        traces += tally.traces;
        assert_true(2 * tally.served > tally.requests);
    }
    print_message("%zu random traces\n", traces);
    assert_int_equal(failed, 0);
    assert_true(traces >= 10000);
}

TEST(every_policy_has_a_model)
{
    for (size_t i = 0; mt_policies[i]; i++) {
        if (!oracle_find(mt_policies[i]->name) && mt_policies[i] != &mt_policy_recorded)
            fail_msg("'%s' has no model in tests/property/oracle_*.c", mt_policies[i]->name);
    }
}

static int tell_one(const char *policy, uint64_t seed)
{
    const struct oracle_rules *rules = oracle_find(policy);
    struct played played;

    if (!rules)
        return 2;
    if (play_trace(rules, seed, true, &played))
        return 0;
    report(rules, seed, &played);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return tell_one(argv[1], strtoull(argv[2], NULL, 10));
    if (argc == 2)
        first_seed = strtoull(argv[1], NULL, 10);
    return run_tests_of_file(NULL, NULL);
}
