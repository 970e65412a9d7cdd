/* The page is made in parts. The most important parts are made first and take their room. A part
 * that does not fit is named instead. */
#include "report_html.h"

#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "chart.h"
#include "device_choice.h"
#include "document_tables.h"
#include "escape.h"
#include "foreign_text.h"
#include "page_assets.h"
#include "page_head.h"
#include "report_page.h"
#include "report_query.h"
#include "util.h"
#include "verdict.h"

enum {
    DATA_BYTES = 340000,       /* limit for the histories of all devices */
    FIRST_DATA_BYTES = 130000, /* for the first device, if the others have their minimum: with rows
                                  of single blocks */
    MIN_DATA_BYTES = 60000, /* minimum for the history of a device; a much smaller one is too coarse
                               to be useful */
    ANSWER_BYTES = 60000,
    SECTION_BYTES = 2000, /* for the headings of a device, and links to its parts */
    END_BYTES = 16000,    /* reserved for the list of missing parts */
    MAX_FINDINGS = 24,
    MAX_RULES = 64,
    SMALL_END_BYTES = 4000, /* of a page for notebooks: its footer, and tags */
    MAX_PATH_BYTES = 1000   /* limit for the path of the trace in commands */
};

struct writer {
    const struct mt_report_html *page;
    const struct mt_report *report;
    const char *script; /* page_assets.h */
    struct mt_buf main, nav, data;
    struct mt_buf first; /* the timeline and the answers of the first device */
    struct mt_buf parts; /* links to the parts of the current device */
    struct mt_page_policy policy;
    bool has_blocks;       /* the current device has rows of single blocks */
    size_t left;           /* bytes that are still free */
    size_t data_left;      /* the part of `left` for the histories of devices */
    uint32_t devices_left; /* number of devices that are still to be added */
};

unsigned mt_report_html_models(void)
{
    return mt_charts_models() | MT_MODEL_TIMELINE | MT_MODEL_HISTORY | MT_MODEL_MODULES;
}

/* Texts of links to parts of a device, for parts whose text is not their name with a capital
 * letter. */
static const struct {
    const char *part, *words;
} link_words[] = {{"address", "Address space"}};

/* Adds a link to a part of a device: "Timeline". If there is a single device, its links are in the
 * bar of the page. Otherwise each device has its own links. */
static void add_part_link(struct writer *writer, const struct mt_device_report *device,
                          const char *part)
{
    struct mt_buf *out = writer->report->device_count > 1 ? &writer->parts : &writer->nav;

    mt_buf_printf(out, "<a href=\"#%s-%u\">", part, device ? (unsigned)device->device : 0);
    for (size_t i = 0; i < MT_ARRAY_LEN(link_words); i++) {
        if (!strcmp(part, link_words[i].part)) {
            mt_buf_printf(out, "%s</a>\n", link_words[i].words);
            return;
        }
    }
    mt_buf_printf(out, "%c%s</a>\n", part[0] & ~0x20, part + 1);
}

static const char *state_class(enum mt_gate_state state)
{
    return state == MT_GATE_PASS ? "pass" : state == MT_GATE_WARN ? "warn" : "fail";
}

static void add_advice(struct mt_buf *out, const char *advice)
{
    struct mt_advice_part part = {.is_setting = false};

    while (mt_advice_next(&advice, &part)) {
        const char *text = part.text.data ? part.text.data : "";

        if (part.is_setting)
            mt_page_add_command(out, text);
        else
            mt_page_add_name(out, text);
    }
    mt_buf_release(&part.text);
}

static void add_rule(struct mt_buf *out, const struct mt_gate_result *result)
{
    mt_buf_add_text(out, "<tr><td>");
    mt_page_add_name(out, result->name);
    mt_buf_printf(out, "</td><td class=\"state %s\">%s%s</td><td>", state_class(result->state),
                  mt_gate_state_name(result->state), result->excused ? " (allowed)" : "");
    mt_page_add_words(out, result->verdict);
    mt_buf_add_text(out, "</td><td>");
    if (result->culprit)
        mt_page_add_name(out, result->culprit);
    mt_buf_add_text(out, "</td><td>");
    if (result->advice)
        add_advice(out, result->advice);
    mt_buf_add_text(out, "</td></tr>\n");
}

static void add_gates(struct writer *writer, struct mt_buf *out)
{
    const struct mt_gates *gates = writer->page->gates;
    struct mt_buf verdict = {0};
    bool has_gates = gates && gates->count;

    mt_verdict_add(&verdict, writer->report, gates);
    mt_buf_printf(out, "<p id=\"verdict\" class=\"verdict %s\">",
                  has_gates ? state_class(gates->verdict) : "");
    mt_page_add_words(out, verdict.data ? verdict.data : "");
    mt_buf_add_text(out, "</p>\n");
    mt_buf_release(&verdict);
    mt_page_add_link(&writer->nav, "verdict", "Verdict");
}

static void add_rules(const struct writer *writer, struct mt_buf *out)
{
    const struct mt_gates *gates = writer->page->gates;

    if (!gates || !gates->count)
        return;
    mt_buf_add_text(out, "<div class=\"scroll\"><table class=\"sortable\" id=\"rules\"><thead><tr>"
                         "<th>rule</th><th>state</th><th>measured</th><th>cause</th><th>try</th>"
                         "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < gates->count && i < MAX_RULES; i++)
        add_rule(out, &gates->results[i]);
    mt_buf_add_text(out, "</tbody></table></div>\n");
    if (gates->count > MAX_RULES)
        mt_buf_printf(out, "<p class=\"omitted\">%zu rules omitted</p>\n",
                      gates->count - MAX_RULES);
}

static void add_finding(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device, const struct mt_finding *finding)
{
    mt_buf_printf(out, "<li class=\"finding %s\"><h3>", finding->severity);
    mt_page_add_words(out, finding->title);
    if (report->device_count > 1)
        mt_buf_printf(out, " <span class=\"device\">device %u</span>", (unsigned)device->device);
    mt_buf_add_text(out, "</h3>\n");
    if (finding->evidence_count)
        mt_buf_add_text(out, "<ul>");
    for (uint32_t i = 0; i < finding->evidence_count; i++) {
        mt_buf_add_text(out, "<li>");
        mt_page_add_words(out, finding->evidence[i]);
        mt_buf_add_text(out, "</li>");
    }
    if (finding->evidence_count)
        mt_buf_add_text(out, "</ul>\n");
    mt_buf_add_text(out, "<p class=\"do\">");
    add_advice(out, finding->advice);
    mt_buf_add_text(out, "</p>\n");
    if (finding->cost) {
        mt_buf_add_text(out, "<p class=\"cost\">");
        mt_page_add_name(out, finding->cost);
        mt_buf_add_text(out, "</p>\n");
    }
    if (finding->proved_by) {
        mt_buf_add_text(out, "<p class=\"proof\">");
        mt_page_add_command(out, finding->proved_by);
        mt_buf_add_text(out, "</p>\n");
    }
    mt_buf_add_text(out, "</li>\n");
}

static void add_findings(struct writer *writer, struct mt_buf *out)
{
    const struct mt_report *report = writer->report;
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        count += report->devices[i].finding_count;
    if (!count)
        return;
    mt_page_add_link(&writer->nav, "findings", "What to change");
    mt_buf_add_text(out, "<h2 id=\"findings\">What to change</h2>\n<ul class=\"findings\">\n");
    count = 0;
    for (uint32_t i = 0; i < report->device_count; i++)
        for (uint32_t j = 0; j < report->devices[i].finding_count; j++)
            if (count++ < MAX_FINDINGS)
                add_finding(out, report, &report->devices[i], &report->devices[i].findings[j]);
    mt_buf_add_text(out, "</ul>\n");
    if (count > MAX_FINDINGS)
        mt_buf_printf(out, "<p class=\"omitted\">%u more: report.json has them</p>\n",
                      (unsigned)(count - MAX_FINDINGS));
}

/* A chart as part of the page. */
struct figure {
    struct mt_buf svg, style; /* style: content of the <style> element of the SVG */
    bool has_room;
};

static void figure_release(struct figure *figure)
{
    mt_buf_release(&figure->svg);
    mt_buf_release(&figure->style);
}

/* Makes the SVG with ids that are unique on the page. */
static void draw(const struct writer *writer, const struct mt_chart *chart,
                 const struct mt_device_report *device, bool keyed, struct figure *figure)
{
    const struct mt_chart_options options = {
        .keyed = keyed, .event_axis = mt_is_shown_by_event(writer->report, device)};
    struct mt_drawing drawing;

    memset(&drawing, 0, sizeof drawing);
    chart->draw(writer->report, device, &options, &drawing);
    if (device)
        drawing.id =
            mt_arena_printf(&drawing.arena, "%s-d%u", chart->name, (unsigned)device->device);
    mt_svg_write(&drawing, MT_THEME_AUTO, &figure->svg);
    mt_svg_add_style(&drawing, MT_THEME_AUTO, &figure->style);
    mt_drawing_release(&drawing);
}

/* Draws a chart, with clickable blocks if there is room for them. */
static void draw_into_room(struct writer *writer, const struct mt_chart *chart,
                           const struct mt_device_report *device, struct figure *figure)
{
    for (int keyed = writer->has_blocks; keyed >= 0 && !figure->has_room; keyed--) {
        figure_release(figure);
        *figure = (struct figure){.has_room = false};
        draw(writer, chart, device, keyed, figure);
        figure->has_room =
            mt_page_take_room(&writer->left, figure->svg.length + MT_PAGE_HASH_BYTES);
    }
}

static void add_chart(struct writer *writer, const struct mt_chart *chart,
                      const struct mt_device_report *device, struct mt_buf *out)
{
    struct figure figure = {0};

    draw_into_room(writer, chart, device, &figure);
    if (figure.has_room) {
        mt_buf_printf(out, "<figure class=\"chart\" id=\"%s-%u\" data-chart=\"%s\"%s>\n",
                      chart->name, device ? (unsigned)device->device : 0, chart->name,
                      chart->is_enlarged ? " data-enlarged" : "");
        mt_buf_add(out, figure.svg.data, figure.svg.length);
        mt_buf_add_text(out, "</figure>\n");
        mt_page_policy_allow_style(&writer->policy, figure.style.data);
        add_part_link(writer, device, chart->name);
    } else {
        mt_buf_printf(
            out,
            "<p class=\"omitted\">The chart %s is left out: it takes %zu KiB, and the page "
            "has no room for it. memtrace render %s draws it.</p>\n",
            chart->name, figure.svg.length / 1024, chart->name);
    }
    figure_release(&figure);
}

/* Adds all charts except those next to the history. Clickable charts come first and take their room
 * first. */
static void add_other_charts(struct writer *writer, const struct mt_device_report *device,
                             struct mt_buf *out)
{
    for (int clickable = 1; clickable >= 0; clickable--)
        for (size_t i = 0; mt_charts[i]; i++)
            if (strcmp(mt_charts[i]->name, "timeline") != 0 &&
                strcmp(mt_charts[i]->name, "icicle") != 0 &&
                mt_charts[i]->is_enlarged == clickable &&
                mt_chart_is_called_for(mt_charts[i], writer->report, device))
                add_chart(writer, mt_charts[i], device, out);
}

static size_t data_share(const struct writer *writer)
{
    const size_t others = (size_t)(writer->devices_left - 1) * MIN_DATA_BYTES;
    size_t share = mt_max_u64(writer->data_left / writer->devices_left, MIN_DATA_BYTES);

    if (!writer->data.length)
        share = mt_max_u64(
            share, mt_min_u64(FIRST_DATA_BYTES, mt_sub_or_0_u64(writer->data_left, others)));
    return mt_min_u64(share, mt_min_u64(writer->data_left, writer->left));
}

static void add_history(struct writer *writer, const struct mt_device_report *device,
                        struct mt_buf *out)
{
    struct mt_buf history = {0};
    bool has_blocks = true;

    writer->has_blocks = false;
    if (!device->history || !device->timeline)
        return;
    mt_page_add_data(&history, writer->report, device, data_share(writer), &has_blocks);
    if (history.length && mt_page_take_room(&writer->left, history.length)) {
        if (writer->data.length)
            mt_buf_add_text(&writer->data, ",\n");
        mt_buf_add(&writer->data, history.data, history.length);
        writer->data_left -= history.length;
        writer->has_blocks = has_blocks;
    } else if (device->events) {
        mt_buf_add_text(out, "<p class=\"omitted\">This page has no room for what was alive at "
                             "other times: memtrace live shows it.</p>\n");
    }
    mt_buf_release(&history);
}

static void add_tables(const struct writer *writer, const struct mt_device_report *device,
                       struct mt_buf *out)
{
    mt_buf_printf(out, "<h3 id=\"tables-%u\">Peaks</h3>\n", (unsigned)device->device);
    mt_page_add_peaks_table(out, writer->report, device);
    mt_page_add_ooms_table(out, writer->report, device);
    mt_page_add_modules_table(out, device);
    mt_page_add_pools_table(out, device);
    mt_page_add_steps_table(out, writer->report, device);
    mt_page_add_phases_table(out, writer->report, device);
}

/* Adds the timeline, and beside it the answers of the worst device, which comes first. The script
 * replaces the answers with what the reader selects. */
static void add_first(struct writer *writer, const struct mt_device_report *device,
                      struct mt_buf *out)
{
    mt_buf_add_text(out, "<div class=\"first\">");
    add_chart(writer, mt_chart_find("timeline"), device, out);
    mt_buf_printf(out, "<aside id=\"side-%u\">\n", (unsigned)device->device);
    if (device == mt_worst_device(writer->report))
        mt_page_add_answers(out, writer->report, true);
    mt_buf_add_text(out, "</aside></div>\n");
}

/* Adds live blocks, charts and tables in their order. Links to these parts are in the bar or in
 * `parts`. */
static void add_device_parts(struct writer *writer, const struct mt_device_report *device,
                             const struct mt_buf *live, const struct mt_buf *tables,
                             struct mt_buf *out)
{
    unsigned number = device->device;

    add_first(writer, device, writer->first.length ? out : &writer->first);
    add_history(writer, device, out);
    add_chart(writer, mt_chart_find("icicle"), device, out);
    add_part_link(writer, device, "alive");
    mt_buf_printf(out, "<h3 class=\"alive\" id=\"alive-%u\">Alive at the allocated peak</h3>\n",
                  number);
    mt_buf_add(out, live->data, live->length);
    add_other_charts(writer, device, out);
    add_part_link(writer, device, "tables");
    mt_buf_add(out, tables->data, tables->length);
}

/* Adds a device without a history: the holders of its memory, and its addresses. */
static void add_one_instant(struct writer *writer, const struct mt_device_report *device,
                            const struct mt_buf *live, struct mt_buf *out)
{
    const struct mt_chart *map = mt_chart_find("address");

    writer->has_blocks = false;
    mt_buf_printf(out, "<p>%s.</p>\n", mt_no_history_help(writer->report));
    add_part_link(writer, device, "alive");
    mt_buf_printf(out, "<h3 class=\"alive\" id=\"alive-%u\">Alive at that instant</h3>\n",
                  (unsigned)device->device);
    mt_buf_add(out, live->data, live->length);
    if (mt_chart_is_called_for(map, writer->report, device))
        add_chart(writer, map, device, out);
}

static void add_device_section(struct writer *writer, const struct mt_device_report *device,
                               const struct mt_buf *live, const struct mt_buf *tables)
{
    struct mt_buf *out = &writer->main, parts = {0};
    unsigned number = device->device;

    if (writer->report->device_count > 1)
        mt_buf_printf(&writer->nav, "<a href=\"#device-%u\">Device %u</a>\n", number, number);
    mt_buf_reset(&writer->parts);
    if (mt_is_one_instant(writer->report, device))
        add_one_instant(writer, device, live, &parts);
    else
        add_device_parts(writer, device, live, tables, &parts);
    mt_buf_printf(out, "<section id=\"device-%u\">\n", number);
    if (writer->report->device_count > 1) {
        mt_buf_printf(out, "<h2>Device %u</h2>\n<nav class=\"parts\">", number);
        mt_buf_add(out, writer->parts.data, writer->parts.length);
        mt_buf_add_text(out, "</nav>\n");
    }
    mt_buf_add(out, parts.data, parts.length);
    mt_buf_add_text(out, "</section>\n");
    mt_buf_release(&parts);
}

static void add_device(struct writer *writer, const struct mt_device_report *device)
{
    struct mt_buf tables = {0}, live = {0};

    add_tables(writer, device, &tables);
    mt_page_add_live_table(&live, device);
    if (mt_page_take_room(&writer->left, tables.length + live.length + SECTION_BYTES))
        add_device_section(writer, device, &live, &tables);
    else
        mt_buf_printf(&writer->main,
                      "<p class=\"omitted\">Device %u: this page has no room for it.</p>\n",
                      (unsigned)device->device);
    mt_buf_release(&tables);
    mt_buf_release(&live);
}

/* Adds the devices in the order of mt_device_comes_first. */
static void add_devices(struct writer *writer)
{
    const struct mt_device_choice choice = mt_devices_by_peak(writer->report);

    if (choice.omitted)
        mt_buf_printf(&writer->main,
                      "<p class=\"omitted\">This page shows %u of %u devices: %s. For another "
                      "device N run <code>memtrace live TRACE --device N</code> or <code>memtrace "
                      "render CHART TRACE -o FILE.svg --device "
                      "N</code>; <code>memtrace analyze --json --all</code> has all of them.</p>\n",
                      (unsigned)choice.count, (unsigned)writer->report->device_count,
                      mt_device_choice_text(writer->report));
    for (uint32_t i = 0; i < choice.count; i++) {
        writer->devices_left = choice.count - i;
        add_device(writer, choice.devices[i]);
    }
    if (!choice.count)
        add_chart(writer, mt_chart_find("timeline"), NULL, &writer->main);
}

static void add_answer(struct writer *writer)
{
    const char *answer = writer->page->answer;
    struct mt_buf text = {0};

    if (!answer)
        return;
    mt_escape_add_xml(&text, answer);
    if (text.length <= ANSWER_BYTES && mt_page_take_room(&writer->left, text.length)) {
        mt_page_add_link(&writer->nav, "words", "In words");
        mt_buf_add_text(&writer->main, "<h2 id=\"words\">The same in words</h2>\n<pre>");
        mt_buf_add(&writer->main, text.data, text.length);
        mt_buf_add_text(&writer->main, "</pre>\n");
    }
    mt_buf_release(&text);
}

/* Adds a command for another instant. Users copy it, so a path that is too long becomes TRACE
 * instead of being shortened. */
static void add_live_command(struct mt_buf *out, const struct mt_report *report)
{
    struct mt_arena arena = {0};
    const char *path = report->path && *report->path ? mt_shell_path(&arena, report->path) : NULL;
    bool is_short = path && strlen(path) <= MAX_PATH_BYTES;
    const char *command = mt_arena_printf(&arena, "memtrace live %s", is_short ? path : "TRACE");

    mt_escape_add_script_string(out, command, SIZE_MAX);
    mt_arena_release(&arena);
}

static void add_data(const struct writer *writer, struct mt_buf *out)
{
    const struct mt_report *report = writer->report;

    mt_buf_printf(out, "<script type=\"application/json\" id=\"mt-data\">{\"end\":%llu",
                  (unsigned long long)(report->last_t_ns - report->first_t_ns));
    mt_page_add_roles(out);
    mt_buf_add_text(out, ",\"live\":");
    add_live_command(out, report);
    mt_buf_add_text(out, ",\"devices\":[");
    mt_buf_add(out, writer->data.data, writer->data.length);
    mt_buf_printf(out, "]}</script>\n<script>%s</script>\n", writer->script);
}

/* Counters that are exact on every device: bits of enum mt_covered. */
static uint8_t covered_on_all(const struct mt_report *report)
{
    uint8_t covered = report->device_count ? UINT8_MAX : 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        covered &= report->devices[i].replay.verify.covered;
    return covered;
}

static void add_footer(struct mt_buf *out, const struct mt_report *report)
{
    uint8_t covered = covered_on_all(report);

    mt_buf_add_text(out, "<footer>memtrace \xC2\xB7 ");
    mt_page_add_name(out, report->path ? report->path : report->name);
    if (*report->sha256)
        mt_buf_printf(out, " \xC2\xB7 sha256 %s", report->sha256);
    mt_buf_add_text(out, " \xC2\xB7 replayed with ");
    mt_page_add_name(out, report->policy);
    if (covered) {
        mt_buf_add_text(out, " \xC2\xB7 exact: ");
        mt_report_add_covered(out, covered);
    }
    mt_buf_add_text(out, "</footer>\n");
}

static void assemble(struct writer *writer, struct mt_buf *out, const struct mt_buf *verdict,
                     const struct mt_buf *top)
{
    mt_buf_add_text(out, "<nav class=\"page-nav\"><div>");
    mt_buf_add(out, writer->nav.data, writer->nav.length);
    mt_buf_add_text(out, "<span id=\"tools\"></span></div></nav>\n");
    mt_page_add_title(out, writer->report);
    mt_buf_add_text(out, "<main>\n");
    mt_buf_add(out, verdict->data, verdict->length);
    mt_buf_add(out, writer->first.data, writer->first.length);
    mt_buf_add(out, top->data, top->length);
    mt_buf_add(out, writer->main.data, writer->main.length);
    mt_buf_add_text(out, "</main>\n");
    add_footer(out, writer->report);
    add_data(writer, out);
    mt_buf_add_text(out, "</body></html>\n");
}

/* Room for the history in a page for notebooks beside `bytes` of other parts, the head and the
 * script. */
static size_t small_room(const struct writer *writer, size_t bytes)
{
    const size_t head = MT_REPORT_HTML_BYTES - END_BYTES - writer->left;

    return mt_sub_or_0_u64(MT_REPORT_SMALL_BYTES, head + bytes + SMALL_END_BYTES);
}

/* A page for notebooks: the script draws the timeline and the icicle. */
static void add_only(struct writer *writer)
{
    const struct mt_device_report *device = writer->page->only;
    const unsigned number = device->device;
    struct mt_buf *out = &writer->main, live = {0};

    writer->devices_left = 1;
    mt_buf_printf(&writer->first,
                  "<div class=\"first\"><figure class=\"chart\" id=\"timeline-%u\" "
                  "data-chart=\"timeline\"></figure><aside id=\"side-%u\">\n",
                  number, number);
    if (device == mt_worst_device(writer->report))
        mt_page_add_answers(&writer->first, writer->report, false);
    mt_buf_add_text(&writer->first, "</aside></div>\n");
    mt_page_add_live_table(&live, device);
    writer->data_left = small_room(writer, writer->first.length + live.length);
    mt_buf_printf(out, "<section id=\"device-%u\">\n", number);
    add_history(writer, device, out);
    mt_buf_printf(out, "<h3 class=\"alive\" id=\"alive-%u\">Alive at the allocated peak</h3>\n",
                  number);
    mt_buf_add(out, live.data, live.length);
    mt_buf_add_text(out, "</section>\n");
    mt_buf_release(&live);
}

static void add_parts(struct writer *writer, struct mt_buf *verdict, struct mt_buf *top)
{
    if (writer->page->only) {
        add_only(writer);
        return;
    }
    add_findings(writer, top);
    add_rules(writer, top);
    if (!mt_page_take_room(&writer->left, verdict->length + top->length))
        mt_buf_reset(top);
    add_devices(writer);
    add_answer(writer);
}

void mt_report_html_add(struct mt_buf *out, const struct mt_report_html *page)
{
    struct writer writer = {.page = page,
                            .report = page->report,
                            .script = page->only ? mt_notebook_js : mt_page_js,
                            .data_left = DATA_BYTES};
    const struct mt_page_head facts = {"memtrace", page->report->name, mt_page_css};
    struct mt_buf head = {0}, verdict = {0}, top = {0};

    mt_page_add_head(&head, &facts, &writer.policy);
    mt_page_policy_allow_script(&writer.policy, writer.script);
    writer.left = MT_REPORT_HTML_BYTES - END_BYTES - strlen(writer.script) - head.length;
    add_gates(&writer, &verdict);
    add_parts(&writer, &verdict, &top);
    mt_page_add_start(out, &writer.policy);
    mt_buf_add(out, head.data, head.length);
    assemble(&writer, out, &verdict, &top);
    mt_page_policy_release(&writer.policy);
    mt_buf_release(&head);
    mt_buf_release(&verdict);
    mt_buf_release(&top);
    mt_buf_release(&writer.main);
    mt_buf_release(&writer.first);
    mt_buf_release(&writer.nav);
    mt_buf_release(&writer.parts);
    mt_buf_release(&writer.data);
}
