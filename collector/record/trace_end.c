/* See trace_end.h. */
#include "trace_end.h"

#include <string.h>
#include <time.h>

enum { LOOK_AGAIN_MS = 20 };

static void sleep_ms(unsigned ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

/* Folds the tape in, if there is one. MT_ERR_USAGE: its process runs. */
static enum mt_status recover(struct mt_trace_end *end, unsigned patience_ms)
{
    enum mt_status status;
    unsigned waited_ms;

    for (waited_ms = 0;; waited_ms += LOOK_AGAIN_MS) {
        if (!mt_recover_is_needed(end->path))
            return MT_OK; /* perhaps only now: it was closed while we waited */
        status = mt_recover(end->path, &end->recovery, &end->error);
        if (status == MT_OK)
            end->state = end->recovery.was_closed ? MT_TRACE_WHOLE : MT_TRACE_RECOVERED;
        if (status != MT_ERR_USAGE || waited_ms >= patience_ms)
            break;
        sleep_ms(LOOK_AGAIN_MS);
    }
    /* It may have closed its trace between the two looks. */
    return status != MT_OK && !mt_recover_is_needed(end->path) ? MT_OK : status;
}

void mt_trace_end(struct mt_trace_end *end, const char *path, unsigned patience_ms,
                  const struct mt_finalize_options *options)
{
    enum mt_status status;

    memset(end, 0, sizeof *end);
    end->path = path;
    end->error.offset = end->native_error.offset = MT_NO_OFFSET;
    end->state = MT_TRACE_WHOLE;
    status = recover(end, patience_ms);
    if (status == MT_ERR_USAGE) {
        end->state = MT_TRACE_RUNNING;
        return;
    }
    if (status == MT_OK) {
        end->native_error.status =
            mt_trace_finalize(path, options, &end->native, &end->native_error);
        status = mt_trace_summarize(path, &end->summary, &end->error);
    }
    if (status == MT_OK)
        return;
    end->state = MT_TRACE_FAILED;
    end->error.status = status;
}
