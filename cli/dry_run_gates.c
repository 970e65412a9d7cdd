#include "dry_run_gates.h"

#include "analyze.h"
#include "dry_run_doubts.h"

static bool has_failed(const struct mt_gate_run *run)
{
    return run->is_checked && run->gates.verdict == MT_GATE_FAIL;
}

static int check_source(struct mt_gate_run *run, const struct mt_dry_run_answer *answer,
                        struct mt_source *source, const char *path)
{
    const struct mt_analyze_options options = {.path = path};
    struct mt_report *report;
    struct mt_error error;
    int code;

    if (mt_analyze(source, &options, &report, &error) != MT_OK)
        return mt_report_error(path, &error);
    code = mt_gate_run_check(run, answer->gates, source, report, NULL);
    mt_report_release(report);
    return code;
}

/* Its results replace those that are there if it fails. A process that a rule cannot be evaluated
 * for, because it has no PyTorch, says nothing about the others. */
static int check_other(const struct mt_dry_run_answer *answer, const char *path)
{
    struct mt_gate_run run = *answer->gate_run;
    struct mt_source *source;
    int code = MT_EXIT_OK;

    run.gates = (struct mt_gates){.results = NULL};
    run.is_checked = false;
    source = mt_open_input(path, answer->common, &code);
    if (source)
        code = check_source(&run, answer, source, path);
    mt_source_close(source);
    if (!code && has_failed(&run)) {
        struct mt_gates passed = answer->gate_run->gates;

        answer->gate_run->gates = run.gates;
        run.gates = passed;
    }
    mt_gates_release(&run.gates);
    return code;
}

static void doubt(const struct mt_dry_run_answer *answer)
{
    struct mt_gates *gates = &answer->gate_run->gates;

    if (mt_gate_run_gates(answer->gate_run) && mt_dry_run_is_lower_bound(answer) &&
        gates->verdict != MT_GATE_FAIL)
        gates->verdict = MT_GATE_NOT_EVALUATED;
}

int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_trace *told, struct mt_source *source,
                           const struct mt_report *report, const struct mt_dry_run_trace **failing)
{
    int code = mt_gate_run_check(answer->gate_run, answer->gates, source, report, NULL);

    *failing = NULL;
    for (size_t i = 0; !code && mt_gate_run_gates(answer->gate_run) &&
                       !has_failed(answer->gate_run) && i < answer->trace_count;
         i++) {
        if (&answer->traces[i] == told)
            continue;
        code = check_other(answer, answer->traces[i].path);
        if (has_failed(answer->gate_run))
            *failing = &answer->traces[i];
    }
    doubt(answer);
    return code;
}
