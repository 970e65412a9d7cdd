/* The result of a check of `memtrace doctor`, and the checks themselves (probe.c has their
 * table). */
#ifndef MT_RECORD_PROBE_RESULT_H
#define MT_RECORD_PROBE_RESULT_H

#include <stddef.h>

#include "status.h"

enum mt_probe_state {
    MT_PROBE_OK,
    MT_PROBE_DEGRADED, /* traces will lack some data, or record it less exactly */
    MT_PROBE_MISSING   /* the source cannot record anything */
};

struct mt_probe_result {
    enum mt_probe_state state;
    char text[320]; /* what was found, or what failed */
    char fix[320];  /* what to do about it, "" = nothing */
};

/* Sets all members of *result; `format` is for its text. For the checks. */
void mt_probe_set(struct mt_probe_result *result, enum mt_probe_state state, const char *fix,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Advice for machines on which a library for recorded programs cannot be used. */
const char *mt_probe_remedy(enum mt_status status);

void mt_probe_driver(struct mt_probe_result *result);
void mt_probe_cupti(struct mt_probe_result *result);
void mt_probe_nvml(struct mt_probe_result *result);
void mt_probe_pytorch(struct mt_probe_result *result);
void mt_probe_python(struct mt_probe_result *result);

#endif
