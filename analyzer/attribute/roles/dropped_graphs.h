/* Graphs of calls whose result the program drops. Autograd keeps most results of a call until the
 * result goes; then all of them end, one after the other, without an allocation between them, and
 * hardly any block of the call remains. Without a graph, most blocks end while the call runs.
 *
 * So blocks of forward that end in such a row are activations: at least MIN_GRAPH_BLOCKS, at least
 * a third of the blocks that forward made since hardly any of its blocks was alive.
 *
 * Memory: 8 bytes for each block that ends in such a row. */
#ifndef MT_ANALYZER_DROPPED_GRAPHS_H
#define MT_ANALYZER_DROPPED_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory is ready. */
struct mt_dropped_graphs {
    uint32_t alive;  /* blocks of forward */
    uint32_t births; /* of these since hardly any was alive */
    uint64_t *ended; /* blocks of graphs, then those that ended since the last birth */
    size_t ended_count, ended_capacity;
    size_t graph_count; /* blocks of graphs */
    uint64_t made;      /* blocks of forward in total */
    bool keeps;         /* some call kept a graph */
};

void mt_dropped_graphs_release(struct mt_dropped_graphs *graphs);

/* Takes allocations in order of their numbers, and ends of blocks that forward made. */
void mt_dropped_graphs_birth(struct mt_dropped_graphs *graphs, bool in_forward);
void mt_dropped_graphs_end(struct mt_dropped_graphs *graphs, uint64_t allocation);

/* Returns true if forward made enough blocks to show that it keeps no graph. */
bool mt_dropped_graphs_keeps_none(const struct mt_dropped_graphs *graphs);

/* Call it after the last event. Then ended[0] to ended[graph_count - 1] are the blocks. */
void mt_dropped_graphs_finish(struct mt_dropped_graphs *graphs);

#endif
