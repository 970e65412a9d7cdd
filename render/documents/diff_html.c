/* The page about two runs. It is made in parts, as the page about one run: histories take their
 * room first, then tables, the answer and still pictures. */
#include <string.h>

#include "backends.h"
#include "chart.h"
#include "chart_frame.h"
#include "diff_chart.h"
#include "document_tables.h"
#include "escape.h"
#include "module_table.h"
#include "page_assets.h"
#include "page_head.h"
#include "report_html.h"
#include "report_page.h"
#include "report_query.h"
#include "theme.h"
#include "units.h"
#include "util.h"

enum {
    DATA_BYTES = 300000, /* limit for the history of a run */
    ANSWER_BYTES = 60000,
    END_BYTES = 16000,  /* reserved for headings and notes */
    NAME_COLUMNS = 160, /* as page_data.c: the script compares these texts */
    MAX_TABLE_ROWS = 300,
    MAX_DATA_ROWS = 400,
    MAX_MOVED_SITES = 2000
};

struct writer {
    const struct mt_diff_html *page;
    const struct mt_diff *diff;
    const struct mt_device_diff *device;
    struct mt_page_policy policy;
    struct mt_arena arena;
    struct mt_buf nav, main, data;
    size_t left; /* bytes that are still free */
};

unsigned mt_diff_html_models(void)
{
    return MT_MODEL_TIMELINE | MT_MODEL_HISTORY | MT_MODEL_MODULES;
}

/* Names of both runs; their paths if the names are equal. */
static const char *name_of(const struct mt_diff *diff, bool is_a)
{
    const struct mt_report *report = is_a ? diff->a : diff->b, *other = is_a ? diff->b : diff->a;
    bool is_known = report->path && *report->path;

    if (strcmp(report->name, other->name) == 0 && is_known)
        return report->path;
    return *report->name ? report->name : "trace";
}

/* Sums of a table; or the sum of the rows that have no line. */
static struct mt_diff_row sum_of(const struct mt_diff_rows *rows, uint32_t first)
{
    struct mt_diff_row sum = {.label = first ? "all others together" : "in total", .phase = ""};

    for (uint32_t i = first; i < rows->count; i++) {
        sum.a_bytes += rows->rows[i].a_bytes;
        sum.b_bytes += rows->rows[i].b_bytes;
        sum.a_blocks += rows->rows[i].a_blocks;
        sum.b_blocks += rows->rows[i].b_blocks;
    }
    return sum;
}

static void add_amounts(struct mt_table *table, const struct mt_diff_row *row)
{
    MT_CELLS(table, MT_CHANGE(mt_diff_change(row)), MT_BYTES(row->a_bytes), MT_BYTES(row->b_bytes),
             MT_COUNT(row->a_blocks), MT_COUNT(row->b_blocks));
}

static const char *mark_of(const struct mt_diff_row *row)
{
    return !row->a_blocks ? "new" : !row->b_blocks ? "gone" : row->moved ? "moved" : "";
}

static void add_site(struct mt_table *table, const struct mt_diff_row *row, bool is_sum)
{
    add_amounts(table, row);
    if (is_sum)
        mt_table_skip(table, 3);
    else
        MT_CELLS(table, MT_TEXT(mark_of(row)),
                 MT_TEXT(row->several_roles ? "several" : mt_role_name(row->role)),
                 MT_TEXT(*row->phase ? row->phase : "no phase"));
    MT_CELLS(table, MT_SITE(row->label));
}

static void add_sites_table(struct mt_buf *out, const struct mt_diff_rows *rows)
{
    uint32_t shown = rows->count < MAX_TABLE_ROWS ? rows->count : MAX_TABLE_ROWS;
    struct mt_table table;

    mt_table_begin(&table, "#change|#A|#B|#blocks A|#blocks B||role|allocated in|~site");
    for (uint32_t i = 0; i < shown; i++)
        add_site(&table, &rows->rows[i], false);
    if (shown < rows->count) {
        const struct mt_diff_row others = sum_of(rows, shown);

        add_site(&table, &others, true);
    }
    mt_html_table_add(out, &table, &(struct mt_html_table){"sortable", "sites", 0, 0});
}

static void add_names_table(struct mt_buf *out, const struct mt_diff_rows *rows, const char *name,
                            const char *titles)
{
    struct mt_table table;

    mt_table_begin(&table, titles);
    for (uint32_t i = 0; i < rows->count && i < MAX_TABLE_ROWS; i++) {
        const char *label = rows->rows[i].label;

        add_amounts(&table, &rows->rows[i]);
        MT_CELLS(&table, MT_TEXT(*label ? label : "no phase"));
    }
    mt_html_table_add(
        out, &table,
        &(struct mt_html_table){"sortable", name, 0, mt_sub_or_0_u64(rows->count, MAX_TABLE_ROWS)});
}

static void add_reserved_row(struct mt_table *table, uint64_t a, uint64_t b, const char *label)
{
    MT_CELLS(table, MT_CHANGE((int64_t)(b - a)), MT_BYTES(a), MT_BYTES(b));
    mt_table_skip(table, 2);
    MT_CELLS(table, MT_TEXT(label));
}

/* Allocated memory and the unused memory of segments, which are the reserved memory. */
static void add_reserved_table(struct mt_buf *out, const struct mt_device_diff *device)
{
    const struct mt_answer *a = device->a->answer, *b = device->b->answer;
    const struct mt_diff_rows *rows = &device->free_uses;
    struct mt_table table;

    mt_table_begin(&table, "#change|#A|#B|#segments A|#segments B|reserved memory");
    add_reserved_row(&table, a->instant.bytes.allocated, b->instant.bytes.allocated, "allocated");
    if (a->waiting_bytes || b->waiting_bytes)
        add_reserved_row(&table, a->waiting_bytes, b->waiting_bytes,
                         "freed, but possibly still in use on other streams");
    for (uint32_t i = 0; i < rows->count && i < MAX_TABLE_ROWS; i++) {
        add_amounts(&table, &rows->rows[i]);
        MT_CELLS(&table, MT_TEXT(rows->rows[i].label));
    }
    if (rows->count > MAX_TABLE_ROWS) {
        const struct mt_diff_row others = sum_of(rows, MAX_TABLE_ROWS);

        add_amounts(&table, &others);
        MT_CELLS(&table, MT_TEXT(others.label));
    }
    add_reserved_row(&table, a->instant.bytes.reserved, b->instant.bytes.reserved, "in total");
    mt_html_table_add(out, &table, &(struct mt_html_table){"", "reserved", 0, 0});
}

/* "A 6.44 GiB (6,910,168,576 B) + 12.7 MiB (+13,340,672 B) = B 6.45 GiB (6,923,509,248 B)" */
static void add_sum_line(struct mt_buf *out, const struct mt_device_diff *device)
{
    const uint64_t a = device->a->answer->instant.bytes.allocated;
    const uint64_t b = device->b->answer->instant.bytes.allocated;
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "A holds %s (%s B). ", mt_format_bytes(text, a),
                  mt_format_count(exact, a));
    mt_buf_printf(&line, "The changes add up to %s (%s%s B). ",
                  mt_format_change(text, (int64_t)(b - a)),
                  b > a   ? "+"
                  : b < a ? "\xE2\x88\x92"
                          : "",
                  mt_format_count(exact, b > a ? b - a : a - b));
    mt_buf_printf(&line, "B holds %s (%s B).", mt_format_bytes(text, b), mt_format_count(exact, b));
    mt_buf_add_text(out, "<p>");
    mt_page_add_words(out, line.data);
    mt_buf_add_text(out, "</p>\n");
    mt_buf_release(&line);
}

static void add_tables(struct writer *writer)
{
    struct mt_buf part = {0};

    mt_buf_add_text(&part, "<h2 id=\"tables\">Differences at the compared instants</h2>\n");
    add_sum_line(&part, writer->device);
    mt_buf_add_text(&part, "<h3>By role</h3>\n");
    add_names_table(&part, &writer->device->roles, "roles",
                    "#change|#A|#B|#blocks A|#blocks B|role");
    if (!writer->diff->a->is_driver_level && !writer->diff->b->is_driver_level) {
        mt_buf_add_text(&part, "<h3>Reserved</h3>\n");
        add_reserved_table(&part, writer->device);
    }
    mt_buf_add_text(&part, "<h3>By the phase of allocation</h3>\n");
    add_names_table(&part, &writer->device->phases, "phases",
                    "#change|#A|#B|#blocks A|#blocks B|allocated in");
    mt_buf_add_text(&part, "<h3>By site</h3>\n");
    add_sites_table(&part, &writer->device->sites);
    if (mt_page_take_room(&writer->left, part.length)) {
        mt_page_add_link(&writer->nav, "tables", "Tables");
        mt_buf_add(&writer->main, part.data, part.length);
    } else {
        mt_buf_add_text(&writer->main, "<p class=\"omitted\">This page has no room for the tables: "
                                       "memtrace diff prints them.</p>\n");
    }
    mt_buf_release(&part);
}

static void add_figure(struct writer *writer, struct mt_buf *out, struct mt_drawing *drawing,
                       const char *id)
{
    struct mt_buf svg = {0}, style = {0};

    drawing->id = id;
    mt_svg_write(drawing, MT_THEME_AUTO, &svg);
    mt_svg_add_style(drawing, MT_THEME_AUTO, &style);
    if (mt_page_take_room(&writer->left, svg.length + MT_PAGE_HASH_BYTES)) {
        mt_buf_printf(out, "<figure class=\"chart\" id=\"%s\">\n", id);
        mt_buf_add(out, svg.data, svg.length);
        mt_buf_add_text(out, "</figure>\n");
        mt_page_policy_allow_style(&writer->policy, style.data);
    } else {
        mt_buf_printf(out, "<figure class=\"chart\" id=\"%s\"></figure>\n", id);
    }
    mt_buf_release(&svg);
    mt_buf_release(&style);
    mt_drawing_release(drawing);
}

static void add_timeline(struct writer *writer, struct mt_buf *out, bool is_a)
{
    const struct mt_report *report = is_a ? writer->diff->a : writer->diff->b;
    const struct mt_device_report *device = is_a ? writer->device->a : writer->device->b;
    const struct mt_chart_options options = {.event_axis = mt_is_shown_by_event(report, device)};
    struct mt_drawing drawing;

    memset(&drawing, 0, sizeof drawing);
    mt_chart_find("timeline")->draw(report, device, &options, &drawing);
    add_figure(writer, out, &drawing, is_a ? "timeline-a" : "timeline-b");
}

static void add_picture(struct writer *writer)
{
    const struct mt_diff_view view = {writer->diff, writer->device, writer->page->question};
    const struct mt_chart_options options = {.width = 0};
    struct mt_drawing drawing;

    mt_diff_draw(&view, &options, &drawing);
    mt_page_add_link(&writer->nav, "diff", "Picture");
    add_figure(writer, &writer->main, &drawing, "diff");
}

static void add_text(struct mt_buf *out, const char *text)
{
    if (text)
        mt_escape_add_script_string(out, text, NAME_COLUMNS);
    else
        mt_buf_add_text(out, "null");
}

static void add_data_row(struct mt_buf *out, bool is_first, const struct mt_diff_row *row,
                         const char *label)
{
    mt_buf_add_text(out, is_first ? "[" : ",[");
    add_text(out, label);
    mt_buf_printf(out, ",%llu,%llu,%llu,%llu,%d,", (unsigned long long)row->a_bytes,
                  (unsigned long long)row->b_bytes, (unsigned long long)row->a_blocks,
                  (unsigned long long)row->b_blocks, row->several_roles ? -1 : (int)row->role);
    add_text(out, row->phase);
    mt_buf_add_char(out, ']');
}

/* The rows of the comparison, and the sum of those that are left out. */
static void add_data_rows(struct mt_buf *out, const char *name, const struct mt_diff_rows *rows)
{
    uint32_t shown = rows->count < MAX_DATA_ROWS ? rows->count : MAX_DATA_ROWS;

    mt_buf_printf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < shown; i++)
        add_data_row(out, i == 0, &rows->rows[i], rows->rows[i].label);
    if (shown < rows->count) {
        struct mt_diff_row others = sum_of(rows, shown);

        others.several_roles = true;
        add_data_row(out, false, &others, NULL);
    }
    mt_buf_add_char(out, ']');
}

/* The rows of both tables of modules: [label, bytes, blocks] of A, then of B. They belong to the
 * allocated peak. */
static void add_modules(struct writer *writer, struct mt_buf *out)
{
    const struct mt_device_report *devices[] = {writer->device->a, writer->device->b};

    mt_buf_add_text(out, ",\"modules\":[");
    for (size_t side = 0; side < 2; side++) {
        const struct mt_modules *modules = devices[side]->modules;

        mt_buf_add_text(out, side ? ",[" : "[");
        for (uint32_t i = 0; modules && modules->layer_count && i < modules->row_count; i++) {
            mt_buf_add_text(out, i ? ",[" : "[");
            add_text(out, modules->rows[i].label);
            mt_buf_printf(out, ",%llu,%llu]", (unsigned long long)modules->rows[i].bytes,
                          (unsigned long long)modules->rows[i].blocks);
        }
        mt_buf_add_char(out, ']');
    }
    mt_buf_add_char(out, ']');
}

static void add_moved_sites(struct writer *writer, struct mt_buf *out)
{
    struct mt_moved_sites moved;

    mt_diff_moved_sites(&writer->arena, writer->diff, writer->device, &moved);
    mt_buf_add_text(out, ",\"moved\":[");
    for (uint32_t i = 0; i < moved.count && i < MAX_MOVED_SITES; i++) {
        mt_buf_add_text(out, i ? ",[" : "[");
        add_text(out, moved.list[i].phase);
        mt_buf_add_char(out, ',');
        add_text(out, moved.list[i].a);
        mt_buf_add_char(out, ',');
        add_text(out, moved.list[i].b);
        mt_buf_add_char(out, ']');
    }
    mt_buf_add_char(out, ']');
}

/* The length of the longer run, or 0: without times in one of them, both are shown by events. */
static uint64_t length_of(const struct mt_diff *diff)
{
    if (!mt_report_has_times(diff->a) || !mt_report_has_times(diff->b) || diff->a->is_dry_run ||
        diff->b->is_dry_run)
        return 0;
    return mt_max_u64(diff->a->last_t_ns - diff->a->first_t_ns,
                      diff->b->last_t_ns - diff->b->first_t_ns);
}

static void add_facts(struct writer *writer, struct mt_buf *out)
{
    const struct mt_device_diff *device = writer->device;
    const struct mt_instant *a = &device->a->answer->instant, *b = &device->b->answer->instant;

    mt_buf_printf(out, "{\"end\":%llu", (unsigned long long)length_of(writer->diff));
    mt_page_add_roles(out);
    mt_buf_add_text(out, ",\"names\":[");
    add_text(out, name_of(writer->diff, true));
    mt_buf_add_char(out, ',');
    add_text(out, name_of(writer->diff, false));
    mt_buf_printf(out, "],\"is_peak\":%d,\"at\":[%llu,%llu],\"reserved\":[%llu,%llu]",
                  writer->page->question->at == MT_AT_PEAK, (unsigned long long)a->event,
                  (unsigned long long)b->event, (unsigned long long)a->bytes.reserved,
                  (unsigned long long)b->bytes.reserved);
    add_data_rows(out, "by_role", &device->roles);
    add_data_rows(out, "by_phase", &device->phases);
    add_data_rows(out, "by_site", &device->sites);
    add_modules(writer, out);
    add_moved_sites(writer, out);
}

/* Adds what diff.js reads, or nothing if there is no room: {"end": length of the axis in ns or 0,
 * "roles", "stack": as on the page of a run, "names": [A, B], "is_peak": 0 or 1, "at" and
 * "reserved": the events and bytes of the compared instants, [A, B], "by_role", "by_phase",
 * "by_site": [[name or null (all others), bytes of A, of B, blocks of A, of B, role or -1, phase],
 * ...] at these instants, "modules": [[[name, bytes, blocks], ...] of A, of B] at the peaks,
 * "moved": [[phase, site of A, site of B or null], ...], "devices": [A, B]} with the
 * histories of page_data.c. */
static void add_data(struct writer *writer)
{
    const struct mt_device_diff *device = writer->device;
    struct mt_buf part = {0}, a = {0}, b = {0};
    bool has_blocks = false;

    add_facts(writer, &part);
    mt_page_add_data(&a, writer->diff->a, device->a, DATA_BYTES, &has_blocks);
    mt_page_add_data(&b, writer->diff->b, device->b, DATA_BYTES, &has_blocks);
    if (a.length && b.length &&
        mt_page_take_room(&writer->left, part.length + a.length + b.length)) {
        mt_buf_add(&writer->data, part.data, part.length);
        mt_buf_add_text(&writer->data, ",\"devices\":[");
        mt_buf_add(&writer->data, a.data, a.length);
        mt_buf_add_text(&writer->data, ",\n");
        mt_buf_add(&writer->data, b.data, b.length);
        mt_buf_add_text(&writer->data, "]}");
    }
    mt_buf_release(&part);
    mt_buf_release(&a);
    mt_buf_release(&b);
}

static void add_header(struct writer *writer, struct mt_buf *out)
{
    const struct mt_report *reports[] = {writer->diff->a, writer->diff->b};

    mt_buf_add_text(out, "<header class=\"page-head\"><h1>");
    mt_page_add_name(out, name_of(writer->diff, true));
    mt_buf_add_text(out, " \xE2\x86\x92 ");
    mt_page_add_name(out, name_of(writer->diff, false));
    mt_buf_add_text(out, "</h1>\n");
    for (size_t side = 0; side < 2; side++) {
        const struct mt_device_report *device = !writer->device ? NULL
                                                : side          ? writer->device->b
                                                                : writer->device->a;
        struct mt_drawing words;

        mt_drawing_init(&words, 1, 1, "words");
        mt_buf_printf(out, "<p class=\"facts\"><strong>%c</strong> ", side ? 'B' : 'A');
        mt_page_add_name(out, name_of(writer->diff, side == 0));
        if (device && (reports[side]->device_count > 1 ||
                       writer->device->a->device != writer->device->b->device))
            mt_buf_printf(out, ", device %u", (unsigned)device->device);
        mt_buf_add_text(out, " \xC2\xB7 ");
        mt_page_add_name(out, mt_chart_frame_facts(&words, reports[side], device));
        mt_buf_add_text(out, "</p>\n");
        mt_drawing_release(&words);
    }
    mt_buf_add_text(out, "</header>\n");
}

/* The reserved peak is at another instant than the allocated one, and is what a card must have. */
static void add_reserved_peaks(const struct writer *writer, struct mt_buf *line)
{
    const struct mt_device_report *a = writer->device->a, *b = writer->device->b;
    char before[MT_UNITS_TEXT], after[MT_UNITS_TEXT];

    if (mt_knows_reserved(writer->diff->a) && mt_knows_reserved(writer->diff->b))
        mt_buf_printf(line, "; reserved peak %s in A, %s in B",
                      mt_format_bytes(before, a->reserved_peak.bytes),
                      mt_format_bytes(after, b->reserved_peak.bytes));
}

/* "+12.7 MiB allocated, +3.08 GiB reserved" and the properties that may be the cause. */
static void add_verdict(struct writer *writer, struct mt_buf *out)
{
    const struct mt_bytes *a = &writer->device->a->answer->instant.bytes;
    const struct mt_bytes *b = &writer->device->b->answer->instant.bytes;
    char change[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "From A to B%s: %s allocated",
                  writer->page->question->at == MT_AT_PEAK ? " at the allocated peaks" : "",
                  mt_format_change(change, (int64_t)(b->allocated - a->allocated)));
    if (mt_knows_reserved(writer->diff->a) && mt_knows_reserved(writer->diff->b))
        mt_buf_printf(&line, ", %s reserved",
                      mt_format_change(change, (int64_t)(b->reserved - a->reserved)));
    add_reserved_peaks(writer, &line);
    mt_buf_add_text(out, "<p id=\"verdict\" class=\"verdict\">");
    mt_page_add_words(out, line.data);
    mt_buf_add_text(out, "</p>\n");
    mt_buf_release(&line);
    for (size_t i = 0; i < writer->diff->run_count; i++) {
        const struct mt_run_difference *run = &writer->diff->runs[i];

        mt_buf_printf(out, "<p class=\"differs\">The runs differ in %s: ", run->what);
        mt_page_add_name(out, run->a);
        mt_buf_add_text(out, " in A, ");
        mt_page_add_name(out, run->b);
        mt_buf_add_text(out, " in B.</p>\n");
    }
    if (writer->diff->device_count > 1)
        mt_buf_printf(out,
                      "<p class=\"small\">This page shows the device that reserved the most in B, "
                      "one of %u. For another device N run <code>memtrace diff A B --device N -o "
                      "DIR</code>.</p>\n",
                      (unsigned)writer->diff->device_count);
}

static void add_answer(struct writer *writer)
{
    struct mt_buf text = {0};

    mt_escape_add_xml(&text, writer->page->answer ? writer->page->answer : "");
    if (text.length && text.length <= ANSWER_BYTES &&
        mt_page_take_room(&writer->left, text.length)) {
        mt_page_add_link(&writer->nav, "words", "In words");
        mt_buf_add_text(&writer->main, "<h2 id=\"words\">In words</h2>\n<pre>");
        mt_buf_add(&writer->main, text.data, text.length);
        mt_buf_add_text(&writer->main, "</pre>\n");
    }
    mt_buf_release(&text);
}

/* Whether there is more than one instant of a run. */
static bool has_history(const struct mt_report *report, const struct mt_device_report *device)
{
    return device->history && device->timeline && !mt_is_one_instant(report, device);
}

static void add_timelines(struct writer *writer)
{
    struct mt_buf *out = &writer->main, stills = {0};

    add_data(writer);
    add_timeline(writer, &stills, true);
    add_timeline(writer, &stills, false);
    mt_page_add_link(&writer->nav, "timelines", "Timelines");
    mt_buf_add_text(out, "<div class=\"first compared\" id=\"timelines\"><div class=\"pair\">\n");
    mt_buf_add(out, stills.data, stills.length);
    mt_buf_add_text(out, "</div><aside id=\"side\"></aside></div>\n");
    mt_buf_release(&stills);
    if (writer->data.length)
        mt_page_add_link(&writer->nav, "union", "Call stacks");
    else
        mt_buf_add_text(out, "<p class=\"omitted\">This page has no room for both histories, so it "
                             "shows only the compared instants.</p>\n");
    mt_buf_add_text(out, "<section id=\"union\"></section>\n");
}

static void add_comparison(struct writer *writer)
{
    add_verdict(writer, &writer->main);
    if (has_history(writer->diff->a, writer->device->a) &&
        has_history(writer->diff->b, writer->device->b))
        add_timelines(writer);
    else
        mt_buf_add_text(&writer->main, "<p class=\"omitted\">One of the runs has no history, so "
                                       "this page shows only the compared instants.</p>\n");
    add_tables(writer);
    add_picture(writer);
}

/* The scale of changes: less, the same, more. */
static void add_scale(struct mt_buf *out, enum mt_theme theme)
{
    for (unsigned i = 0; MT_COLOR_CHANGE_0 + i <= MT_COLOR_CHANGE_LAST; i++) {
        enum mt_color color = (enum mt_color)(MT_COLOR_CHANGE_0 + i);

        mt_buf_printf(out, ".change%u{background:#%06x;color:#%06x}", i,
                      (unsigned)mt_theme_rgb(theme, color),
                      (unsigned)mt_theme_rgb(theme, mt_theme_text_on(color)));
    }
}

static void add_sheet(struct mt_buf *css)
{
    add_scale(css, MT_THEME_LIGHT);
    mt_buf_add_text(css, "@media(prefers-color-scheme:dark){");
    add_scale(css, MT_THEME_DARK);
    mt_buf_add_text(css, "}\n");
    mt_buf_add_text(css, mt_diff_css);
}

static void assemble(struct writer *writer, struct mt_buf *out, const struct mt_buf *head)
{
    mt_page_add_start(out, &writer->policy);
    mt_buf_add(out, head->data, head->length);
    mt_buf_add_text(out, "<nav class=\"page-nav\"><div>");
    mt_buf_add(out, writer->nav.data ? writer->nav.data : "", writer->nav.length);
    mt_buf_add_text(out, "<span id=\"tools\"></span></div></nav>\n");
    add_header(writer, out);
    mt_buf_add_text(out, "<main>\n");
    mt_buf_add(out, writer->main.data, writer->main.length);
    mt_buf_add_text(out, "</main>\n<footer>memtrace \xC2\xB7 A ");
    mt_page_add_name(out, writer->diff->a->path ? writer->diff->a->path : writer->diff->a->name);
    mt_buf_add_text(out, " \xC2\xB7 B ");
    mt_page_add_name(out, writer->diff->b->path ? writer->diff->b->path : writer->diff->b->name);
    mt_buf_add_text(out, "</footer>\n<script type=\"application/json\" id=\"mt-data\">");
    mt_buf_add_text(out, writer->data.length ? writer->data.data : "null");
    mt_buf_add_text(out, "</script>\n<script>");
    mt_buf_add_text(out, mt_diff_js);
    mt_buf_add_text(out, "</script>\n</body></html>\n");
}

void mt_diff_html_add(struct mt_buf *out, const struct mt_diff_html *page)
{
    struct writer writer = {.page = page, .diff = page->diff, .device = page->device};
    struct mt_buf head = {0}, css = {0};
    const char *name = mt_arena_printf(&writer.arena, "%s \xE2\x86\x92 %s",
                                       name_of(page->diff, true), name_of(page->diff, false));

    add_sheet(&css);
    mt_page_add_head(&head, &(struct mt_page_head){"memtrace", name, css.data}, &writer.policy);
    mt_page_policy_allow_script(&writer.policy, mt_diff_js);
    writer.left = MT_REPORT_HTML_BYTES - END_BYTES - strlen(mt_diff_js) - head.length;
    if (page->device)
        add_comparison(&writer);
    else
        mt_buf_add_text(&writer.main,
                        "<p id=\"verdict\" class=\"verdict\">No device has memory events in both "
                        "runs.</p>\n");
    add_answer(&writer);
    assemble(&writer, out, &head);
    mt_page_policy_release(&writer.policy);
    mt_arena_release(&writer.arena);
    mt_buf_release(&head);
    mt_buf_release(&css);
    mt_buf_release(&writer.nav);
    mt_buf_release(&writer.main);
    mt_buf_release(&writer.data);
}
