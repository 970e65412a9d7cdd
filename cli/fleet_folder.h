/* What `memtrace fleet -o DIR` writes: report.html, fleet.json, summary.md, junit.xml if there are
 * gates, and the charts that the job calls for. */
#ifndef MT_CLI_FLEET_FOLDER_H
#define MT_CLI_FLEET_FOLDER_H

#include "fleet_output.h"
#include "outputs.h"

/* Before anything is read: says which file of the user's is in the way. enum mt_exit. */
int mt_fleet_folder_precheck(const char *directory, const struct mt_outputs *outputs,
                             bool has_gates);

struct mt_fleet_folder {
    const char *directory;
    const struct mt_outputs *outputs;
    const char *command; /* that answers: "memtrace fleet traces/" */
    bool is_quiet;       /* does not print what was written */
};

/* All files; says what is wrong. enum mt_exit. */
int mt_fleet_folder_write(const struct mt_fleet_folder *folder,
                          const struct mt_fleet_answer *answer);

#endif
