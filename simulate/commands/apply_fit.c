/* The cheapest changes on paper with which a run fits on a card. Changes are tried from the
 * cheapest to the most expensive; one that lowers what the card must have stays, until the run
 * fits. Then each change that stays is left out once, because a later one may have made it
 * superfluous. Each trial is a dry run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applied.h"
#include "assumption.h"
#include "card_use.h"
#include "dry_run_measure.h"
#include "process_memory.h"
#include "simulated_run.h"
#include "temporary_folder.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

enum { MAX_CANDIDATES = 7, MAX_TRIALS = 2 * MAX_CANDIDATES + 1 };

/* Memory of the simulated device if its card has too little to measure the run without a change. */
#define AMPLE_BYTES (UINT64_C(1) << 40)

struct trial {
    const char *tried;      /* the change that is new; NULL: none, or one that is left out */
    const char *changes;    /* all of them, with '+' between them */
    struct mt_card_use use; /* if there is no problem */
    const char *problem;    /* why nothing is known; NULL: none */
    bool fits, ran_out;
    int exit_code; /* of a dry run of this trial */
};

struct fit {
    struct mt_run_settings settings; /* of each trial, except its changes and its trace */
    const struct mt_card *card;
    struct mt_common *common;
    struct mt_temporary_folder folder;
    struct mt_arena arena;
    const char *candidates[MAX_CANDIDATES];
    size_t candidate_count;
    const char *kept[MAX_CANDIDATES];
    size_t kept_count;
    struct trial trials[MAX_TRIALS];
    size_t trial_count;
    bool is_found;             /* a trial fits */
    struct mt_applied applied; /* of the last trial that fits */
};

static void add_candidate(struct fit *fit, const char *change)
{
    if (fit->candidate_count < MAX_CANDIDATES)
        fit->candidates[fit->candidate_count++] = change;
}

static void add_advice(struct fit *fit, const struct mt_device_report *device, const char *change)
{
    for (uint32_t i = 0; i < device->finding_count; i++) {
        const char *advised = device->findings[i].change;

        if (advised && !strncmp(advised, change, strlen(change)))
            add_candidate(fit, mt_arena_text(&fit->arena, advised, strlen(advised)));
    }
}

/* From the cheapest: without cost, slower steps, recomputed FLOPs, another precision of state,
 * copies over the bus. */
static void choose_candidates(struct fit *fit, const struct mt_device_report *device)
{
    add_candidate(fit, "expandable");
    add_advice(fit, device, "fused");
    add_candidate(fit, "foreach=False");
    add_advice(fit, device, "chunked-loss");
    add_advice(fit, device, "checkpoint");
    if (device->peak_role_bytes[MT_ROLE_OPTIMIZER_STATE])
        add_candidate(fit, "8bit");
    add_candidate(fit, "save_on_cpu");
}

static const struct mt_device_report *largest(const struct mt_report *report)
{
    const struct mt_device_report *device = &report->devices[0];

    for (uint32_t i = 1; i < report->device_count; i++)
        if (report->devices[i].reserved_peak.bytes > device->reserved_peak.bytes)
            device = &report->devices[i];
    return device;
}

static void measure(struct fit *fit, const struct mt_dry_run_answer *answer, struct trial *trial)
{
    const struct mt_analyze_options options = {.models = MT_MODEL_MODULES};
    struct mt_dry_run_measured measured;
    int code = mt_dry_run_measure(answer, &options, &measured);
    const struct mt_sweep_result *result = &measured.result;
    const struct mt_report *report = measured.report;

    trial->problem = code                               ? "its trace cannot be read"
                     : !report || !report->device_count ? "no process used the device"
                     : result->has_need                 ? NULL
                     : result->outcome == MT_SWEEP_OUT_OF_MEMORY
                         ? "out of memory on the simulated device"
                     : report->doubt ? report->doubt
                                     : "its need is not known";
    trial->ran_out = result->outcome == MT_SWEEP_OUT_OF_MEMORY;
    trial->exit_code = code ? code : mt_dry_run_exit_code(answer, report);
    if (!trial->problem) {
        trial->use = mt_sweep_need_on(result, fit->settings.card, fit->card);
        trial->fits = mt_card_use_fits(&trial->use, fit->card);
        fit->is_found |= trial->fits;
    }
    if (!trial->problem && fit->trial_count == 1)
        choose_candidates(fit, largest(report));
    mt_dry_run_measured_release(&measured);
}

static void keep_applied(struct fit *fit, struct mt_dry_run_notes *notes)
{
    mt_applied_release(&fit->applied);
    fit->applied = notes->applied;
    notes->applied = (struct mt_applied){.count = 0};
}

/* Returns all changes that are kept, except `without`, and `tried`, with '+' between them. */
static const char *join(struct fit *fit, const char *tried, const char *without)
{
    const char *changes = "";

    for (size_t i = 0; i <= fit->kept_count; i++) {
        const char *change = i < fit->kept_count ? fit->kept[i] : tried;

        if (change && change != without)
            changes = mt_arena_printf(&fit->arena, "%s%s%s", changes, *changes ? "+" : "", change);
    }
    return changes;
}

/* Runs the command with the changes of join. Returns -1, or an exit code after an error message. */
static int try(struct fit *fit, const char *tried, const char *without)
{
    struct mt_simulated_run *run = mt_memory_new(sizeof *run); /* too large for a small stack */
    struct mt_run_settings settings = fit->settings;
    struct trial *trial = &fit->trials[fit->trial_count++];

    *trial = (struct trial){.tried = tried, .changes = join(fit, tried, without)};
    if (!fit->common->quiet)
        mt_message("dry run with %s", *trial->changes ? trial->changes : "no change");
    settings.devices = 1;
    settings.apply = trial->changes;
    settings.output =
        mt_arena_printf(&fit->arena, "%s/%zu.trace.zst", fit->folder.path, fit->trial_count);
    settings.quiet = settings.is_silent = true;
    mt_simulated_run_init(run, &settings);
    int code = mt_simulated_run_prepare(run);
    if (code < 0)
        code = mt_assumption_finish(run);
    const char *problem = mt_applied_problem(&run->notes.applied, trial->changes);
    if (code == MT_EXIT_USAGE && problem) {
        trial->problem = problem;
        code = -1;
    } else if (code < 0) {
        struct mt_dry_run_answer answer = mt_simulated_run_answer(run);
        struct mt_gate_run no_gates = {.has_base = false};

        answer.common = fit->common;
        answer.gate_run = &no_gates;
        measure(fit, &answer, trial);
        if (trial->fits)
            keep_applied(fit, &run->notes);
        if (run->recording.launch.interrupted)
            code = 128 + run->recording.launch.interrupted;
    }
    if (trial->problem)
        trial->problem = mt_arena_text(&fit->arena, trial->problem, strlen(trial->problem));
    mt_simulated_run_release(run);
    free(run);
    return code;
}

static const struct trial *last(const struct fit *fit)
{
    return &fit->trials[fit->trial_count - 1];
}

static void drop(struct fit *fit, const char *change)
{
    size_t at = 0;

    for (size_t i = 0; i < fit->kept_count; i++)
        if (fit->kept[i] != change)
            fit->kept[at++] = fit->kept[i];
    fit->kept_count = at;
}

/* Leaves out what the last change made superfluous, the most expensive first. */
static int leave_out(struct fit *fit)
{
    int code = -1;

    for (size_t i = fit->kept_count - 1; code < 0 && i-- > 0;) {
        const char *change = fit->kept[i];

        code = try(fit, NULL, change);
        if (code < 0 && last(fit)->fits)
            drop(fit, change);
    }
    return code;
}

/* Runs the command without a change. A program may size its work by the memory of the device, so
 * only a run that is out of memory on the simulated card gets more. */
static int try_unchanged(struct fit *fit)
{
    int code = try(fit, NULL, NULL);

    if (code >= 0 || !last(fit)->ran_out)
        return code;
    if (!fit->common->quiet)
        mt_message("the run is out of memory on a simulated %s: all runs get %d GiB instead",
                   fit->settings.card->name, (int)(AMPLE_BYTES / MT_GIB));
    fit->settings.limit_bytes = AMPLE_BYTES;
    fit->trial_count = 0;
    return try(fit, NULL, NULL);
}

static int search(struct fit *fit)
{
    int code = try_unchanged(fit);
    uint64_t need_bytes = last(fit)->use.bytes;

    if (code >= 0 || last(fit)->problem || last(fit)->fits)
        return code;
    for (size_t i = 0; code < 0 && i < fit->candidate_count; i++) {
        code = try(fit, fit->candidates[i], NULL);
        if (code >= 0 || last(fit)->problem || last(fit)->use.bytes >= need_bytes)
            continue;
        need_bytes = last(fit)->use.bytes;
        fit->kept[fit->kept_count++] = fit->candidates[i];
        if (last(fit)->fits)
            return leave_out(fit);
    }
    return code;
}

/* ---- the answer */

static void add_rows(struct mt_buf *out, const struct fit *fit)
{
    char bytes[MT_UNITS_TEXT];
    uint64_t least_bytes = fit->trials[0].use.bytes;
    bool is_estimate = false; /* of the last row that has a need, as of all */
    struct mt_table table;

    mt_table_begin(&table, "change|#card needs|saves");
    for (size_t i = 0; i < fit->trial_count; i++) {
        const struct trial *trial = &fit->trials[i];
        const char *label = i && trial->tried
                                ? mt_arena_printf(&table.texts, "and %s", trial->tried)
                            : i ? mt_arena_printf(&table.texts, "only %s",
                                                  *trial->changes ? trial->changes : "none")
                                : (*trial->changes ? trial->changes : "none");

        MT_CELLS(&table, MT_TEXT(label));
        if (trial->problem) {
            mt_table_skip(&table, 1);
            MT_CELLS(&table, MT_TEXT(trial->problem));
            continue;
        }
        is_estimate = mt_sweep_is_estimate(&trial->use, fit->settings.card, fit->card);
        MT_CELLS(&table, MT_TEXT(mt_arena_printf(&table.texts, "%s%s", is_estimate ? "~" : "",
                                                 mt_format_bytes(bytes, trial->use.bytes))));
        if (!i || !trial->tried)
            MT_CELLS(&table, MT_TEXT(trial->fits ? "fits" : ""));
        else if (trial->use.bytes >= least_bytes)
            MT_CELLS(&table, MT_TEXT("does not lower the peak: 0 B"));
        else
            MT_CELLS(&table,
                     MT_TEXT(mt_arena_printf(&table.texts, "%s%s",
                                             mt_format_bytes(bytes, least_bytes - trial->use.bytes),
                                             trial->fits ? "; fits" : "")));
        if (trial->tried && trial->use.bytes < least_bytes)
            least_bytes = trial->use.bytes;
    }
    mt_text_table_add(out, &table, 2, mt_stdout_style());
    if (is_estimate)
        mt_text_table_add_note(
            out, 0,
            "~ is an estimate: the runs simulate the kernels of %s, or the memory of CUDA was not "
            "measured for this card. dry-run --device simulates this card.",
            fit->settings.card->name);
}

static void add_answer(struct mt_buf *out, const struct fit *fit)
{
    char memory[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s has %s\n", fit->card->name,
                  mt_format_bytes(memory, fit->card->memory_bytes));
    add_rows(out, fit);
    if (fit->trials[0].problem) {
        mt_buf_add_text(out, "No change was tried, because the need without one is not known\n");
        return;
    }
    if (!fit->is_found) {
        mt_buf_add_text(out, "No change that was tried makes the run fit: a smaller batch, or a "
                             "larger card\n");
        return;
    }
    mt_buf_add_text(out, "Fits with");
    for (size_t i = 0; i < fit->kept_count; i++)
        mt_buf_printf(out, "%s %s", i ? " and" : "", fit->kept[i]);
    mt_buf_add_text(out, fit->kept_count ? "\n" : " no change\n");
    mt_applied_add_costs(out, &fit->applied);
    mt_applied_add_patch(out, &fit->applied);
}

int mt_apply_fit(const struct mt_run_settings *settings, const char *card_name,
                 struct mt_common *common)
{
    const struct mt_card *card;
    struct fit *fit;
    struct mt_buf out = {0};
    int code = mt_dry_run_find_card("fit", card_name, &card);

    if (code >= 0)
        return code;
    fit = mt_memory_zeroed(1, sizeof *fit);
    fit->settings = *settings;
    fit->card = card;
    fit->common = common;
    if (mt_temporary_folder_new(&fit->folder, "memtrace-fit")) {
        code = search(fit);
    } else {
        mt_message("cannot create a folder for the traces in $TMPDIR: %s", strerror(errno));
        code = MT_EXIT_OUTPUT;
    }
    mt_temporary_folder_remove(&fit->folder);
    if (code < 0) {
        add_answer(&out, fit);
        code = mt_print_answer_and_release(&out, false);
        if (!code && !fit->is_found)
            code = fit->trials[0].exit_code ? fit->trials[0].exit_code : MT_EXIT_BUDGET;
    }
    mt_applied_release(&fit->applied);
    mt_arena_release(&fit->arena);
    free(fit);
    return code;
}
