#include "file_kinds.h"

#include <stdint.h>
#include <string.h>

#include "trace.h"
#include "util.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool mt_file_begins_json(const char *start, size_t length, const char *text)
{
    const char *end = start + length;

    for (; *text; text++) {
        while (start < end && is_space(*start))
            start++;
        if (start == end || *start++ != *text)
            return false;
    }
    return true;
}

bool mt_file_begins(const char *start, size_t length, const char *text)
{
    size_t bytes = strlen(text);

    return length >= bytes && memcmp(start, text, bytes) == 0;
}

static bool is_report(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.analyze/");
}

/* The number at offset 68 is PRAGMA application_id (sqlite.org/fileformat.html). */
static bool is_database(const void *start, size_t length)
{
    static const char magic[] = "SQLite format 3";
    enum { ID_OFFSET = 68 };

    return length >= ID_OFFSET + 4 && !memcmp(start, magic, sizeof magic) &&
           !memcmp((const char *)start + ID_OFFSET, "mtrd", 4);
}

static bool is_baseline(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.baseline/");
}

static bool is_speedscope(const void *start, size_t length)
{
    return mt_file_begins_json(
        start, length,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
        "\"exporter\":\"memtrace\"");
}

static bool is_summary(const void *start, size_t length)
{
    return mt_file_begins(start, length, "### memtrace: ");
}

static bool is_junit(const void *start, size_t length)
{
    return mt_file_begins(
        start, length, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memtrace\"");
}

bool mt_file_has_title(const void *start, size_t length, const char *title)
{
    const char *at = start, *end = at + (length < 4096 ? length : 4096);

    if (!mt_file_begins(start, length, "<!doctype html>\n<html lang=\"en\">"))
        return false;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (mt_file_begins(at, (size_t)(end - at), title))
            return true;
        at++;
    }
    return false;
}

static bool is_page(const void *start, size_t length)
{
    return mt_file_has_title(start, length, "\n<title>memtrace: ");
}

static bool is_counters(const void *start, size_t length)
{
    return mt_file_begins(start, length,
                          "event,t_ns,device,requested,allocated,active,reserved,inactive_split\n");
}

static bool is_plan(const void *start, size_t length)
{
    return mt_file_begins(start, length, "device,lower,upper,size,offset\n");
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
    return mt_file_begins(line, length, "no stack") ||
           mt_file_begins(line, length, "allocated before recording started") ||
           /* text of older versions */
           mt_file_begins(line, length, "alive before recording began") ||
           mt_file_begins(line, length, "born before the trace");
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
    const char *text = start;
    char line[512];

    if (length < sizeof head - 1 || memcmp(text, head, sizeof head - 1) != 0)
        return false;
    const char *line_end = memchr(text, '\n', length);
    size_t bytes = line_end ? (size_t)(line_end - text) : length;
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

/* Skips the bytes of a tag and a length. */
static size_t skip(const unsigned char *start, size_t length, size_t at, size_t tag_bytes)
{
    for (at += tag_bytes; at < length && start[at] & 0x80;)
        at++;
    return at + 1;
}

/* A packet with a track whose first field is its description. */
static bool is_perfetto(const void *start, size_t length)
{
    static const unsigned char packet[] = {0x0a}, track[] = {0xe2, 0x03}, text[] = {0x72};
    const struct {
        const unsigned char *tag;
        size_t bytes;
    } levels[] = {{packet, sizeof packet}, {track, sizeof track}, {text, sizeof text}};
    const unsigned char *bytes = start;
    size_t at = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(levels); i++) {
        if (length < levels[i].bytes || at > length - levels[i].bytes ||
            memcmp(bytes + at, levels[i].tag, levels[i].bytes) != 0)
            return false;
        at = skip(bytes, length, at, levels[i].bytes);
    }
    return at < length && mt_file_begins((const char *)bytes + at, length - at, "memtrace:");
}

const struct mt_file_kind mt_file_trace = {.name = "a trace that 'memtrace import' wrote",
                                           .is_own = mt_trace_is_imported,
                                           .is_private = true,
                                           .is_durable = true};
const struct mt_file_kind mt_file_svg = {.name = "an SVG picture by memtrace", .is_own = is_svg};
const struct mt_file_kind mt_file_png = {.name = "a PNG picture by memtrace", .is_own = is_png};
const struct mt_file_kind mt_file_page = {.name = "a report by memtrace", .is_own = is_page};
const struct mt_file_kind mt_file_report = {.name = "a report by memtrace", .is_own = is_report};
const struct mt_file_kind mt_file_summary = {.name = "a summary by memtrace", .is_own = is_summary};
const struct mt_file_kind mt_file_junit = {.name = "a JUnit file by memtrace", .is_own = is_junit};
const struct mt_file_kind mt_file_baseline = {.name = "a baseline by memtrace",
                                              .is_own = is_baseline};
const struct mt_file_kind mt_file_counters = {.name = "a table of counters by memtrace",
                                              .is_own = is_counters};
const struct mt_file_kind mt_file_plan = {.name = "a plan by memtrace", .is_own = is_plan};
const struct mt_file_kind mt_file_database = {
    .name = "a database by memtrace", .is_own = is_database, .is_private = true};
const struct mt_file_kind mt_file_folded = {.name = "a file of folded stacks", .is_own = is_folded};
const struct mt_file_kind mt_file_speedscope = {.name = "a speedscope document by memtrace",
                                                .is_own = is_speedscope};
const struct mt_file_kind mt_file_perfetto = {.name = "a Perfetto trace by memtrace",
                                              .is_own = is_perfetto};
