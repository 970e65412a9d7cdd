#include "read_driver.h"

#include "analysis.h"
#include "ledger_instants.h"

bool mt_driver_is_wanted(const struct mt_analysis *analysis)
{
    const struct mt_heap_view *view = &analysis->source->view;

    return !analysis->options->question && (view->level != MT_VIEW_FRAMEWORK || view->has_more);
}

enum mt_status mt_begin_driver(struct mt_analysis *analysis)
{
    struct mt_driver_ledger *ledger = &analysis->ledger;
    struct mt_survey *survey = &analysis->survey;

    ledger->arena = &analysis->report->arena;
    ledger->phases = &survey->phases;
    mt_driver_ledger_begin(ledger, analysis->source);
    for (uint32_t i = 0; i < survey->device_count && ledger->has_framework; i++) {
        const struct mt_high *peak = mt_highs_since(&survey->devices[i].high[MT_HIGH_ALLOCATED], 0);

        mt_driver_ledger_want(ledger, survey->devices[i].device, peak->event, peak->t_ns);
    }
    return MT_OK;
}

void mt_receive_driver(struct mt_analysis *analysis, const struct mt_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mt_driver_ledger_event(&analysis->ledger, &events[i]);
}

void mt_finish_driver(struct mt_analysis *analysis)
{
    mt_driver_ledger_finish(&analysis->ledger);
}

uint64_t mt_driver_memory_bytes(const struct mt_analysis *analysis)
{
    return mt_driver_ledger_bytes(&analysis->ledger);
}
