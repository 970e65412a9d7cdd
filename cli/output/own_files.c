#include "own_files.h"

#include <stdint.h>
#include <string.h>

#include "summary_file.h"
#include "trace.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Returns true if `start` begins with `wanted`, with any white space between its tokens. */
static bool begins(const char *start, size_t length, const char *wanted)
{
    const char *end = start + length;

    for (; *wanted; wanted++) {
        while (start < end && is_space(*start))
            start++;
        if (start == end || *start++ != *wanted)
            return false;
    }
    return true;
}

static bool begins_exactly(const char *start, size_t length, const char *wanted)
{
    size_t bytes = strlen(wanted);

    return length >= bytes && memcmp(start, wanted, bytes) == 0;
}

static bool is_report(const void *start, size_t length)
{
    return begins(start, length, "{\"schema\":\"memtrace.analyze/");
}

static bool is_baseline(const void *start, size_t length)
{
    return begins(start, length, "{\"schema\":\"memtrace.baseline/");
}

static bool is_sweep(const void *start, size_t length)
{
    return begins(start, length, "{\"schema\":\"memtrace.sweep/");
}

static bool is_log(const void *start, size_t length)
{
    return begins_exactly(start, length, MT_LOG_MARK);
}

static bool is_speedscope(const void *start, size_t length)
{
    return begins(start, length,
                  "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                  "\"exporter\":\"memtrace\"");
}

static bool is_summary(const void *start, size_t length)
{
    return begins_exactly(start, length, "### memtrace: ");
}

static bool is_junit(const void *start, size_t length)
{
    return begins_exactly(
        start, length, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memtrace\"");
}

/* Returns true if the page has this title. The title is after the meta elements, in the first
 * kilobytes. */
static bool has_title(const void *start, size_t length, const char *title)
{
    const char *at = start, *end = at + (length < 4096 ? length : 4096);

    if (!begins_exactly(start, length, "<!doctype html>\n<html lang=\"en\">"))
        return false;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (begins_exactly(at, (size_t)(end - at), title))
            return true;
        at++;
    }
    return false;
}

static bool is_page(const void *start, size_t length)
{
    return has_title(start, length, "\n<title>memtrace: ");
}

static bool is_fleet_page(const void *start, size_t length)
{
    return has_title(start, length, "\n<title>memtrace fleet: ");
}

static bool is_fleet_summary(const void *start, size_t length)
{
    return begins_exactly(start, length, "### memtrace fleet: ");
}

static bool is_fleet(const void *start, size_t length)
{
    return begins(start, length, "{\"schema\":\"memtrace.fleet/");
}

static bool is_counters(const void *start, size_t length)
{
    return begins_exactly(start, length,
                          "event,t_ns,device,requested,allocated,active,reserved,inactive_split\n");
}

static bool is_plan(const void *start, size_t length)
{
    return begins_exactly(start, length, "device,lower,upper,size,offset\n");
}

/* Returns true for text, a space, and a number: "a;b;c 512". */
static bool is_folded_line(const char *line, size_t length)
{
    size_t digits = 0;

    while (digits < length && line[length - 1 - digits] >= '0' && line[length - 1 - digits] <= '9')
        digits++;
    if (!digits || length < digits + 2 || line[length - 1 - digits] != ' ')
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20)
            return false;
    return true;
}

/* Returns true if the line has a caller and a callee, a frame with file and line, or the text for a
 * missing stack. This distinguishes a stack from a table of words and numbers. */
static bool has_frames(const char *line, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (line[i] == ';' || (line[i] == ':' && line[i + 1] >= '0' && line[i + 1] <= '9'))
            return true;
    return begins_exactly(line, length, "no stack") ||
           begins_exactly(line, length, "allocated before recording started") ||
           /* text of older versions */
           begins_exactly(line, length, "alive before recording began") ||
           begins_exactly(line, length, "born before the trace");
}

static bool is_folded(const void *start, size_t length)
{
    const char *at = start, *end = at + length, *stop;
    bool any = false;

    for (; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1) {
        if (!is_folded_line(at, (size_t)(stop - at)) || !has_frames(at, (size_t)(stop - at)))
            return false;
        any = true;
    }
    return any;
}

/* Checks the attributes of the root element and their order, as mt_svg_write writes them. Other
 * programs do not write "-title NAME-desc" there, and an editor that saves the picture writes its
 * own attributes. */
static bool is_svg(const void *start, size_t length)
{
    static const char head[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ";
    static const char attributes[] = " role=\"img\" aria-labelledby=\"";
    const char *line_end, *text = start;
    char line[512];
    size_t bytes;

    if (length < sizeof head - 1 || memcmp(text, head, sizeof head - 1) != 0)
        return false;
    line_end = memchr(text, '\n', length);
    bytes = line_end ? (size_t)(line_end - text) : length;
    if (bytes >= sizeof line)
        return false;
    memcpy(line, text, bytes);
    line[bytes] = '\0';
    return strstr(line, attributes) && strstr(line, "-desc\" font-family=\"Inter,system-ui,");
}

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Looks for a tEXt chunk before the pixels: "Software", NUL, "memtrace". */
static bool is_png(const void *start, size_t length)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const char software[] = "tEXtSoftware\0memtrace";
    const uint8_t *bytes = start;
    size_t at = sizeof magic;

    if (length < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return false;
    while (length - at >= 12 && memcmp(bytes + at + 4, "IDAT", 4) != 0) {
        uint32_t size = big_endian(bytes + at);

        if (size > length - at - 12)
            return false;
        if (size == sizeof software - 1 - 4 &&
            memcmp(bytes + at + 4, software, sizeof software - 1) == 0)
            return true;
        at += size + 12;
    }
    return false;
}

const struct mt_file_kind_facts mt_file_kinds[MT_FILE_KINDS] = {
    [MT_FILE_TRACE] = {"a trace that 'memtrace import' wrote", mt_trace_is_imported},
    [MT_FILE_SVG] = {"an SVG picture by memtrace", is_svg},
    [MT_FILE_PNG] = {"a PNG picture by memtrace", is_png},
    [MT_FILE_PAGE] = {"a report by memtrace", is_page},
    [MT_FILE_REPORT] = {"a report by memtrace", is_report},
    [MT_FILE_SUMMARY] = {"a summary by memtrace", is_summary},
    [MT_FILE_JUNIT] = {"a JUnit file by memtrace", is_junit},
    [MT_FILE_BASELINE] = {"a baseline by memtrace", is_baseline},
    [MT_FILE_COUNTERS] = {"a table of counters by memtrace", is_counters},
    [MT_FILE_PLAN] = {"a plan by memtrace", is_plan},
    [MT_FILE_FOLDED] = {"a file of folded stacks", is_folded},
    [MT_FILE_SPEEDSCOPE] = {"a speedscope document by memtrace", is_speedscope},
    [MT_FILE_SWEEP] = {"a table of dry runs by memtrace", is_sweep},
    [MT_FILE_LOG] = {"the log of a dry run by memtrace", is_log},
    [MT_FILE_RANK_SUMMARY] = {"the summary of a rank by memtrace", mt_summary_probe},
    [MT_FILE_FLEET] = {"a JSON document by memtrace fleet", is_fleet},
    [MT_FILE_FLEET_PAGE] = {"a page by memtrace fleet", is_fleet_page},
    [MT_FILE_FLEET_SUMMARY] = {"a summary by memtrace fleet", is_fleet_summary},
};
