/* The answer that `memtrace analyze` begins with: what the run died of, or its peak,
 * and who held it. */
#include "analyze_output.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

#include <string.h>

static void tell_in_red(const struct mt_teller *teller, const char *text)
{
    mt_buf_add_text(teller->out, teller->style->red);
    mt_tell_line(teller, 0, text);
    mt_buf_add_text(teller->out, teller->style->reset);
}

/* Of what the run died on a device, NULL if it did not. */
static const struct mt_oom *fatal_oom(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->oom_count; i++)
        if (device->oom_list[i].fatal)
            return &device->oom_list[i];
    return NULL;
}

static const char *death(const struct mt_teller *teller, const struct mt_oom *oom)
{
    char wanted[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];

    return mt_tell_format(
        teller, "ied of OUT OF MEMORY %s: wanted %s more with %s allocated and %s reserved.",
        mt_tell_in(teller, oom->phase, oom->step), mt_format_bytes(wanted, oom->request_bytes),
        mt_format_bytes(allocated, oom->then.allocated),
        mt_format_bytes(reserved, oom->then.reserved));
}

static void tell_death(const struct mt_teller *teller)
{
    const struct mt_oom *oom = fatal_oom(teller->device);

    if (oom)
        tell_in_red(teller, mt_tell_format(teller, "D%s", death(teller, oom)));
}

static void tell_peak(const struct mt_teller *teller)
{
    const struct mt_peak *peak = &teller->device->allocated_peak;
    const char *in = mt_tell_in(teller, peak->phase, peak->step);
    const struct mt_style *style = teller->style;
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, " allocated (%s B)%s%s, at %s", mt_format_count(exact, peak->bytes),
                  *in ? " " : "", in, mt_tell_when(teller, peak->t_ns));
    mt_buf_printf(teller->out, "%sPeak %s%s", style->bold, mt_format_bytes(bytes, peak->bytes),
                  style->reset);
    if (line.data)
        mt_add_wrapped(teller->out, line.data, 5 + strlen(bytes), 2);
    mt_buf_add_char(teller->out, '\n');
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

static void sort_roles(const uint64_t *bytes, int *order)
{
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        int at = i;

        for (; at > 0 && bytes[order[at - 1]] < bytes[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static void tell_roles(const struct mt_teller *teller)
{
    const uint64_t *bytes = teller->device->peak_role_bytes;
    double peak = (double)teller->device->allocated_peak.bytes;
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    int order[MT_ROLE_COUNT];

    sort_roles(bytes, order);
    mt_buf_add_text(&line, "held by ");
    for (int i = 0; i < MT_ROLE_COUNT && bytes[order[i]]; i++) {
        bool unknown = i == 0 && order[i] == MT_ROLE_OTHER;

        mt_buf_printf(&line, "%s%s %s (%s)", i ? ", " : "",
                      unknown ? "blocks of no known role" : mt_role_name((enum mt_role)order[i]),
                      mt_format_bytes(size, bytes[order[i]]),
                      mt_format_percent(share, (double)bytes[order[i]] / peak));
    }
    if (line.data && bytes[order[0]])
        mt_tell_line(teller, 2, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* What the allocator held, at the peak and at most: never two instants in one
 * share. */
static void tell_reserved(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;
    const struct mt_bytes *then = &device->allocated_peak.then;
    const struct mt_peak *most = &device->reserved_peak;
    const char *in = mt_tell_in(teller, most->phase, most->step);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], unused[MT_UNITS_TEXT];
    char share[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (then->reserved > then->allocated)
        mt_buf_printf(&line, "%s were reserved then, %s of it (%s) unused. ",
                      mt_format_bytes(bytes, then->reserved),
                      mt_format_bytes(unused, then->reserved - then->allocated),
                      mt_format_percent(share, (double)(then->reserved - then->allocated) /
                                                   (double)then->reserved));
    mt_buf_printf(&line, "Reserved at most: %s (%s B)%s%s, at %s",
                  mt_format_bytes(bytes, most->bytes), mt_format_count(exact, most->bytes),
                  *in ? " " : "", in, mt_tell_when(teller, most->t_ns));
    if (most->bytes > most->then.allocated && most->event != device->allocated_peak.event)
        mt_buf_printf(&line, "; %s of it (%s) unused at that instant",
                      mt_format_bytes(unused, most->bytes - most->then.allocated),
                      mt_format_percent(share, device->fragmentation_at_reserved_peak));
    if (!fatal_oom(device) && teller->report->device_count == 1) /* else in the devices' table */
        mt_buf_printf(&line, ". At the end: %s allocated of %s reserved",
                      mt_format_bytes(bytes, device->end.allocated),
                      mt_format_bytes(unused, device->end.reserved));
    if (line.data)
        mt_tell_line(teller, 2, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* Another policy, or another limit: where the program would have died. */
static void tell_failure(const struct mt_teller *teller)
{
    const struct mt_oom *failure = &teller->device->first_failure;
    char wanted[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];
    char count[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!teller->device->has_failure)
        return;
    mt_buf_printf(&line,
                  "Would RUN OUT OF MEMORY %s, at %s: %s wanted with %s allocated and %s reserved. "
                  "%s requests fail in all; what follows the first did not happen like that.",
                  mt_tell_in(teller, failure->phase, failure->step),
                  mt_tell_when(teller, failure->t_ns),
                  mt_format_bytes(wanted, failure->request_bytes),
                  mt_format_bytes(allocated, failure->then.allocated),
                  mt_format_bytes(reserved, failure->then.reserved),
                  mt_format_count(count, teller->device->replay.failed_requests));
    if (line.data)
        tell_in_red(teller, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* Converting a model costs more than running it, now and then. */
static void tell_setup_peak(const struct mt_teller *teller)
{
    const struct mt_report *report = teller->report;
    uint64_t most = 0;
    char size[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!report->phase_count ||
        teller->device->allocated_peak.event >= report->phases[0].begin_event)
        return;
    for (uint32_t i = 0; i < report->phase_count; i++)
        most = mt_max_u64(most, teller->device->phase_uses[i].peak.allocated);
    mt_buf_printf(&line, "That is in set-up, before the first phase; in phases it is %s at most",
                  mt_format_bytes(size, most));
    if (line.data)
        mt_tell_line(teller, 2, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* Else nobody reserves anything, nobody tries again. */
static bool has_allocator(const struct mt_report *report)
{
    return !report->is_driver_level || report->what_if;
}

void mt_tell_run(const struct mt_teller *teller)
{
    const struct mt_report *report = teller->report;
    uint64_t trouble = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        trouble += report->devices[i].ooms + report->devices[i].retries;
    mt_tell_title(teller, 2, trouble || !has_allocator(report) ? "" : ", no OOM, no retries");
}

/* A snapshot of a program that did not record: what is alive, and nothing of what was. */
static bool is_one_instant(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;

    return teller->report->starts_in_middle && !device->allocations && !device->frees &&
           device->end.reserved;
}

static void tell_one_instant(const struct mt_teller *teller)
{
    const struct mt_bytes *end = &teller->device->end;
    const struct mt_style *style = teller->style;
    char allocated[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];

    mt_buf_printf(teller->out,
                  "%sNo history%s: at one instant %s were allocated (%s B) of %s reserved\n",
                  style->bold, style->reset, mt_format_bytes(allocated, end->allocated),
                  mt_format_count(exact, end->allocated), mt_format_bytes(reserved, end->reserved));
    mt_tell_line(teller, 2,
                 "The peak is unknown. To record a history, call "
                 "torch.cuda.memory._record_memory_history() before the model is made, or run the "
                 "program under memtrace record");
}

/* Peaks before the first event may have been higher. */
static void tell_late_start(const struct mt_teller *teller)
{
    bool is_snapshot = !strcmp(teller->report->format, "pytorch-snapshot");

    if (teller->report->starts_in_middle && teller->device->start.allocated)
        mt_tell_line(teller, 2,
                     is_snapshot
                         ? "Recording began in mid-run: earlier peaks are unknown. Begin it before "
                           "the model is made, with a max_entries that holds the whole run"
                         : "Recording began in mid-run: earlier peaks are unknown");
}

void mt_tell_answer(const struct mt_teller *teller)
{
    if (is_one_instant(teller)) {
        tell_one_instant(teller);
        if (teller->report->device_count == 1)
            mt_tell_run(teller);
        return;
    }
    tell_death(teller);
    mt_tell_oom_help(teller);
    tell_failure(teller);
    tell_peak(teller);
    tell_late_start(teller);
    tell_setup_peak(teller);
    tell_roles(teller);
    if (has_allocator(teller->report))
        tell_reserved(teller);
    if (teller->report->device_count == 1)
        mt_tell_run(teller);
}

static const struct mt_device_report *worst_device(const struct mt_report *report)
{
    const struct mt_device_report *worst = &report->devices[0];

    for (uint32_t i = 1; i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];
        int more = (fatal_oom(device) != NULL) - (fatal_oom(worst) != NULL);

        if (more > 0 || (more == 0 && device->allocated_peak.bytes > worst->allocated_peak.bytes))
            worst = device;
    }
    return worst;
}

void mt_tell_worst_device(const struct mt_teller *shared)
{
    const struct mt_device_report *device = worst_device(shared->report);
    const struct mt_peak *peak = &device->allocated_peak;
    const struct mt_oom *oom = fatal_oom(device);
    struct mt_teller teller = *shared;
    const char *in = mt_tell_in(&teller, peak->phase, peak->step);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    teller.device = device;
    if (oom) {
        tell_in_red(&teller,
                    mt_tell_format(&teller, "Device %u d%s", device->device, death(&teller, oom)));
        return;
    }
    mt_tell_line(&teller, 0,
                 mt_tell_format(&teller, "Device %u needs most: peak %s allocated (%s B)%s%s",
                                device->device, mt_format_bytes(bytes, peak->bytes),
                                mt_format_count(exact, peak->bytes), *in ? " " : "", in));
}
