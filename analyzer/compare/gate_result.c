#include "gate_result.h"

const char *mt_gate_state_name(enum mt_gate_state state)
{
    static const char *const names[] = {"pass", "warn", "fail", "not evaluated"};

    return names[state];
}

const struct mt_device_report *mt_gate_device(const struct mt_gate_work *work,
                                              const struct mt_gate_result *result)
{
    const struct mt_report *report = work->check->report;

    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == result->device)
            return &report->devices[i];
    return &report->devices[0];
}
