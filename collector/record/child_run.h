/* Runs a function in a separate process, because foreign libraries may crash, hang or print. */
#ifndef MT_RECORD_CHILD_RUN_H
#define MT_RECORD_CHILD_RUN_H

#include <stddef.h>

enum mt_child_end { MT_CHILD_ANSWERED, MT_CHILD_DIED, MT_CHILD_LATE, MT_CHILD_IMPOSSIBLE };

struct mt_child_call {
    void (*body)(const void *subject, void *answer); /* `answer` is zeroed */
    const void *subject; /* `body` sees its state at the time of the call */
    void *answer;        /* plain data */
    size_t answer_bytes;
    unsigned limit_s;
};

/* Runs `body` in a child process, copies its answer and returns how it ended. *signal_number is the
 * signal that killed it, 0 if it exited. The child's standard streams are /dev/null, and the
 * processes that it starts die with it. `body` has a stack of at least 8 MiB. The answer is filled
 * in only if the result is MT_CHILD_ANSWERED. */
enum mt_child_end mt_child_run(const struct mt_child_call *call, int *signal_number);

#endif
