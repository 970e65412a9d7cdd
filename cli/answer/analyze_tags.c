/* The tags that the program gave its blocks. */
#include "analyze_output.h"
#include "foreign_text.h"
#include "units.h"

#include <string.h>

enum { MAX_TAGS = 8, MAX_TAG_BYTES = 60 };

/* Tags that name roles are in the line of roles. */
static bool is_worth_a_line(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->peak_tag_count; i++)
        if (!device->peak_tags[i].names_role)
            return true;
    return false;
}

static void add_tag(struct mt_buf *line, const struct mt_tag_use *use, double peak)
{
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    size_t length = strlen(use->tag);

    mt_buf_add_char(line, '\'');
    mt_buf_add_printable(line, use->tag, length > MAX_TAG_BYTES ? MAX_TAG_BYTES : length);
    mt_buf_printf(line, "%s' %s (%s)", length > MAX_TAG_BYTES ? "..." : "",
                  mt_format_bytes(size, use->bytes),
                  mt_format_percent(share, (double)use->bytes / peak));
}

void mt_report_tags(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    double peak = (double)device->allocated_peak.bytes;
    uint64_t tagged = 0;
    char size[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!is_worth_a_line(device))
        return;
    mt_buf_add_text(&line, "tagged by the program: ");
    for (uint32_t i = 0; i < device->peak_tag_count; i++) {
        tagged += device->peak_tags[i].bytes;
        if (i >= MAX_TAGS)
            continue;
        mt_buf_add_text(&line, i ? ", " : "");
        add_tag(&line, &device->peak_tags[i], peak);
    }
    if (device->peak_tag_count > MAX_TAGS)
        mt_buf_printf(&line, " and %u more", device->peak_tag_count - MAX_TAGS);
    if (tagged < device->allocated_peak.bytes)
        mt_buf_printf(&line, "; not tagged %s",
                      mt_format_bytes(size, device->allocated_peak.bytes - tagged));
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}
