/* `memtrace info` for a summary of ranks (docs/internals/rank-summary.md). */
#ifndef MT_CLI_INFO_SUMMARY_H
#define MT_CLI_INFO_SUMMARY_H

#include "cli.h"

/* Prints the contents of the file. With --json, prints all fields of the records. Returns enum
 * mt_exit. */
int mt_info_summary(const char *path, const struct mt_common *common);

#endif
