/* Names of a trace in Markdown and XML: they are always escaped, and the page is bounded in size.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "junit.h"
#include "report_page.h"
#include "summary_md.h"

static char *markdown(const char *text, size_t columns)
{
    static struct mt_buf out;

    mt_buf_reset(&out);
    mt_escape_add_markdown(&out, text, columns);
    mt_buf_add_text(&out, "");
    return out.data;
}

TEST(names_cannot_add_markup)
{
    static const struct {
        const char *name, *written;
    } cases[] = {{"forward train.py:47", "forward train.py:47"},
                 {"a|b", "a&#124;b"},
                 {"<script>", "&#60;script&#62;"},
                 {"&lt;", "&#38;lt;"},
                 {"**b** _i_ `c` ~~s~~",
                  "&#42;&#42;b&#42;&#42; &#95;i&#95; &#96;c&#96; &#126;&#126;s&#126;&#126;"},
                 {"[x](y)!", "&#91;x&#93;(y)&#33;"},
                 {"\\|", "&#92;&#124;"},
                 {"@team", "&#64;&#8203;team"},
                 {"x#12", "x&#35;&#8203;12"},
                 {"https://x.y", "https&#58;//x.y"},
                 {"www.x.y", "www&#46;x.y"},
                 {"a\nb\tc\rd\x1b[31m\x7f", "a b c&#92;x0dd&#92;x1b&#91;31m&#92;x7f"},
                 {"a\xE2\x80\xAE"
                  "b\xE2\x80\x8B"
                  "c\xC2\x9B",
                  "a&#92;u202eb&#92;u200bc&#92;u009b"},
                 {"\xC3\xA9\xFF", "\xC3\xA9&#92;xff"},
                 {"", ""}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(markdown(cases[i].name, 100), cases[i].written);
    assert_string_equal(markdown("abcdef", 3), "abc...");
    assert_string_equal(markdown("abc", 3), "abc");
}

TEST(names_are_escaped_in_xml)
{
    struct mt_buf out = {0};

    mt_escape_add_xml(&out, "a<b>&\"c\"]]>\x01\x1b\xFF\xEF\xBF\xBE\n");
    assert_string_equal(out.data, "a&lt;b&gt;&amp;&quot;c&quot;]]&gt;\\x01\\x1b\\xff\\ufffe\n");
    mt_buf_reset(&out);
    mt_escape_add_xml_line(&out, "a\n::set-output name=b::c\t\xE2\x80\xAE");
    assert_string_equal(out.data, "a\\x0a\\x3a:set-output name=b::c\\x09\\u202e");
    mt_buf_release(&out);
}

#define HOSTILE "@all|<img src=x>`\n\n# h\n--> ]]> &amp; www.x.y \x1b[0m"

static struct mt_gate_rule rule = {.kind = MT_GATE_PEAK, .metric = MT_METRIC_RESERVED};
static struct mt_gate_result *results;
static struct mt_site_use *sites;
static struct mt_finding finding = {.id = "x", .title = HOSTILE, .advice = HOSTILE};
static struct mt_device_report *devices;
static struct mt_report report;
static struct mt_gates gates;

static void make(uint32_t device_count, size_t gate_count, const char *name)
{
    results = calloc(gate_count, sizeof *results);
    devices = calloc(device_count, sizeof *devices);
    sites = calloc(100, sizeof *sites);
    assert_true(results && devices && sites);
    for (size_t i = 0; i < 100; i++)
        sites[i] = (struct mt_site_use){.site = name, .phase = name, .bytes = 1, .blocks = 1};
    for (size_t i = 0; i < gate_count; i++)
        results[i] = (struct mt_gate_result){.rule = &rule,
                                             .state = MT_GATE_FAIL,
                                             .name = name,
                                             .verdict = name,
                                             .culprit = name,
                                             .advice = name};
    for (uint32_t i = 0; i < device_count; i++) {
        devices[i].device = (uint16_t)i;
        devices[i].peak_sites = sites;
        devices[i].peak_site_count = 100;
        devices[i].findings = &finding;
        devices[i].finding_count = 1;
    }
    report = (struct mt_report){.name = name, .devices = devices, .device_count = device_count};
    gates = (struct mt_gates){.results = results, .count = gate_count, .verdict = MT_GATE_FAIL};
    gates.states[MT_GATE_FAIL] = gate_count;
}

static void release(void)
{
    free(results);
    free(devices);
    free(sites);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

TEST(names_cannot_add_markup_to_a_summary)
{
    struct mt_buf out = {0};

    make(1, 1, HOSTILE);
    mt_summary_md_add(&out, &report, &gates, NULL);
    assert_false(out.failed);
    assert_null(strstr(out.data, "@"));
    assert_null(strstr(out.data, "<img"));
    assert_null(strstr(out.data, "\n# h"));
    assert_null(strstr(out.data, "\x1b"));
    assert_int_equal(count_of(out.data, "-->"), 1); /* of the marker */
    assert_int_equal(count_of(out.data, "<code>"), count_of(out.data, "</code>"));
    assert_int_equal(strncmp(out.data, "### memtrace: FAIL: ", 20), 0);
    /* each row of the table of holders has four cells */
    assert_int_equal(count_of(out.data, "| 1 B | 1 | "), 10);
    mt_buf_release(&out);
    release();
}

TEST(a_summary_is_bounded_in_size)
{
    struct mt_buf out = {0};
    char name[3000];

    memset(name, '@', sizeof name); /* thirteen bytes each */
    name[sizeof name - 1] = '\0';
    make(64, 200, name);
    mt_summary_md_add(&out, &report, &gates, NULL);
    assert_false(out.failed);
    assert_true(out.length <= MT_SUMMARY_BYTES);
    assert_non_null(strstr(out.data, "rows omitted"));
    assert_non_null(strstr(out.data, " of 64 devices are shown; "));
    assert_non_null(strstr(out.data, "<!-- memtrace:"));
    mt_buf_release(&out);
    release();
}

/* Many steps as high as the lowest step of the table must not displace a higher one. */
TEST(the_highest_step_is_shown)
{
    struct mt_step_use *steps = calloc(300, sizeof *steps);
    struct mt_phase *phases = calloc(300, sizeof *phases);
    const struct mt_report no_times = {.name = "run", .phases = phases, .phase_count = 300};
    const struct mt_device_report device = {.steps = steps, .step_count = 300};
    struct mt_buf out = {0};

    assert_true(steps && phases);
    for (uint32_t i = 0; i < 300; i++) {
        steps[i].step = i;
        steps[i].phase = (int32_t)i;
        steps[i].peak.allocated = i == 299 ? 2048 : 1024;
    }
    mt_page_add_steps_table(&out, &no_times, &device);
    assert_false(out.failed);
    assert_int_equal(count_of(out.data, "<tr><td"), 100);
    assert_int_equal(count_of(out.data, "2.00 KiB"), 1);
    assert_int_equal(count_of(out.data, "200 rows omitted"), 1);
    mt_buf_release(&out);
    free(steps);
    free(phases);
}

TEST(junit_counts_its_cases)
{
    struct mt_buf out = {0};

    make(1, 4, HOSTILE);
    results[1].state = MT_GATE_NOT_EVALUATED;
    results[2].state = MT_GATE_NOT_EVALUATED;
    results[2].excused = true;
    results[3].state = MT_GATE_PASS;
    memset(gates.states, 0, sizeof gates.states);
    gates.states[MT_GATE_FAIL] = gates.states[MT_GATE_NOT_EVALUATED] = 1;
    gates.states[MT_GATE_PASS] = gates.excused = 1;
    mt_junit_add(&out, &report, &gates);
    assert_non_null(strstr(out.data, "tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\""));
    assert_int_equal(count_of(out.data, "<testcase "), 4);
    assert_int_equal(count_of(out.data, "<failure "), 2);
    assert_int_equal(count_of(out.data, "<skipped "), 1);
    assert_null(strstr(out.data, "<img"));
    assert_null(strstr(out.data, "\x1b"));
    assert_int_equal(count_of(out.data, "]]>"), 0);
    mt_buf_release(&out);
    release();
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
