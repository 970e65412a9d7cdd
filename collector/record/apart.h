/* Runs a function in a process of its own: foreign libraries may crash, hang or
 * print what they like. */
#ifndef MT_RECORD_APART_H
#define MT_RECORD_APART_H

#include <stddef.h>

enum mt_apart { MT_APART_ANSWERED, MT_APART_DIED, MT_APART_LATE, MT_APART_IMPOSSIBLE };

struct mt_apart_call {
    void (*body)(const void *subject, void *answer); /* `answer` is zeroed */
    const void *subject;                             /* as it is at the time of the call */
    void *answer;                                    /* plain data */
    size_t answer_bytes;
    unsigned limit_s;
};

/* What `body` left in its answer, and how that went; *signal_number: what killed
 * it, 0 = it ended by itself. Its standard streams are /dev/null, and what it
 * starts dies with it. The answer is only filled in if it ANSWERED. */
enum mt_apart mt_run_apart(const struct mt_apart_call *call, int *signal_number);

#endif
