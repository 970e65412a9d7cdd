/* memtrace replay: one row a policy and device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "counters_csv.h"
#include "policy.h"
#include "replay.h"
#include "replay_json.h"
#include "report.h"
#include "units.h"

struct arguments {
    struct mt_common common;
    struct mt_text_list policies;
    const char *counters_path;
    bool list_policies;
    struct mt_replay_options replay;
};

static const char *const default_policy[] = {"pytorch"};

/* ---- text ----------------------------------------------------------------- */

/* Text cells of one row, padded on the left but for the first. */
enum { COLUMNS = 9, MAX_POLICIES = 32 };

struct row {
    char cells[COLUMNS][160];
};

static void fill_row(struct row *row, const char *policy, const struct mt_replay_result *result)
{
    const struct mt_counters *counters = &result->counters;
    const uint64_t bytes[] = {counters->reserved.peak, counters->allocated.peak,
                              counters->requested.peak};
    const uint64_t counts[] = {counters->device_allocs, counters->device_frees, counters->retries,
                               counters->ooms};
    size_t i;

    memset(row, 0, sizeof *row);
    strncpy(row->cells[0], policy, sizeof row->cells[0] - 1);
    mt_format_count(row->cells[1], result->device);
    for (i = 0; i < 3; i++)
        mt_format_bytes(row->cells[2 + i], bytes[i]);
    for (i = 0; i < 4; i++)
        mt_format_count(row->cells[5 + i], counts[i]);
}

static void print_rows(struct mt_buf *out, const struct row *rows, size_t count)
{
    size_t widths[COLUMNS] = {0}, r, c, length, pad;

    for (r = 0; r < count; r++) {
        for (c = 0; c < COLUMNS; c++) {
            length = strlen(rows[r].cells[c]);
            widths[c] = length > widths[c] ? length : widths[c];
        }
    }
    for (r = 0; r < count; r++) {
        for (c = 0; c < COLUMNS; c++) {
            pad = widths[c] - strlen(rows[r].cells[c]);
            if (c == 0)
                mt_buf_add_printable(out, rows[r].cells[c], strlen(rows[r].cells[c]));
            for (; pad > 0; pad--)
                mt_buf_add_char(out, ' ');
            if (c > 0)
                mt_buf_add_text(out, rows[r].cells[c]);
            mt_buf_add_text(out, c + 1 < COLUMNS ? "  " : "\n");
        }
    }
}

static void say_limit(struct mt_buf *out, const struct mt_replay_result *result)
{
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    if (result->limit_inferred && !mt_limit_is_known(result))
        mt_buf_printf(out,
                      "  limit: not recorded; one of %s B explains what was collected as garbage\n",
                      mt_format_count(low, result->limit_low_bytes));
    else if (result->limit_inferred)
        mt_buf_printf(out,
                      "  limit: not recorded; what was granted and refused shows at least %s B and "
                      "below %s B,\n  and any such limit replays alike\n",
                      mt_format_count(low, result->limit_low_bytes),
                      mt_format_count(high, result->limit_high_bytes));
    else if (result->limit_bytes)
        mt_buf_printf(out, "  limit: %s\n", mt_format_bytes(low, result->limit_bytes));
}

static void say_verify(struct mt_buf *out, const struct mt_replay_result *result)
{
    const struct mt_replay_verify *verify = &result->verify;
    char n[4][MT_UNITS_TEXT];

    if (!verify->wanted)
        return;
    mt_buf_printf(out, "  %s: %s of %s addresses, %s of %s segment events",
                  verify->exact ? "exact" : "not exact",
                  mt_format_count(n[0], verify->addresses_exact),
                  mt_format_count(n[1], verify->allocations),
                  mt_format_count(n[2], verify->segment_events_exact),
                  mt_format_count(n[3], verify->segment_events));
    if (verify->ooms)
        mt_buf_printf(out, ", %s of %s out-of-memory errors",
                      mt_format_count(n[0], verify->ooms_exact),
                      mt_format_count(n[1], verify->ooms));
    mt_buf_add_text(out, " as recorded\n");
    if (verify->first_difference[0])
        mt_buf_printf(out, "  first difference: %s\n", verify->first_difference);
}

static void say_pools(struct mt_buf *out, const struct mt_replay_result *result)
{
    char n[MT_UNITS_TEXT];

    if (result->pools_inferred)
        mt_buf_printf(out,
                      "  pools_inferred: %s segments were taken for a private pool's, which the "
                      "trace does not name:\n  without that the replay would differ earlier\n",
                      mt_format_count(n, result->pools_inferred));
}

static void say_doubts(struct mt_buf *out, const struct mt_replay_result *result)
{
    char n[MT_UNITS_TEXT];

    if (!result->recorded_addresses && result->address_ties)
        mt_buf_printf(
            out,
            "  addresses are synthetic; %s choices between equal free blocks fell by address, "
            "which in a run\n  is the driver's: reserved may differ by a few MiB\n",
            mt_format_count(n, result->address_ties));
    else if (!result->recorded_addresses)
        mt_buf_add_text(out, "  addresses are synthetic, but no choice depended on them\n");
    if (result->starts_in_middle)
        mt_buf_add_text(out, "  the trace starts in the middle of a run: peaks are those since "
                             "its start\n");
    if (result->ooms_not_asked)
        mt_buf_printf(
            out,
            "  no limit was given: %s requests that the run could not serve were not made "
            "again; --limit BYTES makes them\n",
            mt_format_count(n, result->ooms_not_asked));
    if (result->failed_requests)
        mt_buf_printf(out,
                      "  %s recorded allocations found no memory: the program would have "
                      "failed here, and what follows is not what it would have done\n",
                      mt_format_count(n, result->failed_requests));
    if (result->orphan_frees)
        mt_buf_printf(out, "  %s frees of addresses that were not allocated were ignored\n",
                      mt_format_count(n, result->orphan_frees));
    if (result->policy_doubt)
        mt_buf_printf(out, "  approximate: %s\n", result->policy_doubt);
}

static void print_text(struct mt_buf *out, const struct mt_replay_summary *summaries, size_t count)
{
    static const struct row header = {{"policy", "device", "peak reserved", "peak allocated",
                                       "peak requested", "device allocs", "device frees", "retries",
                                       "OOMs"}};
    struct row *rows = calloc(1 + count * MT_MAX_DEVICES, sizeof *rows);
    size_t row_count = 1, i, d;

    if (!rows) {
        out->failed = true;
        return;
    }
    rows[0] = header;
    for (i = 0; i < count; i++) {
        for (d = 0; d < summaries[i].device_count; d++)
            fill_row(&rows[row_count++], summaries[i].policy, &summaries[i].devices[d]);
    }
    if (row_count == 1)
        mt_buf_add_text(out, "no memory events: nothing to replay\n");
    else
        print_rows(out, rows, row_count);
    free(rows);
    for (i = 0; i < count; i++) {
        for (d = 0; d < summaries[i].device_count; d++) {
            struct mt_buf notes = {0};
            say_verify(&notes, &summaries[i].devices[d]);
            say_limit(&notes, &summaries[i].devices[d]);
            say_pools(&notes, &summaries[i].devices[d]);
            say_doubts(&notes, &summaries[i].devices[d]);
            if (notes.length) {
                mt_buf_printf(out, "\n%s, device %u\n", summaries[i].policy,
                              summaries[i].devices[d].device);
                mt_buf_add(out, notes.data, notes.length);
            }
            out->failed = out->failed || notes.failed;
            mt_buf_release(&notes);
        }
    }
}

static void print_json(struct mt_buf *out, const struct mt_replay_summary *summaries, size_t count)
{
    struct mt_json json;
    size_t i, d;

    mt_json_init(&json, out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.replay/1");
    mt_json_array_begin(&json, "policies");
    for (i = 0; i < count; i++) {
        for (d = 0; d < summaries[i].device_count; d++)
            mt_json_replay_result(&json, summaries[i].policy, &summaries[i].devices[d]);
    }
    mt_json_array_end(&json);
    mt_json_object_end(&json);
}

/* What --policies prints: the table of policies, one line each. */
static int print_policies(void)
{
    struct mt_buf out = {0};
    size_t i, pad;
    int exit_code;

    for (i = 0; mt_policies[i]; i++) {
        mt_buf_add_text(&out, mt_policies[i]->name);
        for (pad = strlen(mt_policies[i]->name); pad < 14; pad++)
            mt_buf_add_char(&out, ' ');
        mt_buf_printf(&out, "%s%s\n", mt_policies[i]->summary,
                      mt_policies[i]->doubt ? " (approximate)" : "");
    }
    exit_code = mt_print(&out);
    mt_buf_release(&out);
    return exit_code;
}

/* ---- running ---------------------------------------------------------------- */

static int replay_error(const char *path, const char *policy, const struct mt_error *error)
{
    const char *names[MAX_POLICIES], *near;
    size_t count = 0, i;

    if (error->status != MT_ERR_USAGE && error->status != MT_ERR_UNSUPPORTED)
        return mt_report_error(path, error);
    for (i = 0; mt_policies[i] && count < MAX_POLICIES; i++)
        names[count++] = mt_policies[i]->name;
    near = mt_did_you_mean(policy, names, count);
    if (near)
        mt_say("policy '%s': %s; did you mean '%s'?", policy, error->text, near);
    else
        mt_say("policy '%s': %s", policy, error->text);
    return MT_EXIT_USAGE;
}

static int run_policy(struct mt_source *source, const char *path, const struct arguments *arguments,
                      const char *policy, struct mt_replay_summary *summary)
{
    struct mt_replay_options options = arguments->replay;
    struct mt_counters_csv csv = {0};
    struct mt_replay_observer observer;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status;

    options.policy = policy;
    if (arguments->counters_path) {
        if (!mt_counters_csv_open(&csv, arguments->counters_path)) {
            mt_say("cannot write '%s': %s", arguments->counters_path, strerror(errno));
            return MT_EXIT_OUTPUT;
        }
        observer = mt_counters_csv_observer(&csv);
    }
    status = mt_replay_run(source, &options, csv.file ? &observer : NULL, summary, &error);
    if (!mt_counters_csv_close(&csv)) {
        mt_say("cannot write '%s': %s", arguments->counters_path, strerror(errno));
        return MT_EXIT_OUTPUT;
    }
    error.status = status; /* not every host error has a text of its own */
    return status == MT_OK ? MT_EXIT_OK : replay_error(path, policy, &error);
}

static int run_all(struct mt_source *source, const char *path, const struct arguments *arguments,
                   const char *const *policies, size_t count, struct mt_replay_summary *summaries)
{
    struct mt_progress progress = {0};
    int exit_code = MT_EXIT_OK;
    size_t i;

    mt_progress_start(&progress, &arguments->common);
    for (i = 0; exit_code == MT_EXIT_OK && i < count; i++) {
        struct mt_error error;
        mt_progress_update(&progress, "replaying", (double)i / (double)count);
        if (i > 0 && mt_source_rewind(source, &error) != MT_OK)
            exit_code = mt_report_error(path, &error);
        else
            exit_code = run_policy(source, path, arguments, policies[i], &summaries[i]);
    }
    mt_progress_end(&progress);
    return exit_code;
}

/* A comparison that was asked for and failed is a failed check. */
static int verify_exit(const struct mt_replay_summary *summaries, size_t count)
{
    size_t i, d;

    for (i = 0; i < count; i++) {
        for (d = 0; d < summaries[i].device_count; d++) {
            const struct mt_replay_verify *verify = &summaries[i].devices[d].verify;
            if (verify->wanted && !verify->exact)
                return MT_EXIT_BUDGET;
        }
    }
    return MT_EXIT_OK;
}

static int replay(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    const char *const *policies =
        arguments->policies.count ? arguments->policies.items : default_policy;
    size_t count = arguments->policies.count ? arguments->policies.count : 1;
    struct mt_replay_summary *summaries = calloc(count, sizeof *summaries);
    struct mt_buf out = {0};
    int exit_code, verdict;

    if (!summaries) {
        mt_say("out of memory");
        return MT_EXIT_INPUT;
    }
    exit_code = run_all(source, path, arguments, policies, count, summaries);
    if (exit_code == MT_EXIT_OK) {
        if (arguments->common.json)
            print_json(&out, summaries, count);
        else
            print_text(&out, summaries, count);
        exit_code = mt_print(&out);
        mt_buf_release(&out);
        verdict = mt_input_verdict(source, path, &arguments->common);
        if (exit_code == MT_EXIT_OK)
            exit_code = verdict;
        if (exit_code == MT_EXIT_OK)
            exit_code = verify_exit(summaries, count);
    }
    free(summaries);
    return exit_code;
}

int mt_cmd_replay(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct mt_option options[] = {
        {"policy", 'p', MT_OPTION_LIST, "P", "simulate this allocator; may be given several times",
         &arguments.policies},
        {"policies", 0, MT_OPTION_FLAG, NULL, "list the allocators that can be simulated",
         &arguments.list_policies},
        {"limit", 0, MT_OPTION_BYTES, "BYTES", "memory limit of the device, such as 12GiB",
         &arguments.replay.limit_bytes},
        {"verify", 0, MT_OPTION_FLAG, NULL, "compare every address and segment with the trace",
         &arguments.replay.verify},
        {"blind", 0, MT_OPTION_FLAG, NULL, "do not use recorded segment addresses",
         &arguments.replay.blind},
        {"counters", 0, MT_OPTION_TEXT, "FILE", "write the counters after every event as CSV",
         &arguments.counters_path},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_source *source;
    char **paths;
    int path_count, exit_code;

    exit_code = mt_options_parse(command, options, argc, argv, 0, 1, &paths, &path_count);
    if (exit_code >= 0)
        return exit_code;
    if (arguments.list_policies)
        return print_policies();
    if (path_count < 1)
        return mt_missing_argument(command);
    if (arguments.counters_path && arguments.policies.count > 1) {
        mt_say("--counters takes one policy, not %zu", arguments.policies.count);
        return MT_EXIT_USAGE;
    }
    source = mt_open_input(paths[0], &arguments.common, &exit_code);
    if (!source)
        return exit_code;
    exit_code = replay(source, paths[0], &arguments);
    mt_source_close(source);
    return exit_code;
}
