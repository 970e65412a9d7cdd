/* Files that are often beside traces and snapshots, but that no importer reads. */
#ifndef MT_COLLECTOR_NEIGHBORS_H
#define MT_COLLECTOR_NEIGHBORS_H

#include <stddef.h>

/* Returns what a file with these first bytes and this name is, and what to do instead; NULL if it
 * is unknown. */
const char *mt_neighbor_advice(const void *bytes, size_t length, const char *path);

#endif
