#ifndef MT_FLEET_JOB_DATABASE_H
#define MT_FLEET_JOB_DATABASE_H

#include "cli.h"
#include "database_writer.h"

/* A job as a database: `fill` and `schema` of struct mt_annex_files. */
extern const struct mt_database_schema mt_job_database;
int mt_job_database_fill(struct mt_database_writer *writer, const char *path,
                         const struct mt_common *common);

#endif
