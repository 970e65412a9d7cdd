#include "dry_run_ranks.h"

#include <string.h>

#include "memory_limit.h"
#include "rank_command.h"
#include "util.h"

_Static_assert((int)MT_MAX_RANKS == (int)MT_MAX_SWEEP_RUNS, "a run for each rank");

/* By default torchrun starts one process on one node. */
static int choose_world(struct mt_sweep *sweep, const struct mt_rank_arguments *arguments,
                        const struct mt_rank_command *command, uint64_t devices)
{
    uint64_t local = command->local_world, world = arguments->world;
    uint64_t nodes = command->nodes ? command->nodes : 1;

    if (!local)
        local = devices                ? devices
                : world                ? mt_min_u64(world, MT_MAX_SIMULATED_DEVICES)
                : command->is_launched ? 1
                                       : 0;
    if (!world && command->is_launched)
        world = nodes * local;
    if (!world || world > MT_MAX_WORLD) {
        mt_say("option '--ranks' needs '--world N', the total number of ranks, up to %llu",
               (unsigned long long)MT_MAX_WORLD);
        return MT_EXIT_USAGE;
    }
    if (local > MT_MAX_SIMULATED_DEVICES) {
        mt_say("a node has at most %d simulated devices, not %llu", MT_MAX_SIMULATED_DEVICES,
               (unsigned long long)local);
        return MT_EXIT_USAGE;
    }
    if (command->nodes && world != nodes * local) {
        mt_say(
            "option '--world': torchrun has %llu node%s of %llu rank%s, which are not %llu ranks",
            (unsigned long long)nodes, nodes == 1 ? "" : "s", (unsigned long long)local,
            local == 1 ? "" : "s", (unsigned long long)world);
        return MT_EXIT_USAGE;
    }
    if (world % local) {
        mt_say("option '--world': %llu ranks cannot be divided into nodes of %llu",
               (unsigned long long)world, (unsigned long long)local);
        return MT_EXIT_USAGE;
    }
    sweep->world = world;
    sweep->local_world = local;
    return -1;
}

static void add_run(struct mt_sweep_plan *plan, const struct mt_rank *rank)
{
    struct mt_sweep_run *run = &plan->sweep.runs[plan->sweep.run_count++];

    run->values[0] = mt_arena_printf(&plan->arena, "%llu", (unsigned long long)rank->rank);
    run->label = mt_arena_printf(&plan->arena, "rank %s", run->values[0]);
}

int mt_rank_plan_make(struct mt_sweep_plan *plan, const struct mt_rank_arguments *arguments,
                      struct mt_simulated_run *each, struct mt_rank ranks[MT_MAX_RANKS])
{
    struct mt_sweep *sweep = &plan->sweep;
    uint64_t numbers[MT_MAX_RANKS];
    struct mt_rank_command command;
    size_t count = 0;
    int code;

    memset(plan, 0, sizeof *plan);
    sweep->names[sweep->name_count++] = "rank";
    code = mt_rank_command_read(&command, each->recording.command, &plan->arena);
    if (code < 0)
        code = choose_world(sweep, arguments, &command, each->devices);
    if (code < 0)
        code = mt_ranks_read(arguments->ranks, sweep->world, numbers, &count);
    if (code >= 0)
        return code;
    plan->command = command.words;
    if (!each->devices)
        each->devices = sweep->local_world;
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct mt_rank){.rank = numbers[i],
                                    .world = sweep->world,
                                    .local_world = sweep->local_world,
                                    .is_launched = command.is_launched};
        add_run(plan, &ranks[i]);
    }
    return -1;
}

static struct mt_dry_run_answer answer_of(const struct mt_sweep_request *request,
                                          const struct mt_sweep_result *result)
{
    return (struct mt_dry_run_answer){.card = request->each->card,
                                      .devices = request->each->devices,
                                      .memory_bytes = mt_simulated_memory_bytes(request->each),
                                      .has_limit = request->each->limit_bytes,
                                      .exit_status = result->exit_status,
                                      .signal = result->signal,
                                      .timed_out = result->outcome == MT_SWEEP_TIMED_OUT,
                                      .common = (struct mt_common *)request->common,
                                      .gates = (struct mt_gate_options *)request->gates};
}

static char *path_of_trace(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    return mt_arena_printf(&request->plan->arena, "%s/%s", request->folder, run->result.trace);
}

int mt_report_worst_rank(const struct mt_sweep_request *request)
{
    const struct mt_sweep_run *run = mt_sweep_worst(&request->plan->sweep);
    char *path = run ? path_of_trace(request, run) : NULL;
    struct mt_dry_run_answer answer;
    struct mt_dry_run_trace trace = {.path = path};
    struct mt_dry_run_notes notes = {0};
    struct mt_gate_run unchecked = {.has_base = false}; /* printed already */

    if (!run)
        return MT_EXIT_OK;
    notes.sizes = run->result.sizes_from_data;
    notes.decisions = run->result.decisions_from_data;
    answer = answer_of(request, &run->result);
    answer.notes = &notes;
    answer.traces = &trace;
    answer.trace_count = 1;
    answer.gate_run = &unchecked;
    (void)mt_report_dry_run_answer(&answer);
    return MT_EXIT_OK;
}
