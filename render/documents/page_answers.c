#include "page_answers.h"

#include "baseline.h"
#include "html_table.h"
#include "page_words.h"
#include "report_query.h"

enum { MAX_HOLDERS = 3 };

static void begin(struct mt_buf *out, const struct mt_report *report,
                  const struct mt_device_report *device, const char *question)
{
    mt_buf_add_text(out, "<div><dt>");
    if (report->device_count > 1)
        mt_buf_printf(out, "Device %u: ", (unsigned)device->device);
    mt_buf_printf(out, "%s</dt><dd><strong>", question);
}

static void end(struct mt_buf *out)
{
    mt_buf_add_text(out, "</dd></div>\n");
}

static void add_peaks(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    const bool has_reserved = mt_has_allocator(report);
    const struct mt_peak *peak = has_reserved ? &device->reserved_peak : &device->allocated_peak;
    char bytes[MT_UNITS_TEXT];

    begin(out, report, device, has_reserved ? "Reserved peak" : "Allocated peak");
    mt_buf_printf(out, "%s</strong> ", mt_format_bytes(bytes, peak->bytes));
    if (mt_fatal_oom(device))
        mt_buf_printf(out,
                      "when the run died: a request for <span class=\"quantity\">%s</span> failed",
                      mt_format_bytes(bytes, mt_fatal_oom(device)->request_bytes));
    else if (has_reserved)
        mt_buf_printf(out, "of which <span class=\"quantity\">%s</span> was allocated",
                      mt_format_bytes(bytes, peak->then.allocated));
    end(out);
}

static void add_need(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    const bool is_doubtful = mt_peaks_doubt(report, device);
    char need[MT_NEED_TEXT], all[MT_UNITS_TEXT];
    struct mt_card_need card;

    if (!device->need) {
        add_peaks(out, report, device);
        return;
    }
    begin(out, report, device,
          mt_is_host_memory(device) ? "The arena must have" : "The device must have");
    mt_buf_printf(out, "%s%s</strong> is the smallest limit that serves %s",
                  is_doubtful ? "at least " : "", mt_need_text(need, device->need),
                  is_doubtful ? "what was recorded" : "this run");
    if (mt_card_need(report, device, &card))
        mt_buf_printf(out, "; a card needs %s %s in total, with CUDA and libraries",
                      is_doubtful ? "more than" : "about", mt_format_bytes(all, card.bytes));
    else if (!mt_is_host_memory(device))
        mt_buf_add_text(out, "; CUDA and libraries need more");
    end(out);
}

static void add_roles(struct mt_buf *out, const struct mt_device_report *device)
{
    const uint64_t *bytes = device->peak_role_bytes;
    const double peak = (double)device->allocated_peak.bytes;
    char share[MT_UNITS_TEXT];
    enum mt_role order[MT_ROLE_COUNT];

    mt_roles_by_bytes(bytes, order);
    for (int i = 0; i < MAX_HOLDERS && bytes[order[i]]; i++)
        mt_buf_printf(out, "%s%s <span class=\"quantity\">%s</span>", i ? ", " : "",
                      mt_holder_role_name(order[i], i == 0),
                      mt_format_percent(share, (double)bytes[order[i]] / peak));
}

static void add_holders(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    char bytes[MT_UNITS_TEXT];

    if (!device->allocated_peak.bytes)
        return;
    begin(out, report, device, "What holds the allocated peak");
    mt_buf_printf(out, "%s</strong> ", mt_format_bytes(bytes, device->allocated_peak.bytes));
    if (!report->is_plain) /* a program without a framework has no roles */
        add_roles(out, device);
    if (device->peak_site_count) {
        mt_buf_add_text(out, report->is_plain ? "largest site: " : "; largest site: ");
        mt_add_page_name(out, device->peak_sites[0].site);
        mt_buf_printf(out, ", <span class=\"quantity\">%s</span>",
                      mt_format_bytes(bytes, device->peak_sites[0].bytes));
    }
    end(out);
}

static void add_change(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    if (!device->finding_count)
        return;
    begin(out, report, device, "What to change first");
    mt_buf_add_text(out, "</strong><a href=\"#findings\">");
    mt_add_page_words(out, device->findings[0].title);
    mt_buf_add_text(out, "</a>");
    end(out);
}

void mt_add_page_answers(struct mt_buf *out, const struct mt_report *report)
{
    const struct mt_device_report *device = mt_worst_device(report);

    if (!device || mt_is_one_instant(report, device) || mt_lacks_requests(device))
        return;
    mt_buf_add_text(out, "<dl class=\"answers\">\n");
    add_need(out, report, device);
    add_holders(out, report, device);
    add_change(out, report, device);
    mt_buf_add_text(out, "</dl>\n");
}
