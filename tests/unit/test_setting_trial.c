/* One setting on one trace: when its numbers are exact. */
#include "cmocka_all.h"

#include "capture.h"
#include "setting_trial.h"

static struct mt_setting_device search(struct mt_source *source, const char *conf)
{
    struct mt_setting_trial trial;
    struct mt_error error = {0};

    assert_int_equal(mt_setting_replay(source, conf, &trial, &error), MT_OK);
    assert_int_equal(mt_setting_search(source, conf, &trial, &error), MT_OK);
    assert_int_equal(trial.device_count, 1);
    return trial.devices[0];
}

/* An unknown option may have affected the run as recorded, but not a setting without it. */
TEST(an_unknown_option_of_the_run_is_a_doubt)
{
    struct mt_source *source =
        capture_open(capture_path("captures", "ddp_leak_rank0", ".pickle.zst"));

    assert_true(search(source, NULL).serves);
    assert_true(search(source, NULL).is_exact);
    source->header.allocator_options = "option_of_the_future:1";
    source->header.settings = "";
    assert_true(search(source, NULL).serves);
    assert_false(search(source, NULL).is_exact);
    assert_true(search(source, "expandable_segments:True").is_exact);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
