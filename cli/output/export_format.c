#include "export_format.h"

#include "site.h"
#include "ties.h"

const char *mt_export_words(struct mt_arena *arena, const struct mt_report *report,
                            uint64_t first_event, const struct mt_holding *holding)
{
    const bool is_backward =
        mt_phase_is_backward(report->phases, report->phase_count, holding->phase);

    if (holding->stack == MT_NO_ID && holding->first_birth_event < first_event)
        return "allocated before recording started";
    if (holding->tie == MT_TIE_LIBRARY || holding->tied != MT_NO_ID)
        return mt_tie_label(arena, report->symbols, holding->tie,
                            mt_stack_site(report->symbols, holding->tied));
    if (holding->stack != MT_NO_ID)
        return NULL;
    if (report->names_operations)
        return "outside TensorFlow operations";
    if (report->has_stacks && !is_backward)
        return "no Python stack (a C++ thread)";
    return mt_site_label(arena, report->symbols, MT_NO_ID, is_backward);
}
