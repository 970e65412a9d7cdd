/* memtrace plan: searches the values and layouts with which a command fits on cards. */
#include <stdlib.h>

#include "dry_run_annex.h"
#include "gate_run.h"
#include "outputs.h"
#include "plan_cache.h"
#include "plan_text.h"
#include "process_memory.h"
#include "rank.h"
#include "sorted.h"
#include "sweep_runs.h"
#include "temporary_folder.h"
#include "util.h"

enum { DEFAULT_MAX_RUNS = 64, MAX_COMBINATIONS = 1024 };

struct plan_command {
    struct mt_run_settings settings;
    struct mt_common common;
    struct mt_gate_options gates; /* none */
    struct mt_gate_run gate_run;
    struct mt_outputs outputs;
    struct mt_sweep_arguments arguments;
    struct mt_text_list card_names;
    const char *timeout, *shard, *fit_card;
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
    int code = mt_dry_run_find_card("card", "H200", &command->settings.card);

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
        if (card->memory_bytes <= command->settings.card->memory_bytes)
            add_card(command, card);
    if (code >= 0)
        return code;
    command->settings.card = command->cards[command->search.card_count - 1];
    for (size_t i = 0; i < command->search.card_count; i++)
        command->search.card_bytes[i] = command->cards[i]->memory_bytes;
    return -1;
}

/* Reads "3/64": the third of 64 parts. Returns -1 or an exit code. */
static int read_shard(struct plan_command *command)
{
    char *end = NULL;
    unsigned long count = 0;

    if (!command->shard)
        return -1;
    unsigned long number = strtoul(command->shard, &end, 10);
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

/* Finds the number of ranks of one point, 0 for a command without ranks. Returns -1 or an exit
 * code. */
static int find_world(struct plan_command *command, size_t point, uint64_t *world)
{
    struct mt_sweep *sweep = &command->plan.sweep;

    sweep->run_count = 0;
    int code = add_point(command, point);
    if (code >= 0)
        return code;
    *world = sweep->runs[0].rank.world;
    command->ranks = mt_max_u64(command->ranks, sweep->run_count);
    return -1;
}

/* Finds the number of devices of each combination, which the command has. */
static int find_devices(struct plan_command *command)
{
    struct mt_search *search = &command->search;
    uint64_t first = 0, world = 0, largest = 0;
    const char *wrong = NULL;
    int code = -1;

    for (size_t i = 0; code < 0 && !wrong && i < search->combination_count; i++) {
        code = find_world(command, mt_search_point_of(search, i, 0), &world);
        if (code < 0)
            code = find_world(command, mt_search_point_of(search, i, search->size_count - 1),
                              &largest);
        first = i ? first : world;
        if (world != largest)
            wrong = "a range must not change the number of ranks; give a list: 1,2,4";
        else if (!world != !first)
            wrong = "some values make ranks and others do not; plan them apart";
        search->combinations[i].devices = mt_max_u64(world, 1);
    }
    if (code < 0 && wrong) {
        mt_message("option '--try': %s", wrong);
        code = MT_EXIT_USAGE;
    }
    return code;
}

/* What a run says about its point. A point fits if all its ranks do. */
static void take_run(const struct plan_command *command, struct mt_search_point *point,
                     const struct mt_sweep_run *run, bool is_first)
{
    const struct mt_sweep_result *result = &run->result;
    const uint64_t need_bytes = mt_sweep_need_bytes(result);
    const bool runs_out = result->outcome == MT_SWEEP_OUT_OF_MEMORY || need_bytes == UINT64_MAX;
    enum mt_search_state state = runs_out           ? MT_SEARCH_TOO_LARGE
                                 : result->has_need ? MT_SEARCH_NEED
                                                    : MT_SEARCH_FAILED;

    if (is_first)
        *point = (struct mt_search_point){.state = MT_SEARCH_NEED, .cards = UINT32_MAX};
    if (point->state == MT_SEARCH_NEED || state == MT_SEARCH_TOO_LARGE)
        point->state = state;
    if (state == MT_SEARCH_NEED)
        point->need_bytes = mt_max_u64(point->need_bytes, need_bytes);
    for (size_t i = 0; i < command->search.card_count; i++) {
        const struct mt_card_use use =
            mt_sweep_need_on(result, command->settings.card, command->cards[i]);

        if (state != MT_SEARCH_NEED || !mt_card_use_fits(&use, command->cards[i]))
            point->cards &= ~(UINT32_C(1) << i);
    }
}

/* Passes the runs on to the search. */
static void take_runs(struct plan_command *command)
{
    const struct mt_sweep *sweep = &command->plan.sweep;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        take_run(command, &command->search.points[run->point], run,
                 !i || run[-1].point != run->point);
    }
}

/* Returns true if the results of all ranks of the last point of the plan, which begin at `first`,
 * are in the cache. */
static bool is_cached(struct plan_command *command, size_t first)
{
    struct mt_sweep *sweep = &command->plan.sweep;

    for (size_t i = first; i < sweep->run_count; i++)
        if (!mt_plan_cache_read(&command->cache,
                                mt_sweep_plan_command(&command->plan, &sweep->runs[i]),
                                &sweep->runs[i]))
            return false;
    return true;
}

/* Adds the points of a combination of which every rank is in the cache. */
static void recall(void *context, size_t combination)
{
    struct plan_command *command = context;
    struct mt_search *search = &command->search;
    size_t *run_count = &command->plan.sweep.run_count;

    for (size_t i = 0; command->cache.fd >= 0 && i < search->size_count; i++) {
        size_t first = *run_count;

        if (add_point(command, mt_search_point_of(search, combination, i)) >= 0 ||
            !is_cached(command, first))
            *run_count = first;
    }
    take_runs(command);
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
    take_runs(command);
    return code;
}

static int run_rounds(struct plan_command *command, struct mt_sweep_request *request)
{
    int code = -1;

    command->search.recall = recall;
    command->search.context = command;
    request->most_runs = command->max_runs;
    command->round = mt_memory_zeroed(command->search.point_count, sizeof *command->round);
    while (code < 0) {
        size_t most_points = mt_sub_or_0_u64(command->max_runs, request->ended) / command->ranks;
        size_t count = mt_search_next(&command->search, most_points, command->round);
        if (!count)
            break;
        code = run_round(command, request, count);
    }
    return code;
}

MT_DEFINE_ORDER(by_point, struct mt_sweep_run, MT_ASCENDING(point) || MT_ASCENDING(rank.rank))

/* Bars of a combination are neighbors, in the order of its sizes. Their labels have no names, which
 * are in the title. At most MT_MAX_SWEEP_RUNS bars can be told apart. */
static void choose_drawn(struct plan_command *command, const struct mt_sweep *points,
                         struct mt_sweep *drawn)
{
    const struct mt_search *search = &command->search;

    *drawn = *points;
    drawn->runs = mt_memory_zeroed(MT_MAX_SWEEP_RUNS, sizeof *drawn->runs);
    drawn->run_count = 0;
    for (size_t i = 0; i < search->combination_count * search->size_count; i++) {
        size_t point = mt_search_point_of(search, i / search->size_count, i % search->size_count);
        const struct mt_sweep_run *run = mt_sweep_find_point(points, point);
        const char *label = "";

        if (!run || !run->result.is_measured || drawn->run_count == MT_MAX_SWEEP_RUNS)
            continue;
        for (size_t k = 0; k < command->plan.axis_count; k++)
            label = mt_arena_printf(&command->plan.arena, "%s%s%s", label, k ? ", " : "",
                                    run->values[k]);
        drawn->runs[drawn->run_count] = *run;
        drawn->runs[drawn->run_count++].label = label;
    }
}

static bool is_cut(const struct mt_search *search)
{
    for (size_t i = 0; i < search->combination_count; i++)
        if (search->combinations[i].is_in_shard && !search->combinations[i].is_done)
            return true;
    return false;
}

/* Returns MT_EXIT_OK, or the exit code of the first run that failed if nothing fits anywhere. */
static int exit_code_of_plan(const struct plan_command *command)
{
    for (size_t i = 0; i < command->search.point_count; i++)
        if (command->search.points[i].state == MT_SEARCH_NEED)
            return MT_EXIT_OK;
    return mt_sweep_exit_code(&command->plan.sweep);
}

static size_t count_cached(const struct mt_sweep *sweep)
{
    size_t count = 0;

    for (size_t i = 0; i < sweep->run_count; i++)
        count += sweep->runs[i].is_cached;
    return count;
}

static int print_plan(struct plan_command *command, const struct mt_sweep_request *request)
{
    struct mt_sweep *sweep = &command->plan.sweep;
    struct mt_plan_answer answer = {.plan = &command->plan,
                                    .search = &command->search,
                                    .cards = command->cards,
                                    .runs = request->ended,
                                    .cached = count_cached(sweep),
                                    .is_cut = is_cut(&command->search),
                                    .has_files = request->keeps_traces,
                                    .shard = command->shard,
                                    .no_cache = command->cache.why_off};
    struct mt_sweep points, drawn;
    struct mt_buf json = {0}, text = {0};
    int code = MT_EXIT_OK;

    mt_sweep_show_failures(request);
    if (sweep->run_count)
        qsort(sweep->runs, sweep->run_count, sizeof *sweep->runs, by_point);
    mt_sweep_take_points(sweep, &points);
    answer.points = &points;
    mt_plan_find_front(&answer);
    if (command->common.json || request->keeps_traces)
        mt_plan_add_json(&json, &answer);
    if (!command->common.json)
        mt_plan_add_text(&text, &answer);
    if (request->keeps_traces) {
        choose_drawn(command, &points, &drawn);
        code = mt_sweep_write_files(request, &json, &drawn);
        free(drawn.runs);
    }
    int printed = mt_print_answer(command->common.json ? &json : &text, command->common.json);
    mt_buf_release(&json);
    mt_buf_release(&text);
    free(answer.rows);
    free(points.runs);
    return code ? code : printed ? printed : exit_code_of_plan(command);
}

/* Checks the command, and opens the cache with what the check found. Returns -1 or an exit code. */
static int check_plan(struct plan_command *command, const struct mt_sweep_request *request)
{
    struct mt_simulated_run *first = mt_memory_new(sizeof *first); /* too large for a small stack */
    int code = mt_sweep_check_first(request, first);

    if (code < 0 && !command->no_cache)
        mt_plan_cache_open(&command->cache, &command->settings, mt_simulated_run_site(first));
    mt_simulated_run_release(first);
    free(first);
    command->plan.sweep.run_count = 0; /* its logs are checked when they are written */
    return code;
}

static int plan(struct plan_command *command)
{
    struct mt_sweep_request request = {.plan = &command->plan, .arguments = &command->arguments};
    struct mt_temporary_folder folder = MT_TEMPORARY_FOLDER_NONE;
    int code = mt_sweep_plan_make(&command->plan, &command->arguments.grid);

    if (code < 0)
        code = make_search(command);
    if (code < 0)
        code = find_devices(command);
    if (code < 0)
        code = check_plan(command, &request);
    if (code < 0)
        code = mt_sweep_choose_folder(&request, &folder);
    if (code < 0)
        code = run_rounds(command, &request);
    mt_plan_cache_close(&command->cache);
    if (code < 0)
        code = print_plan(command, &request);
    mt_temporary_folder_remove(&folder);
    return code;
}

/* Returns -1 or an exit code. */
static int check_fit(const struct plan_command *command)
{
    const struct mt_sweep_grid *grid = &command->arguments.grid;
    struct mt_rank_command read;
    struct mt_arena arena = {0};

    if (grid->values.count || command->card_names.count || grid->ranks || grid->world ||
        command->shard || command->settings.output || command->common.json ||
        command->arguments.jobs || command->max_runs || command->no_cache) {
        mt_message("option '--fit' cannot be combined with --try, --card, --ranks, --world, "
                   "--shard, --max-runs, --no-cache, -j, -o or --json");
        return MT_EXIT_USAGE;
    }
    int code = mt_rank_command_read(&read, command->settings.command, &arena);
    if (code < 0 && (read.is_launched || read.other_launcher)) {
        mt_message("option '--fit' runs one process: omit '%s' and name the script, as in --fit "
                   "H100 -- python train.py",
                   read.is_launched ? "torchrun" : read.other_launcher);
        code = MT_EXIT_USAGE;
    }
    mt_arena_release(&arena);
    return code;
}

static int check_plan_options(struct plan_command *command)
{
    struct mt_run_settings *settings = &command->settings;
    int code = choose_cards(command);

    if (code < 0)
        code = mt_record_read_time("timeout", command->timeout, &settings->timeout_ms);
    if (code < 0)
        code = read_shard(command);
    if (code < 0 && command->fit_card)
        code = check_fit(command);
    if (!command->max_runs)
        command->max_runs = DEFAULT_MAX_RUNS;
    command->arguments.grid.command = settings->command;
    settings->quiet = command->common.quiet;
    settings->json = command->common.json;
    return code;
}

static int parse(const struct mt_command *row, struct plan_command *command, int argc, char **argv)
{
    const struct mt_option options[] = {
        {"try", 0, MT_OPTION_LIST, "NAME=VALUES",
         "values for {NAME}: a range is searched, 1..64 or 1..64*2; a list is tried, 1,2,4",
         &command->arguments.grid.values},
        {"fit", 0, MT_OPTION_TEXT, "CARD",
         "without --try: the cheapest changes of the program with which it fits on this card",
         &command->fit_card},
        {"card", 0, MT_OPTION_LIST, "NAME",
         "a card to plan for (default: each common card up to an H200)", &command->card_names},
        {"ranks", 0, MT_OPTION_TEXT, "LIST",
         "the ranks that differ: 0,1,7 or 0-3 or all (default: the first, a middle and the last)",
         &command->arguments.grid.ranks},
        {"world", 0, MT_OPTION_POSITIVE, "N", "without torchrun: the total number of ranks",
         &command->arguments.grid.world},
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
         "keep traces, logs, plan.json and a picture in this folder", &command->settings.output},
        MT_FORCE_OPTION(command->outputs),
        MT_JSON_OPTION(command->common, "print one JSON document"),
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print no notes", &command->common.quiet},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int code = mt_parse_command(row, options, argc, argv, &command->settings.command);

    return code < 0 ? check_plan_options(command) : code;
}

int mt_cmd_plan(const struct mt_command *row, int argc, char **argv)
{
    struct plan_command *command = mt_memory_zeroed(1, sizeof *command);

    command->cache.fd = -1;
    command->arguments = (struct mt_sweep_arguments){.grid = {.option = "--try",
                                                              .stem = "plan",
                                                              .chooses_ranks = true,
                                                              .most_values = MT_MAX_PLAN_VALUES},
                                                     .settings = &command->settings,
                                                     .gates = &command->gates,
                                                     .gate_run = &command->gate_run,
                                                     .common = &command->common,
                                                     .outputs = &command->outputs};
    command->gates.outputs = &command->outputs;
    mt_run_settings_init(&command->settings);
    int code = parse(row, command, argc, argv);
    if (code < 0)
        code = command->fit_card
                   ? mt_apply_fit(&command->settings, command->fit_card, &command->common)
                   : plan(command);
    for (size_t i = 0; i < MT_MAX_SWEEP_NAMES; i++)
        free(command->amounts[i]);
    free(command->round);
    mt_search_release(&command->search);
    mt_sweep_plan_release(&command->plan);
    free(command);
    return code;
}
