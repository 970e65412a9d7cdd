/* The name of a device comes from a trace: terminal commands in it are not printed. */
#include "cmocka_all.h"

#include "analyze_output.h"

TEST(names_are_printable)
{
    const struct mt_style style = {.bold = "<b>", .reset = "</b>"};
    struct mt_device_report device = {.device = 1, .name = "H200\x1b[2J\n"};
    struct mt_buf out = {0};
    const struct mt_reporter reporter = {.out = &out, .device = &device, .style = &style};

    mt_reporter_device_title(&reporter);
    assert_string_equal(out.data, "\n<b>Device 1: H200\\x1b[2J\\x0a</b>\n");
    device.name = NULL;
    mt_buf_reset(&out);
    mt_reporter_device_title(&reporter);
    assert_string_equal(out.data, "\n<b>Device 1</b>\n");
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
