#include "sweep_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze.h"
#include "dry_run_doubts.h"
#include "dry_run_gates.h"
#include "memory_limit.h"
#include "process_memory.h"
#include "sweep_early.h"
#include "sweep_measure.h"

char *mt_sweep_path(struct mt_sweep_plan *plan, const char *folder, const struct mt_sweep_run *run,
                    const char *suffix)
{
    const char *file = mt_sweep_plan_file(plan, run);

    return mt_arena_printf(&plan->arena, "%s/%s%s", folder, file, suffix);
}

static int measure_source(struct mt_source *source, const struct mt_dry_run_answer *answer,
                          const struct mt_dry_run_trace *worst, struct mt_sweep_result *result)
{
    const struct mt_analyze_options options = {.path = worst->path, .needs = true};
    const struct mt_dry_run_trace *failing;
    struct mt_report *report;
    struct mt_error error;
    int checked;

    if (mt_analyze(source, &options, &report, &error) != MT_OK)
        return mt_report_error(worst->path, &error);
    report->doubt = mt_dry_run_lower_bound(answer);
    checked = mt_dry_run_check_gates(answer, worst, source, report, &failing);
    mt_sweep_measure(result, report);
    result->has_gates = answer->gate_run->is_checked;
    result->gate_state = (unsigned)answer->gate_run->gates.verdict;
    result->exit_code = mt_dry_run_exit_code(answer, report);
    mt_report_release(report);
    return checked;
}

/* Keeps the file name of the trace. A trace of a child process has its own name:
 * "batch=4-1234.trace.zst". */
static void keep_name(struct mt_sweep_result *result, const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(result->trace, sizeof result->trace, "%s", slash ? slash + 1 : path);
}

static void measure(const struct mt_dry_run_answer *answer, struct mt_sweep_result *result)
{
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    struct mt_source *source;
    int code = MT_EXIT_OK;

    if (!worst) {
        result->exit_code = mt_dry_run_exit_code(answer, NULL);
        if (result->outcome == MT_SWEEP_FINISHED)
            result->outcome = MT_SWEEP_NO_DEVICE;
        result->has_gates = answer->gate_run->rules.count;
        result->gate_state = MT_GATE_NOT_EVALUATED;
        return;
    }
    source = mt_open_input(worst->path, answer->common, &code);
    if (source)
        code = measure_source(source, answer, worst, result);
    mt_source_close(source);
    keep_name(result, worst->path);
    if (code)
        *result = (struct mt_sweep_result){.exit_code = code};
}

static void fill_run(struct mt_sweep_result *result, const struct mt_dry_run_answer *answer)
{
    result->exit_status = answer->exit_status;
    result->signal = answer->signal;
    result->outcome = answer->timed_out     ? MT_SWEEP_TIMED_OUT
                      : answer->exit_status ? MT_SWEEP_FAILED
                                            : MT_SWEEP_FINISHED;
    result->sizes_from_data = answer->notes->sizes;
    result->decisions_from_data = answer->notes->decisions;
    result->has_doubts = mt_dry_run_has_doubts(answer);
    result->undecided_collectives = answer->notes->undecided;
}

static void fill_result(const struct mt_sweep_request *request, const struct mt_simulated_run *run,
                        struct mt_sweep_result *result)
{
    struct mt_gate_run gate_run = *request->gate_run; /* the results belong to this process */
    struct mt_dry_run_answer answer = mt_simulated_run_answer(run);

    answer.common = (struct mt_common *)request->common;
    answer.gates = (struct mt_gate_options *)request->gates;
    answer.gate_run = &gate_run;
    fill_run(result, &answer);
    measure(&answer, result);
    for (size_t i = 0; !request->keeps_traces && !request->ranks && i < run->trace_count; i++)
        if (run->traces[i].path)
            (void)unlink(run->traces[i].path);
}

/* A run has too many paths for a small stack. The caller frees it. */
static struct mt_simulated_run *new_run(const struct mt_sweep_request *request)
{
    struct mt_simulated_run *run = mt_memory_new(sizeof *run);

    *run = *request->each;
    return run;
}

static void run_again(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                      const struct mt_simulated_run *first, struct mt_sweep_result *result)
{
    struct mt_simulated_run *second = new_run(request);

    second->recording.command = first->recording.command;
    second->recording.output = mt_sweep_path(request->plan, request->folder, run, MT_EARLY_SUFFIX);
    second->rank = first->rank;
    mt_sweep_run_early(second, request->common, result);
    free(second);
}

static void set_up(struct mt_simulated_run *simulated, const struct mt_sweep_request *request,
                   const struct mt_sweep_run *run)
{
    struct mt_recording *recording = &simulated->recording;

    recording->command = mt_sweep_plan_command(request->plan, run);
    recording->output = mt_sweep_path(request->plan, request->folder, run, MT_TRACE_SUFFIX);
    recording->json = false;
    recording->summarizes = request->ranks && request->keeps_traces;
    recording->quiet = true;
    simulated->rank = request->ranks ? &request->ranks[run - request->plan->sweep.runs] : NULL;
}

void mt_sweep_work(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                   struct mt_sweep_result *result)
{
    struct mt_simulated_run *simulated = new_run(request);
    int code;

    *result = (struct mt_sweep_result){.outcome = MT_SWEEP_NOT_RUN};
    set_up(simulated, request, run);
    mt_simulated_run_init(simulated);
    code = mt_simulated_run_prepare(simulated);
    if (code < 0)
        code = mt_simulated_run_finish(simulated);
    if (code < 0)
        fill_result(request, simulated, result);
    else
        result->exit_code = code;
    if (result->undecided_collectives &&
        (result->outcome == MT_SWEEP_FINISHED || result->outcome == MT_SWEEP_OUT_OF_MEMORY))
        run_again(request, run, simulated, result);
    mt_simulated_run_release(simulated);
    free(simulated);
}
