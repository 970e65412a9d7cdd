/* The state when memory ran out, and settings that would have prevented the error. */
#include "analyze_output.h"
#include "oom_why.h"
#include "report_query.h"
#include "site.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

#include <string.h>

static void add_oom(struct mt_table *table, const struct mt_reporter *reporter,
                    const struct mt_oom *oom)
{
    MT_CELLS(table, MT_TIME(reporter->report->first_t_ns, oom->t_ns), MT_BYTES(oom->request_bytes),
             MT_BYTES(oom->then.allocated), MT_BYTES(oom->then.reserved),
             MT_BYTES(oom->device_free_bytes), MT_TEXT(oom->fatal ? "fatal" : "caught"),
             MT_TEXT(mt_reporter_where(reporter, oom->phase, oom->step)),
             MT_SITE(mt_site_label(reporter->arena, reporter->report->symbols, oom->stack, false)));
}

static void report_oom_table(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    struct mt_table table;

    mt_table_begin(&table, "#at|#requested|#allocated|#reserved|#device free||~in|!requested by");
    for (uint32_t i = 0; i < device->oom_count; i++)
        if (i < 8 || i + 1 == device->oom_count)
            add_oom(&table, reporter, &device->oom_list[i]);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
    if (device->oom_count > 9)
        mt_buf_printf(reporter->out, "  (%u in total)\n", (unsigned)device->ooms);
}

static void report_limit(const struct mt_reporter *reporter)
{
    const struct mt_replay_result *replay = &reporter->device->replay;
    const struct mt_oom_answer *answer = reporter->device->oom_answer;
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    if (!mt_limit_is_known(replay))
        return;
    if (reporter->report->what_if) {
        mt_reporter_line(reporter, 2,
                         mt_reporter_format(reporter, "The simulated limit is %s",
                                            mt_format_mib(low, replay->limit_bytes)));
        return;
    }
    const char *limit = answer ? mt_oom_limit_text(reporter->arena, answer)
                               : mt_replay_limit_text(reporter->arena, replay);
    if (answer && answer->most_limit_bytes < mt_most_limit_bytes(replay))
        limit = mt_reporter_format(reporter, "%s: %s was reserved and %s was free", limit,
                                   mt_format_mib(low, answer->oom->then.reserved),
                                   mt_format_mib(high, answer->oom->device_free_bytes));
    else if (replay->limit_inferred && replay->limit_high_bytes > replay->limit_low_bytes)
        limit = mt_reporter_format(
            reporter, "%s: at least %s B, which was granted, and less than %s B, which was refused",
            limit, mt_format_count(low, replay->limit_low_bytes),
            mt_format_count(high, replay->limit_high_bytes));
    mt_reporter_line(reporter, 2, mt_reporter_format(reporter, "T%s", limit + 1));
}

/* Reports whether the unused memory would have been enough in one piece. */
static void report_shortage(const struct mt_reporter *reporter, const struct mt_oom_answer *answer)
{
    const struct mt_oom *oom = answer->oom;
    uint64_t reserved = oom->then.reserved, most = answer->most_limit_bytes;
    uint64_t growth = most > reserved ? most - reserved : 0;
    char wanted[MT_UNITS_TEXT], have[MT_UNITS_TEXT], more[MT_UNITS_TEXT];

    mt_format_bytes(wanted, oom->request_bytes);
    mt_format_bytes(have, answer->unused_bytes);
    mt_format_bytes(more, growth);
    if (answer->cause == MT_OOM_ADDRESS_SPACE)
        return;
    if (answer->cause == MT_OOM_DEMAND)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "Not fragmentation: %s of reserved memory was unused and %s "
                               "more was available; even as one piece they could not hold %s.",
                               have, more, wanted));
    else if (answer->unused_bytes >= oom->request_bytes)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "Fragmentation: %s of reserved memory was unused, but no "
                               "single piece of it could hold %s.",
                               have, wanted));
    else
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(
                reporter,
                "%s: %s of reserved memory was unused and at most %s more was available; as one "
                "piece they would %s %s.",
                answer->cause == MT_OOM_EITHER ? "Demand or fragmentation" : "Fragmentation", have,
                more, answer->cause == MT_OOM_EITHER ? "perhaps hold" : "hold", wanted));
}

const char *mt_oom_way_setting(const struct mt_oom_way *way)
{
    const char *options = strchr(way->policy, ':');

    return options && options[1] ? options + 1 : "PyTorch's defaults";
}

static const char *about(const struct mt_oom_way *way)
{
    return way->approximate ? "about " : "";
}

static const char *under_same(const struct mt_oom_answer *answer, const struct mt_oom_way *way)
{
    if (way->same_limit)
        return "yes";
    return way->fits && way->fit_bytes <= answer->most_limit_bytes ? "perhaps" : "no";
}

static void report_ways(const struct mt_reporter *reporter, const struct mt_oom_answer *answer)
{
    struct mt_table table;
    char fit[MT_UNITS_TEXT];

    mt_table_begin(&table, "!setting|#enough memory|succeeds under the original limit");
    for (uint32_t i = 0; i < answer->way_count; i++) {
        const struct mt_oom_way *way = &answer->ways[i];

        MT_CELLS(
            &table,
            MT_TEXT(i ? mt_oom_way_setting(way)
                      : mt_reporter_format(reporter, "unchanged (%s)", mt_oom_way_setting(way))),
            MT_TEXT(!way->fits ? "no limit"
                               : mt_reporter_format(reporter, "%s%s", about(way),
                                                    mt_format_mib(fit, way->fit_bytes))),
            MT_TEXT(under_same(answer, way)));
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void report_fatal(const struct mt_reporter *reporter, const struct mt_oom *oom)
{
    const struct mt_instant *instant = mt_oom_instant(reporter->device, oom);
    const struct mt_oom_answer *answer = reporter->device->oom_answer;

    if (answer) {
        report_shortage(reporter, answer);
        if (answer->way_count)
            report_ways(reporter, answer);
    }
    if (!instant || !instant->holder_count)
        return;
    mt_buf_add_text(reporter->out, "  Allocated at the time:\n");
    mt_reporter_holders(reporter, instant);
}

/* Prints the retries of the recorded run or, under other settings, those that the replay
 * predicts. */
static void report_retries(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    const uint64_t served = mt_sub_or_0_u64(device->retries, device->ooms);
    const bool what_if = reporter->report->what_if;
    char count[2][MT_UNITS_TEXT];

    if (!device->retries)
        return;
    mt_buf_printf(reporter->out,
                  "  %s retr%s %s the cache and ask%s the driver again; %s %s served\n",
                  mt_format_count(count[0], device->retries), device->retries == 1 ? "y" : "ies",
                  what_if ? "would flush" : "flushed", what_if ? "" : "ed",
                  served ? mt_format_count(count[1], served) : "none",
                  what_if       ? "would be"
                  : served <= 1 ? "was"
                                : "were");
}

void mt_reporter_ooms(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;

    if (!device->oom_count && !device->retries)
        return;
    mt_reporter_heading(reporter, device->oom_count ? "Out of memory" : "Retries");
    report_retries(reporter);
    report_limit(reporter);
    if (!device->oom_count)
        return;
    report_oom_table(reporter);
    if (!device->oom_list[device->oom_count - 1].fatal)
        mt_buf_add_text(reporter->out, "  The program continued after each of them.\n");
    if (mt_fatal_oom(device))
        report_fatal(reporter, mt_fatal_oom(device));
}

static void json_ways(struct mt_json *json, const struct mt_oom_answer *answer)
{
    mt_json_array_begin(json, "goes_on_with");
    for (uint32_t i = 0; i < answer->way_count; i++) {
        const struct mt_oom_way *way = &answer->ways[i];

        mt_json_object_begin(json, NULL);
        mt_json_text(json, "policy", way->policy);
        mt_json_bool(json, "as_it_was", i == 0);
        mt_json_u64_or_null(json, "limit_bytes", way->fits, way->fit_bytes);
        mt_json_u64_or_null(json, "smaller_limit_bytes", way->smaller_fit_bytes,
                            way->smaller_fit_bytes);
        mt_json_text(json, "under_same_limit", under_same(answer, way));
        mt_json_bool(json, "approximate", way->approximate);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

void mt_json_oom_answer(struct mt_json *json, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    static const char *const causes[] = {[MT_OOM_DEMAND] = "demand",
                                         [MT_OOM_FRAGMENTATION] = "fragmentation",
                                         [MT_OOM_EITHER] = "either",
                                         [MT_OOM_ADDRESS_SPACE] = "address_space"};
    const struct mt_oom_answer *answer = device->oom_answer;

    if (!answer) {
        mt_json_null(json, "out_of_memory");
        return;
    }
    mt_json_object_begin(json, "out_of_memory");
    mt_json_u64(json, "event", answer->oom->event);
    mt_json_u64(json, "request_bytes", answer->oom->request_bytes);
    mt_json_text(json, "cause", causes[answer->cause]);
    mt_json_text(json, "why", mt_oom_kind_name(mt_oom_why_of(report, device, answer->oom).kind));
    mt_json_u64(json, "unused_bytes", answer->unused_bytes);
    mt_json_u64(json, "least_limit_bytes", answer->least_limit_bytes);
    mt_json_u64(json, "most_limit_bytes", answer->most_limit_bytes);
    json_ways(json, answer);
    mt_json_object_end(json);
}
