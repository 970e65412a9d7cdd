#ifndef MT_CLI_EXPORT_DATABASE_H
#define MT_CLI_EXPORT_DATABASE_H

#include "cli.h"
#include "outputs.h"

/* A recording that becomes a database. */
struct mt_database_export {
    const char *input, *output;
    const struct mt_common *common;
    const struct mt_outputs *outputs;
    bool with_events; /* fills the table `events` */
};

/* Writes the file and counts its rows. Prints errors; returns enum mt_exit. */
int mt_export_database(const struct mt_database_export *wanted, uint64_t *rows);

#endif
