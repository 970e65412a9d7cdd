/* `memtrace info`: how a process ended, and hostile text. */
#include <string.h>

#include "info_identity.h"
#include "util.h"

#include "cmocka_all.h"

static void expect_text(const struct mt_trace_header *header, const char *wanted)
{
    struct mt_buf out = {0};

    mt_info_identity_text(&out, header, NULL);
    mt_buf_add_char(&out, '\0');
    assert_false(out.failed);
    assert_string_equal(out.data, wanted);
    mt_buf_release(&out);
}

TEST(each_ending_is_printed)
{
    static const struct {
        const char *ended, *wanted;
    } cases[] = {
        {NULL, ""},
        {"exit:3", "  ended       exit status 3\n"},
        {"signal:15", "  ended       signal 15\n"},
        {"timeout", "  ended       by memtrace, after a timeout\n"},
        {"oom-killed",
         "  ended       signal 9; the kernel had killed a process of its control group because "
         "memory ran out\n"},
        {"unknown", "  ended       abnormal; the cause is unknown\n"},
        {"dumped-core", ""}, /* from a later version, or never written */
        {"exit:256", ""},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        const struct mt_trace_header header = {
            .rank = -1, .world_size = -1, .ended = cases[i].ended};

        expect_text(&header, cases[i].wanted);
    }
}

TEST(json_has_null_for_missing_values)
{
    const struct mt_trace_header header = {.rank = -1, .world_size = -1, .ended = "dumped-core"};
    struct mt_buf out = {0};
    struct mt_json json;

    mt_json_init(&json, &out, true);
    mt_json_object_begin(&json, NULL);
    mt_info_identity_json(&json, &header, NULL);
    mt_json_object_end(&json);
    mt_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, "\"ended\": null"));
    mt_buf_release(&out);
}

TEST(control_characters_are_escaped)
{
    const struct mt_trace_header header = {
        .rank = -1, .world_size = -1, .job = "a\033[2J\n", .device_uuid = {"\033]0;x\007"}};
    struct mt_buf out = {0};

    mt_info_identity_text(&out, &header, NULL);
    mt_buf_add_char(&out, '\0');
    assert_null(strchr(out.data, '\033'));
    assert_null(strchr(out.data, '\007'));
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
