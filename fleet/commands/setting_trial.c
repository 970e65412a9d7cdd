#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "policy_options.h"
#include "process_memory.h"
#include "replay.h"
#include "replay_result.h"
#include "screen.h"
#include "setting_trial.h"
#include "source.h"
#include "tune.h"
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
    pthread_mutex_lock(&state->lock);
    bool more = state->status == MT_OK && state->next < state->pool->count;
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

    pthread_mutex_lock(&state->lock);
    double done = ((double)state->done + share) / (double)state->pool->count;
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

/* The policy of `conf`, in `text`. */
static const char *policy_of(const char *conf, char text[MT_TUNE_CONF_BYTES + 16])
{
    if (!conf)
        return "pytorch";
    (void)snprintf(text, MT_TUNE_CONF_BYTES + 16, "pytorch:%s", conf);
    return text;
}

static void keep_replay(const struct mt_replay_summary *summary, struct mt_setting_trial *trial)
{
    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];

        trial->devices[trial->device_count++] = (struct mt_setting_device){
            .device = result->device,
            .peak_bytes = result->counters.reserved.peak,
            .driver_calls = result->counters.device_allocs + result->counters.device_frees};
    }
}

enum mt_status mt_setting_replay(struct mt_source *source, const char *conf,
                                 struct mt_setting_trial *trial, struct mt_error *error)
{
    struct mt_replay_summary *summary = mt_memory_new(sizeof *summary);
    char text[MT_TUNE_CONF_BYTES + 16];
    const struct mt_replay_options options = {.policy = policy_of(conf, text)};
    enum mt_status status = mt_source_rewind(source, error);

    memset(trial, 0, sizeof *trial);
    if (status == MT_OK)
        status = mt_replay_run(source, &options, NULL, summary, error);
    if (status == MT_OK &&
        (summary->is_driver_level || strcmp(mt_policy_of_run(&source->header), "pytorch") != 0))
        status = mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                         "no request of this trace goes to PyTorch's allocator");
    if (status == MT_OK)
        keep_replay(summary, trial);
    free(summary);
    return status;
}

static void keep_search(const struct mt_fit_result *result, struct mt_setting_device *device)
{
    device->serves = result->fits;
    device->limit_bytes = result->fits ? result->high_bytes : 0;
    device->need_bytes = result->fits ? mt_fit_need_bytes(result) : 0;
    device->is_exact =
        result->policy_exact &&
        (!result->initial_bytes || result->high_bytes > mt_round_up(result->initial_bytes, MT_MIB));
}

enum mt_status mt_setting_search(struct mt_source *source, const char *conf,
                                 struct mt_setting_trial *trial, struct mt_error *error)
{
    struct mt_fit_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    char text[MT_TUNE_CONF_BYTES + 16];
    const struct mt_fit_options options = {
        .policy = policy_of(conf, text), .orders = MT_BASE_ORDERS, .limits_only = true};
    enum mt_status status = mt_source_rewind(source, error);

    if (status == MT_OK)
        status = mt_fit_run(source, &options, summary, error);
    for (uint16_t i = 0; status == MT_OK && i < summary->device_count; i++)
        for (uint16_t k = 0; k < trial->device_count; k++)
            if (trial->devices[k].device == summary->devices[i].device)
                keep_search(&summary->devices[i], &trial->devices[k]);
    mt_fit_release(summary);
    free(summary);
    return status;
}

const struct mt_setting_device *mt_setting_device_of(const struct mt_setting_trial *trial,
                                                     uint16_t device)
{
    for (uint16_t i = 0; i < trial->device_count; i++)
        if (trial->devices[i].device == device)
            return &trial->devices[i];
    return NULL;
}
