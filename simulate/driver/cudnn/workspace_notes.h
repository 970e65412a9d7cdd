/* Counts the sources of convolution workspaces, for the report of the dry run. */
#ifndef MT_WORKSPACE_NOTES_H
#define MT_WORKSPACE_NOTES_H

#include "convolution_workspace.h"

/* Counts one plan: its workspace, and the bytes of its convolution's operands. The counts of the
 * process, and the most bytes by which one workspace may be wrong, are written to
 * $MEMTRACE_DRY_RUN_NOTES.convolutions.PID when a count has doubled, and when the process ends.
 * They are discarded if the variable is not set or the file cannot be written. Any thread may call
 * it. */
void sim_note_workspace(struct convolution_workspace workspace, int64_t operand_bytes);

#endif
