/* Chooses the devices that pictures and documents show. A trace of 2 KB can name 1,024 devices,
 * and the pictures of one take 250 KB. The first devices in the order of mt_device_comes_first
 * are shown, the rest is counted. */
#ifndef MT_RENDER_DEVICE_CHOICE_H
#define MT_RENDER_DEVICE_CHOICE_H

#include "report.h"

enum { MT_SHOWN_DEVICES = 16 };

struct mt_device_choice {
    const struct mt_device_report *devices[MT_SHOWN_DEVICES]; /* of the report */
    uint32_t count, omitted;
};

/* Returns the devices in the order of mt_device_comes_first. */
struct mt_device_choice mt_devices_by_peak(const struct mt_report *report);
/* The same devices in the order of the report. */
struct mt_device_choice mt_devices_in_order(const struct mt_report *report);

/* Describes the choice for readers: "first those where memory ran out, then those with the largest
 * reserved peaks", as in mt_device_comes_first. Static. */
const char *mt_device_choice_text(const struct mt_report *report);

#endif
