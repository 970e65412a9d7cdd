/* memtrace info of the summary of ranks (docs/rank-summary.md). */
#ifndef MT_CLI_INFO_SUMMARY_H
#define MT_CLI_INFO_SUMMARY_H

#include "cli.h"

/* Says what the file holds; with --json all fields of its records. enum mt_exit. */
int mt_info_summary(const char *path, const struct mt_common *common);

#endif
