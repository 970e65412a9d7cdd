/* The output of tune that people paste into a shell. */
#include <string.h>

#include "cmocka_all.h"
#include "tune_output.h"

static struct mt_tune_row row(const char *conf, uint64_t peak_bytes)
{
    struct mt_tune_row result = {
        .serves = true, .reserved_peak_bytes = peak_bytes, .device_allocs = 10};

    (void)strcpy(result.conf, conf);
    return result;
}

/* The text for a run with `run_conf` for which `best_conf` is better. */
static void print(const char *run_conf, const char *best_conf, struct mt_buf *out)
{
    struct mt_tune_summary summary = {.current = row(run_conf, 2000000), .tried = 80};
    const struct mt_tune_answer answer = {.summary = &summary};

    summary.front[0] = row(best_conf, 1000000);
    summary.front_count = 1;
    mt_tune_print_text(out, &answer);
}

TEST(a_setting_is_exported)
{
    struct mt_buf out = {0};

    print("", "expandable_segments:True", &out);
    assert_non_null(strstr(out.data, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"));
    mt_buf_release(&out);
}

/* `export X=` would leave an empty variable behind. */
TEST(no_setting_is_unset)
{
    struct mt_buf out = {0};

    print("max_split_size_mb:64", "", &out);
    assert_non_null(strstr(out.data, "unset PYTORCH_CUDA_ALLOC_CONF\n"));
    assert_null(strstr(out.data, "export"));
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
