/* Hands rows of one size to a second thread, in blocks. It starts with the second block, so a short
 * input needs none. If no thread can be started, this one takes the rows. */
#ifndef MT_ANALYZER_RELAY_H
#define MT_ANALYZER_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_RELAY_ROWS = 2048, MT_RELAY_BLOCKS = 3 };

/* Zeroed memory is a relay that has not begun. */
struct mt_relay {
    size_t row_bytes;
    void *context;
    void (*take)(void *context, const void *rows, uint32_t count); /* in their order */
    /* PRIVATE */
    unsigned char *rows;
    uint32_t count; /* rows in the block that is being filled */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;             /* protects the rest */
    pthread_cond_t changed;           /* one of them did */
    uint64_t filled, done;            /* blocks */
    uint32_t counts[MT_RELAY_BLOCKS]; /* rows of filled blocks */
    bool is_over;
};

/* The first three members are set. The relay stays in place until mt_relay_finish. */
void mt_relay_begin(struct mt_relay *relay);
void mt_relay_pass_block(struct mt_relay *relay);
/* Waits until all rows are taken, and releases the relay, which may begin again. Does nothing if it
 * has not begun. */
void mt_relay_finish(struct mt_relay *relay);

static inline bool mt_relay_has_begun(const struct mt_relay *relay)
{
    return relay->rows != NULL;
}

/* Returns the next row, which the caller fills before it calls anything else. */
static inline void *mt_relay_next(struct mt_relay *relay)
{
    if (relay->count == MT_RELAY_ROWS)
        mt_relay_pass_block(relay);
    return relay->rows +
           (relay->filled % MT_RELAY_BLOCKS * MT_RELAY_ROWS + relay->count++) * relay->row_bytes;
}

#endif
