/* Settings in the text of an advice, and the device that a document lists first. */
#include "cmocka_all.h"

#include <string.h>

#include "report_query.h"
#include "verdict.h"

/* "words{setting}words" */
static void assert_parts(const char *advice, const char *wanted)
{
    struct mt_advice_part part = {.is_setting = false};
    struct mt_buf out = {0};

    while (mt_advice_next(&advice, &part)) {
        assert_true(part.text.length > 0);
        mt_buf_add_text(&out, part.is_setting ? "{" : "");
        mt_buf_add_text(&out, part.text.data);
        mt_buf_add_text(&out, part.is_setting ? "}" : "");
    }
    assert_false(out.failed || part.text.failed);
    assert_string_equal(out.data ? out.data : "", wanted);
    mt_buf_release(&part.text);
    mt_buf_release(&out);
}

TEST(settings_are_found)
{
    assert_parts("", "");
    assert_parts("use a smaller batch", "use a smaller batch");
    assert_parts("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                 "{PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True}");
    assert_parts("fused=True for the optimizer: none (foreach=False, or a=b).",
                 "{fused=True} for the optimizer: none ({foreach=False}, or {a=b}).");
    assert_parts("export A=1; unset B", "{export A=1}; {unset B}");
    assert_parts("export a file, unset it", "export a file, unset it");
    assert_parts("A=1 B=2", "{A=1} {B=2}");
    assert_parts("= a= a =b =c", "= a= a =b =c");
    assert_parts("x = y; a==b", "x = y; {a==b}");
    assert_parts("zero_grad(set_to_none=True)", "zero_grad({set_to_none=True})");
}

TEST(worst_device_is_listed_first)
{
    struct mt_oom oom = {.request_bytes = 24 << 20, .fatal = true};
    struct mt_device_report devices[3] = {{.device = 0, .allocated_peak.bytes = 500 << 20},
                                          {.device = 1, .allocated_peak.bytes = 700 << 20},
                                          {.device = 2, .allocated_peak.bytes = 600 << 20}};
    struct mt_report report = {.devices = devices, .device_count = 3, .is_driver_level = true};
    struct mt_buf out = {0};

    assert_ptr_equal(mt_worst_device(&report), &devices[1]);
    mt_verdict_add(&out, &report, NULL);
    assert_string_equal(out.data, "device 1: card about 1.68 GiB; allocated peak 700 MiB");
    devices[2].oom_list = &oom;
    devices[2].oom_count = 1;
    mt_buf_reset(&out);
    mt_verdict_add(&out, &report, NULL);
    assert_string_equal(
        out.data, "device 2: out of memory: a request for 24.0 MiB failed; card at least 1.59 GiB; "
                  "allocated peak 600 MiB");
    report.device_count = 1;
    mt_buf_reset(&out);
    mt_verdict_add(&out, &report, NULL);
    assert_string_equal(out.data, "card about 1.49 GiB; allocated peak 500 MiB");
    report.device_count = 0;
    assert_null(mt_worst_device(&report));
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
