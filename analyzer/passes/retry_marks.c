#include "process_memory.h"
#include "retry_marks.h"

#include <stdlib.h>
#include <string.h>

static void join_pairs(struct mt_retry_marks *list)
{
    for (uint32_t i = 0; i < list->count / 2; i++) {
        list->marks[i] = list->marks[2 * i];
        list->marks[i].retries += list->marks[2 * i + 1].retries;
    }
    list->count /= 2;
}

void mt_retry_marks_add(struct mt_retry_marks *list, uint64_t t_ns, uint64_t event,
                        uint64_t retries)
{
    if (retries <= list->retries)
        return;
    if (!list->marks)
        list->marks = mt_memory_zeroed(MT_MAX_RETRY_MARKS, sizeof *list->marks);
    if (list->count == MT_MAX_RETRY_MARKS)
        join_pairs(list);
    list->marks[list->count++] = (struct mt_retry_mark){t_ns, event, retries - list->retries};
    list->retries = retries;
}

void mt_retry_marks_release(struct mt_retry_marks *list)
{
    free(list->marks);
    memset(list, 0, sizeof *list);
}
