/* A process and all that descend from it. */
#ifndef MT_RECORD_PROCESS_TREE_H
#define MT_RECORD_PROCESS_TREE_H

#include <sys/types.h>

/* From here on processes whose parents have ended become our children, so that none of a command
 * gets lost. */
void mt_process_tree_keep(void);

/* Sends the signal to `root` and its descendants, and to the orphans that became our children and
 * theirs; root 0: to those alone. Reads /proc; with SIGKILL up to eight times, for processes that
 * are born meanwhile. Any other signal arrives once. */
void mt_process_tree_end(pid_t root, int signal);

/* The same for the descendants of `root` alone: it lives, and can tidy up behind them. */
void mt_process_tree_end_below(pid_t root, int signal);

#endif
