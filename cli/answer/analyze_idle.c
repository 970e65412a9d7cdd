/* Memory that stays allocated through each phase, and how much of it the phase does not use. */
#include "analyze_output.h"
#include "text_table.h"
#include "units.h"

#include <stdlib.h>

enum { NAMED_ROLES = 2 };

/* Idle memory of one phase: the sum of its rows, which are adjacent. */
struct stay {
    int32_t phase;
    uint64_t bytes, movable_bytes;
    const struct mt_idle_use *movable[NAMED_ROLES]; /* the largest roles */
};

static void note_movable(struct stay *stay, const struct mt_idle_use *idle)
{
    int at = NAMED_ROLES - 1;

    if (stay->movable[at] && stay->movable[at]->movable_bytes >= idle->movable_bytes)
        return;
    for (; at > 0 &&
           (!stay->movable[at - 1] || stay->movable[at - 1]->movable_bytes < idle->movable_bytes);
         at--)
        stay->movable[at] = stay->movable[at - 1];
    stay->movable[at] = idle;
}

static struct stay stay_of(const struct mt_device_report *device, uint32_t *at)
{
    struct stay stay = {.phase = device->idle[*at].phase};

    for (; *at < device->idle_count && device->idle[*at].phase == stay.phase; ++*at) {
        const struct mt_idle_use *idle = &device->idle[*at];
        stay.bytes += idle->bytes;
        stay.movable_bytes += idle->movable_bytes;
        if (idle->movable_bytes)
            note_movable(&stay, idle);
    }
    return stay;
}

static const char *roles_of(const struct mt_reporter *reporter, const struct stay *stay)
{
    const struct mt_idle_use *const *movable = stay->movable;

    if (!movable[0])
        return "";
    if (!movable[1])
        return mt_role_name(movable[0]->role);
    return mt_reporter_format(reporter, "%s, %s", mt_role_name(movable[0]->role),
                              mt_role_name(movable[1]->role));
}

static void add_row(const struct mt_reporter *reporter, struct mt_table *table,
                    const struct stay *stay)
{
    const char *where =
        mt_reporter_where(reporter, stay->phase, reporter->report->phases[stay->phase].step);

    MT_CELLS(
        table, MT_TEXT(where), MT_BYTES(reporter->device->phase_uses[stay->phase].peak.allocated),
        MT_BYTES(stay->bytes), stay->movable_bytes ? MT_BYTES(stay->movable_bytes) : MT_TEXT(""),
        MT_TEXT(roles_of(reporter, stay)));
}

void mt_report_idle(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    struct mt_table table;
    uint64_t movable_bytes = 0;
    uint32_t at;

    for (at = 0; at < device->idle_count; at++)
        movable_bytes += device->idle[at].movable_bytes;
    if (!movable_bytes || !reporter->detail->whole)
        return;
    mt_reporter_heading(reporter,
                        "Memory idle throughout each phase (the instance with the highest peak)");
    mt_table_begin(&table, "~phase|#peak|#stays allocated|#not used|");
    for (at = 0; at < device->idle_count;) {
        struct stay stay = stay_of(device, &at);
        add_row(reporter, &table, &stay);
    }
    mt_add_text_table(reporter->out, &table, 2, reporter->style);
}
