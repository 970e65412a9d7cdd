/* memtrace fit: the smallest device limit under which a policy serves a trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_output.h"
#include "cards.h"
#include "cli.h"
#include "fit.h"
#include "json.h"
#include "policy_runs.h"
#include "pool_option.h"
#include "process_memory.h"
#include "text_table.h"
#include "trace_end.h"
#include "units.h"
#include "util.h"

struct fit_answer {
    const struct mt_source *source;
    const struct mt_fit_summary *summaries; /* one for each policy */
    size_t count;
    uint64_t limit_bytes; /* requested limit; 0 = none */
    bool no_cards;
    bool all;                  /* no limits in JSON (--all) */
    bool xla_requests_missing; /* the answer is about the regions of XLA's arena */
};

/* The document memtrace.fit/1. */

static void add_failure(struct mt_json *json, const char *key, const struct mt_fit_failure *failure)
{
    if (!failure->known) {
        mt_json_null(json, key);
        return;
    }
    mt_json_object_begin(json, key);
    mt_json_u64(json, "event", failure->event);
    mt_json_u64(json, "size", failure->size_bytes);
    mt_json_text(json, "site", failure->site);
    mt_json_text(json, "phase", failure->phase);
    mt_json_u64(json, "allocated_bytes", failure->alive.allocated);
    mt_json_u64(json, "reserved_bytes", failure->alive.reserved);
    for (struct mt_json_list row = mt_json_rows(json, "alive", failure->site_count);
         mt_json_next(&row);) {
        mt_json_text(json, "site", failure->sites[row.i].label);
        mt_json_u64(json, "bytes", failure->sites[row.i].block_bytes);
        mt_json_u64(json, "blocks", failure->sites[row.i].blocks);
    }
    mt_json_object_end(json);
}

/* A card must have about 1 GiB for CUDA and libraries in addition to the limit. */
static bool fits_on(const struct mt_fit_result *result, const struct mt_card *card)
{
    return result->fits &&
           mt_add_most_u64(mt_fit_need_bytes(result), MT_CARD_OVERHEAD_BYTES) <= card->memory_bytes;
}

static void add_cards(struct mt_json *json, const struct mt_fit_result *result)
{
    mt_json_array_begin(json, "cards");
    for (const struct mt_card *card = mt_cards; card->name; card++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "card", card->name);
        mt_json_u64(json, "memory_bytes", card->memory_bytes);
        mt_json_bool(json, "fits", fits_on(result, card));
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

/* The result for each order of addresses that was tried. */
static void add_orders(struct mt_json *json, const struct mt_fit_result *result)
{
    mt_json_u64_or_null(json, "fit_low_bytes", result->fits, result->low_bytes);
    mt_json_array_begin(json, "address_orders");
    for (uint32_t i = 0; i < result->order_count; i++) {
        const struct mt_fit_order *tried = &result->orders[i];

        mt_json_object_begin(json, NULL);
        mt_json_text(json, "order", tried->name);
        mt_json_u64_or_null(json, "seed", tried->order.rule == MT_ADDRESSES_RANDOM,
                            tried->order.seed);
        mt_json_u64_or_null(json, "fit_bytes", tried->fit_bytes > 0, tried->fit_bytes);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void add_result(struct mt_json *json, const struct fit_answer *answer, const char *policy,
                       const struct mt_fit_result *result)
{
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "policy", policy);
    mt_json_bool(json, "exact", result->policy_exact);
    mt_json_u64(json, "device", result->device);
    mt_json_pool_shares(json, policy, result->pools);
    mt_json_u64_or_null(json, "fit_bytes", result->fits, result->high_bytes);
    mt_json_u64_or_null(json, "fails_at_bytes", result->fits && result->limits_tried > 0,
                        result->high_fails_at_bytes);
    mt_json_u64_or_null(json, "modeled_order_fit_bytes", result->fits, result->fit_bytes);
    add_failure(json, "first_failure", &result->first_failure);
    mt_json_bool(json, "behaviour_depends_on_memory", mt_fit_depends_on_memory(result));
    mt_json_u64(json, "recorded_ooms", result->recorded_ooms);
    mt_json_u64(json, "recorded_retries", result->recorded_retries);
    mt_json_u64_or_null(json, "died_of_bytes", result->died_at != MT_FIT_NOT_DIED,
                        result->died_bytes);
    mt_json_bool(json, "starts_in_middle", result->starts_in_middle);
    mt_json_u64_or_null(json, "fit_reserved_bytes", result->fits, result->fit_reserved_bytes);
    mt_json_u64(json, "reserved_peak_bytes", result->reserved_peak_bytes);
    mt_json_u64(json, "requested_peak_bytes", result->requested_peak_bytes);
    mt_json_u64(json, "address_ties", result->address_ties);
    add_orders(json, result);
    mt_json_u64(json, "lost_pool_segments", result->lost_segments);
    mt_json_bool(json, "monotone_checked",
                 result->fits && !result->smaller_fit_bytes && !result->larger_fail_bytes);
    mt_json_u64(json, "limits_tried", result->limits_tried);
    mt_json_u64_or_null(json, "smaller_fit_bytes", result->smaller_fit_bytes > 0,
                        result->smaller_fit_bytes);
    mt_json_u64_or_null(json, "larger_fail_bytes", result->larger_fail_bytes > 0,
                        result->larger_fail_bytes);
    if (answer->limit_bytes) {
        mt_json_u64(json, "limit_bytes", answer->limit_bytes);
        mt_json_bool(json, "limit_fits", result->limit_fits);
        mt_json_u64(json, "limit_fails_in_orders", result->limit_fail_count);
        add_failure(json, "limit_failure", &result->limit_failure);
    }
    if (!answer->no_cards)
        add_cards(json, result);
    mt_json_object_end(json);
}

static void fit_print_json(struct mt_buf *out, const struct fit_answer *answer)
{
    struct mt_json json;
    struct mt_json_list list;

    mt_json_document(&json, out, "memtrace.fit/1", answer->all);
    mt_json_requests(&json, answer->source);
    mt_json_bool(&json, "xla_requests_missing", answer->xla_requests_missing);
    mt_json_list_begin(&list, &json, "policies");
    for (size_t i = 0; i < answer->count; i++) {
        const struct mt_fit_summary *summary = &answer->summaries[i];
        for (size_t d = 0; d < summary->device_count; d++)
            if (mt_json_list_takes(&list))
                add_result(&json, answer, summary->policy, &summary->devices[d]);
    }
    mt_json_list_end(&list);
    mt_json_object_end(&json);
}

/* Text of fit: a row per policy and device, the first failure below the limit, and cards. */

enum { MAX_CARD_COLUMNS = 8 };

/* "7,712 MiB". A size that is not a whole number of MiB has the usual form. */
static char *format_mib(char text[MT_UNITS_TEXT], uint64_t bytes)
{
    char count[MT_UNITS_TEXT];

    if (bytes % MT_MIB)
        return mt_format_bytes(text, bytes);
    mt_format_count(count, bytes / MT_MIB);
    snprintf(text, MT_UNITS_TEXT, "%.20s MiB", count);
    return text;
}

static void add_row(struct mt_table *table, const struct fit_answer *answer, const char *policy,
                    const struct mt_fit_result *result)
{
    char fits[MT_UNITS_TEXT] = "none", fails[MT_UNITS_TEXT] = "";

    if (result->fits)
        format_mib(fits, result->high_bytes);
    if (result->fits && result->limits_tried)
        format_mib(fails, result->high_fails_at_bytes);
    MT_CELLS(table, MT_TEXT(policy), MT_COUNT(result->device), MT_TEXT(fits),
             result->fits ? MT_BYTES(result->high_bytes) : MT_TEXT(""), MT_TEXT(fails),
             MT_BYTES(result->reserved_peak_bytes));
    if (answer->limit_bytes)
        MT_CELLS(table, MT_TEXT(result->limit_fits ? "fits" : "fails"));
}

static void print_rows(struct mt_buf *out, const struct fit_answer *answer,
                       const struct mt_style *style)
{
    char limit[1 + MT_UNITS_TEXT];
    struct mt_table table;

    mt_table_begin(&table, "!policy|#device|#smallest limit|#|#fails at|#unlimited peak");
    if (answer->limit_bytes) {
        limit[0] = '#';
        mt_format_bytes(limit + 1, answer->limit_bytes);
        mt_table_columns(&table, limit);
    }
    for (size_t i = 0; i < answer->count; i++)
        for (size_t d = 0; d < answer->summaries[i].device_count; d++)
            add_row(&table, answer, answer->summaries[i].policy, &answer->summaries[i].devices[d]);
    mt_text_table_add(out, &table, 0, style);
}

static void say_alive(struct mt_buf *out, const struct mt_fit_failure *failure)
{
    char bytes[2][MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    mt_buf_printf(out, "    live at that point: %s of %s reserved",
                  mt_format_bytes(bytes[0], failure->alive.allocated),
                  mt_format_bytes(bytes[1], failure->alive.reserved));
    mt_buf_add_text(out, failure->site_count ? "; largest lines, all roles\n" : "\n");
    for (uint32_t i = 0; i < failure->site_count; i++) {
        const struct mt_fit_site *site = &failure->sites[i];
        mt_buf_printf(out, "      %10s in %s  ", mt_format_bytes(bytes[0], site->block_bytes),
                      mt_format_counted(count, site->blocks, "block"));
        mt_text_table_add_shortened(out, site->label, 60);
        mt_buf_add_char(out, '\n');
    }
}

static void say_failure(struct mt_buf *out, uint64_t limit_bytes,
                        const struct mt_fit_failure *failure)
{
    char limit[MT_UNITS_TEXT], size[MT_UNITS_TEXT], event[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!failure->known) {
        mt_text_table_add_note(
            out, 2, "at %s, the memory that is live at the start of the trace exceeds the limit",
            format_mib(limit, limit_bytes));
        return;
    }
    mt_buf_printf(&line, "at %s, event %s fails first: %s, ", format_mib(limit, limit_bytes),
                  mt_format_count(event, failure->event),
                  mt_format_bytes(size, failure->size_bytes));
    mt_text_table_add_shortened(&line, failure->site, 60);
    if (failure->where) {
        mt_buf_add_text(&line, ", in ");
        mt_text_table_add_shortened(&line, failure->where, 60);
    }
    mt_text_table_add_note(out, 2, "%s", line.data ? line.data : "");
    mt_buf_release(&line);
    say_alive(out, failure);
}

static void say_not_monotone(struct mt_buf *out, const struct mt_fit_result *result)
{
    char text[MT_UNITS_TEXT];

    if (result->smaller_fit_bytes && result->smaller_fit_bytes < result->low_bytes)
        mt_text_table_add_note(
            out, 2,
            "the run also fits in %s, but not in larger limits below the answer: the "
            "allocator frees its cache at other times there, and the free blocks differ",
            format_mib(text, result->smaller_fit_bytes));
    if (result->larger_fail_bytes > result->high_bytes)
        mt_text_table_add_note(
            out, 2,
            "the run does not fit in %s, although this is more than the answer: leave a margin",
            format_mib(text, result->larger_fail_bytes));
}

static void say_dependence(struct mt_buf *out, const struct mt_fit_result *result)
{
    char ooms[MT_UNITS_TEXT], retries[MT_UNITS_TEXT];

    if (!mt_fit_depends_on_memory(result))
        return;
    mt_text_table_add_note(
        out, 2,
        "the recorded run reached its own memory limit (out-of-memory errors: %s, retries: "
        "%s): the answer holds only if the requests of the program do not depend on the "
        "memory that is available",
        mt_format_count(ooms, result->recorded_ooms),
        mt_format_count(retries, result->recorded_retries));
    if (result->died_at != MT_FIT_NOT_DIED)
        mt_text_table_add_note(
            out, 2,
            "the request of %s that ended the run also fits; the requests that would have "
            "followed are unknown",
            mt_format_bytes(ooms, result->died_bytes));
    else if (result->impossible_bytes)
        mt_text_table_add_note(
            out, 2, "the request of %s that failed need not fit: it is larger than any device",
            mt_format_bytes(ooms, result->impossible_bytes));
    else if (result->recorded_ooms)
        mt_text_table_add_note(out, 2, "requests that failed in the run need not fit");
}

/* Prints the range of limits over the address orders that were tried. */
static void say_orders(struct mt_buf *out, const struct mt_fit_result *result)
{
    char text[3][MT_UNITS_TEXT];

    if (result->order_count > 1 && result->low_bytes < result->high_bytes)
        mt_text_table_add_note(
            out, 2,
            "%s to %s over %u orders of addresses, %s as modeled: addresses decide between "
            "equal free blocks, and the driver chooses the addresses",
            format_mib(text[0], result->low_bytes), format_mib(text[1], result->high_bytes),
            result->order_count, format_mib(text[2], result->fit_bytes));
    else if (result->order_count > 1)
        mt_buf_printf(out, "  the same over %u address orders\n", result->order_count);
    else
        mt_text_table_add_note(
            out, 2,
            "addresses decided %s between equal free blocks: other addresses may "
            "give another limit",
            mt_format_counted(text[0], result->address_ties, "time"));
}

static void say_doubts(struct mt_buf *out, const struct mt_fit_result *result)
{
    char text[MT_UNITS_TEXT];

    if (result->fit_reserved_bytes > result->fit_bytes)
        mt_text_table_add_note(
            out, 2,
            "expandable segments exceed the limit slightly: up to %s are reserved with the "
            "smallest limit",
            format_mib(text, mt_round_up(result->fit_reserved_bytes, MT_MIB)));
    say_not_monotone(out, result);
    say_dependence(out, result);
    if (result->starts_in_middle)
        mt_text_table_add_note(
            out, 2,
            "the trace starts in the middle of a run: segments with blocks at its start keep their "
            "layout; a limit below the memory reserved then releases the others");
    if (result->address_ties || result->order_count > 1)
        say_orders(out, result);
    if (result->lost_segments)
        mt_text_table_add_note(
            out, 2,
            "%s came from private pools that the trace does not name, and counted as part of the "
            "default pool, so the limit may be too small",
            mt_format_counted(text, result->lost_segments, "segment"));
    if (result->policy_doubt)
        mt_text_table_add_note(out, 2, "approximate: %s", result->policy_doubt);
}

/* The failure under the requested limit. Refers to the failure below the smallest limit if both are
 * the same. */
static void say_limit_failure(struct mt_buf *out, uint64_t limit_bytes,
                              const struct mt_fit_result *result)
{
    const struct mt_fit_failure *first = &result->first_failure, *asked = &result->limit_failure;
    char text[MT_UNITS_TEXT];

    if (result->limits_tried && result->fits && first->known && asked->known &&
        first->event == asked->event && first->alive.allocated == asked->alive.allocated &&
        first->alive.reserved == asked->alive.reserved)
        mt_text_table_add_note(out, 2, "at %s, the same request fails first",
                               format_mib(text, limit_bytes));
    else
        say_failure(out, limit_bytes, asked);
}

/* The answer to --limit: "does not fit in 7.00 GiB: 544 MiB more are needed (pytorch, device 0)".
 */
static void say_verdict(struct mt_buf *out, const struct fit_answer *answer, const char *policy,
                        const struct mt_fit_result *result)
{
    const struct mt_style *style = mt_stdout_style();
    char limit[MT_UNITS_TEXT], missing[MT_UNITS_TEXT], more[MT_UNITS_TEXT + 24] = "";
    bool fits = result->limit_fits;

    if (!fits && result->fits && result->high_bytes > answer->limit_bytes)
        snprintf(more, sizeof more, ": %s more is needed",
                 mt_format_bytes(missing, result->high_bytes - answer->limit_bytes));
    mt_buf_add_text(out, fits ? style->green : style->red);
    mt_text_table_add_note(out, 0, "%s in %s%s (%s, device %u)", fits ? "fits" : "does not fit",
                           mt_format_bytes(limit, answer->limit_bytes), more, policy,
                           result->device);
    mt_buf_add_text(out, style->reset);
}

static void say_verdicts(struct mt_buf *out, const struct fit_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        for (size_t d = 0; d < answer->summaries[i].device_count; d++)
            say_verdict(out, answer, answer->summaries[i].policy, &answer->summaries[i].devices[d]);
    mt_buf_add_char(out, '\n');
}

static void say_result(struct mt_buf *out, const struct fit_answer *answer, const char *policy,
                       const struct mt_fit_result *result)
{
    mt_buf_add_char(out, '\n');
    mt_buf_add_printable(out, policy, strlen(policy));
    mt_buf_printf(out, ", device %u\n", result->device);
    mt_pool_option_add_shares(out, policy, result->pools);
    if (result->limits_tried && result->fits)
        say_failure(out, result->fails_at_bytes, &result->first_failure);
    else if (result->limits_tried)
        mt_buf_add_text(out, "  a request is larger than any device\n");
    else
        mt_buf_add_text(out, "  the trace has no requests\n");
    if (answer->limit_bytes && !result->limit_fits)
        say_limit_failure(out, answer->limit_bytes, result);
    say_doubts(out, result);
}

/* Returns the first results, at most one per column of the table of cards. *all is true if none is
 * left out. */
static size_t first_results(const struct fit_answer *answer,
                            const struct mt_fit_result *results[MAX_CARD_COLUMNS], bool *all)
{
    size_t count = 0;

    *all = true;
    for (size_t i = 0; i < answer->count; i++) {
        for (size_t d = 0; d < answer->summaries[i].device_count; d++)
            if (count < MAX_CARD_COLUMNS)
                results[count++] = &answer->summaries[i].devices[d];
            else
                *all = false;
    }
    return count;
}

static void add_card(struct mt_table *table, const struct mt_card *card,
                     const struct mt_fit_result *const *results, size_t count)
{
    MT_CELLS(table, MT_TEXT(card->name), MT_BYTES(card->memory_bytes));
    for (size_t i = 0; i < count; i++)
        MT_CELLS(table, MT_TEXT(fits_on(results[i], card) ? "fits" : "no"));
}

static void print_cards(struct mt_buf *out, const struct fit_answer *answer,
                        const struct mt_style *style)
{
    const struct mt_fit_result *results[MAX_CARD_COLUMNS];
    char title[] = "row 1";
    struct mt_table table;
    bool all;
    size_t count = first_results(answer, results, &all);

    mt_buf_add_char(out, '\n');
    mt_table_begin(&table, "card|#memory");
    for (size_t i = 0; i < count; i++, title[4]++)
        mt_table_columns(&table, count == 1 ? "" : title);
    for (const struct mt_card *card = mt_cards; card->name; card++)
        add_card(&table, card, results, count);
    mt_text_table_add(out, &table, 0, style);
    if (!all)
        mt_buf_add_text(out, "this table shows only the first eight rows\n");
    mt_text_table_add_note(
        out, 0,
        "The limit is that of the allocator. \"fits\" adds 1 GiB for CUDA and libraries; memtrace "
        "analyze prints what a recording measured instead.");
}

static void fit_print_text(struct mt_buf *out, const struct fit_answer *answer)
{
    const struct mt_style *style = mt_stdout_style();
    size_t results = 0;

    for (size_t i = 0; i < answer->count; i++)
        results += answer->summaries[i].device_count;
    if (!results) {
        mt_buf_add_text(out, "no memory events: nothing to fit\n");
        return;
    }
    if (answer->xla_requests_missing) {
        mt_analyze_add_missing_requests(out, style);
        mt_text_table_add_note(
            out, 2,
            "the numbers below are for the regions that the arena took from the driver, "
            "not for the memory that the program needs");
    }
    if (answer->limit_bytes)
        say_verdicts(out, answer);
    print_rows(out, answer, style);
    mt_policy_runs_add_requests(out, answer->source);
    for (size_t i = 0; i < answer->count; i++) {
        const struct mt_fit_summary *summary = &answer->summaries[i];
        for (size_t d = 0; d < summary->device_count; d++)
            say_result(out, answer, summary->policy, &summary->devices[d]);
    }
    if (!answer->no_cards && !answer->limit_bytes)
        print_cards(out, answer, style);
}

struct arguments {
    struct mt_common common;
    struct mt_text_list policies, pools;
    uint64_t limit_bytes, jobs;
    bool no_cards;
};

struct fit_run {
    const struct arguments *arguments;
    struct mt_fit_summary *summaries; /* one per policy */
};

static enum mt_status fit_policy(void *context, struct mt_source *source, const char *policy,
                                 size_t index, struct mt_error *error)
{
    const struct fit_run *run = context;
    const struct mt_fit_options options = {
        .policy = policy, .limit_bytes = run->arguments->limit_bytes, .orders = MT_BASE_ORDERS};

    return mt_fit_run(source, &options, &run->summaries[index], error);
}

/* Returns true if only driver calls of XLA were recorded. False for standard input, which cannot be
 * read again. */
static bool lacks_xla_requests(const struct mt_source *source, const char *path)
{
    struct mt_trace_summary summary;
    struct mt_error error;

    return source->view.level == MT_VIEW_DRIVER && strcmp(path, "-") != 0 &&
           mt_trace_summarize(path, &summary, &error) == MT_OK && summary.xla_requests_missing;
}

static int print(const struct mt_source *source, const char *path,
                 const struct arguments *arguments, const struct mt_fit_summary *summaries,
                 size_t count)
{
    const struct fit_answer answer = {source,
                                      summaries,
                                      count,
                                      arguments->limit_bytes,
                                      arguments->no_cards,
                                      arguments->common.all,
                                      lacks_xla_requests(source, path)};
    struct mt_buf out = {0};

    if (arguments->common.json)
        fit_print_json(&out, &answer);
    else
        fit_print_text(&out, &answer);
    return mt_print_answer_and_release(&out, arguments->common.json);
}

/* A requested limit that is too small is a failed check. */
static int limit_exit(const struct arguments *arguments, const struct mt_fit_summary *summaries,
                      size_t count)
{
    for (size_t i = 0; arguments->limit_bytes && i < count; i++) {
        for (size_t d = 0; d < summaries[i].device_count; d++)
            if (!summaries[i].devices[d].limit_fits)
                return MT_EXIT_BUDGET;
    }
    return MT_EXIT_OK;
}

static int fit(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    size_t count = arguments->policies.count;
    struct mt_fit_summary *summaries = mt_memory_zeroed(count, sizeof *summaries);
    struct fit_run run = {arguments, summaries};
    const struct mt_policy_runs runs = {
        source,          path,       NULL, &arguments->common, &arguments->policies, "searching",
        arguments->jobs, fit_policy, &run};
    int exit_code = mt_policy_runs_run(&runs);

    if (exit_code == MT_EXIT_OK) {
        exit_code = print(source, path, arguments, summaries, count);
        exit_code = mt_answer_verdict(exit_code, source, path, &arguments->common);
        if (exit_code == MT_EXIT_OK)
            exit_code = limit_exit(arguments, summaries, count);
    }
    for (size_t i = 0; i < count; i++)
        mt_fit_release(&summaries[i]);
    free(summaries);
    return exit_code;
}

int mt_cmd_fit(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct mt_option options[] = {
        {"policy", 'p', MT_OPTION_LIST, "P", "simulate this allocator; repeatable",
         &arguments.policies},
        {"pool", 0, MT_OPTION_LIST, "SELECTOR",
         "give the requests that match a separate memory pool", &arguments.pools},
        MT_LIMIT_OPTION(&arguments.limit_bytes,
                        "test this limit; exit with 1 if the run does not fit"),
        {"no-cards", 0, MT_OPTION_FLAG, NULL, "omit the table of common cards",
         &arguments.no_cards},
        MT_JOBS_OPTION(&arguments.jobs),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_arena arena = {0};
    char **paths;
    int path_count;
    int exit_code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &path_count);

    if (exit_code >= 0)
        return exit_code;
    if (!arguments.policies.count)
        arguments.policies.items[arguments.policies.count++] = NULL; /* the policy of the trace */
    exit_code = mt_pools_to_policies(&arguments.pools, &arguments.policies, &arena);
    struct mt_source *source =
        exit_code ? NULL : mt_open_input(paths[0], &arguments.common, &exit_code);
    if (source)
        exit_code = fit(source, paths[0], &arguments);
    mt_source_close(source);
    mt_arena_release(&arena);
    return exit_code;
}
