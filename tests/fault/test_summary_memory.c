/* Writing and reading a summary while each of its allocations fails, once and for good: the answer
 * is whole, or there is none. */
#include "cmocka_all.h"

#include "failing_alloc.h"
#include "record_maker.h"
#include "summary_file.h"

static void fill(struct mt_rank_set *set)
{
    struct record_maker maker = {21, set};

    for (int i = 0; i < 3; i++) {
        struct mt_rank_record record = make_record(&maker);

        assert_int_equal(mt_rank_set_add(set, &record), MT_OK);
    }
}

/* The bytes that the set has with enough memory, or MT_ERR_MEMORY. Returns the allocations. */
static size_t check_encode(const struct mt_buf *wanted, size_t n, bool from_there_on)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    struct mt_buf out = {0};
    enum mt_status status;
    size_t count;

    fill(&set);
    fail_allocation(n, from_there_on);
    status = mt_summary_encode(&set, &out, &error);
    count = stop_failing();
    if (status == MT_OK) {
        assert_int_equal(out.length, wanted->length);
        assert_memory_equal(out.data, wanted->data, wanted->length);
    } else {
        assert_int_equal(status, MT_ERR_MEMORY);
        assert_int_equal(error.status, MT_ERR_MEMORY);
    }
    mt_buf_release(&out);
    mt_rank_set_release(&set);
    return count;
}

static size_t check_decode(const struct mt_buf *bytes, size_t n, bool from_there_on)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    enum mt_status status;
    size_t count;

    fail_allocation(n, from_there_on);
    status = mt_summary_decode(bytes->data, bytes->length, &set, &error);
    count = stop_failing();
    if (status == MT_OK) {
        assert_int_equal(set.record_count, 3);
    } else {
        assert_int_equal(status, MT_ERR_MEMORY);
        assert_int_equal(error.status, MT_ERR_MEMORY);
    }
    mt_rank_set_release(&set);
    return count;
}

static void no_half_answers(void **state)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    struct mt_buf bytes = {0};
    size_t encodes, decodes;

    (void)state;
    fill(&set);
    assert_int_equal(mt_summary_encode(&set, &bytes, &error), MT_OK);
    encodes = check_encode(&bytes, 0, false);
    decodes = check_decode(&bytes, 0, false);
    assert_true(encodes > 10 && decodes > 10);
    for (int from = 0; from < 2; from++) {
        for (size_t n = 1; n <= encodes; n++)
            (void)check_encode(&bytes, n, from);
        for (size_t n = 1; n <= decodes; n++)
            (void)check_decode(&bytes, n, from);
    }
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_half_answers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
