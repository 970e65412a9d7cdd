/* Chooses the devices that pictures and documents show: the first MT_SHOWN_DEVICES in the order of
 * mt_device_comes_first. The others are only counted, because a trace of 2 KB can name 1,024
 * devices, and the pictures of one device take 250 KB. An analysis for pictures makes only the
 * models of these devices, because those of one device take 15 MB. */
#ifndef MT_ANALYZER_DEVICE_CHOICE_H
#define MT_ANALYZER_DEVICE_CHOICE_H

#include "report.h"

enum { MT_SHOWN_DEVICES = 16 };

struct mt_device_choice {
    const struct mt_device_report *devices[MT_SHOWN_DEVICES]; /* of the report */
    uint32_t count, omitted;
};

/* Returns the chosen devices in the order of mt_device_comes_first. */
struct mt_device_choice mt_devices_by_peak(const struct mt_report *report);
/* Returns the same devices in the order of the report. */
struct mt_device_choice mt_devices_in_order(const struct mt_report *report);

/* Returns a static text that describes the order of mt_device_comes_first: "first those where
 * memory ran out, then those with the largest reserved peaks". */
const char *mt_device_choice_text(const struct mt_report *report);

#endif
