/* Writes blocks, segments and events into a database while a run is analyzed. Memory depends on
 * what is live, not on the length of the run. */
#ifndef MT_CLI_BLOCK_STREAM_H
#define MT_CLI_BLOCK_STREAM_H

#include "analyze_options.h"
#include "database_writer.h"

struct mt_block_stream {
    struct mt_database_writer *writer;
    bool with_events;
    /* PRIVATE */
    uint64_t origin_count;
    bool *used_stacks; /* by stack: a row of a table refers to it */
    size_t stack_capacity;
};

/* Makes an analysis write its blocks to the stream. Borrows both. */
void mt_block_stream_attach(struct mt_block_stream *stream, struct mt_analyze_options *options);

/* Marks a stack that another table refers to. */
void mt_block_stream_use(struct mt_block_stream *stream, uint32_t stack);

/* After the analysis: writes the stacks and frames that rows refer to, and streams and pools. */
void mt_block_stream_finish(struct mt_block_stream *stream, const struct mt_report *report);
void mt_block_stream_release(struct mt_block_stream *stream);

#endif
