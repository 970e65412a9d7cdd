/* Random events with hostile names, analyzed and told in every form: each document
 * stays well-formed, and no name becomes markup or a terminal's control. */
#include "analyze.h"
#include "analyze_output.h"
#include "event_input.h"
#include "export_format.h"
#include "output_checks.h"
#include "perfetto.h"
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

static uint64_t take_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        FUZZ_CHECK(*at < end && shift < 64);
        value |= (uint64_t)(**at & 0x7f) << shift;
        if (!(*(*at)++ & 0x80))
            return value;
    }
}

/* A field of a message: its number, and its value or its bytes. */
struct field {
    uint64_t number, value;
    const uint8_t *bytes; /* NULL: a value */
};

static struct field take_field(const uint8_t **at, const uint8_t *end)
{
    const uint64_t key = take_varint(at, end);
    struct field field = {.number = key >> 3, .value = take_varint(at, end)};

    FUZZ_CHECK((key & 7) == 0 || (key & 7) == 2);
    if ((key & 7) == 2) {
        FUZZ_CHECK(field.value <= (uint64_t)(end - *at));
        field.bytes = *at;
        *at += field.value;
    }
    return field;
}

/* Counts the beginnings and ends of slices. */
static void check_event(const struct field *event, uint64_t *opened, uint64_t *ended)
{
    enum { KIND = 9, BEGIN = 1, END = 2 };

    for (const uint8_t *at = event->bytes; at < event->bytes + event->value;) {
        struct field field = take_field(&at, event->bytes + event->value);

        *opened += field.number == KIND && field.value == BEGIN;
        *ended += field.number == KIND && field.value == END;
        FUZZ_CHECK(*ended <= *opened);
    }
}

/* Perfetto: packets of fields with a writer, and slices that end. */
static void check_trace(const struct mt_report *report, const struct mt_trace_header *header,
                        const struct mt_perfetto_levels *levels, struct mt_buf *out)
{
    enum { PACKET = 1, WRITER = 10, EVENT = 11 };
    uint64_t opened = 0, ended = 0;

    mt_buf_reset(out);
    mt_perfetto_add(out, report, header, levels);
    FUZZ_CHECK(!out->failed && mt_file_perfetto.is_own(out->data, out->length));
    const uint8_t *at = (const uint8_t *)out->data;
    for (const uint8_t *end = at + out->length; at < end;) {
        const struct field packet = take_field(&at, end);
        uint64_t writer = 0;

        FUZZ_CHECK(packet.number == PACKET && packet.bytes);
        for (const uint8_t *in = packet.bytes; in < packet.bytes + packet.value;) {
            const struct field field = take_field(&in, packet.bytes + packet.value);

            if (field.number == WRITER)
                writer = field.value;
            if (field.number == EVENT)
                check_event(&field, &opened, &ended);
        }
        FUZZ_CHECK(writer && writer <= UINT32_MAX);
    }
    FUZZ_CHECK(opened == ended && opened == report->phase_count);
}

static void tell(struct event_input *events, unsigned how)
{
    struct mt_analyze_options options = {
        .path = "x.trace",
        .models = mt_report_html_models(),
        .bins = 64,
    };
    struct mt_perfetto_levels levels = {0};
    struct mt_report *report = NULL;
    struct mt_buf out = {0};
    struct mt_error error;

    mt_perfetto_attach(&levels, &options);
    if (mt_analyze(&events->memory.source, &options, &report, &error) != MT_OK) {
        mt_perfetto_levels_release(&levels);
        return;
    }
    check_text(report, &out);
    check_json(report, &out);
    check_markdown(report, &out);
    if (report->device_count && report->devices[0].instant_count)
        check_exports(report, &out);
    check_trace(report, &events->memory.source.header, &levels, &out);
    mt_perfetto_levels_release(&levels);
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
