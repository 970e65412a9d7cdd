/* memtrace plan: searches the values and layouts with which a command fits on cards. And the part
 * that it shares with `dry-run --sweep` and `--ranks`: many dry runs, their files, one answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "dry_run_annex.h"
#include "dry_run_answer.h"
#include "gate_run.h"
#include "outputs.h"
#include "picture_option.h"
#include "plan_cache.h"
#include "process_memory.h"
#include "search.h"
#include "simulated_run.h"
#include "sweep_chart.h"
#include "sweep_output.h"
#include "sweep_runs.h"
#include "temporary_folder.h"
#include "util.h"

int mt_dry_run_find_card(const char *option, const char *name, const struct mt_card **card)
{
    const char *near;

    *card = mt_card_find(name, &near);
    if (*card)
        return -1;
    if (near)
        mt_message("option '--%s': '%s' does not name one card; did you mean '%s'?", option, name,
                   near);
    else
        mt_message("option '--%s': no card is called '%s'; 'memtrace dry-run --help' lists them",
                   option, name);
    return MT_EXIT_USAGE;
}

int mt_dry_run_read_timeout(const char *text, uint64_t *timeout_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const char *at = text;
    uint64_t number = 0;
    bool fits = true;

    if (!at)
        return -1;
    for (; *at >= '0' && *at <= '9' && fits; at++)
        fits = mt_mul_ok(number, 10, &number) && mt_add_ok(number, (uint64_t)(*at - '0'), &number);
    for (size_t i = 0; i < MT_ARRAY_LEN(units) && fits && number; i++)
        if (!strcmp(at, units[i].unit) && mt_mul_ok(number, units[i].ms, timeout_ms))
            return -1;
    mt_message("option '--timeout' needs seconds or a time such as 90s, 10m or 2h, not '%s'", text);
    return MT_EXIT_USAGE;
}

/* Reports a fault that affects all runs once, before the first run. Keeps what the check found in
 * *run. The caller frees it. */
static int check_first(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
                       struct mt_simulated_run *run)
{
    *run = *arguments->each;
    run->recording.command = mt_sweep_plan_command(plan, &plan->sweep.runs[0]);
    run->names_python = !arguments->common->quiet && !arguments->common->json;
    return mt_simulated_run_check(run);
}

static bool is_table(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.sweep/") ||
           mt_file_begins_json(start, length, "{\"schema\":\"memtrace.plan/");
}

static const struct mt_file_kind table_kind = {.name = "a table of dry runs by memtrace",
                                               .is_own = is_table};

static const struct {
    const char *ending;
    const struct mt_file_kind *kind;
} answer_files[] = {{"json", &table_kind}, {"svg", &mt_file_svg}, {"png", &mt_file_png}};

/* Path of "sweep.json" and so on in the folder of -o. */
static char *path_in(struct mt_sweep_plan *plan, const char *folder, size_t file)
{
    struct mt_buf path = {0};
    char *copy;

    mt_outputs_add_path(&path, folder, plan->wishes->stem);
    mt_buf_printf(&path, ".%s", answer_files[file].ending);
    copy = mt_arena_text(&plan->arena, path.data, path.length);
    mt_buf_release(&path);
    return copy;
}

static bool is_written(size_t file)
{
    return answer_files[file].kind != &mt_file_png || mt_png_available(NULL);
}

/* Creates the folder of -o and checks that its files may be written. Returns -1 or an exit code. */
static int prepare_folder(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    const char *folder = arguments->each->recording.output;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_output_file_make_folders(folder, &error) != MT_OK)
        return mt_report_output_error(folder, &error);
    for (size_t i = 0; !code && i < MT_ARRAY_LEN(answer_files); i++)
        if (is_written(i))
            code = mt_output_precheck(path_in(plan, folder, i), arguments->outputs,
                                      answer_files[i].kind);
    return code ? code : mt_sweep_precheck_logs(plan, folder, arguments->outputs);
}

/* Fills what the answer says about the simulated device. The plan has a run. */
static void describe(const struct mt_sweep_arguments *arguments, struct mt_sweep *sweep)
{
    sweep->card = arguments->each->card;
    sweep->devices = mt_sweep_devices(arguments, &sweep->runs[0]);
    sweep->memory_bytes = mt_simulated_memory_bytes(arguments->each);
}

enum { SHOWN_LOGS = 3 }; /* the last lines of this many failed runs are printed */

static bool is_unexpected(const struct mt_sweep_result *result)
{
    return result->outcome == MT_SWEEP_FAILED || result->outcome == MT_SWEEP_NOT_RUN ||
           result->outcome == MT_SWEEP_TIMED_OUT;
}

/* Without -o, the output of these runs is kept nowhere else. */
static void show_failures(const struct mt_sweep_request *request)
{
    const struct mt_sweep *sweep = &request->plan->sweep;
    size_t count = 0;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        if (is_unexpected(&run->result) && count++ < SHOWN_LOGS)
            mt_sweep_log_show(request, run);
    }
    if (count > SHOWN_LOGS)
        mt_message("%zu more run%s failed%s", count - SHOWN_LOGS,
                   count == SHOWN_LOGS + 1 ? "" : "s",
                   request->keeps_traces ? "" : "; to keep their output, use -o DIR");
}

/* Writes sweep.json or plan.json. */
static int write_json(const struct mt_sweep_request *request, const struct mt_buf *json)
{
    const char *path = path_in(request->plan, request->folder, 0);

    return mt_outputs_write(path, request->arguments->outputs, answer_files[0].kind, json);
}

/* Writes the picture as SVG, and as PNG if this memtrace can write PNGs. */
static int write_pictures(const struct mt_sweep_request *request, const struct mt_sweep *drawn)
{
    const struct mt_chart_options options = {.width = 0};
    struct mt_drawing drawing;
    int code = MT_EXIT_OK;

    mt_sweep_draw(drawn, &options, &drawing);
    for (size_t i = 1; !code && i < MT_ARRAY_LEN(answer_files); i++) {
        struct mt_picture picture = {.output = path_in(request->plan, request->folder, i),
                                     .outputs = request->arguments->outputs,
                                     .is_png = answer_files[i].kind == &mt_file_png};
        size_t bytes;

        if (is_written(i))
            code = mt_picture_write(&picture, &drawing, &bytes);
    }
    mt_drawing_release(&drawing);
    return code;
}

static struct mt_dry_run_answer dry_run_sweep_answer_of(const struct mt_sweep_request *request,
                                                        const struct mt_sweep_run *run)
{
    const struct mt_sweep_arguments *shared = request->arguments;
    const struct mt_sweep_result *result = &run->result;

    return (struct mt_dry_run_answer){.card = shared->each->card,
                                      .devices = mt_sweep_devices(shared, run),
                                      .memory_bytes = mt_simulated_memory_bytes(shared->each),
                                      .has_limit = shared->each->limit_bytes,
                                      .exit_status = result->exit_status,
                                      .signal = result->signal,
                                      .timed_out = result->outcome == MT_SWEEP_TIMED_OUT,
                                      .common = (struct mt_common *)shared->common,
                                      .gates = (struct mt_gate_options *)shared->gates};
}

/* Prints the full answer for the process with the largest reserved peak of all ranks. Call it after
 * the table is printed. Returns an exit code. The exit code of the rank is in its result. */
static int report_worst_rank(const struct mt_sweep_request *request)
{
    const struct mt_sweep_run *run = mt_sweep_worst(&request->plan->sweep);
    struct mt_dry_run_answer answer;
    struct mt_dry_run_trace trace = {.path = NULL};
    struct mt_dry_run_notes notes = {0};
    struct mt_gate_run unchecked = {.has_base = false}; /* printed already */

    if (!run)
        return MT_EXIT_OK;
    trace.path =
        mt_arena_printf(&request->plan->arena, "%s/%s", request->folder, run->result.trace);
    notes.sizes = run->result.sizes_from_data;
    notes.decisions = run->result.decisions_from_data;
    answer = dry_run_sweep_answer_of(request, run);
    answer.notes = &notes;
    answer.traces = &trace;
    answer.trace_count = 1;
    answer.gate_run = &unchecked;
    (void)mt_report_dry_run_answer(&answer);
    return MT_EXIT_OK;
}

/* Returns the exit code of the first run that failed, or MT_EXIT_OK. */
static int exit_code_of(const struct mt_sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.exit_code)
            return sweep->runs[i].result.exit_code;
    return MT_EXIT_OK;
}

static int print_result(const struct mt_sweep_request *request)
{
    const struct mt_sweep_arguments *arguments = request->arguments;
    struct mt_sweep_plan *plan = request->plan;
    struct mt_buf out = {0};
    int code = MT_EXIT_OK, printed;

    show_failures(request);
    if (request->keeps_traces) {
        mt_sweep_add_json(&out, plan, true);
        code = write_json(request, &out);
        mt_buf_release(&out);
    }
    if (!code && request->keeps_traces)
        code = write_pictures(request, &plan->sweep);
    if (arguments->common->json)
        mt_sweep_add_json(&out, plan, request->keeps_traces);
    else
        mt_sweep_add_text(&out, &plan->sweep);
    printed = mt_print_answer_and_release(&out, arguments->common->json);
    if (!printed && plan->sweep.world && !arguments->common->json)
        printed = report_worst_rank(request);
    return code ? code : printed ? printed : exit_code_of(&plan->sweep);
}

/* Sets the folder of the traces: that of -o, or a temporary one. Returns -1 or an exit code. */
static int choose_folder(struct mt_sweep_request *request, struct mt_temporary_folder *temporary)
{
    const char *output = request->arguments->each->recording.output;

    request->keeps_traces = output;
    request->folder = output;
    if (output)
        return -1;
    if (!mt_temporary_folder_new(temporary, "memtrace-sweep")) {
        mt_message(
            "cannot create a folder for the traces in $TMPDIR: %s; to name a folder, use -o DIR",
            strerror(errno));
        return MT_EXIT_OUTPUT;
    }
    request->folder = temporary->path;
    return -1;
}

/* Returns -1 or an exit code. */
static int prepare(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    struct mt_simulated_run *first;
    int code = mt_sweep_plan_make(plan, &arguments->wishes);

    if (code < 0)
        code = mt_sweep_plan_add_all(plan);
    if (code >= 0)
        return code;
    describe(arguments, &plan->sweep);
    first = mt_memory_new(sizeof *first); /* too large for a small stack */
    code = check_first(arguments, plan, first);
    mt_simulated_run_release(first);
    free(first);
    return code < 0 && arguments->each->recording.output ? prepare_folder(arguments, plan) : code;
}

int mt_dry_run_sweep(struct mt_sweep_arguments *arguments)
{
    struct mt_sweep_plan plan;
    struct mt_sweep_request request = {.plan = &plan, .arguments = arguments};
    struct mt_temporary_folder folder = MT_TEMPORARY_FOLDER_NONE;
    int code;

    arguments->wishes.stem = "sweep";
    code = prepare(arguments, &plan);
    request.needs_traces = code < 0 && plan.sweep.world; /* for the answer about the worst rank */
    if (code < 0)
        code = choose_folder(&request, &folder);
    if (code < 0)
        code = mt_sweep_run_all(&request);
    if (code < 0)
        code = print_result(&request);
    mt_temporary_folder_remove(&folder);
    mt_sweep_plan_release(&plan);
    return code;
}

/* ---- plan */

enum { DEFAULT_MAX_RUNS = 64, MAX_COMBINATIONS = 1024 };

struct plan_command {
    struct mt_simulated_run each;
    struct mt_common common;
    struct mt_gate_options gates; /* none */
    struct mt_gate_run gate_run;
    struct mt_outputs outputs;
    struct mt_sweep_arguments arguments;
    struct mt_text_list card_names;
    const char *timeout, *shard;
    uint64_t max_runs;
    bool no_cache;
    const struct mt_card *cards[MT_MAX_SEARCH_CARDS]; /* ascending by memory */
    struct mt_sweep_plan plan;
    struct mt_search search;
    struct mt_plan_cache cache;
    uint64_t *amounts[MT_MAX_SWEEP_NAMES];
    size_t ranks; /* runs of a point, at most */
    size_t *round;
};

static void add_card(struct plan_command *command, const struct mt_card *card)
{
    size_t at = command->search.card_count++;

    for (; at && command->cards[at - 1]->memory_bytes > card->memory_bytes; at--)
        command->cards[at] = command->cards[at - 1];
    command->cards[at] = card;
}

/* The largest card is simulated, so one run answers for all. Without --card: those up to an H200,
 * whose costs beside the allocator are measured. */
static int choose_cards(struct plan_command *command)
{
    const struct mt_card *card;
    int code = mt_dry_run_find_card("card", "H200", &command->each.card);

    if (command->card_names.count > MT_MAX_SEARCH_CARDS) {
        mt_message("option '--card': at most %d cards", MT_MAX_SEARCH_CARDS);
        return MT_EXIT_USAGE;
    }
    for (size_t i = 0; code < 0 && i < command->card_names.count; i++) {
        code = mt_dry_run_find_card("card", command->card_names.items[i], &card);
        if (code < 0)
            add_card(command, card);
    }
    for (card = mt_cards; !command->card_names.count && card->name; card++)
        if (card->memory_bytes <= command->each.card->memory_bytes)
            add_card(command, card);
    if (code >= 0)
        return code;
    command->each.card = command->cards[command->search.card_count - 1];
    for (size_t i = 0; i < command->search.card_count; i++)
        command->search.card_bytes[i] = command->cards[i]->memory_bytes;
    return -1;
}

/* Reads "3/64": the third of 64 parts. Returns -1 or an exit code. */
static int read_shard(struct plan_command *command)
{
    char *end = NULL;
    unsigned long number, count = 0;

    if (!command->shard)
        return -1;
    number = strtoul(command->shard, &end, 10);
    if (*command->shard >= '0' && *command->shard <= '9' && *end == '/' && end[1] >= '0' &&
        end[1] <= '9')
        count = strtoul(end + 1, &end, 10);
    if (!number || number > count || *end) {
        mt_message("option '--shard' needs the number of a part and the number of parts, such as "
                   "3/64; the first part is 1");
        return MT_EXIT_USAGE;
    }
    command->search.shard = number - 1;
    command->search.shard_count = count;
    return -1;
}

/* Returns -1 or an exit code. */
static int make_search(struct plan_command *command)
{
    const struct mt_sweep_plan *plan = &command->plan;
    struct mt_search *search = &command->search;
    size_t points = 1;

    search->axis_count = plan->axis_count;
    for (size_t i = 0; i < plan->axis_count; i++) {
        const struct mt_sweep_axis *axis = &plan->axes[i];

        points *= axis->count; /* at most 1024 to the power of 4 */
        search->axes[i].count = axis->count;
        if (!axis->is_range)
            continue;
        command->amounts[i] = mt_memory_zeroed(axis->count, sizeof(uint64_t));
        for (size_t j = 0; j < axis->count; j++)
            (void)mt_sweep_number(axis->values[j], &command->amounts[i][j]);
        search->axes[i].amounts = command->amounts[i];
    }
    if (points > MT_MAX_PLAN_POINTS) {
        mt_message("option '--try': these values make %zu points, but at most %d are allowed",
                   points, MT_MAX_PLAN_POINTS);
        return MT_EXIT_USAGE;
    }
    mt_search_init(search);
    if (search->combination_count > MAX_COMBINATIONS) {
        mt_message("option '--try': %zu combinations beside the first range, but at most %d are "
                   "allowed",
                   search->combination_count, MAX_COMBINATIONS);
        return MT_EXIT_USAGE;
    }
    return -1;
}

/* Adds the runs of a point to the plan. Returns -1 or an exit code. */
static int add_point(struct plan_command *command, size_t point)
{
    size_t at[MT_MAX_SEARCH_AXES];

    mt_search_split(&command->search, point, at);
    return mt_sweep_plan_add(&command->plan, point, at);
}

/* Finds the number of devices of each combination, which the command has. */
static int find_devices(struct plan_command *command)
{
    struct mt_sweep *sweep = &command->plan.sweep;
    struct mt_search *search = &command->search;
    int code = -1;

    for (size_t i = 0; code < 0 && i < search->combination_count; i++) {
        sweep->run_count = 0;
        code = add_point(command, mt_search_point_of(search, i, 0));
        if (code >= 0)
            return code;
        search->combinations[i].devices = mt_max_u64(sweep->runs[0].rank.world, 1);
        command->ranks = mt_max_u64(command->ranks, sweep->run_count);
    }
    return code;
}

/* What a run says about its point. A point fits if all its ranks do. */
static void take_run(const struct plan_command *command, struct mt_search_point *point,
                     const struct mt_sweep_run *run, bool is_first)
{
    const struct mt_sweep_result *result = &run->result;
    enum mt_search_state state = result->has_need                            ? MT_SEARCH_NEED
                                 : result->outcome == MT_SWEEP_OUT_OF_MEMORY ? MT_SEARCH_TOO_LARGE
                                                                             : MT_SEARCH_FAILED;

    if (is_first)
        *point = (struct mt_search_point){.state = MT_SEARCH_NEED, .cards = UINT32_MAX};
    if (point->state == MT_SEARCH_NEED || state == MT_SEARCH_TOO_LARGE)
        point->state = state;
    if (state == MT_SEARCH_NEED)
        point->need_bytes = mt_max_u64(point->need_bytes, result->card.bytes);
    for (size_t i = 0; i < command->search.card_count; i++) {
        const struct mt_card_use use =
            mt_sweep_need_on(result, command->each.card, command->cards[i]);

        if (state != MT_SEARCH_NEED || !mt_card_use_fits(&use, command->cards[i]))
            point->cards &= ~(UINT32_C(1) << i);
    }
}

/* Passes the runs since `first` on to the search. */
static void take_runs(struct plan_command *command, size_t first)
{
    const struct mt_sweep *sweep = &command->plan.sweep;

    for (size_t i = first; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        take_run(command, &command->search.points[run->point], run,
                 i == first || run[-1].point != run->point);
    }
}

/* Adds the points of the grid of which every rank is in the cache. */
static int read_cache(struct plan_command *command)
{
    struct mt_sweep *sweep = &command->plan.sweep;
    int code = -1;

    sweep->run_count = 0;
    for (size_t i = 0; code < 0 && command->cache.fd >= 0 && i < command->search.point_count; i++) {
        size_t first = sweep->run_count;
        bool is_whole = true;

        code = add_point(command, i);
        for (size_t j = first; code < 0 && is_whole && j < sweep->run_count; j++)
            is_whole = mt_plan_cache_read(&command->cache,
                                          mt_sweep_plan_command(&command->plan, &sweep->runs[j]),
                                          &sweep->runs[j]);
        if (!is_whole)
            sweep->run_count = first;
    }
    take_runs(command, 0);
    return code;
}

/* Runs one round. Returns -1 or an exit code. */
static int run_round(struct plan_command *command, struct mt_sweep_request *request, size_t count)
{
    struct mt_sweep *sweep = &command->plan.sweep;
    size_t first = sweep->run_count;
    int code = -1;

    for (size_t i = 0; code < 0 && i < count; i++)
        code = add_point(command, command->round[i]);
    if (code < 0)
        code = mt_sweep_run_all(request);
    for (size_t i = first; i < sweep->run_count; i++) /* also after a signal: those that ended */
        if (sweep->runs[i].is_ended)
            mt_plan_cache_write(&command->cache,
                                mt_sweep_plan_command(&command->plan, &sweep->runs[i]),
                                &sweep->runs[i]);
    take_runs(command, first);
    return code;
}

static int run_rounds(struct plan_command *command, struct mt_sweep_request *request)
{
    size_t most_points, count;
    int code = -1;

    request->most_runs = command->max_runs;
    command->round = mt_memory_zeroed(command->search.point_count, sizeof *command->round);
    while (code < 0) {
        most_points = (command->max_runs - request->ended) / command->ranks;
        count = mt_search_next(&command->search, most_points, command->round);
        if (!count)
            break;
        code = run_round(command, request, count);
    }
    return code;
}

static int by_point(const void *a, const void *b)
{
    const struct mt_sweep_run *x = a, *y = b;

    if (x->point != y->point)
        return x->point < y->point ? -1 : 1;
    return x->rank.rank < y->rank.rank ? -1 : x->rank.rank > y->rank.rank;
}

/* At most this many bars can be told apart in the picture. */
static void keep_drawn(struct mt_sweep *points)
{
    size_t kept = 0;

    for (size_t i = 0; i < points->run_count && kept < MT_MAX_SWEEP_RUNS; i++)
        if (points->runs[i].result.is_measured)
            points->runs[kept++] = points->runs[i];
    points->run_count = kept;
}

static bool is_cut(const struct mt_search *search)
{
    for (size_t i = 0; i < search->combination_count; i++)
        if (search->combinations[i].is_mine && !search->combinations[i].is_done)
            return true;
    return false;
}

/* Returns MT_EXIT_OK, or the exit code of the first run that failed if nothing fits anywhere. */
static int exit_code_of_plan(const struct plan_command *command)
{
    for (size_t i = 0; i < command->search.point_count; i++)
        if (command->search.points[i].state == MT_SEARCH_NEED)
            return MT_EXIT_OK;
    return exit_code_of(&command->plan.sweep);
}

static int print_plan(struct plan_command *command, const struct mt_sweep_request *request)
{
    struct mt_sweep *sweep = &command->plan.sweep;
    struct mt_plan_answer answer = {.plan = &command->plan,
                                    .search = &command->search,
                                    .cards = command->cards,
                                    .runs = request->ended,
                                    .cached = sweep->run_count - request->ended,
                                    .is_cut = is_cut(&command->search),
                                    .has_files = request->keeps_traces,
                                    .shard = command->shard,
                                    .no_cache = command->cache.why_off};
    struct mt_sweep points;
    struct mt_buf text = {0}, json = {0};
    int code = MT_EXIT_OK, printed;

    show_failures(request);
    if (sweep->run_count)
        qsort(sweep->runs, sweep->run_count, sizeof *sweep->runs, by_point);
    mt_sweep_take_points(sweep, &points);
    answer.points = &points;
    mt_plan_add_json(&json, &answer);
    mt_plan_add_text(&text, &answer);
    if (request->keeps_traces)
        code = write_json(request, &json);
    keep_drawn(&points);
    if (!code && request->keeps_traces)
        code = write_pictures(request, &points);
    printed = mt_print_answer(command->common.json ? &json : &text, command->common.json);
    mt_buf_release(&json);
    mt_buf_release(&text);
    free(points.runs);
    return code ? code : printed ? printed : exit_code_of_plan(command);
}

/* Checks the command, and opens the cache with what the check found. Returns -1 or an exit code. */
static int check_plan(struct plan_command *command)
{
    struct mt_simulated_run *first = mt_memory_new(sizeof *first); /* too large for a small stack */
    int code;

    describe(&command->arguments, &command->plan.sweep);
    code = check_first(&command->arguments, &command->plan, first);
    first->recording.command = command->each.recording.command;
    if (code < 0 && !command->no_cache)
        mt_plan_cache_open(&command->cache, first);
    mt_simulated_run_release(first);
    free(first);
    if (code < 0 && command->each.recording.output) {
        command->plan.sweep.run_count = 0; /* its logs are checked when they are written */
        code = prepare_folder(&command->arguments, &command->plan);
    }
    return code;
}

static int plan(struct plan_command *command)
{
    struct mt_sweep_request request = {.plan = &command->plan, .arguments = &command->arguments};
    struct mt_temporary_folder folder = MT_TEMPORARY_FOLDER_NONE;
    int code = mt_sweep_plan_make(&command->plan, &command->arguments.wishes);

    if (code < 0)
        code = make_search(command);
    if (code < 0)
        code = find_devices(command);
    if (code < 0)
        code = check_plan(command);
    if (code < 0)
        code = choose_folder(&request, &folder);
    if (code < 0)
        code = read_cache(command);
    if (code < 0)
        code = run_rounds(command, &request);
    mt_plan_cache_close(&command->cache);
    if (code < 0)
        code = print_plan(command, &request);
    mt_temporary_folder_remove(&folder);
    return code;
}

static int check_plan_options(struct plan_command *command)
{
    struct mt_simulated_run *each = &command->each;
    struct mt_sweep_wishes *wishes = &command->arguments.wishes;
    int code = choose_cards(command);

    if (code < 0)
        code = mt_dry_run_read_timeout(command->timeout, &each->recording.timeout_ms);
    if (code < 0)
        code = read_shard(command);
    wishes->command = each->recording.command;
    each->recording.quiet = command->common.quiet;
    each->recording.json = command->common.json;
    mt_simulated_run_init(each);
    return code;
}

static int parse(const struct mt_command *row, struct plan_command *command, int argc, char **argv)
{
    const struct mt_option options[] = {
        {"try", 0, MT_OPTION_LIST, "NAME=VALUES",
         "values for {NAME}: a range is searched, 1..64 or 1..64*2; a list is tried, 1,2,4",
         &command->arguments.wishes.values},
        {"card", 0, MT_OPTION_LIST, "NAME",
         "a card to plan for (default: each common card up to an H200)", &command->card_names},
        {"ranks", 0, MT_OPTION_TEXT, "LIST",
         "the ranks that differ: 0,1,7 or 0-3 or all (default: the first, a middle and the last)",
         &command->arguments.wishes.ranks},
        {"world", 0, MT_OPTION_POSITIVE, "N", "without torchrun: the total number of ranks",
         &command->arguments.wishes.world},
        {"max-runs", 0, MT_OPTION_POSITIVE, "N", "at most N dry runs (default: 64)",
         &command->max_runs},
        {"timeout", 0, MT_OPTION_TEXT, "TIME",
         "end a dry run and its processes after this time (90s, 10m, 2h)", &command->timeout},
        {"jobs", 'j', MT_OPTION_POSITIVE, "N", "at most N runs in parallel",
         &command->arguments.jobs},
        {"shard", 0, MT_OPTION_TEXT, "I/N",
         "search only part I of N of the combinations; the cache collects the results",
         &command->shard},
        {"no-cache", 0, MT_OPTION_FLAG, NULL, "neither use nor keep results in the cache",
         &command->no_cache},
        {"output", 'o', MT_OPTION_TEXT, "DIR",
         "keep traces, logs, plan.json and a picture in this folder",
         &command->each.recording.output},
        MT_FORCE_OPTION(command->outputs),
        MT_JSON_OPTION(command->common, "print one JSON document"),
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print no notes", &command->common.quiet},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int code = mt_parse_command(row, options, argc, argv, &command->each.recording.command);

    return code < 0 ? check_plan_options(command) : code;
}

int mt_cmd_plan(const struct mt_command *row, int argc, char **argv)
{
    struct plan_command *command = mt_memory_zeroed(1, sizeof *command);
    int code;

    command->max_runs = DEFAULT_MAX_RUNS;
    command->cache.fd = -1;
    command->arguments = (struct mt_sweep_arguments){.wishes = {.option = "--try",
                                                                .stem = "plan",
                                                                .chooses_ranks = true,
                                                                .most_values = MT_MAX_PLAN_VALUES},
                                                     .each = &command->each,
                                                     .gates = &command->gates,
                                                     .gate_run = &command->gate_run,
                                                     .common = &command->common,
                                                     .outputs = &command->outputs};
    command->gates.outputs = &command->outputs;
    mt_launch_init(&command->each.recording.launch);
    code = parse(row, command, argc, argv);
    if (code < 0)
        code = plan(command);
    for (size_t i = 0; i < MT_MAX_SWEEP_NAMES; i++)
        free(command->amounts[i]);
    free(command->round);
    mt_search_release(&command->search);
    mt_sweep_plan_release(&command->plan);
    mt_simulated_run_release(&command->each);
    free(command);
    return code;
}
