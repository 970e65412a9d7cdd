/* JUnit XML has no common schema. GitLab shows the body of a failure but not its message, and other
 * programs show the message, so the verdict is in both. Names of cases contain no measured values,
 * because programs identify the history of a case by its name. */
#include "junit.h"

#include <stdio.h>

#include "escape.h"

static void add_line(struct mt_buf *out, const char *title, const char *text)
{
    if (!text)
        return;
    mt_buf_add_char(out, '\n');
    mt_buf_add_text(out, title);
    mt_escape_add_xml_line(out, text);
}

static void add_told(struct mt_buf *out, const struct mt_gate_result *result)
{
    mt_escape_add_xml_line(out, result->verdict);
    add_line(out, "cause: ", result->culprit);
    add_line(out, "try: ", result->advice);
}

void mt_add_junit_failure(struct mt_buf *out, const struct mt_gate_result *result)
{
    mt_buf_add_text(out, "\n      <failure");
    mt_add_xml_attribute(out, "type", result->state == MT_GATE_FAIL ? "budget" : "not-evaluated");
    mt_add_xml_attribute(out, "message", result->verdict);
    mt_buf_add_char(out, '>');
    add_told(out, result);
    mt_buf_add_text(out, "</failure>\n    ");
}

static void add_case(struct mt_buf *out, const char *class_name,
                     const struct mt_gate_result *result)
{
    mt_buf_add_text(out, "    <testcase");
    mt_add_xml_attribute(out, "classname", class_name);
    mt_add_xml_attribute(out, "name", result->name);
    mt_buf_add_text(out, " time=\"0\">");
    if (result->state == MT_GATE_FAIL ||
        (result->state == MT_GATE_NOT_EVALUATED && !result->excused)) {
        mt_add_junit_failure(out, result);
    } else if (result->state == MT_GATE_NOT_EVALUATED) {
        mt_buf_add_text(out, "\n      <skipped");
        mt_add_xml_attribute(out, "message", result->verdict);
        mt_buf_add_text(out, "/>\n    ");
    } else {
        mt_buf_add_text(out, "\n      <system-out>");
        add_told(out, result);
        mt_buf_add_text(out, "</system-out>\n    ");
    }
    mt_buf_add_text(out, "</testcase>\n");
}

static void add_counts(struct mt_buf *out, const struct mt_gates *gates, bool with_skipped)
{
    mt_buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\"", gates->count,
                  gates->states[MT_GATE_FAIL] + gates->states[MT_GATE_NOT_EVALUATED]);
    if (with_skipped)
        mt_buf_printf(out, " skipped=\"%zu\"", gates->excused);
    mt_buf_add_text(out, " time=\"0\">\n");
}

static void add_property(struct mt_buf *out, const char *name, const char *value)
{
    mt_buf_add_text(out, "      <property");
    mt_add_xml_attribute(out, "name", name);
    mt_add_xml_attribute(out, "value", value);
    mt_buf_add_text(out, "/>\n");
}

/* Adds a property such as "device0.peak.reserved.bytes". */
static void add_peak(struct mt_buf *out, const struct mt_device_report *device, const char *which,
                     const struct mt_peak *peak)
{
    char name[64], value[32];

    snprintf(name, sizeof name, "device%u.peak.%s.bytes", (unsigned)device->device, which);
    snprintf(value, sizeof value, "%llu", (unsigned long long)peak->bytes);
    add_property(out, name, value);
}

/* Adds the input of the rules as properties. */
static void add_properties(struct mt_buf *out, const struct mt_report *report)
{
    mt_buf_add_text(out, "    <properties>\n");
    if (*report->sha256)
        add_property(out, "trace.sha256", report->sha256);
    for (uint32_t i = 0; i < report->device_count; i++) {
        add_peak(out, &report->devices[i], "allocated", &report->devices[i].allocated_peak);
        add_peak(out, &report->devices[i], "reserved", &report->devices[i].reserved_peak);
    }
    mt_buf_add_text(out, "    </properties>\n");
}

void mt_junit_add(struct mt_buf *out, const struct mt_report *report, const struct mt_gates *gates)
{
    struct mt_buf name = {0};

    mt_buf_printf(&name, "memtrace.%.200s", *report->name ? report->name : "trace");
    const char *class_name = name.data ? name.data : "memtrace";
    mt_buf_add_text(out, MT_JUNIT_BEGIN);
    add_counts(out, gates, false);
    mt_buf_add_text(out, "  <testsuite");
    mt_add_xml_attribute(out, "name", class_name);
    add_counts(out, gates, true);
    add_properties(out, report);
    for (size_t i = 0; i < gates->count; i++)
        add_case(out, class_name, &gates->results[i]);
    mt_buf_add_text(out, MT_JUNIT_END);
    mt_buf_release(&name);
}
