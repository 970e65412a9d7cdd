/* Packets of a trace of Perfetto, and the texts and stacks that they refer to by number. The
 * numbers of fields are those of protos/perfetto/trace in github.com/google/perfetto. */
#ifndef MT_CLI_PERFETTO_PACKETS_H
#define MT_CLI_PERFETTO_PACKETS_H

#include "arena.h"
#include "buf.h"
#include "holding.h"
#include "map.h"
#include "report.h"

/* Messages of a packet. */
enum {
    MT_PACKET_CLOCKS = 6,
    MT_PACKET_EVENT = 11,
    MT_PACKET_PROFILE = 37,
    MT_PACKET_TRACK = 60,
};

#define MT_PACKET_NO_TIME UINT64_MAX

/* Packets of one writer. Numbers of texts and stacks are valid in its packets only. Zeroed memory,
 * with the first members set, is ready. */
struct mt_packets {
    struct mt_buf *out;
    const struct mt_report *report;
    uint64_t first_event; /* of the device */
    uint32_t id;          /* unique among the writers of all files that may be joined; not 0 */
    bool has_begun;
    /* PRIVATE */
    struct mt_buf interned, packet; /* interned: for the next packet */
    struct mt_strings names, functions, files, words;
    struct mt_map frames, stacks;
    uint32_t frame_count, stack_count;
    struct mt_arena scratch;
};

/* Adds a packet with a message. The time is that of the trace's clock, in ns. */
void mt_packets_add(struct mt_packets *packets, unsigned kind, const struct mt_buf *message,
                    uint64_t t_ns);

/* Return the number of a name of events, and of a stack; the next packet then explains it. */
uint32_t mt_packets_name(struct mt_packets *packets, const char *name);
uint32_t mt_packets_stack(struct mt_packets *packets, uint32_t stack);

/* The number of the stack of a block: its own, or that of its owner and words for what it is. */
uint32_t mt_packets_block_stack(struct mt_packets *packets, const struct mt_holding *block);

void mt_packets_release(struct mt_packets *packets);

#endif
