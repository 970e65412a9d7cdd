/* One row of a device's counters after every memory event, as CSV:
 * event,t_ns,device,requested,allocated,active,reserved,inactive_split */
#ifndef MT_CLI_COUNTERS_CSV_H
#define MT_CLI_COUNTERS_CSV_H

#include <stdio.h>

#include "buf.h"
#include "replay.h"

struct mt_counters_csv {
    struct mt_buf buffer;
    FILE *file;
    bool can_restart;
    bool failed; /* the file could not be written; errno of then */
    int error_number;
};

/* Opens the file and writes the header line; false: errno says why not. */
bool mt_counters_csv_open(struct mt_counters_csv *csv, const char *path);

/* An observer for mt_replay_run; the csv must stay where it is. */
struct mt_replay_observer mt_counters_csv_observer(struct mt_counters_csv *csv);

/* Writes what is left; false: errno says why not. Zeroed memory is fine. */
bool mt_counters_csv_close(struct mt_counters_csv *csv);

#endif
