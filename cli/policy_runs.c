#include "policy_runs.h"

#include <string.h>

#include "heaps.h"
#include "policy.h"

enum { MOST_POLICIES = 64 };

int mt_run_policies(struct mt_source *source, const char *path, const struct mt_common *common,
                    const char *what, const struct mt_text_list *policies, mt_policy_run *run,
                    void *context)
{
    struct mt_progress progress = {0};
    int exit_code = MT_EXIT_OK;
    size_t i;

    mt_progress_start(&progress, common);
    for (i = 0; exit_code == MT_EXIT_OK && i < policies->count; i++) {
        struct mt_error error;
        mt_progress_update(&progress, what, (double)i / (double)policies->count);
        if (i > 0 && mt_source_rewind(source, &error) != MT_OK)
            exit_code = mt_report_error(path, &error);
        else
            exit_code = run(context, policies->items[i], i);
    }
    mt_progress_end(&progress);
    return exit_code;
}

int mt_choose_heap(struct mt_source *source, const char *path, const char *name)
{
    struct mt_error error = {MT_OK, MT_NO_OFFSET, ""};

    if (!name || mt_heap_view_choose_heap(source, name, &error) == MT_OK)
        return MT_EXIT_OK;
    if (error.status != MT_ERR_USAGE)
        return mt_report_error(path, &error);
    mt_say("--heap: %s", error.text);
    return MT_EXIT_USAGE;
}

/* Does the view hold physical memory that the program mapped? */
static bool has_pages(const struct mt_source *source)
{
    const struct mt_heap_view *view = &source->view;
    uint32_t i;

    for (i = view->one_heap ? view->heap : 0; i < source->symbols.heap_count; i++) {
        if (strcmp(mt_heap_name(&source->symbols, (uint16_t)i), "driver:virtual") == 0)
            return true;
        if (view->one_heap)
            break;
    }
    return false;
}

void mt_add_requests(struct mt_buf *out, const struct mt_source *source)
{
    if (!source || source->view.level != MT_VIEW_DRIVER)
        return;
    if (source->view.one_heap)
        mt_buf_printf(out, "\nrequests: those of the heap %s alone\n",
                      mt_heap_name(&source->symbols, source->view.heap));
    else
        mt_buf_add_text(out,
                        "\nrequests: those to the driver, its heaps of device memory together; "
                        "the trace tells of no\nallocator above it\n");
    if (has_pages(source))
        mt_buf_add_text(out, "the heap driver:virtual holds whole pages, mostly of 2 MiB: what the "
                             "program asked for\nwithin them is not in the trace\n");
}

void mt_json_requests(struct mt_json *json, const struct mt_source *source)
{
    if (source && source->view.level == MT_VIEW_DRIVER)
        mt_json_text(json, "requests",
                     source->view.one_heap ? mt_heap_name(&source->symbols, source->view.heap)
                                           : "driver");
}

int mt_policy_error(const char *path, const char *policy, const struct mt_error *error)
{
    const char *names[MOST_POLICIES], *near;
    size_t count = 0;

    if (!policy || (error->status != MT_ERR_USAGE && error->status != MT_ERR_UNSUPPORTED))
        return mt_report_error(path, error);
    for (; mt_policies[count] && count < MOST_POLICIES; count++)
        names[count] = mt_policies[count]->name;
    near = mt_did_you_mean(policy, names, count);
    if (near && !mt_policy_find(policy, strlen(policy)))
        mt_say("policy '%s': %s; did you mean '%s'?", policy, error->text, near);
    else
        mt_say("policy '%s': %s", policy, error->text);
    return MT_EXIT_USAGE;
}
