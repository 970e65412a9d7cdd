/* The first screen of `memtrace analyze`: the card, the peak and who holds it, where, what to
 * change, and whether to trust it; after an out-of-memory error why it happened. At most
 * MT_ANALYZE_LINES lines. */
#include <string.h>

#include "analyze_output.h"
#include "card_words.h"
#include "foreign_text.h"
#include "module_table.h"
#include "oom_why.h"
#include "report_query.h"
#include "site.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

enum { LABEL = 8, TAB = 3 }; /* columns of the label before each line, and of "1. " */
enum { SMALL_ROLE = 50 };    /* roles below a fiftieth of the peak are added up */
enum { COLUMNS = MT_TEXT_COLUMNS - LABEL, MIN_SITE = 24 }; /* columns */

/* How much of the screen the changes and places take. */
struct room {
    uint32_t changes, places;
    bool has_costs;
};

/* From most to least. */
static const struct room rooms[] = {{3, 3, true},  {3, 3, false}, {3, 2, false}, {2, 3, true},
                                    {2, 3, false}, {2, 2, false}, {1, 3, true},  {1, 2, false},
                                    {1, 1, false}, {0, 1, false}};

/* `indent`: of the lines after the first. */
static void add_indented(const struct mt_reporter *reporter, const char *label, const char *text,
                         size_t indent)
{
    const struct mt_style *style = reporter->style;

    mt_buf_printf(reporter->out, "%s%-*s%s", style->bold, LABEL, label, style->reset);
    mt_text_table_add_wrapped(reporter->out, text, LABEL, LABEL + indent);
    mt_buf_add_char(reporter->out, '\n');
}

static void add(const struct mt_reporter *reporter, const char *label, const char *text)
{
    add_indented(reporter, label, text, 0);
}

static void add_line(const struct mt_reporter *reporter, const char *label, struct mt_buf *line)
{
    if (line->length)
        add(reporter, label, line->data);
    mt_buf_release(line);
}

/* Why memory ran out. */

static const char *limit_of(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    char limit[MT_UNITS_TEXT];

    if (!mt_limit_is_known(&device->replay) || !mt_least_limit_bytes(&device->replay))
        return "";
    return mt_reporter_format(reporter, ", about %s",
                              mt_format_mib(limit, mt_least_limit_bytes(&device->replay)));
}

static const char *own_limit(const struct mt_reporter *reporter, const struct mt_oom *oom)
{
    char free_text[MT_UNITS_TEXT];

    return mt_reporter_format(
        reporter, "this process has a limit of its own%s: %s of the card was free",
        limit_of(reporter), mt_format_bytes(free_text, oom->device_free_bytes));
}

static const char *fragmentation(const struct mt_reporter *reporter, const struct mt_oom *oom)
{
    const struct mt_oom_answer *answer = reporter->device->oom_answer;
    char unused[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], wanted[MT_UNITS_TEXT];

    return mt_reporter_format(
        reporter, "fragmentation: %s of the reserved %s is unused, %s %s",
        mt_format_bytes(unused, answer->unused_bytes), mt_format_mib(reserved, oom->then.reserved),
        answer->unused_bytes < oom->request_bytes
            ? "and with what the limit leaves it would be enough, but it is not one piece of"
            : "but in pieces smaller than",
        mt_format_mib(wanted, oom->request_bytes));
}

/* The card is full. */
static const char *full(const struct mt_reporter *reporter, const struct mt_oom *oom,
                        const struct mt_oom_why *why)
{
    char free_text[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], total[MT_UNITS_TEXT],
        others[MT_UNITS_TEXT];
    const uint64_t total_bytes = reporter->device->total_memory_bytes;

    mt_format_bytes(free_text, oom->device_free_bytes);
    mt_format_bytes(reserved, oom->then.reserved);
    mt_format_bytes(total, total_bytes);
    if (why->kind == MT_OOM_BY_OTHERS)
        return mt_reporter_format(reporter,
                                  "other processes hold about %s of the card's %s; this one has "
                                  "reserved %s, and %s was free",
                                  mt_format_bytes(others, why->others_bytes), total, reserved,
                                  free_text);
    if (why->kind == MT_OOM_CARD_FULL)
        return mt_reporter_format(reporter,
                                  "this process fills the card: %s of %s reserved, and %s was free",
                                  reserved, total, free_text);
    return mt_reporter_format(reporter,
                              "the card is full: %s reserved here, and %s was free. The file does "
                              "not show whether other processes used the card",
                              reserved, free_text);
}

static const char *cause(const struct mt_reporter *reporter, const struct mt_oom *oom,
                         const struct mt_oom_why *why)
{
    char text[MT_UNITS_TEXT];

    switch (why->kind) {
    case MT_OOM_IMPOSSIBLE: return "no card has that much memory: the size itself is wrong";
    case MT_OOM_NO_ADDRESSES:
        return "the address space ran out, not the memory: the driver refused a range as large as "
               "one "
               "that it had granted";
    case MT_OOM_WAITING:
        return mt_reporter_format(
            reporter, "%s was freed, but waits for another stream (Tensor.record_stream)",
            mt_format_bytes(text, why->waiting_bytes));
    case MT_OOM_FRAGMENTED: return fragmentation(reporter, oom);
    case MT_OOM_OWN_LIMIT: return own_limit(reporter, oom);
    case MT_OOM_BY_OTHERS:
    case MT_OOM_CARD_FULL:
    case MT_OOM_CARD_FULL_BY: break;
    }
    return full(reporter, oom, why);
}

static bool is_pytorch(const struct mt_report *report)
{
    return report->framework && strncmp(report->framework, "PyTorch", strlen("PyTorch")) == 0;
}

static void add_why(const struct mt_reporter *reporter, const struct mt_oom *oom,
                    const struct mt_oom_why *why)
{
    const bool has_cap =
        why->under_own_limit && why->kind != MT_OOM_IMPOSSIBLE && why->kind != MT_OOM_NO_ADDRESSES;
    struct mt_buf line = {0};

    mt_buf_add_text(&line, cause(reporter, oom, why));
    if (has_cap && why->kind != MT_OOM_OWN_LIMIT)
        mt_buf_printf(&line, "; %s", own_limit(reporter, oom));
    if (has_cap && is_pytorch(reporter->report))
        mt_buf_add_text(&line, " (torch.cuda.set_per_process_memory_fraction, or another cap)");
    if (why->times_last_step > 0) {
        mt_buf_add_text(&line, "; this step has added ");
        mt_buf_add_decimal(&line, why->times_last_step, 1);
        mt_buf_add_text(&line, " times as much as any step before it (a longer input?)");
    }
    add_line(reporter, "Why", &line);
}

static void add_so_far(const struct mt_reporter *reporter, const struct mt_oom_why *why)
{
    char text[MT_UNITS_TEXT];

    if (why->is_first_pass && why->to_come_bytes)
        add(reporter, "Left",
            mt_reporter_format(reporter,
                               "this is the first forward pass: if the program trains, gradients "
                               "of up to %s and the optimizer's state are still to come",
                               mt_format_bytes(text, why->to_come_bytes)));
}

/* Limits that serve the request; what the run would have requested next is unknown. */
static void add_enough(const struct mt_reporter *reporter)
{
    const struct mt_oom_answer *answer = reporter->device->oom_answer;
    char text[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    const struct mt_oom_way *best = answer && answer->way_count ? mt_best_oom_way(answer, 0) : NULL;

    if (!best || !best->fit_bytes)
        return;
    const struct mt_oom_way *own = &answer->ways[0];
    if (own->fits)
        mt_buf_printf(&line, "%s%s for PyTorch serves this request", /* not the rest of the run */
                      own->approximate ? "about " : "", mt_format_mib(text, own->fit_bytes));
    if (best != own)
        mt_buf_printf(&line, "%s%s%s with %s", own->fits ? "; " : "",
                      best->approximate ? "about " : "", mt_format_mib(text, best->fit_bytes),
                      mt_oom_way_setting(best));
    mt_buf_printf(&line, " (%s)", mt_oom_limit_text(reporter->arena, answer));
    add_line(reporter, "Enough", &line);
}

/* With simulated settings, the request that ended the run is not repeated. */
static void add_recorded_death(const struct mt_reporter *reporter, const struct mt_oom *oom)
{
    char wanted[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];

    add(reporter, "Note",
        mt_reporter_format(
            reporter,
            "the recorded run ended OUT OF MEMORY: a request for %s failed at %s. With "
            "these settings %s is allocated and %s reserved there",
            mt_format_mib(wanted, oom->request_bytes),
            mt_reporter_at(reporter, oom->t_ns, oom->event),
            mt_format_mib(allocated, oom->then.allocated),
            mt_format_mib(reserved, oom->then.reserved)));
}

static void add_death(const struct mt_reporter *reporter)
{
    const struct mt_oom *oom = mt_fatal_oom(reporter->device);
    const struct mt_style *style = reporter->style;
    const char *site = "";
    char wanted[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!oom || reporter->device->has_failure)
        return;
    if (reporter->report->what_if) {
        add_recorded_death(reporter, oom);
        return;
    }
    struct mt_oom_why why = mt_oom_why_of(reporter->report, reporter->device, oom);
    const char *in = mt_reporter_in(reporter, oom->phase, oom->step);
    if (oom->stack != MT_NO_ID)
        site = mt_site_label(reporter->arena, reporter->report->symbols, oom->stack, false);
    mt_buf_printf(&line, "OUT OF MEMORY: %s requested%s%s%s%s, at %s",
                  why.kind == MT_OOM_IMPOSSIBLE ? mt_format_bytes(wanted, oom->request_bytes)
                                                : mt_format_mib(wanted, oom->request_bytes),
                  *site ? " by " : "", site, *in ? ", " : "", in,
                  mt_reporter_at(reporter, oom->t_ns, oom->event));
    mt_buf_add_text(reporter->out, style->red);
    mt_reporter_line(reporter, 0, line.data ? line.data : "");
    mt_buf_add_text(reporter->out, style->reset);
    mt_buf_release(&line);
    add_why(reporter, oom, &why);
    add_so_far(reporter, &why);
    add_enough(reporter);
}

/* The card, the peak, and who holds it. */

static void add_card(const struct mt_reporter *reporter)
{
    struct mt_card_use use;
    struct mt_buf line = {0};

    if (!mt_card_use_of(reporter->report, reporter->device, &use))
        return;
    mt_card_words_add(&line, reporter->report, &use);
    mt_card_words_add_cards(&line, &use, 1);
    add_line(reporter, "Card", &line);
}

static void add_peak(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    const struct mt_peak *peak = &device->allocated_peak, *most = &device->reserved_peak;
    const struct mt_need *need = device->need;
    const char *in = mt_reporter_in(reporter, peak->phase, peak->step);
    char bytes[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], enough[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%s allocated%s%s, at %s", mt_format_bytes(bytes, peak->bytes),
                  *in ? " " : "", in, mt_reporter_at(reporter, peak->t_ns, peak->event));
    if (mt_knows_reserved(reporter->report))
        mt_buf_printf(&line, "; reserved peak %s",
                      mt_format_bytes_like(reserved, most->bytes, peak->bytes));
    mt_format_bytes_like(enough, need ? need->bytes : 0, peak->bytes);
    if (need && need->bytes < most->bytes - most->bytes / 50)
        mt_buf_printf(&line, " (the run fits in %.*s)", (int)strcspn(enough, " "), enough);
    else if (need && need->bytes > most->bytes + most->bytes / 50)
        mt_buf_printf(&line, " (up to %.*s at other addresses)", (int)strcspn(enough, " "), enough);
    add_line(reporter, "Peak", &line);
}

static void add_held_by(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    const uint64_t *bytes = device->peak_role_bytes;
    const uint64_t peak_bytes = device->allocated_peak.bytes;
    enum mt_role order[MT_ROLE_COUNT];
    char size[MT_UNITS_TEXT];
    uint64_t small_bytes = 0;
    struct mt_buf line = {0};

    if (reporter->report->is_plain || !peak_bytes) /* without a framework there are no roles */
        return;
    mt_roles_by_bytes(bytes, order);
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        if (bytes[order[i]] < peak_bytes / SMALL_ROLE) {
            small_bytes += bytes[order[i]];
            continue;
        }
        mt_format_bytes_like(size, bytes[order[i]], peak_bytes);
        mt_buf_printf(&line, "%s%s %.*s (%.0f%%)", line.length ? ", " : "",
                      mt_holder_role_name(order[i], i == 0),
                      (int)(line.length ? strcspn(size, " ") : strlen(size)), size,
                      100 * (double)bytes[order[i]] / (double)peak_bytes);
    }
    if (small_bytes) {
        mt_format_bytes_like(size, small_bytes, peak_bytes);
        mt_buf_printf(&line, ", the rest %.*s", (int)strcspn(size, " "), size);
    }
    add_line(reporter, "Held by", &line);
}

/* The largest holders of the peak, by line. */
static void add_places(const struct mt_reporter *reporter, uint32_t most)
{
    const struct mt_device_report *device = reporter->device;
    const struct mt_instant *instant = device->instant_count ? &device->instants[0] : NULL;
    const uint64_t peak_bytes = device->allocated_peak.bytes;
    struct mt_buf line = {0};
    uint32_t told = 0;

    if (device->modules && device->modules->layer_count && !mt_fatal_oom(device))
        mt_module_line_add(reporter, &line);
    if (line.length) {
        add_line(reporter, "Modules", &line);
        most = most > 1 ? most - 1 : most;
    }
    for (uint32_t i = 0; instant && i < instant->holder_count && told < most; i++) {
        const struct mt_contribution *holder = &instant->holders[i];
        char size[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

        if (!holder->site)
            continue;
        mt_buf_printf(&line, "%s%s%s",
                      mt_format_bytes_like(size, (uint64_t)holder->bytes, peak_bytes),
                      reporter->report->is_plain ? "" : " ",
                      reporter->report->is_plain      ? ""
                      : holder->role == MT_ROLE_OTHER ? "unknown"
                                                      : mt_role_name(holder->role));
        if (*holder->phase)
            mt_buf_printf(&line, " of %s", mt_reporter_birth(reporter, holder, instant->step));
        mt_buf_printf(&line, ", %s, ", mt_format_counted(count, (uint64_t)holder->blocks, "block"));
        mt_text_table_add_shortened(&line, holder->site,
                                    line.length + MIN_SITE < COLUMNS ? COLUMNS - line.length
                                                                     : MIN_SITE);
        add_line(reporter, told++ ? "" : "Where", &line);
    }
}

/* What to change. */

/* What a change saves. A bound is about what is allocated at the peak; a replay is about what the
 * card must have, or about a cache that the run had beyond that. */
static void add_saving(const struct mt_finding *finding, struct mt_buf *line)
{
    static const char *const words[] = {[MT_SAVING_UNKNOWN] = "",
                                        [MT_SAVING_EXACT] = "",
                                        [MT_SAVING_AT_LEAST] = "at least ",
                                        [MT_SAVING_AT_MOST] = "at most ",
                                        [MT_SAVING_ESTIMATED] = "about "};
    const bool is_bound = finding->saving == MT_SAVING_AT_MOST;
    const char *of = is_bound              ? "at the peak"
                     : finding->saves_need ? "of the card"
                                           : "of what is reserved";
    char text[MT_UNITS_TEXT], counted[MT_UNITS_TEXT];

    if (finding->saving == MT_SAVING_UNKNOWN)
        return;
    if (!finding->saves_bytes) {
        mt_buf_printf(line, "Saves nothing %s",
                      is_bound ? "alone: another instant needs as much" : of);
        return;
    }
    mt_buf_printf(line, "Saves %s%s %s", words[finding->saving],
                  mt_format_bytes(text, finding->saves_bytes), of);
    if (is_bound && strcmp(text, mt_format_bytes(counted, finding->bytes)) != 0)
        mt_buf_add_text(line, ": then another instant is the peak");
}

/* "Saves at most 1.94 GiB at the peak; backward runs the forward pass of these modules a second
 * time": what the change saves, and what it costs. */
static void add_worth(const struct mt_reporter *reporter, const struct mt_finding *finding,
                      bool has_cost)
{
    struct mt_buf line = {0};

    mt_buf_add_text(&line, "   ");
    add_saving(finding, &line);
    if (finding->cost && has_cost)
        mt_buf_printf(&line, "%s%s", line.length > TAB ? "; " : "Cost: ", finding->cost);
    if (line.length > TAB)
        add_indented(reporter, "", line.data, TAB + 2);
    mt_buf_release(&line);
}

/* Length of the advice up to its other ways, which are in --all. */
static size_t first_way(const char *advice)
{
    const char *other = strstr(advice, "; or ");

    return other ? (size_t)(other - advice) : strlen(advice);
}

static void add_change(const struct mt_reporter *reporter, uint32_t number, bool has_cost)
{
    const struct mt_finding *finding = &reporter->device->findings[number];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%u. %s", number + 1, finding->title);
    add_indented(reporter, number ? "" : "Change", line.data, TAB);
    mt_buf_reset(&line);
    mt_buf_printf(&line, "   Try: %.*s", (int)first_way(finding->advice), finding->advice);
    add_indented(reporter, "", line.data, TAB + 2);
    mt_buf_release(&line);
    add_worth(reporter, finding, has_cost);
    if (!finding->proved_by)
        return;
    mt_buf_printf(reporter->out, "%*sCheck: ", LABEL + TAB, ""); /* one line, to be copied */
    mt_buf_add_printable(reporter->out, finding->proved_by, strlen(finding->proved_by));
    mt_buf_add_char(reporter->out, '\n');
}

static void add_changes(const struct mt_reporter *reporter, const struct room *room)
{
    const struct mt_device_report *device = reporter->device;

    if (!device->finding_count && device->no_finding)
        add(reporter, "Change",
            mt_reporter_format(reporter, "nothing stands out: %s", device->no_finding));
    for (uint32_t i = 0; i < device->finding_count && i < room->changes; i++)
        add_change(reporter, i, room->has_costs);
    if (device->finding_count > room->changes)
        add(reporter, room->changes ? "" : "Change",
            mt_reporter_format(reporter, "%u more: --all", device->finding_count - room->changes));
}

/* One line of trust; the reasons are in --all. */

static const char *how_exact(const struct mt_reporter *reporter)
{
    const struct mt_replay_result *replay = &reporter->device->replay;
    const struct mt_replay_verify *verify = &replay->verify;
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT];

    if (reporter->report->integrity.events_dropped)
        return mt_reporter_format(
            reporter, "NOT exact: at least %s missing",
            mt_format_counted(a, reporter->report->integrity.events_dropped, "event"));
    if (reporter->report->what_if)
        return "simulated: the program did not run with these settings";
    if (mt_is_one_instant(reporter->report, reporter->device))
        return "exact for this one instant; no history was recorded";
    if (reporter->report->is_driver_level)
        return "exact sums of the requests to the driver, which rounds them up";
    if (replay->is_taken_over && reporter->report->lacks_rules)
        return "bytes as recorded; the file does not name the allocator's rules";
    if (replay->is_taken_over && !replay->by_rule.was_tried)
        return "bytes as recorded; other settings cannot be replayed";
    if (replay->is_taken_over)
        return "bytes as recorded; the allocator's rules do not reproduce all addresses";
    if (!verify->allocations)
        return "no request was served, so there is nothing to compare";
    if (mt_replay_matches_recording(verify))
        return mt_reporter_format(
            reporter, "bytes exact (replay: all %s addresses%s)",
            mt_format_count(a, verify->allocations),
            verify->segment_events
                ? mt_reporter_format(reporter, ", %s",
                                     mt_format_counted(b, verify->segment_events, "segment event"))
                : "");
    return mt_reporter_format(reporter, "a replay gives %s of %s addresses",
                              mt_format_count(a, verify->addresses_exact),
                              mt_format_count(b, verify->allocations));
}

/* How the roles of the peak are known. A guess of a tenth of the peak is said with its bytes. */
static void add_origin_of_roles(struct mt_buf *line, const struct mt_reporter *reporter)
{
    const struct mt_role_origins origins = mt_role_origins_of(reporter->report, reporter->device);
    const uint64_t peak_bytes = reporter->device->allocated_peak.bytes;
    char text[MT_UNITS_TEXT];

    if (reporter->report->is_plain || !peak_bytes)
        return;
    if (reporter->device->peak_role_bytes[MT_ROLE_OTHER] > peak_bytes / 2)
        mt_buf_add_text(line, "; most roles are unknown");
    else if (origins.guessed_bytes > peak_bytes / 10)
        mt_buf_printf(line, "; the roles of %s are a guess",
                      mt_format_bytes_like(text, origins.guessed_bytes, peak_bytes));
    else
        mt_buf_add_text(line,
                        origins.inferred_bytes ? "; roles from structure" : "; roles as recorded");
}

static void add_trust(const struct mt_reporter *reporter)
{
    const char *doubt = mt_peaks_doubt(reporter->report, reporter->device);
    struct mt_buf line = {0};

    mt_buf_add_text(&line, how_exact(reporter));
    if (doubt && !mt_fatal_oom(reporter->device) &&
        !mt_is_one_instant(reporter->report, reporter->device) &&
        !reporter->report->integrity.events_dropped && !reporter->device->has_failure)
        mt_buf_printf(&line, "; %s", doubt);
    add_origin_of_roles(&line, reporter);
    add_line(reporter, "Trust", &line);
}

/* All of it. */

/* "Others  device 0: peak 5.10 GiB; device 2: peak 4.00 GiB; 3 more: --all". Those that died come
 * first. */
static void add_other_devices(const struct mt_reporter *reporter)
{
    enum { MOST = 4 };
    const struct mt_report *report = reporter->report;
    struct mt_buf line = {0};
    uint32_t others = 0;
    char text[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < 2 * report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i % report->device_count];
        const bool died = mt_fatal_oom(device) || device->has_failure;

        if (device == reporter->device || died == (i >= report->device_count) || others++ >= MOST)
            continue;
        mt_buf_printf(&line, "%sdevice %u: peak %s%s", line.length ? "; " : "", device->device,
                      mt_format_bytes(text, mt_knows_reserved(report)
                                                ? device->reserved_peak.bytes
                                                : device->allocated_peak.bytes),
                      device->has_failure ? ", would RUN OUT OF MEMORY"
                      : died              ? ", OUT OF MEMORY"
                                          : "");
    }
    if (others > MOST)
        mt_buf_printf(&line, "; %u more: --all", others - MOST);
    add_line(reporter, "Others", &line);
}

static void add_device(const struct mt_reporter *reporter, const struct room *room)
{
    const struct mt_device_report *device = reporter->device;

    if (reporter->report->device_count > 1)
        mt_buf_printf(reporter->out, "%sDevice %u%s %s %u devices\n", reporter->style->bold,
                      device->device, reporter->style->reset,
                      mt_fatal_oom(device)                  ? "ran out of memory, of"
                      : mt_knows_reserved(reporter->report) ? "has the largest reserved peak of"
                                                            : "has the largest allocated peak of",
                      reporter->report->device_count);
    mt_reporter_dry_run(reporter);
    mt_reporter_notices(reporter);
    add_death(reporter);
    mt_reporter_refused(reporter);
    mt_reporter_failure(reporter);
    if (mt_lacks_requests(device)) {
        mt_reporter_missing_requests(reporter);
    } else if (mt_is_one_instant(reporter->report, device)) {
        mt_reporter_one_instant(reporter);
    } else if (!device->has_failure) { /* what follows the failure is hypothetical */
        add_card(reporter);
        add_peak(reporter);
    }
    if (!mt_lacks_requests(device) && !device->has_failure) {
        add_held_by(reporter);
        add_places(reporter, room->places);
        add_changes(reporter, room);
        add_trust(reporter);
    }
    add_other_devices(reporter);
    mt_reporter_devices_left_out(reporter);
}

void mt_reporter_first_screen(const struct mt_reporter *shared, size_t most_lines)
{
    struct mt_reporter reporter = *shared;
    struct mt_buf text = {0};

    reporter.out = &text;
    reporter.device = mt_worst_device(shared->report);
    for (size_t i = 0; i < MT_ARRAY_LEN(rooms); i++) {
        mt_buf_reset(&text);
        add_device(&reporter, &rooms[i]);
        mt_reporter_run(&reporter);
        if (mt_buf_count_lines(&text) <= most_lines)
            break;
    }
    mt_buf_add(shared->out, text.data ? text.data : "", text.length);
    mt_buf_release(&text);
}
