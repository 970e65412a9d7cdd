/* Writes the folder of `memtrace fleet -o DIR`: report.html, fleet.json, summary.md, junit.xml if
 * there are gates, and the charts that are useful for the job. */
#ifndef MT_CLI_FLEET_FOLDER_H
#define MT_CLI_FLEET_FOLDER_H

#include "fleet_output.h"
#include "outputs.h"

/* Prints which of the user's files would be overwritten. Call it before anything is read. Returns
 * enum mt_exit. */
int mt_fleet_folder_precheck(const char *directory, const struct mt_outputs *outputs,
                             bool has_gates);

struct mt_fleet_folder {
    const char *directory;
    const struct mt_outputs *outputs;
    const char *command; /* the command that gave the answer: "memtrace fleet traces/" */
    bool is_quiet;       /* does not print the names of the files */
};

/* Writes all files. Prints errors; returns enum mt_exit. */
int mt_fleet_folder_write(const struct mt_fleet_folder *folder,
                          const struct mt_fleet_answer *answer);

#endif
