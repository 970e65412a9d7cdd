/* The checks of `memtrace doctor`: what a check finds, and those of the machine, the driver and
 * Python. */
#ifndef MT_COLLECTOR_PROBES_H
#define MT_COLLECTOR_PROBES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "program_kind.h"
#include "status.h"

/* The result of a check of `memtrace doctor`, and the checks themselves (probe.c has their
 * table). */

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

/* Checks which parts of the collector work on this machine. Every check runs in a separate
 * process, because foreign libraries may crash, hang or print. */

struct mt_probe {
    const char *name; /* "driver", ... */
    const char *what; /* its purpose, in a few words */
    /* Fills in a zeroed result (OK). Runs in a separate process. */
    void (*check)(struct mt_probe_result *result);
    unsigned limit_s;
};

/* All checks, each after those that it depends on; ends with NULL. */
extern const struct mt_probe mt_probes[];

/* Runs one check. If it crashes or hangs, the result is MISSING with the reason. */
void mt_probe_run(const struct mt_probe *probe, struct mt_probe_result *result);

/* Checks of the driver, of NVML, which is part of it, and of CUPTI. */

/* Checks whether the collector can subscribe to CUPTI on this machine. */

enum mt_cupti_state {
    MT_CUPTI_NO_DRIVER,
    MT_CUPTI_NOT_FOUND,
    MT_CUPTI_FREE,
    MT_CUPTI_TAKEN,
    MT_CUPTI_TOO_NEW,
    MT_CUPTI_REFUSES
};

struct mt_cupti_answer {
    enum mt_cupti_state state;
    char path[PATH_MAX], version[24]; /* of the last copy that was tried */
    char holder[64];                  /* TAKEN: name of the tool that is subscribed */
    char reason[64];
    int error;
};

/* Tries every copy of CUPTI until one accepts a subscriber. Starts the driver, which can
 * take seconds. If not `thorough`, does not subscribe: it assumes that any copy that is not newer
 * than the driver accepts a subscriber. Call it only in a separate process. */
void mt_cupti_try(const struct mt_program *program, bool thorough, struct mt_cupti_answer *answer);

/* Returns true if the driver's functions must be interposed in `program` because CUPTI cannot be
 * used. `why` is then the reason as text for the user; it is empty if the user chose this with
 * MEMTRACE_CUPTI=none. Tries CUPTI in a separate process. Takes milliseconds if CUPTI can be
 * used. */
bool mt_cupti_needs_substitute(const struct mt_program *program, char *why, size_t capacity);

#endif
