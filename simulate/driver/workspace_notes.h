/* Counts the sources of convolution workspaces, for the report of the dry run. */
#ifndef MT_WORKSPACE_NOTES_H
#define MT_WORKSPACE_NOTES_H

#include "convolution_workspace.h"

/* Counts one plan. The counts of the process go to $MEMTRACE_DRY_RUN_NOTES.convolutions.PID when a
 * count has doubled and when the process ends; they are dropped if the variable is not set or the
 * file cannot be written. Safe to call from several threads. */
void sim_note_workspace(enum workspace_source source);

#endif
