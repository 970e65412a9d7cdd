#ifndef MT_CLI_EXPORT_DATABASE_H
#define MT_CLI_EXPORT_DATABASE_H

#include "cli.h"
#include "outputs.h"

/* A file at the time when it was read. */
struct mt_file_stamp {
    int64_t bytes, mtime_ns, inode;
};

/* A recording that becomes a database. */
struct mt_database_export {
    const char *input, *output;
    const struct mt_common *common;
    const struct mt_outputs *outputs;
    const struct mt_file_stamp *stamp; /* of the input, for `settings`; NULL: left out, so that the
                                          same input makes the same file */
    bool with_events;                  /* fills the table `events` */
};

/* Writes the file and counts its rows, which are 0 if there is no file. Prints errors; returns enum
 * mt_exit. A damaged recording is written as far as it can be read, with MT_EXIT_INPUT. */
int mt_export_database(const struct mt_database_export *wanted, uint64_t *rows);

/* The version of memtrace, for `settings`. */
const char *mt_database_made_by(void);

#endif
