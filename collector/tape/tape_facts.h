/* Facts about the run that sources set ("key=value"), for the trace's header. Keys are those of
 * docs/internals/trace-format.md 2.1. */
#ifndef MT_COLLECTOR_TAPE_FACTS_H
#define MT_COLLECTOR_TAPE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "source.h"

/* Zeroed memory holds no facts. */
struct mt_tape_facts {
    struct mt_tape_fact *facts;
    size_t count, capacity;
    bool changed; /* since mt_tape_facts_header */
};

/* `text` is "key=value". Values of `sources` are joined with commas and those of `not_recorded`
 * with newlines, each value once. For other keys the last value replaces earlier ones.
 * MT_ERR_FORMAT: there is no '='. */
enum mt_status mt_tape_facts_add(struct mt_tape_facts *facts, const char *text,
                                 size_t length) MT_MUST_USE;

/* Sets the facts that are known. Strings are valid until the fact changes or `facts` is
 * released. */
void mt_tape_facts_header(struct mt_tape_facts *facts, struct mt_trace_header *header);

void mt_tape_facts_release(struct mt_tape_facts *facts);

#endif
