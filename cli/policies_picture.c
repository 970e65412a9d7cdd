#include "policies_picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asked_report.h"
#include "cards.h"
#include "heap_choice.h"
#include "heap_view.h"
#include "policies_chart.h"
#include "policy.h"
#include "policy_runs.h"
#include "process_memory.h"
#include "progress.h"
#include "report.h"
#include "report_query.h"
#include "tune.h"
#include "util.h"
#include "memory_limit.h"

#define BEST_TEXT (MT_TUNE_CONF_BYTES + 16)

struct work {
    const struct mt_policies_request *request;
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
    if (work->policies.count == MT_MAX_POLICY_ROWS)
        return;
    work->whats[work->policies.count] = what;
    work->policies.items[work->policies.count++] = policy;
}

static const char *summary_of(const char *policy)
{
    const struct mt_policy_ops *ops = mt_policy_find(policy, strcspn(policy, ":"));

    return ops && strcmp(ops->name, "pytorch") != 0 ? ops->summary : "";
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

/* Chooses the policies in addition to that of the run. If a policy is equal to that of the run,
 * keeps only the row of the run. */
static bool choose(struct work *work)
{
    const struct mt_text_list *asked = work->request->policies;
    size_t i;

    if (asked->count >= MT_MAX_POLICY_ROWS) {
        mt_say("at most %d policies", MT_MAX_POLICY_ROWS - 1);
        return false;
    }
    for (i = 0; i < asked->count; i++)
        add(work, asked->items[i], summary_of(asked->items[i]));
    if (asked->count)
        return true;
    if (work->source->view.level == MT_VIEW_FRAMEWORK) {
        add_best(work);
        add(work, "pytorch:", "PyTorch's defaults");
        add(work, "pytorch:expandable_segments=True", "expandable segments");
    } else {
        add(work, "pytorch:", "PyTorch's defaults");
        add(work, "bfc", "TensorFlow's, JAX's");
    }
    add(work, "cuda-async", "cudaMallocAsync");
    add(work, "rmm-pool", "RAPIDS (RMM), a pool");
    return true;
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
        status = mt_policy_row_measure(work->source, NULL, work->request->device, &table->rows[0],
                                       &table->device, error);
    if (status == MT_OK)
        status = mt_source_rewind(work->source, error);
    table->starts_in_middle = work->source->header.starts_in_middle;
    return status;
}

static int measure_others(struct work *work)
{
    const struct mt_policy_runs runs = {work->source,        work->request->path, NULL,
                                        work->common,        &work->policies,     "replaying",
                                        work->request->jobs, measure_one,         work};

    return mt_run_policies(&runs);
}

static int say_no_requests(const struct mt_policies_request *request)
{
    if (request->device == MT_EVERY_DEVICE)
        mt_say("'%s': no requests", request->path);
    else
        mt_say("'%s': no requests on device %llu", request->path,
               (unsigned long long)request->device);
    return MT_EXIT_INPUT;
}

/* Removes policies that do not fit on the device. The others are still shown. */
static void leave_out_refusing(struct mt_policy_table *table)
{
    uint32_t kept = 1;

    for (uint32_t i = 1; i < table->row_count; i++) {
        const struct mt_policy_row *row = &table->rows[i];

        if (mt_policy_row_refuses(table, row))
            mt_say("'%s' is not drawn: only %llu of %llu requests succeed", row->policy,
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
        return say_no_requests(work->request);
    if (status != MT_OK)
        return mt_report_error(work->request->path, &error);
    code = measure_others(work);
    if (code)
        return code;
    table->rows[0].what = "what the run had";
    for (i = 0; i < work->policies.count; i++)
        table->rows[i + 1].what = work->whats[i];
    table->row_count = (uint32_t)work->policies.count + 1;
    leave_out_refusing(table);
    table->name = mt_report_name(&table->arena, work->request->path);
    add_cards(work);
    if (mt_policy_table_finish(table, &error) == MT_OK)
        return MT_EXIT_OK;
    return mt_report_error(work->request->path, &error);
}

static int draw(const struct work *work, const struct mt_picture *picture,
                struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {.width = picture ? picture->width : 0,
                                             .height = picture ? picture->height : 0};

    mt_policies_draw(work->table, &options, drawing);
    return MT_EXIT_OK;
}

static int measure_and_draw(struct work *work, const struct mt_picture *picture,
                            struct mt_drawing *drawing, uint16_t *device)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_heap_view_choose(work->source, &error) != MT_OK)
        return mt_report_error(work->request->path, &error);
    if (!choose(work))
        return MT_EXIT_USAGE;
    code = measure(work);
    *device = work->table->device;
    return code ? code : draw(work, picture, drawing);
}

int mt_policies_picture(const struct mt_policies_request *request, const struct mt_common *common,
                        const struct mt_picture *picture, struct mt_drawing *drawing,
                        uint16_t *device)
{
    struct work *work = mt_memory_zeroed(1, sizeof *work);
    struct mt_policy_table *table = mt_memory_zeroed(1, sizeof *table);
    int code;

    memset(drawing, 0, sizeof *drawing);
    *work = (struct work){.request = request, .common = common, .table = table};
    work->source = mt_open_input(request->path, common, &code);
    if (work->source) {
        code = measure_and_draw(work, picture, drawing, device);
        code = mt_answer_verdict(code, work->source, request->path, common);
        mt_source_close(work->source);
    }
    mt_policy_table_release(table);
    free(table);
    free(work);
    return code;
}

int mt_policies_render(const struct mt_policies_request *request, const struct mt_picture *picture,
                       const struct mt_common *common)
{
    struct mt_drawing drawing;
    uint16_t device = 0;
    size_t bytes;
    bool is_drawn;
    int code;

    if (mt_refuses_device(request->device))
        return MT_EXIT_INPUT;
    code = mt_policies_picture(request, common, picture, &drawing, &device);
    is_drawn = code == MT_EXIT_OK;
    if (is_drawn)
        code = mt_picture_write(picture, &drawing, &bytes);
    if (code == MT_EXIT_OK && common->json)
        code = mt_picture_tell(picture, "policies", device, bytes);
    mt_drawing_release(&drawing);
    return code;
}
