/* The first line of a document, and the advice below it. */
#include <string.h>

#include "ascii.h"
#include "card_use.h"
#include "buf.h"
#include "report_query.h"
#include "units.h"
#include "verdict.h"

const char *mt_no_history_help(const struct mt_report *report)
{
    if (report->framework && strcmp(report->framework, "JAX") == 0)
        return "The peak is unknown. jax.profiler.trace records a history (*.xplane.pb), and so "
               "does memtrace record";
    return "The peak is unknown. To record a history, call "
           "torch.cuda.memory._record_memory_history() before the model is created (PyTorch 2.0: "
           "with trace_alloc_max_entries=100000), or run the program under memtrace record";
}

static size_t name_length(const char *text)
{
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

/* Returns the length up to a blank, without the punctuation at the end. */
static size_t value_length(const char *text)
{
    size_t length = strcspn(text, " \t\r\n");

    while (length && strchr(",.;:()", text[length - 1]))
        length--;
    return length;
}

/* Returns the length of the setting at the beginning of `text`: "NAME=VALUE", "export NAME=VALUE",
 * or "unset NAME"; 0 = there is none. */
static size_t setting_length(const char *text)
{
    size_t before = mt_begins_with(text, "export ") ? strlen("export ") : 0;

    if (mt_begins_with(text, "unset ") && text[6] >= 'A' && text[6] <= 'Z')
        return strlen("unset ") + name_length(text + 6);
    size_t name = name_length(text + before);
    size_t value = name && text[before + name] == '=' ? value_length(text + before + name + 1) : 0;
    return value ? before + name + 1 + value : 0;
}

/* Returns the first setting and sets *length. Returns the end of the text if there is none. */
static const char *find_setting(const char *text, size_t *length)
{
    for (*length = 0; *text; text += name_length(text) ? name_length(text) : 1) {
        *length = setting_length(text);
        if (*length)
            break;
    }
    return text;
}

bool mt_advice_next(const char **rest, struct mt_advice_part *part)
{
    const char *text = *rest;
    size_t length;

    if (!*text)
        return false;
    const char *setting = find_setting(text, &length);
    part->is_setting = setting == text;
    if (!part->is_setting)
        length = (size_t)(setting - text);
    mt_buf_reset(&part->text);
    mt_buf_add(&part->text, text, length);
    *rest = text + length;
    return true;
}

/* Appends "card about 9.22 GiB; reserved peak 15.4 GiB, allocated peak 7.47 GiB". */
static void add_levels(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    char card[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT];

    struct mt_card_use use;

    if (mt_lacks_requests(device)) {
        mt_buf_add_text(out, "requests to XLA's arena are missing: record with --xla-requests");
        return;
    }
    if (mt_card_use_of(report, device, &use))
        mt_buf_printf(out, "card %s %s; ", use.why_more ? "at least" : "about",
                      mt_format_bytes(card, use.bytes));
    if (mt_knows_reserved(report))
        mt_buf_printf(out, "reserved peak %s, ",
                      mt_format_bytes(reserved, device->reserved_peak.bytes));
    mt_buf_printf(out, "allocated peak %s",
                  mt_format_bytes(allocated, device->allocated_peak.bytes));
}

/* Appends "no history, a single instant: 520 MiB allocated of 5.18 GiB reserved". */
static void add_one_instant(struct mt_buf *out, const struct mt_report *report,
                            const struct mt_bytes *end)
{
    char allocated[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];

    mt_buf_printf(out, "no history, a single instant: %s allocated",
                  mt_format_bytes(allocated, end->allocated));
    if (mt_knows_reserved(report))
        mt_buf_printf(out, " of %s reserved", mt_format_bytes(reserved, end->reserved));
}

static void add_gates(struct mt_buf *out, const struct mt_gates *gates)
{
    static const char *const words[] = {"pass", "pass, with a warning", "FAIL", "NOT EVALUATED"};

    mt_buf_printf(out, "%s: ", words[gates->verdict]);
    if (gates->verdict == MT_GATE_PASS)
        mt_buf_printf(out, "%zu of %zu rules hold", gates->states[MT_GATE_PASS], gates->count);
    else
        mt_buf_add_text(out, gates->results[0].verdict);
}

void mt_verdict_add(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates)
{
    const struct mt_device_report *device = mt_worst_device(report);
    const struct mt_oom *oom = device ? mt_fatal_oom(device) : NULL;
    char text[MT_UNITS_TEXT];

    if (gates && gates->count) {
        add_gates(out, gates);
        return;
    }
    if (!device) {
        mt_buf_add_text(out, "no memory events");
        return;
    }
    if (report->device_count > 1)
        mt_buf_printf(out, "device %u: ", device->device);
    if (report->integrity.events_dropped)
        mt_buf_add_text(out, "events are missing, no number is exact; ");
    if (report->starts_in_middle && device->start.allocated && !mt_is_one_instant(report, device))
        mt_buf_add_text(out, "the beginning of the run is missing; ");
    if (oom)
        mt_buf_printf(out, "out of memory: a request for %s failed; ",
                      mt_format_bytes(text, oom->request_bytes));
    if (mt_is_one_instant(report, device))
        add_one_instant(out, report, &device->end);
    else
        add_levels(out, report, device);
}
