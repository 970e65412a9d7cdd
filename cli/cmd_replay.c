/* memtrace replay: one row per policy and device. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "outputs.h"
#include "policy.h"
#include "policy_runs.h"
#include "pool_option.h"
#include "process_memory.h"
#include "replay.h"
#include "replay_json.h"
#include "report_query.h"
#include "source.h"
#include "text_table.h"
#include "units.h"

/* Writes a row of a device's counters after every memory event, as CSV:
 * event,t_ns,device,requested,allocated,active,reserved,inactive_split
 *
 * A failed write ends the replay. counters_csv_close reports it, because the replay knows only
 * the name of the trace. */

struct counters_csv {
    const char *path;
    struct mt_output_rules rules;
    struct mt_output output;
    struct mt_buf row;
};

static void add_header(struct counters_csv *csv)
{
    static const char header[] =
        "event,t_ns,device,requested,allocated,active,reserved,inactive_split\n";

    (void)mt_output_add(&csv->output, header, sizeof header - 1);
}

/* Opens the file and writes the header line. Prints errors; returns enum mt_exit. */
static int counters_csv_open(struct counters_csv *csv, const char *path,
                             const struct mt_outputs *outputs)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    *csv = (struct counters_csv){.path = path,
                                 .rules = mt_output_rules_of(outputs, &mt_file_counters)};
    if (mt_output_open(&csv->output, path, &csv->rules, &error) != MT_OK)
        return mt_report_output_error(path, &error);
    add_header(csv);
    return MT_EXIT_OK;
}

static enum mt_status restart(void *context)
{
    struct counters_csv *csv = context;

    (void)mt_output_restart(&csv->output);
    add_header(csv);
    return MT_OK;
}

static enum mt_status counters_csv_add_row(void *context, const struct mt_event *event,
                                           const struct mt_replay_view *view)
{
    struct counters_csv *csv = context;
    const struct mt_counters *counters = view->counters;
    const uint64_t cells[] = {event->seq,
                              event->t_ns,
                              event->device,
                              counters->requested.now,
                              counters->allocated.now,
                              counters->active.now,
                              counters->reserved.now,
                              counters->inactive_split.now};

    if (!mt_event_is_memory(event) || (event->flags & MT_EVENT_INITIAL))
        return MT_OK;
    mt_buf_reset(&csv->row);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        if (i)
            mt_buf_add_char(&csv->row, ',');
        mt_buf_add_u64(&csv->row, cells[i]);
    }
    mt_buf_add_char(&csv->row, '\n');
    return mt_output_add(&csv->output, csv->row.data, csv->row.length) ? MT_OK : MT_END;
}

/* Returns an observer for mt_replay_run. *csv must not move while the observer is used. */
static struct mt_replay_observer counters_csv_observer(struct counters_csv *csv)
{
    /* Output to a pipe cannot be taken back. */
    struct mt_replay_observer observer = {csv, counters_csv_add_row,
                                          csv->output.temporary.path ? restart : NULL};

    return observer;
}

/* Renames the file to its final name. Discards the file instead if the exit code of the replay,
 * `code`, is not MT_EXIT_OK. Prints errors; returns enum mt_exit. */
static int counters_csv_close(struct counters_csv *csv, int code)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    mt_buf_release(&csv->row);
    if (code != MT_EXIT_OK && csv->output.failure.status == MT_OK)
        mt_output_abandon(&csv->output);
    else if (mt_output_finish(&csv->output, &error) != MT_OK)
        code = mt_report_output_error(csv->path, &error);
    return code;
}

struct arguments {
    struct mt_common common;
    struct mt_text_list policies, pools;
    const char *counters_path, *heap;
    struct mt_outputs outputs;
    uint64_t jobs;
    bool list_policies;
    struct mt_replay_options replay;
};

static void add_row(struct mt_table *table, const char *policy,
                    const struct mt_replay_result *result)
{
    const struct mt_counters *counters = &result->counters;

    MT_CELLS(table, MT_TEXT(policy), MT_COUNT(result->device), MT_BYTES(counters->reserved.peak),
             MT_BYTES(counters->allocated.peak), MT_BYTES(counters->requested.peak),
             MT_COUNT(counters->device_allocs), MT_COUNT(counters->device_frees),
             MT_COUNT(counters->retries), MT_COUNT(counters->ooms));
}

static void print_rows(struct mt_buf *out, const struct mt_replay_summary *summaries, size_t count)
{
    /* no column is shortened: the name of a policy is its options */
    const struct mt_style *style = mt_stdout_style();
    struct mt_table table;
    size_t rows = 0;

    mt_table_begin(&table, "!policy|#device|#peak reserved|#peak allocated|#peak requested|#device "
                           "allocs|#device frees|#retries|#OOMs");
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < summaries[i].device_count; d++, rows++)
            add_row(&table, summaries[i].policy, &summaries[i].devices[d]);
    mt_text_table_add(out, &table, 0, style);
    if (!rows)
        mt_buf_add_text(out, "no memory events: nothing to replay\n");
}

static void say_limit(struct mt_buf *out, const struct mt_replay_result *result)
{
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    if (result->limit_inferred && !mt_limit_is_known(result))
        mt_text_table_add_note(
            out, 2, "limit: not recorded; a limit of %s B explains when garbage was collected",
            mt_format_count(low, result->limit_low_bytes));
    else if (result->limit_inferred)
        mt_text_table_add_note(
            out, 2,
            "limit: not recorded; successful and failed requests show that it is at least "
            "%s B and below %s B; all limits in this range replay alike",
            mt_format_count(low, result->limit_low_bytes),
            mt_format_count(high, result->limit_high_bytes));
    else if (result->limit_bytes)
        mt_buf_printf(out, "  limit: %s\n", mt_format_bytes(low, result->limit_bytes));
}

static void say_verify(struct mt_buf *out, const struct mt_replay_result *result)
{
    const struct mt_replay_verify *verify = &result->verify;
    char n[4][MT_UNITS_TEXT];
    struct mt_buf line = {0}, covered = {0};

    if (!verify->wanted)
        return;
    mt_buf_printf(&line, "%s: %s of %s addresses, %s of %s segment events",
                  result->is_taken_over                 ? "copied from the recording, not simulated"
                  : mt_replay_matches_recording(verify) ? "exact"
                                                        : "not exact",
                  mt_format_count(n[0], verify->addresses_exact),
                  mt_format_count(n[1], verify->allocations),
                  mt_format_count(n[2], verify->segment_events_exact),
                  mt_format_count(n[3], verify->segment_events));
    if (verify->ooms)
        mt_buf_printf(&line, ", %s of %s out-of-memory errors",
                      mt_format_count(n[0], verify->ooms_exact),
                      mt_format_count(n[1], verify->ooms));
    if (verify->frees_exact != verify->frees)
        mt_buf_printf(&line, ", %s of %s frees", mt_format_count(n[0], verify->frees_exact),
                      mt_format_count(n[1], verify->frees));
    mt_report_add_covered(&covered, verify->covered);
    if (covered.length)
        mt_text_table_add_note(out, 2, "counters that are exact: %s", covered.data);
    mt_text_table_add_note(out, 2, "%s as recorded", line.data ? line.data : "");
    if (verify->events_missing)
        mt_text_table_add_note(out, 2, "the recording lacks at least %s",
                               mt_format_counted(n[0], verify->events_missing, "event"));
    if (verify->first_difference[0])
        mt_text_table_add_note(out, 2, "first difference: %s", verify->first_difference);
    mt_buf_release(&line);
    mt_buf_release(&covered);
}

static void say_pools(struct mt_buf *out, const struct mt_replay_result *result)
{
    char n[MT_UNITS_TEXT];

    if (result->pools_inferred)
        mt_text_table_add_note(
            out, 2,
            "pools_inferred: %s got a private pool that the trace does not name; without this, the "
            "replay would differ earlier",
            mt_format_counted(n, result->pools_inferred, "segment"));
}

/* The lowest address is the usual rule, so it is not printed. */
static void say_free_order(struct mt_buf *out, const struct mt_replay_result *result)
{
    const bool by_block = result->free_order == MT_FREE_OLDEST_BLOCK;

    if (result->free_order <= MT_FREE_LOWEST)
        return;
    mt_text_table_add_note(
        out, 2, "among equal free blocks, the allocator uses the one %s: %s",
        by_block ? "that was created first" : "in the oldest segment",
        result->free_order_found
            ? "with this rule the replay matches the recorded addresses the longest"
        : by_block ? "the rule of PyTorch 2.12"
                   : "the rule of PyTorch 2.13 and later");
}

static void say_restores(struct mt_buf *out, const struct mt_restore_share *share)
{
    char n[3][MT_UNITS_TEXT], text[MT_RESTORE_DOUBT_TEXT];

    if (share->restores)
        mt_text_table_add_note(
            out, 2,
            "restores: %s (CUDA graph trees put earlier blocks back into an empty private "
            "pool), with %s and %s between them",
            mt_format_count(n[0], share->restores), mt_format_counted(n[1], share->blocks, "block"),
            mt_format_counted(n[2], share->gaps, "gap"));
    for (unsigned i = 0; i < MT_RESTORE_DOUBTS; i++)
        if (mt_restore_doubt(share, i, text))
            mt_text_table_add_note(out, 2, "%s", text);
}

static void say_plan(struct mt_buf *out, const struct mt_plan_share *plan)
{
    char n[4][MT_UNITS_TEXT];

    if (!plan->arena_bytes)
        return;
    mt_text_table_add_note(
        out, 2,
        "plan: %s of %s steps make the same requests; the arena has %s, and no plan needs "
        "less than %s",
        mt_format_count(n[0], plan->equal_steps), mt_format_count(n[1], plan->steps),
        mt_format_bytes(n[2], plan->arena_bytes), mt_format_bytes(n[3], plan->bound_bytes));
    mt_text_table_add_note(
        out, 2, "%s of %s requests came from the arena; %s found their planned address in use",
        mt_format_count(n[0], plan->hits), mt_format_count(n[1], plan->requests),
        mt_format_count(n[2], plan->misses));
}

static void say_range(struct mt_buf *out, const char *peak, uint64_t low, uint64_t high,
                      uint32_t orders)
{
    char n[2][MT_UNITS_TEXT];

    mt_format_bytes(n[0], low);
    mt_format_bytes(n[1], high);
    if (low == high)
        mt_text_table_add_note(out, 2, "the %s peak is the same over %u address orders", peak,
                               orders);
    else if (strcmp(n[0], n[1]) == 0)
        mt_text_table_add_note(out, 2,
                               "the %s peak over %u address orders: %s, differing by at most %s",
                               peak, orders, n[0], mt_format_bytes(n[1], high - low));
    else
        mt_text_table_add_note(out, 2, "the %s peak over %u address orders: %s to %s", peak, orders,
                               n[0], n[1]);
}

static void say_orders(struct mt_buf *out, const struct mt_replay_result *result)
{
    if (result->order_count < 2)
        return;
    if (result->reserved_low_bytes == result->reserved_high_bytes &&
        result->allocated_low_bytes == result->allocated_high_bytes) {
        mt_text_table_add_note(
            out, 2, "the reserved and allocated peaks are the same over %u address orders",
            result->order_count);
        return;
    }
    say_range(out, "reserved", result->reserved_low_bytes, result->reserved_high_bytes,
              result->order_count);
    say_range(out, "allocated", result->allocated_low_bytes, result->allocated_high_bytes,
              result->order_count);
}

static void say_ties(struct mt_buf *out, const struct mt_replay_result *result)
{
    char n[2][MT_UNITS_TEXT];

    mt_format_counted(n[0], result->address_ties, "time");
    if (result->recorded_addresses)
        mt_text_table_add_note(
            out, 2,
            "segments have their recorded addresses until the simulation creates one at another "
            "time; after that, addresses decided %s between equal free blocks",
            n[0]);
    else
        mt_text_table_add_note(
            out, 2, "addresses are simulated; they decided %s between equal free blocks", n[0]);
    say_orders(out, result);
}

static void say_doubts(struct mt_buf *out, const struct mt_replay_result *result)
{
    char n[MT_UNITS_TEXT];

    if (result->address_ties)
        say_ties(out, result);
    else if (!result->recorded_addresses)
        mt_text_table_add_note(out, 2, "addresses are simulated, but no decision depended on them");
    if (result->starts_in_middle)
        mt_text_table_add_note(
            out, 2,
            "the trace starts in the middle of a run: peaks are those since the start of "
            "the trace");
    if (result->ooms_not_asked)
        mt_text_table_add_note(
            out, 2,
            "no limit was given, so %s of the run that failed %s not repeated; to repeat such "
            "requests, add --limit BYTES",
            mt_format_counted(n, result->ooms_not_asked, "request"),
            result->ooms_not_asked == 1 ? "was" : "were");
    if (result->failed_requests)
        mt_text_table_add_note(
            out, 2,
            "%s failed: the program would have stopped at the first one, so later figures are not "
            "those of a real run",
            mt_format_counted(n, result->failed_requests, "recorded allocation"));
    if (result->orphan_frees)
        mt_text_table_add_note(out, 2, "ignored %s of addresses that were not allocated",
                               mt_format_counted(n, result->orphan_frees, "free"));
    if (result->policy_doubt)
        mt_text_table_add_note(out, 2, "approximate: %s", result->policy_doubt);
}

static void print_text(struct mt_buf *out, const struct mt_source *source,
                       const struct mt_replay_summary *summaries, size_t count)
{
    const char *why = mt_header_why_only_recorded(&source->header);

    print_rows(out, summaries, count);
    if (why)
        mt_text_table_add_note(out, 0, "other policies cannot be replayed: %s", why);
    else if (summaries[0].device_count)
        mt_policy_runs_add_requests(out, source);
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < summaries[i].device_count; d++) {
            struct mt_buf notes = {0};
            mt_pool_option_add_shares(&notes, summaries[i].policy, summaries[i].devices[d].pools);
            say_plan(&notes, &summaries[i].devices[d].plan);
            say_verify(&notes, &summaries[i].devices[d]);
            say_limit(&notes, &summaries[i].devices[d]);
            say_free_order(&notes, &summaries[i].devices[d]);
            say_pools(&notes, &summaries[i].devices[d]);
            say_restores(&notes, &summaries[i].devices[d].restores);
            say_doubts(&notes, &summaries[i].devices[d]);
            if (notes.length) {
                mt_buf_add_char(out, '\n');
                mt_buf_add_printable(out, summaries[i].policy, strlen(summaries[i].policy));
                mt_buf_printf(out, ", device %u\n", summaries[i].devices[d].device);
                mt_buf_add(out, notes.data, notes.length);
            }
            mt_buf_release(&notes);
        }
}

static void print_json(struct mt_buf *out, const struct mt_source *source,
                       const struct mt_replay_summary *summaries, size_t count, bool all)
{
    struct mt_json json;
    struct mt_json_list list;

    mt_json_document(&json, out, "memtrace.replay/1", all);
    mt_json_requests(&json, source);
    mt_json_list_begin(&list, &json, "policies");
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < summaries[i].device_count; d++)
            if (mt_json_list_takes(&list))
                mt_json_replay_result(&json, summaries[i].policy, &summaries[i].devices[d]);
    }
    mt_json_list_end(&list);
    mt_json_object_end(&json);
}

/* Prints the table of policies, one per line, for --policies. */
static int print_policies(void)
{
    struct mt_buf out = {0};

    for (size_t i = 0; mt_policies[i]; i++) {
        mt_buf_add_text(&out, mt_policies[i]->name);
        for (size_t pad = strlen(mt_policies[i]->name); pad < 14; pad++)
            mt_buf_add_char(&out, ' ');
        mt_buf_printf(&out, "%s%s\n", mt_policies[i]->summary,
                      mt_policies[i]->doubt ? " (approximate)" : "");
    }
    return mt_print_answer_and_release(&out, false);
}

struct replay_run {
    const struct mt_replay_options *options;
    const struct mt_replay_observer *observer; /* of the only policy, may be NULL */
    struct mt_replay_summary *summaries;       /* one per policy */
};

static enum mt_status replay_policy(void *context, struct mt_source *source, const char *policy,
                                    size_t index, struct mt_error *error)
{
    const struct replay_run *run = context;
    struct mt_replay_options options = *run->options;

    options.policy = policy;
    enum mt_status status =
        mt_replay_run(source, &options, run->observer, &run->summaries[index], error);
    if (status == MT_OK && !run->observer)
        status = mt_replay_orders(source, &options, MT_BASE_ORDERS, &run->summaries[index], error);
    return status;
}

/* Runs all policies. With --counters there is only one, which is observed. */
static int run_policies(struct mt_source *source, const char *path,
                        const struct arguments *arguments, struct mt_replay_summary *summaries)
{
    struct replay_run run = {&arguments->replay, NULL, summaries};
    const struct mt_policy_runs runs = {source,
                                        path,
                                        arguments->heap,
                                        &arguments->common,
                                        &arguments->policies,
                                        "replaying",
                                        arguments->jobs,
                                        replay_policy,
                                        &run};
    struct counters_csv csv = {0};

    if (!arguments->counters_path)
        return mt_policy_runs_run(&runs);
    int exit_code = counters_csv_open(&csv, arguments->counters_path, &arguments->outputs);
    if (exit_code != MT_EXIT_OK)
        return exit_code;
    struct mt_replay_observer observer = counters_csv_observer(&csv);
    run.observer = &observer;
    exit_code = mt_policy_runs_run(&runs);
    return counters_csv_close(&csv, exit_code);
}

/* Returns MT_EXIT_BUDGET if --verify found a difference. */
static int verify_exit(const struct mt_replay_summary *summaries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < summaries[i].device_count; d++) {
            const struct mt_replay_verify *verify = &summaries[i].devices[d].verify;
            if (verify->wanted && !mt_replay_matches_recording(verify))
                return MT_EXIT_BUDGET;
        }
    }
    return MT_EXIT_OK;
}

static int replay(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    size_t count = arguments->policies.count;
    struct mt_replay_summary *summaries = mt_memory_zeroed(count, sizeof *summaries);
    struct mt_buf out = {0};
    int exit_code = run_policies(source, path, arguments, summaries);

    if (exit_code == MT_EXIT_OK) {
        if (arguments->common.json)
            print_json(&out, source, summaries, count, arguments->common.all);
        else if (!mt_outputs_is_standard(arguments->counters_path))
            print_text(&out, source, summaries, count);
        exit_code = mt_print_answer_and_release(&out, arguments->common.json);
        exit_code = mt_answer_verdict(exit_code, source, path, &arguments->common);
        if (exit_code == MT_EXIT_OK)
            exit_code = verify_exit(summaries, count);
    }
    free(summaries);
    return exit_code;
}

/* Selects the heap that --heap names. Prints errors; returns enum mt_exit. */
static int choose_heap(struct mt_source *source, const char *path, const char *name)
{
    struct mt_error error = {MT_OK, MT_NO_OFFSET, ""};

    if (!name || mt_heap_view_choose_heap(source, name, &error) == MT_OK)
        return MT_EXIT_OK;
    if (error.status != MT_ERR_USAGE)
        return mt_report_error(path, &error);
    mt_message("--heap: %s", error.text);
    return MT_EXIT_USAGE;
}

int mt_cmd_replay(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct mt_option options[] = {
        {"policy", 'p', MT_OPTION_LIST, "P", "simulate this allocator; repeatable",
         &arguments.policies},
        {"pool", 0, MT_OPTION_LIST, "SELECTOR",
         "give the requests that match a separate memory pool", &arguments.pools},
        {"policies", 0, MT_OPTION_FLAG, NULL, "list all simulated allocators",
         &arguments.list_policies},
        MT_LIMIT_OPTION(&arguments.replay.limit_bytes, "memory limit of the device, such as 12GiB"),
        {"heap", 0, MT_OPTION_TEXT, "NAME", "only the requests of this heap (see 'memtrace info')",
         &arguments.heap},
        {"verify", 0, MT_OPTION_FLAG, NULL, "compare every address and segment with the trace",
         &arguments.replay.verify},
        {"blind", 0, MT_OPTION_FLAG, NULL, "do not use recorded segment addresses",
         &arguments.replay.blind},
        {"counters", 0, MT_OPTION_TEXT, "FILE",
         "write the counters after each event to FILE as CSV", &arguments.counters_path},
        MT_FORCE_OPTION(arguments.outputs),
        MT_JOBS_OPTION(&arguments.jobs),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_arena arena = {0};
    char **paths;
    int path_count;
    int exit_code = mt_options_parse(command, options, argc, argv, 0, 1, &paths, &path_count);

    if (exit_code >= 0)
        return exit_code;
    if (arguments.list_policies)
        return print_policies();
    if (path_count < 1)
        return mt_missing_argument(command);
    if (arguments.counters_path && arguments.policies.count > 1) {
        mt_message("option '--counters' needs exactly one policy, not %zu",
                   arguments.policies.count);
        return MT_EXIT_USAGE;
    }
    if (arguments.common.json && mt_outputs_is_standard(arguments.counters_path)) {
        mt_message(
            "--json and --counters - both write to standard output: name a file with --counters");
        return MT_EXIT_USAGE;
    }
    mt_outputs_add_input(&arguments.outputs, paths[0]);
    exit_code = mt_output_precheck(arguments.counters_path, &arguments.outputs, &mt_file_counters);
    if (exit_code != MT_EXIT_OK)
        return exit_code;
    if (!arguments.policies.count)
        arguments.policies.items[arguments.policies.count++] = NULL; /* the policy of the trace */
    exit_code = mt_pools_to_policies(&arguments.pools, &arguments.policies, &arena);
    struct mt_source *source =
        exit_code ? NULL : mt_open_input(paths[0], &arguments.common, &exit_code);
    if (source)
        exit_code = choose_heap(source, paths[0], arguments.heap);
    if (source && exit_code == MT_EXIT_OK)
        exit_code = replay(source, paths[0], &arguments);
    mt_source_close(source);
    mt_arena_release(&arena);
    return exit_code;
}
