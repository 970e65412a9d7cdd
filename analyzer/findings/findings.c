#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

static enum mt_status (*const finders[])(struct mt_finding_search *) = {
    mt_find_growth,
    mt_find_pinned_segments,
};

/* "error": it ends the run if it goes on; "warning": memory is to be had; "info":
 * where it is. */
static int rank_of(const struct mt_finding *finding)
{
    static const char *const severities[] = {"error", "warning", "info"};
    size_t i = 0;

    while (i < MT_ARRAY_LEN(severities) && strcmp(finding->severity, severities[i]) != 0)
        i++;
    return (int)i;
}

static int by_worth(const void *a, const void *b)
{
    const struct mt_finding *x = a, *y = b;

    if (rank_of(x) != rank_of(y))
        return rank_of(x) - rank_of(y);
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->title, y->title);
}

static enum mt_status add(struct mt_device_report *device, const struct mt_finding_search *search)
{
    memcpy(device->findings + device->finding_count, search->found,
           search->count * sizeof *search->found);
    device->finding_count += search->count;
    return MT_OK;
}

enum mt_status mt_finding_lives(struct mt_finding_search *search, const struct mt_lives **lives)
{
    struct mt_analysis *analysis = search->analysis;

    *lives = search->lives;
    if (search->lives->begins)
        return MT_OK;
    return mt_lives_read(analysis, search->device, mt_first_step(analysis, search->device),
                         search->lives);
}

static enum mt_status look_at(struct mt_analysis *analysis, struct mt_device_report *device)
{
    enum mt_status status = MT_OK;
    struct mt_lives lives = {0};
    size_t i;

    device->findings =
        mt_arena_array(&analysis->report->arena, MT_ARRAY_LEN(finders) * MT_FINDINGS_MAX,
                       sizeof *device->findings);
    if (!device->findings)
        return MT_ERR_MEMORY;
    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(finders); i++) {
        struct mt_finding_search search = {.analysis = analysis, .device = device, .lives = &lives};
        status = finders[i](&search);
        if (status == MT_OK)
            status = add(device, &search);
    }
    mt_lives_release(&lives);
    if (device->finding_count)
        qsort(device->findings, device->finding_count, sizeof *device->findings, by_worth);
    return status;
}

enum mt_status mt_findings_fill(struct mt_analysis *analysis)
{
    enum mt_status status = MT_OK;
    uint32_t i;

    for (i = 0; status == MT_OK && i < analysis->report->device_count; i++)
        status = look_at(analysis, &analysis->report->devices[i]);
    return status;
}
