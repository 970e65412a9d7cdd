#include "relay.h"

#include <stdlib.h>

#include "process_memory.h"

static const void *block_at(const struct mt_relay *relay, uint64_t block)
{
    return relay->rows + block % MT_RELAY_BLOCKS * MT_RELAY_ROWS * relay->row_bytes;
}

static void *take_blocks(void *context)
{
    struct mt_relay *relay = context;

    pthread_mutex_lock(&relay->lock);
    for (;;) {
        while (relay->done == relay->filled && !relay->is_over)
            pthread_cond_wait(&relay->changed, &relay->lock);
        if (relay->done == relay->filled)
            break;
        pthread_mutex_unlock(&relay->lock);
        relay->take(relay->context, block_at(relay, relay->done),
                    relay->counts[relay->done % MT_RELAY_BLOCKS]);
        pthread_mutex_lock(&relay->lock);
        relay->done++;
        pthread_cond_signal(&relay->changed);
    }
    pthread_mutex_unlock(&relay->lock);
    return NULL;
}

void mt_relay_begin(struct mt_relay *relay)
{
    relay->rows = mt_memory_new(MT_RELAY_BLOCKS * MT_RELAY_ROWS * relay->row_bytes);
    relay->count = 0;
    relay->filled = relay->done = 0;
    relay->has_thread = relay->is_over = false;
    pthread_mutex_init(&relay->lock, NULL);
    pthread_cond_init(&relay->changed, NULL);
}

/* Waits until at most two blocks are left, so that the next one has room. */
static void hand_over(struct mt_relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    relay->counts[relay->filled++ % MT_RELAY_BLOCKS] = relay->count;
    pthread_cond_signal(&relay->changed);
    while (relay->filled - relay->done == MT_RELAY_BLOCKS)
        pthread_cond_wait(&relay->changed, &relay->lock);
    pthread_mutex_unlock(&relay->lock);
}

void mt_relay_pass_block(struct mt_relay *relay)
{
    if (!relay->has_thread)
        relay->has_thread = !pthread_create(&relay->thread, NULL, take_blocks, relay);
    if (relay->has_thread)
        hand_over(relay);
    else
        relay->take(relay->context, relay->rows, relay->count);
    relay->count = 0;
}

void mt_relay_finish(struct mt_relay *relay)
{
    if (!mt_relay_has_begun(relay))
        return;
    if (!relay->has_thread) {
        relay->take(relay->context, relay->rows, relay->count);
    } else {
        mt_relay_pass_block(relay);
        pthread_mutex_lock(&relay->lock);
        relay->is_over = true;
        pthread_cond_signal(&relay->changed);
        pthread_mutex_unlock(&relay->lock);
        pthread_join(relay->thread, NULL);
    }
    pthread_cond_destroy(&relay->changed);
    pthread_mutex_destroy(&relay->lock);
    free(relay->rows);
    relay->rows = NULL;
}
