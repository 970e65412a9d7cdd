/* Compares simulated addresses with those that a driver returned for the same requests
 * (fixtures/driver_addresses), and tests the rules of every order of addresses. */
#include "cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>

#include "device_model.h"
#include "dice.h"
#include "util.h"

enum { MAX_REQUESTS = 4096 };

/* The state of a process at its first request, as in the recordings: two regions of the context
 * have free space, 2 MiB in the newer one and 24 MiB in the older one. Recorded addresses are
 * relative to the free space of the older one. All other memory lies between the regions of the
 * process. */
enum { OLD_USED = 8, NEW_USED = 30, NEW_HOLE = -74, REGIONS_END = -488 };

struct played {
    struct mt_address_space space;
    bool has_context;
    uint64_t old_hole, new_hole, top; /* simulated addresses of these */
};

static uint64_t take(struct mt_address_space *space, uint64_t mib)
{
    uint64_t base;
    const char *why = NULL;

    mt_address_space_take(space, mib * MT_MIB, &base);
    if (!mt_address_space_is_sound(space, &why))
        fail_msg("%s", why);
    return base;
}

static void give(struct mt_address_space *space, uint64_t base)
{
    const char *why = NULL;

    mt_address_space_give(space, base);
    if (!mt_address_space_is_sound(space, &why))
        fail_msg("%s", why);
}

static void begin(struct played *played, bool has_context)
{
    const struct mt_base_order driver = mt_base_order_at(0);

    mt_address_space_init(&played->space, driver);
    played->has_context = has_context;
    played->top = played->space.top;
    if (!has_context)
        return;
    played->old_hole = take(&played->space, OLD_USED) + OLD_USED * MT_MIB;
    played->top = take(&played->space, NEW_USED);
    played->new_hole = played->top + NEW_USED * MT_MIB;
}

/* Simulated address of a recorded one. Without a context, the first request has its own region of
 * at most 64 MiB at the top. Other addresses are relative to it. */
static uint64_t expected(const struct played *played, int64_t recorded_mib, int64_t first_mib)
{
    if (!played->has_context)
        return played->top - (uint64_t)(first_mib - recorded_mib) * MT_MIB;
    if (recorded_mib >= 0)
        return played->old_hole + (uint64_t)recorded_mib * MT_MIB;
    if (recorded_mib == NEW_HOLE)
        return played->new_hole;
    return played->top - (uint64_t)(REGIONS_END - recorded_mib) * MT_MIB;
}

static void plays_as_recorded(const char *name, bool has_context)
{
    char path[256], kind;
    struct played played;
    int64_t first_mib = 0, at;
    unsigned mib, line = 0;

    snprintf(path, sizeof path, "%s/driver_addresses/%s.txt", MEMTRACE_FIXTURES, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    begin(&played, has_context);
    while (fscanf(file, " %c", &kind) == 1) {
        line++;
        if (kind == 'f') {
            assert_int_equal(fscanf(file, "%" SCNd64, &at), 1);
            give(&played.space, expected(&played, at, first_mib));
            continue;
        }
        assert_int_equal(fscanf(file, "%u %" SCNd64, &mib, &at), 2);
        if (line == 1)
            first_mib = (int64_t)mt_round_up(mib, 32);
        if (take(&played.space, mib) != expected(&played, at, first_mib))
            fail_msg("%s, line %u: not the driver's address", name, line);
    }
    fclose(file);
    mt_address_space_release(&played.space);
}

TEST(large_requests_are_placed_as_by_the_driver)
{
    plays_as_recorded("large", false);
    plays_as_recorded("equal", false);
    plays_as_recorded("holes", false);
}

TEST(small_and_mixed_requests_are_placed_as_by_the_driver)
{
    plays_as_recorded("small", true);
    plays_as_recorded("mixed", true);
}

TEST(upwards_and_downwards_are_monotonic)
{
    struct mt_address_space up, down;
    uint64_t above = 0, below = UINT64_MAX;

    mt_address_space_init(&up, mt_base_order_at(MT_ADDRESSES_UPWARDS));
    mt_address_space_init(&down, mt_base_order_at(MT_ADDRESSES_DOWNWARDS));
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t mib = 2 + i * 7 % 300, high = take(&up, mib), low = take(&down, mib);

        assert_true(high >= above && low + mib * MT_MIB <= below);
        above = high + mib * MT_MIB;
        below = low;
        if (i % 3) {
            give(&up, high);
            give(&down, low);
        }
    }
    mt_address_space_release(&up);
    mt_address_space_release(&down);
}

TEST(random_orders_repeat_and_differ)
{
    struct mt_address_space first, again, other;
    bool differs = false;

    mt_address_space_init(&first, mt_base_order_at(3));
    mt_address_space_init(&again, mt_base_order_at(3));
    mt_address_space_init(&other, mt_base_order_at(4));
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t mib = 2 + i * 11 % 200, base = take(&first, mib);

        assert_int_equal(base, take(&again, mib));
        differs |= base != take(&other, mib);
    }
    assert_true(differs);
    mt_address_space_release(&first);
    mt_address_space_release(&again);
    mt_address_space_release(&other);
}

/* Live allocations never overlap: the check of soundness runs after each step. */
TEST(random_requests_keep_every_order_sound)
{
    uint64_t live[MAX_REQUESTS];

    random_state = 88172645463325252u;
    for (uint32_t order = 0; order < MT_BASE_ORDERS; order++) {
        struct mt_address_space space;
        size_t count = 0;

        mt_address_space_init(&space, mt_base_order_at(order));
        for (size_t i = 0; i < 3000; i++) {
            if (count && (count == MAX_REQUESTS || xorshift_below(5) < 2)) {
                size_t at = xorshift_below(count);

                give(&space, live[at]);
                live[at] = live[--count];
            } else {
                live[count++] = take(&space, 1 + xorshift_below(90));
            }
        }
        while (count)
            give(&space, live[--count]);
        assert_int_equal(space.count, 0);
        mt_address_space_release(&space);
    }
}

/* Requests of 2^45 bytes: the third does not fit beside the others. All addresses can be released.
 */
TEST(requests_that_do_not_fit_get_an_address)
{
    for (uint32_t order = 0; order < MT_BASE_ORDERS; order++) {
        struct mt_address_space space;
        uint64_t bases[4];

        mt_address_space_init(&space, mt_base_order_at(order));
        for (size_t i = 0; i < MT_ARRAY_LEN(bases); i++)
            bases[i] = take(&space, UINT64_C(1) << 25);
        for (size_t i = 0; i < MT_ARRAY_LEN(bases); i++)
            give(&space, bases[i]);
        give(&space, 4096);
        mt_address_space_release(&space);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
