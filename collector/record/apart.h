/* Runs a function in a separate process, because foreign libraries may crash, hang or print. */
#ifndef MT_RECORD_APART_H
#define MT_RECORD_APART_H

#include <stddef.h>

enum mt_apart { MT_APART_ANSWERED, MT_APART_DIED, MT_APART_LATE, MT_APART_IMPOSSIBLE };

struct mt_apart_call {
    void (*body)(const void *subject, void *answer); /* `answer` is zeroed */
    const void *subject; /* `body` sees its state at the time of the call */
    void *answer;        /* plain data */
    size_t answer_bytes;
    unsigned limit_s;
};

/* Runs `body` in a child process, copies its answer and returns how it ended. *signal_number is the
 * signal that killed it, 0 if it exited. The child's standard streams are /dev/null, and the
 * processes that it starts die with it. `body` has a stack of at least 8 MiB. The answer is filled
 * in only if the result is MT_APART_ANSWERED. */
enum mt_apart mt_run_apart(const struct mt_apart_call *call, int *signal_number);

#endif
