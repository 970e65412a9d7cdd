/* A process and all its descendants. */
#ifndef MT_RECORD_PROCESS_TREE_H
#define MT_RECORD_PROCESS_TREE_H

#include <sys/types.h>

/* Afterwards, descendants whose parents have ended become children of this process, so that
 * every process of a command can be found. */
void mt_process_tree_keep(void);

/* Sends the signal to `root` and its descendants, and to orphans that became our children and
 * their descendants; with root 0 only to those orphans. Reads /proc. Repeats SIGKILL up to eight
 * times, for processes that are created meanwhile. Any other signal is sent once. */
void mt_process_tree_end(pid_t root, int signal);

/* Like mt_process_tree_end, but spares `root`, which can clean up afterwards. */
void mt_process_tree_end_below(pid_t root, int signal);

#endif
