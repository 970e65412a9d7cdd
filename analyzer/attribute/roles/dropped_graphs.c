#include "dropped_graphs.h"

#include "grow.h"

#include <stdlib.h>
#include <string.h>

#define MIN_GRAPH_BLOCKS 24 /* a function has fewer variables; */
#define GRAPH_SHARE      3  /* a list of results has fewer of all blocks */
#define REST_SHARE       8  /* of the graph: results, workspaces, other graphs that remain */
#define MAX_REST         4  /* the same, where no graph ends */

void mt_dropped_graphs_release(struct mt_dropped_graphs *graphs)
{
    free(graphs->ended);
    memset(graphs, 0, sizeof *graphs);
}

/* Decides on the blocks that ended since the last birth. */
static void close_row(struct mt_dropped_graphs *graphs)
{
    size_t row = graphs->ended_count - graphs->graph_count;
    bool is_graph = row >= MIN_GRAPH_BLOCKS && row >= graphs->births / GRAPH_SHARE &&
                    graphs->alive <= row / REST_SHARE;

    if (is_graph)
        graphs->graph_count = graphs->ended_count;
    graphs->ended_count = graphs->graph_count;
    if (is_graph || graphs->alive <= MAX_REST)
        graphs->births = graphs->alive;
}

void mt_dropped_graphs_birth(struct mt_dropped_graphs *graphs, bool in_forward)
{
    if (graphs->ended_count > graphs->graph_count)
        close_row(graphs);
    graphs->births += in_forward;
    graphs->alive += in_forward;
    graphs->made += in_forward;
    graphs->keeps |=
        graphs->alive >= MIN_GRAPH_BLOCKS && graphs->alive >= graphs->births / GRAPH_SHARE;
}

void mt_dropped_graphs_end(struct mt_dropped_graphs *graphs, uint64_t allocation)
{
    graphs->alive--;
    mt_grow_to(&graphs->ended, &graphs->ended_capacity, graphs->ended_count + 1,
               sizeof *graphs->ended);
    graphs->ended[graphs->ended_count++] = allocation;
}

bool mt_dropped_graphs_keeps_none(const struct mt_dropped_graphs *graphs)
{
    return !graphs->keeps && graphs->made >= MIN_GRAPH_BLOCKS * GRAPH_SHARE;
}

void mt_dropped_graphs_finish(struct mt_dropped_graphs *graphs)
{
    close_row(graphs);
}
