/* memtrace optimal: the minimum memory for an offline planner. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "feed.h"
#include "json.h"
#include "open_input.h"
#include "optimal.h"
#include "outputs.h"
#include "policy_runs.h"
#include "process_memory.h"
#include "text_table.h"

#define NS_A_SECOND      UINT64_C(1000000000)
#define DEFAULT_SECONDS  10
#define MAX_SECONDS      (UINT64_C(1) << 30)
#define MAX_CSV_BYTES    ((size_t)1 << 30)
#define CSV_READ_AT_ONCE ((size_t)1 << 16)

struct optimal {
    struct mt_common common;
    const char *path, *time, *plan_path;
    struct mt_outputs outputs;
    const struct mt_source *source; /* NULL if the buffers come from a CSV file */
    struct mt_optimal_options options;
    struct mt_progress progress;
    struct mt_buffers devices[MT_BUFFERS_DEVICES];
    struct mt_optimal_result results[MT_BUFFERS_DEVICES];
};

/* Reads "30" or "0.5" (seconds), or "none" (no time limit). */
static bool parse_seconds(const char *text, uint64_t *ns)
{
    uint64_t whole = 0, fraction = 0, scale = NS_A_SECOND;
    const char *at = text;

    *ns = 0;
    if (strcmp(text, "none") == 0)
        return true;
    for (; *at >= '0' && *at <= '9' && whole <= MAX_SECONDS; at++)
        whole = whole * 10 + (uint64_t)(*at - '0');
    if (at == text || whole > MAX_SECONDS)
        return false;
    if (*at == '.') {
        for (at++; *at >= '0' && *at <= '9' && scale > 1; at++) {
            scale /= 10;
            fraction += scale * (uint64_t)(*at - '0');
        }
    }
    *ns = whole * NS_A_SECOND + fraction;
    *ns += *ns == 0; /* 0 would mean no time limit */
    return *at == '\0';
}

static enum mt_status read_rest(struct mt_feed *feed, struct mt_buf *text, struct mt_error *error)
{
    enum mt_status status = MT_OK;
    size_t got = 1;

    while (status == MT_OK && got) {
        char *room = mt_buf_reserve(text, CSV_READ_AT_ONCE);
        status = mt_feed_read(feed, room, CSV_READ_AT_ONCE, &got, error);
        if (status == MT_OK)
            text->length += got;
        if (text->length > MAX_CSV_BYTES)
            return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "more than 1 GiB of text");
    }
    return status;
}

/* Reads the file and sets *is_csv if it is CSV, which cannot come from standard input. */
static enum mt_status read_csv(struct optimal *optimal, bool *is_csv, struct mt_error *error)
{
    struct mt_feed *feed = NULL;
    struct mt_buf text = {0};
    const void *start;
    size_t length;

    *is_csv = false;
    if (strcmp(optimal->path, "-") == 0)
        return MT_OK;
    enum mt_status status = mt_feed_open(optimal->path, &feed, error);
    if (status == MT_OK)
        status = mt_feed_start(feed, &start, &length, error);
    if (status == MT_OK)
        *is_csv = mt_buffers_csv_probe(start, length);
    if (status == MT_OK && *is_csv)
        status = read_rest(feed, &text, error);
    if (status == MT_OK && *is_csv)
        status = mt_buffers_from_csv(text.data ? text.data : "", text.length, &optimal->devices[0],
                                     error);
    mt_buf_release(&text);
    mt_feed_close(feed);
    return status;
}

/* Returns an exit code. Defects of input that could still be read are reported later. */
static int read_trace(struct optimal *optimal, struct mt_source **source)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_reading reading;
    int code;

    *source = mt_open_input(optimal->path, &optimal->common, &code);
    if (!*source)
        return code;
    mt_reading_start(&reading, *source, "reading", optimal->common.quiet);
    enum mt_status status = mt_buffers_from_source(*source, optimal->devices, &error);
    mt_reading_end(&reading);
    if (status != MT_OK)
        return mt_report_error(optimal->path, &error);
    optimal->source = *source;
    return MT_EXIT_OK;
}

static unsigned count_devices(const struct optimal *optimal, unsigned from)
{
    unsigned count = 0;

    for (unsigned d = from; d < MT_BUFFERS_DEVICES; d++)
        count += optimal->devices[d].count > 0;
    return count;
}

/* Shows the share of the time limit. */
static void show_progress(void *context)
{
    struct optimal *optimal = context;
    uint64_t all_ns = optimal->options.time_ns;
    double share = MT_SHARE_UNKNOWN;

    if (all_ns)
        share = (double)mt_progress_elapsed_ns(&optimal->progress) / (double)all_ns;
    mt_progress_update(&optimal->progress, "searching", share);
}

/* Each device gets an equal share of the time that is left. */
static int solve_devices(struct optimal *optimal)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_optimal_options options = optimal->options;
    uint64_t left_ns = options.time_ns;

    for (unsigned d = 0; d < MT_BUFFERS_DEVICES; d++) {
        if (!optimal->devices[d].count)
            continue;
        if (options.time_ns)
            options.time_ns = left_ns / count_devices(optimal, d) + 1;
        if (mt_optimal_solve(&optimal->devices[d], &options, &optimal->results[d], &error) != MT_OK)
            return mt_report_error(optimal->path, &error);
        left_ns -= optimal->results[d].used_ns < left_ns ? optimal->results[d].used_ns : left_ns;
    }
    return MT_EXIT_OK;
}

static int solve_all(struct optimal *optimal)
{
    optimal->options.progress = show_progress;
    optimal->options.context = optimal;
    mt_progress_start(&optimal->progress, optimal->common.quiet);
    int code = solve_devices(optimal);
    mt_progress_end(&optimal->progress);
    return code;
}

static void json_result(struct mt_json *json, const struct mt_optimal_result *result,
                        uint64_t used_ns)
{
    mt_json_u64(json, "lower_bound_bytes", result->lower_bound_bytes);
    mt_json_u64(json, "plan_bytes", result->plan_bytes);
    mt_json_bool(json, "proven_optimal", result->proven_optimal);
    mt_json_share(json, "seconds", (double)used_ns / (double)NS_A_SECOND);
}

/* Returns the device with the largest plan, which is at the top level of the document. */
static unsigned largest_device(const struct optimal *optimal)
{
    unsigned largest = 0;

    for (unsigned d = 1; d < MT_BUFFERS_DEVICES; d++)
        if (optimal->results[d].plan_bytes > optimal->results[largest].plan_bytes)
            largest = d;
    return largest;
}

static void write_json(const struct optimal *optimal, struct mt_buf *out)
{
    struct mt_json json;
    struct mt_json_list list;
    uint64_t used_ns = 0;

    for (unsigned d = 0; d < MT_BUFFERS_DEVICES; d++)
        used_ns += optimal->results[d].used_ns;
    mt_json_document(&json, out, "memtrace.optimal/1", optimal->common.all);
    mt_json_requests(&json, optimal->source);
    json_result(&json, &optimal->results[largest_device(optimal)], used_ns);
    mt_json_list_begin(&list, &json, "devices");
    for (unsigned d = 0; d < MT_BUFFERS_DEVICES; d++) {
        if (!optimal->devices[d].count || !mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(&json, NULL);
        mt_json_u64(&json, "device", d);
        mt_json_u64(&json, "buffers", optimal->devices[d].count);
        mt_json_u64(&json, "max_load_bytes", optimal->results[d].max_load_bytes);
        json_result(&json, &optimal->results[d], optimal->results[d].used_ns);
        mt_json_object_end(&json);
    }
    mt_json_list_end(&list);
    mt_json_object_end(&json);
}

static void add_row(struct mt_table *table, const struct optimal *optimal, unsigned d)
{
    const struct mt_optimal_result *result = &optimal->results[d];
    uint64_t above = result->plan_bytes - result->lower_bound_bytes;

    MT_CELLS(table, MT_COUNT(d), MT_COUNT(optimal->devices[d].count),
             MT_COUNT(result->lower_bound_bytes), MT_COUNT(result->plan_bytes), MT_COUNT(above),
             MT_SHARE(above, result->lower_bound_bytes),
             MT_TEXT(result->proven_optimal ? "yes" : "not known"));
}

static void write_text(const struct optimal *optimal, struct mt_buf *out)
{
    const struct mt_style *style = mt_stdout_style();
    struct mt_table table;

    if (!count_devices(optimal, 0)) {
        mt_buf_add_text(out, "no buffers: nothing to plan\n");
        return;
    }
    mt_table_begin(&table, "#device|#buffers|#lower bound, B|#plan, B|#above, B|#above|optimal");
    for (unsigned d = 0; d < MT_BUFFERS_DEVICES; d++)
        if (optimal->devices[d].count)
            add_row(&table, optimal, d);
    mt_text_table_add(out, &table, 0, style);
    mt_policy_runs_add_requests(out, optimal->source);
}

/* Writes the buffers as they were read, with their offsets in the plan. */
static int write_plan(const struct optimal *optimal)
{
    struct mt_buf out = {0};

    mt_buf_add_text(&out, "device,lower,upper,size,offset\n");
    for (unsigned d = 0; d < MT_BUFFERS_DEVICES; d++) {
        for (size_t i = 0; i < optimal->devices[d].count; i++) {
            const struct mt_buffer *buffer = &optimal->devices[d].items[i];
            mt_buf_printf(&out, "%u,%llu,%llu,%llu,%llu\n", d, (unsigned long long)buffer->begin,
                          (unsigned long long)buffer->end, (unsigned long long)buffer->bytes,
                          (unsigned long long)optimal->results[d].addresses[i]);
        }
    }
    int code = mt_outputs_write(optimal->plan_path, &optimal->outputs, &mt_file_plan, &out);
    mt_buf_release(&out);
    return code;
}

static int answer(const struct optimal *optimal)
{
    struct mt_buf out = {0};
    int code = optimal->plan_path ? write_plan(optimal) : MT_EXIT_OK;

    if (code == MT_EXIT_OK) {
        if (optimal->common.json)
            write_json(optimal, &out);
        else if (!mt_outputs_is_standard(optimal->plan_path))
            write_text(optimal, &out);
        code = mt_print_answer(&out, optimal->common.json);
    }
    mt_buf_release(&out);
    return code;
}

static int run(struct optimal *optimal)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_source *source = NULL;
    bool is_csv = false;

    if (read_csv(optimal, &is_csv, &error) != MT_OK)
        return mt_report_error(optimal->path, &error);
    int code = is_csv ? MT_EXIT_OK : read_trace(optimal, &source);
    if (code == MT_EXIT_OK)
        code = solve_all(optimal);
    if (code == MT_EXIT_OK)
        code = answer(optimal);
    if (code == MT_EXIT_OK && source)
        code = mt_input_verdict(source, optimal->path, &optimal->common);
    mt_source_close(source);
    return code;
}

static int check_and_run(struct optimal *optimal, const char *path)
{
    if (optimal->common.json && mt_outputs_is_standard(optimal->plan_path)) {
        mt_message("--json and -o - both write to standard output: name a file with -o");
        return MT_EXIT_USAGE;
    }
    optimal->path = path;
    mt_outputs_add_input(&optimal->outputs, path);
    int code = mt_output_precheck(optimal->plan_path, &optimal->outputs, &mt_file_plan);
    return code ? code : run(optimal);
}

int mt_cmd_optimal(const struct mt_command *command, int argc, char **argv)
{
    struct optimal *optimal = mt_memory_zeroed(1, sizeof *optimal);
    char **paths;
    int path_count;

    optimal->options.time_ns = DEFAULT_SECONDS * NS_A_SECOND;
    const struct mt_option options[] = {
        {"time", 't', MT_OPTION_TEXT, "S", "search for S seconds (default 10), or 'none'",
         &optimal->time},
        {"capacity", 0, MT_OPTION_BYTES, "BYTES", "stop at a plan that fits in this many bytes",
         &optimal->options.capacity_bytes},
        {"output", 'o', MT_OPTION_TEXT, "FILE", "write the plan as CSV", &optimal->plan_path},
        MT_FORCE_OPTION(optimal->outputs),
        MT_ALL_OPTION(optimal->common),
        MT_COMMON_OPTIONS(optimal->common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    int code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &path_count);
    if (code < 0 && optimal->time && !parse_seconds(optimal->time, &optimal->options.time_ns)) {
        mt_message("option '--time' needs seconds such as 10 or 0.5, or 'none', not '%s'",
                   optimal->time);
        code = MT_EXIT_USAGE;
    }
    if (code < 0)
        code = check_and_run(optimal, paths[0]);
    for (int d = 0; d < MT_BUFFERS_DEVICES; d++) {
        mt_buffers_release(&optimal->devices[d]);
        mt_optimal_release(&optimal->results[d]);
    }
    free(optimal);
    return code;
}
