/* The names of another tool's database as views of this one, so that its queries run on exact
 * sizes: https://github.com/codeasier/pt-snap-cli, docs/en/database.md, layout v1. */
#ifndef MT_CLI_PT_SNAP_VIEWS_H
#define MT_CLI_PT_SNAP_VIEWS_H

#include "database_writer.h"

/* Adds the views of one device: block_N, and trace_entry_N if the table `events` is filled. */
void mt_pt_snap_views_add(struct mt_database_writer *writer, uint16_t device, bool with_events);

#endif
