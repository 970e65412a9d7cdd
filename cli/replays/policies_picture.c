#include "policies_picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cards.h"
#include "policies_chart.h"
#include "policy_options.h"
#include "policy_runs.h"
#include "process_memory.h"
#include "progress.h"
#include "question_report.h"
#include "report_query.h"
#include "source.h"
#include "tune.h"
#include "util.h"

#define BEST_TEXT (MT_TUNE_CONF_BYTES + 16)

struct work {
    const char *path;
    uint64_t device; /* MT_EVERY_DEVICE: the device that reserves the most */
    const struct mt_common *common;
    struct mt_source *source;
    struct mt_text_list policies;
    const char *whats[MT_MAX_POLICY_ROWS]; /* names of the policies for users */
    char best[BEST_TEXT];
    struct mt_known_size sizes[32];
    struct mt_policy_table *table;
};

static void add(struct work *work, const char *policy, const char *what)
{
    work->whats[work->policies.count] = what;
    work->policies.items[work->policies.count++] = policy;
}

static void show_progress(void *progress, double share)
{
    mt_progress_update(progress, "searching for better options", share);
}

/* Adds the best options that a search finds, if they are better than those of the run. */
static void add_best(struct work *work)
{
    struct mt_progress progress = {0};
    const struct mt_tune_options options = {.progress = show_progress, .context = &progress};
    struct mt_tune_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    mt_progress_start(&progress, work->common->quiet);
    if (mt_tune_run(work->source, &options, summary, &error) == MT_OK &&
        summary->best != MT_TUNE_CURRENT) {
        snprintf(work->best, sizeof work->best, "pytorch:%s", summary->front[summary->best].conf);
        add(work, work->best, "the best that tune finds");
    }
    mt_progress_end(&progress);
    free(summary);
}

/* Chooses other settings of the run's own allocator. If a setting is equal to that of the run, the
 * table keeps only the row of the run. */
static void choose(struct work *work)
{
    if (strcmp(mt_policy_of_run(&work->source->header), "pytorch") != 0) {
        add(work, "bfc:preallocate=False", "without preallocation");
        return;
    }
    add_best(work);
    add(work, "pytorch:", "PyTorch's defaults");
    add(work, "pytorch:expandable_segments=True", "expandable segments");
}

static enum mt_status measure_one(void *context, struct mt_source *source, const char *policy,
                                  size_t index, struct mt_error *error)
{
    struct work *work = context;
    uint16_t unused;

    return mt_policy_row_measure(source, policy, work->table->device, &work->table->rows[index + 1],
                                 &unused, error);
}

static void add_cards(struct work *work)
{
    size_t i;

    for (i = 0; mt_cards[i].name && i + 1 < MT_ARRAY_LEN(work->sizes); i++)
        work->sizes[i] = (struct mt_known_size){mt_cards[i].name, mt_cards[i].memory_bytes};
    work->table->sizes = work->sizes;
}

/* Measures the policy of the run, which also determines the device. */
static enum mt_status measure_own(struct work *work, struct mt_error *error)
{
    struct mt_policy_table *table = work->table;
    enum mt_status status = mt_source_rewind(work->source, error);

    if (status == MT_OK)
        status = mt_policy_row_measure(work->source, NULL, work->device, &table->rows[0],
                                       &table->device, error);
    if (status == MT_OK)
        status = mt_source_rewind(work->source, error);
    table->starts_in_middle = work->source->header.starts_in_middle;
    return status;
}

static int measure_others(struct work *work)
{
    const struct mt_policy_runs runs = {.source = work->source,
                                        .path = work->path,
                                        .common = work->common,
                                        .policies = &work->policies,
                                        .what = "replaying",
                                        .run = measure_one,
                                        .context = work};

    return mt_policy_runs_run(&runs);
}

static int say_no_requests(const struct work *work)
{
    if (work->device == MT_EVERY_DEVICE)
        mt_message("'%s': no requests", work->path);
    else
        mt_message("'%s': no requests on device %llu", work->path,
                   (unsigned long long)work->device);
    return MT_EXIT_INPUT;
}

/* Removes policies that do not fit on the device. The others are still shown. */
static void leave_out_refusing(struct mt_policy_table *table)
{
    uint32_t kept = 1;

    for (uint32_t i = 1; i < table->row_count; i++) {
        const struct mt_policy_row *row = &table->rows[i];

        if (mt_policy_row_refuses(table, row))
            mt_message("'%s' is not drawn: only %llu of %llu requests succeed", row->policy,
                       (unsigned long long)mt_policy_row_requests(row),
                       (unsigned long long)mt_policy_row_requests(&table->rows[0]));
        else
            table->rows[kept++] = *row;
    }
    table->row_count = kept;
}

static int measure(struct work *work)
{
    struct mt_policy_table *table = work->table;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status;
    size_t i;
    int code;

    status = measure_own(work, &error);
    if (status == MT_END)
        return say_no_requests(work);
    if (status != MT_OK)
        return mt_report_error(work->path, &error);
    code = measure_others(work);
    if (code)
        return code;
    table->rows[0].what = "what the run had";
    for (i = 0; i < work->policies.count; i++)
        table->rows[i + 1].what = work->whats[i];
    table->row_count = (uint32_t)work->policies.count + 1;
    leave_out_refusing(table);
    table->name = mt_report_name(&table->arena, work->path);
    add_cards(work);
    if (mt_policy_table_finish(table, &error) == MT_OK)
        return MT_EXIT_OK;
    return mt_report_error(work->path, &error);
}

static void draw(const struct work *work, const struct mt_picture *picture,
                 struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {.width = picture->width, .height = picture->height};

    mt_policies_draw(work->table, &options, drawing);
}

static int measure_and_draw(struct work *work, const struct mt_picture *picture,
                            struct mt_drawing *drawing)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code;

    if (mt_heap_view_choose(work->source, &error) != MT_OK)
        return mt_report_error(work->path, &error);
    if (work->source->view.level != MT_VIEW_FRAMEWORK) {
        mt_message("'%s': its requests did not go to an allocator of a framework; 'memtrace replay "
                   "--policies' lists allocators",
                   work->path);
        return MT_EXIT_INPUT;
    }
    choose(work);
    code = measure(work);
    if (code == MT_EXIT_OK)
        draw(work, picture, drawing);
    return code;
}

static int write_picture(const struct work *work, const struct mt_picture *picture,
                         const struct mt_drawing *drawing)
{
    size_t bytes;
    int code = mt_picture_write(picture, drawing, &bytes);

    if (code == MT_EXIT_OK && work->common->json)
        code = mt_picture_print_json(picture, "policies", work->table->device, bytes);
    return code;
}

int mt_policies_render(const char *path, uint64_t device, const struct mt_picture *picture,
                       const struct mt_common *common)
{
    struct work *work = mt_memory_zeroed(1, sizeof *work);
    struct mt_policy_table *table = mt_memory_zeroed(1, sizeof *table);
    struct mt_drawing drawing = {0};
    int code = MT_EXIT_INPUT;

    if (!mt_question_refuses_device(device)) {
        *work = (struct work){.path = path, .device = device, .common = common, .table = table};
        work->source = mt_open_input(path, common, &code);
    }
    if (work->source) {
        code = measure_and_draw(work, picture, &drawing);
        if (code == MT_EXIT_OK)
            code = write_picture(work, picture, &drawing);
        code = mt_answer_verdict(code, work->source, path, common);
        mt_source_close(work->source);
    }
    mt_drawing_release(&drawing);
    mt_policy_table_release(table);
    free(table);
    free(work);
    return code;
}
