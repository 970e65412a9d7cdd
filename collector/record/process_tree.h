/* A process and all its descendants. */
#ifndef MT_RECORD_PROCESS_TREE_H
#define MT_RECORD_PROCESS_TREE_H

#include <sys/types.h>

/* After this call, a descendant whose parent ends becomes a child of this process, so that every
 * process of a command can be found. */
void mt_process_tree_keep(void);

/* Sends the signal to `root`, to the orphans that became children of this process, and to all their
 * descendants; with root 0, only to the orphans and their descendants. Reads /proc. Sends SIGKILL
 * up to eight times, because processes may be created meanwhile, and any other signal once. */
void mt_process_tree_end(pid_t root, int signal);

/* Like mt_process_tree_end, but does not signal `root`, which can then clean up. */
void mt_process_tree_end_below(pid_t root, int signal);

#endif
