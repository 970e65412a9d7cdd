/* The database that answers questions about a file: the file itself, or the database of a
 * recording. The database of a recording is kept beside it as RECORDING.memtrace.db, and made again
 * if the recording, the version of memtrace or that of the tables changes. If it cannot be kept
 * there, it is a temporary file. */
#ifndef MT_CLI_RUN_DATABASE_H
#define MT_CLI_RUN_DATABASE_H

#include "buf.h"
#include "cli.h"
#include "temporary_file.h"

struct mt_run_database {
    int verdict; /* MT_EXIT_INPUT: the recording is damaged, and the database has what is left */
    const char *path;           /* of the database */
    bool is_made, is_temporary; /* is_made: of a recording, by this program */
    /* PRIVATE */
    struct mt_buf kept;
    struct mt_temporary temporary;
};

/* Makes the database if necessary, which takes as long as `analyze`. Prints errors; returns enum
 * mt_exit. Call mt_run_database_close in any case. */
int mt_run_database_open(struct mt_run_database *database, const char *input,
                         const struct mt_common *common);
void mt_run_database_close(struct mt_run_database *database);

#endif
