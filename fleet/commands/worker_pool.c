#include "worker_pool.h"

#include <pthread.h>

#include "util.h"

enum { MAX_THREADS = 32 };

struct state {
    const struct mt_worker_pool *pool;
    pthread_mutex_t lock; /* protects the fields below */
    uint32_t next, done, failed;
    enum mt_status status;
};

/* Takes the next item. Items are taken in order, so all items before a failed one are finished and
 * the first failure is known. */
static bool take(struct state *state, uint32_t *index)
{
    bool more;

    pthread_mutex_lock(&state->lock);
    more = state->status == MT_OK && state->next < state->pool->count;
    if (more)
        *index = state->next++;
    pthread_mutex_unlock(&state->lock);
    return more;
}

static void finish(struct state *state, uint32_t index, enum mt_status status)
{
    pthread_mutex_lock(&state->lock);
    state->done++;
    if (status != MT_OK && (state->status == MT_OK || index < state->failed)) {
        state->status = status;
        state->failed = index;
    }
    pthread_mutex_unlock(&state->lock);
}

static void show(void *context, double share)
{
    struct state *state = context;
    double done;

    pthread_mutex_lock(&state->lock);
    done = ((double)state->done + share) / (double)state->pool->count;
    pthread_mutex_unlock(&state->lock);
    mt_progress_update(state->pool->progress, state->pool->what, done < 1 ? done : 1);
}

static void work(struct state *state, const struct mt_fleet_share *share)
{
    const struct mt_worker_pool *pool = state->pool;
    uint32_t index;

    while (take(state, &index)) {
        finish(state, index, pool->run(pool->context, index, share));
        if (share->show)
            share->show(share->context, 0);
    }
}

static void *help(void *context)
{
    const struct mt_fleet_share nothing = {NULL, NULL};

    work(context, &nothing);
    return NULL;
}

enum mt_status mt_worker_pool_run(const struct mt_worker_pool *pool, uint32_t *failed)
{
    struct state state = {.pool = pool, .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct mt_fleet_share share = {show, &state};
    uint64_t wanted = mt_min_u64(mt_min_u64(pool->threads, pool->count), MAX_THREADS);
    pthread_t threads[MAX_THREADS];
    uint32_t started = 0;

    while (started + 1 < wanted && pthread_create(&threads[started], NULL, help, &state) == 0)
        started++;
    work(&state, &share);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    *failed = state.failed;
    return state.status;
}
