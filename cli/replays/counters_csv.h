/* Writes a row of a device's counters after every memory event, as CSV:
 * event,t_ns,device,requested,allocated,active,reserved,inactive_split */
#ifndef MT_CLI_COUNTERS_CSV_H
#define MT_CLI_COUNTERS_CSV_H

#include "outputs.h"
#include "replay.h"

struct mt_counters_csv {
    const char *path;
    struct mt_output_rules rules;
    struct mt_output output;
    struct mt_buf row;
};

/* Opens the file and writes the header line. Prints errors; returns enum mt_exit. */
int mt_counters_csv_open(struct mt_counters_csv *csv, const char *path,
                         const struct mt_outputs *outputs);

/* Returns an observer for mt_replay_run. *csv must not move while the observer is used. */
struct mt_replay_observer mt_counters_csv_observer(struct mt_counters_csv *csv);

/* Renames the file to its final name. Discards the file instead if the exit code of the replay,
 * `code`, is not MT_EXIT_OK. Prints errors; returns enum mt_exit. */
int mt_counters_csv_close(struct mt_counters_csv *csv, int code);

#endif
