#include "device_choice.h"

#include <stdlib.h>

#include "report_query.h"
#include "sorted.h"

/* Inserts a device in its order. If there is no room, drops the last device. */
static void insert(struct mt_device_choice *choice, const struct mt_device_report *device)
{
    uint32_t at = choice->count;

    if (choice->count < MT_SHOWN_DEVICES)
        choice->count++;
    else if (mt_device_comes_first(device, choice->devices[MT_SHOWN_DEVICES - 1]))
        at = MT_SHOWN_DEVICES - 1;
    else
        return;
    for (; at && mt_device_comes_first(device, choice->devices[at - 1]); at--)
        choice->devices[at] = choice->devices[at - 1];
    choice->devices[at] = device;
}

struct mt_device_choice mt_devices_by_peak(const struct mt_report *report)
{
    struct mt_device_choice choice = {.count = 0};

    for (uint32_t i = 0; i < report->device_count; i++)
        insert(&choice, &report->devices[i]);
    choice.omitted = report->device_count - choice.count;
    return choice;
}

/* Orders devices by their position in the array of the report. */
MT_DEFINE_POINTER_ORDER(by_place, struct mt_device_report, MT_BY_PLACE)

struct mt_device_choice mt_devices_in_order(const struct mt_report *report)
{
    struct mt_device_choice choice = mt_devices_by_peak(report);

    qsort(choice.devices, choice.count, sizeof *choice.devices, by_place);
    return choice;
}

const char *mt_device_choice_text(const struct mt_report *report)
{
    return mt_knows_reserved(report)
               ? "first those where memory ran out, then those with the largest reserved peaks"
               : "first those where memory ran out, then those with the largest allocated peaks";
}
