/* Random events with hostile names, analyzed and told in every form: each document
 * stays well-formed, and no name becomes markup or a terminal's control. */
#include "analyze.h"
#include "analyze_output.h"
#include "event_input.h"
#include "export_format.h"
#include "junit.h"
#include "output_checks.h"
#include "report_html.h"
#include "summary_md.h"

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void check_text(const struct mt_report *report, struct mt_buf *out)
{
    static const struct mt_screen screen = {100, false, true};

    mt_buf_reset(out);
    mt_analyze_text(out, report, mt_plain_style(), &screen, true);
    FUZZ_CHECK(!out->failed && is_clean_text(out->data, out->length));
}

static void check_json(const struct mt_report *report, struct mt_buf *out)
{
    mt_buf_reset(out);
    mt_analyze_json(out, report, NULL, false);
    FUZZ_CHECK(!out->failed && is_clean_text(out->data, out->length) && is_json(out->data));
}

static void check_markdown(const struct mt_report *report, struct mt_buf *out)
{
    mt_buf_reset(out);
    mt_summary_md_add(out, report, NULL, NULL);
    FUZZ_CHECK(!out->failed && out->length <= MT_SUMMARY_BYTES + 5000);
    FUZZ_CHECK(is_clean_text(out->data, out->length) && !strstr(out->data, "<script"));
}

static void check_page(const struct mt_report *report, struct mt_buf *out)
{
    const struct mt_report_html page = {.report = report, .answer = "</pre><script>a"};

    mt_buf_reset(out);
    mt_report_html_add(out, &page);
    FUZZ_CHECK(out->length < MT_REPORT_HTML_BYTES && strlen(out->data) == out->length);
    FUZZ_CHECK(count_of(out->data, "<script") == 2 && count_of(out->data, "</script") == 2);
    FUZZ_CHECK(is_clean_text(out->data, out->length));
}

static void check_exports(const struct mt_report *report, struct mt_buf *out)
{
    const struct mt_icicle_options shape = {.reversed = false, .weigh = MT_WEIGH_ALLOCATED};
    const struct mt_instant *instant = &report->devices[0].instants[0];
    struct mt_export what = {.report = report, .title = "a", .exporter = "memtrace"};
    struct mt_icicle *icicle = NULL;
    struct mt_arena arena = {0};

    mt_icicle_build(&arena, instant->holdings, instant->holding_count, report->phases,
                    report->phase_count, report->symbols, &shape, &icicle);
    what.icicle = icicle;
    mt_buf_reset(out);
    mt_export_folded.add(out, &what);
    FUZZ_CHECK(is_clean_text(out->data ? out->data : "", out->length));
    mt_buf_reset(out);
    mt_export_speedscope.add(out, &what);
    FUZZ_CHECK(is_json(out->data));
    mt_arena_release(&arena);
}

static void tell(struct event_input *events, unsigned how)
{
    struct mt_analyze_options options = {
        .path = "x.trace",
        .models = mt_report_html_models(),
        .bins = 64,
    };
    struct mt_report *report = NULL;
    struct mt_buf out = {0};
    struct mt_error error;

    if (mt_analyze(&events->memory.source, &options, &report, &error) != MT_OK)
        return;
    check_text(report, &out);
    check_json(report, &out);
    check_markdown(report, &out);
    if (report->device_count && report->devices[0].instant_count)
        check_exports(report, &out);
    if (how & 1) /* takes longest */
        check_page(report, &out);
    mt_buf_release(&out);
    mt_report_release(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned how = (unsigned)fuzz_number(&input, 1);
    struct event_input *events = malloc(sizeof *events);

    FUZZ_CHECK(events);
    event_input_make(events, &input);
    tell(events, how);
    event_input_release(events);
    free(events);
    return 0;
}
