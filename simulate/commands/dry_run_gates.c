#include "dry_run_gates.h"

#include "analyze.h"
#include "dry_run_doubts.h"

/* A failed gate is worse than one that may fail under another order of addresses. A gate that could
 * not be evaluated gives no information about other processes. */
static unsigned badness(const struct mt_gate_run *run)
{
    if (!run->is_checked)
        return 0;
    return run->gates.verdict == MT_GATE_FAIL ? 2 : run->gates.verdict == MT_GATE_WARN;
}

static int check_source(struct mt_gate_run *run, const struct mt_dry_run_answer *answer,
                        struct mt_source *source, const char *path)
{
    const struct mt_analyze_options options = {.path = path, .peak_orders = true};
    struct mt_report *report;
    struct mt_error error;
    int code;

    if (mt_analyze(source, &options, &report, &error) != MT_OK)
        return mt_report_error(path, &error);
    report->doubt = mt_dry_run_lower_bound(answer);
    code = mt_gate_run_check(run, answer->gates, source, report, NULL);
    mt_report_release(report);
    return code;
}

/* Keeps the worse of the results. A process without PyTorch, for which a rule cannot be evaluated,
 * gives no information about other processes. */
static int check_other(const struct mt_dry_run_answer *answer, const char *path, bool *is_worse)
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
    *is_worse = !code && badness(&run) > badness(answer->gate_run);
    if (*is_worse) {
        struct mt_gates passed = answer->gate_run->gates;

        answer->gate_run->gates = run.gates;
        run.gates = passed;
    }
    mt_gates_release(&run.gates);
    return code;
}

int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_trace *told, struct mt_source *source,
                           const struct mt_report *report, const struct mt_dry_run_trace **failing)
{
    bool is_worse;
    int code;

    *failing = NULL;
    code = mt_gate_run_check(answer->gate_run, answer->gates, source, report, NULL);
    for (size_t i = 0; !code && mt_gate_run_gates(answer->gate_run) &&
                       badness(answer->gate_run) < 2 && i < answer->trace_count;
         i++) {
        if (&answer->traces[i] == told)
            continue;
        code = check_other(answer, answer->traces[i].path, &is_worse);
        if (is_worse)
            *failing = &answer->traces[i];
    }
    return code;
}
