/* A sweep as memtrace.sweep/1. It has at most MT_MAX_SWEEP_RUNS runs of a few hundred bytes each,
 * so it needs no other limit. */
#include "dry_run_answer.h"
#include "gate_result.h"
#include "report_json.h"
#include "sweep_early.h"
#include "sweep_output.h"

static void add_memory_error(struct mt_json *json, const struct mt_sweep_result *result)
{
    if (result->outcome != MT_SWEEP_OUT_OF_MEMORY) {
        mt_json_null(json, "out_of_memory");
        return;
    }
    mt_json_object_begin(json, "out_of_memory");
    mt_json_u64(json, "request_bytes", result->oom_request_bytes);
    mt_json_text(json, "site", *result->oom_site ? result->oom_site : NULL);
    mt_json_text(json, "phase", result->oom_phase);
    mt_json_object_end(json);
}

static void add_peaks(struct mt_json *json, const struct mt_sweep_result *result)
{
    bool is_measured = result->is_measured;

    mt_json_u64_or_null(json, "device", is_measured, result->device);
    mt_json_u64_or_null(json, "allocated_peak_bytes", is_measured, result->allocated_peak_bytes);
    mt_json_u64_or_null(json, "reserved_peak_bytes", is_measured, result->reserved_peak_bytes);
    mt_json_peak_roles(json, result->role_bytes);
    mt_json_u64_or_null(json, "need_bytes", result->has_need, result->need_bytes);
    mt_json_u64_or_null(json, "in_all_bytes", result->has_need && result->in_all_is_known,
                        result->in_all_bytes);
}

static void add_files(struct mt_json *json, struct mt_sweep_plan *plan,
                      const struct mt_sweep_run *run)
{
    mt_json_text(json, "file", mt_sweep_plan_file(plan, run));
}

static void add_run(struct mt_json *json, struct mt_sweep_plan *plan,
                    const struct mt_sweep_run *run, bool has_files)
{
    const struct mt_sweep_result *result = &run->result;

    mt_json_object_begin(json, NULL);
    mt_json_array_begin(json, "values");
    for (size_t i = 0; i < plan->sweep.name_count; i++)
        mt_json_text(json, NULL, run->values[i]);
    mt_json_array_end(json);
    mt_json_text(json, "outcome", mt_sweep_outcome_name(result->outcome));
    mt_json_u64_or_null(json, "exit_status", result->outcome != MT_SWEEP_NOT_RUN,
                        (uint64_t)result->exit_status);
    mt_json_u64_or_null(json, "signal", result->signal, (uint64_t)result->signal);
    mt_json_i64(json, "exit_code", result->exit_code);
    if (has_files)
        add_files(json, plan, run);
    add_peaks(json, result);
    add_memory_error(json, result);
    mt_json_object_begin(json, "depended_on_data");
    mt_json_u64(json, "sizes", result->sizes_from_data);
    mt_json_u64(json, "decisions", result->decisions_from_data);
    mt_json_object_end(json);
    mt_json_sweep_timing(json, result);
    mt_json_bool(json, "has_doubts", result->has_doubts);
    if (result->has_gates)
        mt_json_text(json, "verdict", mt_gate_state_name(result->gate_state));
    mt_json_object_end(json);
}

static void add_slope(struct mt_json *json, const struct mt_sweep *sweep,
                      const struct mt_sweep_metric *metric)
{
    const struct mt_sweep_slope slope = mt_sweep_slope_of(sweep, metric->bytes_of);

    if (slope.points < MT_SWEEP_SLOPE_POINTS)
        return;
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "of", metric->key);
    mt_json_u64(json, "values", slope.points);
    mt_json_u64(json, "from", slope.from);
    mt_json_u64(json, "to", slope.to);
    mt_json_bool(json, "exact", slope.is_exact);
    mt_json_i64(json, "least_bytes", slope.least_bytes);
    mt_json_i64(json, "most_bytes", slope.most_bytes);
    mt_json_object_end(json);
}

static void add_card(struct mt_json *json, const struct mt_sweep *sweep, const struct mt_card *card)
{
    const struct mt_sweep_fit fit = mt_sweep_fit_of(sweep, card);

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "card", card->name);
    mt_json_u64(json, "memory_bytes", card->memory_bytes);
    mt_json_text(json, "fits", fit.fits ? fit.fits->label : NULL);
    mt_json_text(json, "tight", fit.tight ? fit.tight->label : NULL);
    mt_json_u64(json, "runs_that_fit", fit.fit_count);
    mt_json_u64(json, "runs_that_are_tight", fit.tight_count);
    mt_json_u64(json, "runs_known", fit.known_count);
    mt_json_bool(json, "may_be_more", fit.may_be_more);
    mt_json_object_end(json);
}

void mt_add_sweep_json(struct mt_buf *out, struct mt_sweep_plan *plan, bool has_files)
{
    const struct mt_sweep *sweep = &plan->sweep;
    struct mt_json json;

    mt_json_init(&json, out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.sweep/1");
    mt_json_simulated(&json, sweep->card, sweep->devices, sweep->memory_bytes);
    if (sweep->world) {
        const struct mt_sweep_run *worst = mt_sweep_worst(sweep);

        mt_json_u64(&json, "world_size", sweep->world);
        mt_json_u64(&json, "local_world_size", sweep->local_world);
        mt_json_text(&json, "largest_reserved_peak", worst ? worst->values[0] : NULL);
    }
    mt_json_array_begin(&json, "names");
    for (size_t i = 0; i < sweep->name_count; i++)
        mt_json_text(&json, NULL, sweep->names[i]);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "runs");
    for (size_t i = 0; i < sweep->run_count; i++)
        add_run(&json, plan, &sweep->runs[i], has_files);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "slopes");
    for (size_t i = 0; i < MT_SWEEP_METRICS; i++)
        add_slope(&json, sweep, &mt_sweep_metrics[i]);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "cards");
    for (const struct mt_card *card = mt_cards; card->name; card++)
        add_card(&json, sweep, card);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
}
