/* The temporary files that exist right now, for a signal handler that removes them before the
 * program dies. Lock-free: threads may add and take while a handler runs. */
#ifndef MT_BASE_UNFINISHED_H
#define MT_BASE_UNFINISHED_H

#include <stdbool.h>

enum { MT_MAX_UNFINISHED = 32 };

/* Zeroed memory is an empty list. */
struct mt_unfinished {
    _Atomic(char *) paths[MT_MAX_UNFINISHED];
    _Atomic(bool) handled; /* mt_unfinished_unlink was called */
};

/* Lends `path` (from malloc) to the list until it is taken back. A full list ignores it: the file
 * then survives a fatal signal, nothing else changes. */
void mt_unfinished_add(struct mt_unfinished *list, char *path);

/* true: the path is the caller's again, to be freed. false: a signal handler removes the file and
 * the process is about to end; do not free the path. */
bool mt_unfinished_take(struct mt_unfinished *list, char *path);

/* Unlinks every file of the list. Async-signal-safe. */
void mt_unfinished_unlink(struct mt_unfinished *list);

#endif
