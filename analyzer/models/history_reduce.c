#include "history_reduce.h"

#include "history_groups.h"

#include <stdlib.h>

static enum mt_status reduce_once(struct mt_history *history, struct mt_history_groups *groups)
{
    uint32_t *into = NULL;
    enum mt_status status;

    history->small_bytes = history->small_bytes ? history->small_bytes * 2 : 512;
    status = mt_history_groups_merge(groups, history->symbols, history->small_bytes, &into);
    if (!status)
        status = mt_history_renumber(history->columns, history->column_count, history->changes,
                                     &history->change_count, into, groups->count);
    free(into);
    return status;
}

enum mt_status mt_history_reduce(struct mt_history *history, uint32_t most_groups,
                                 uint32_t most_changes)
{
    struct mt_history_groups groups = {0};
    enum mt_status status = MT_OK;
    uint32_t index;

    if (history->group_count <= most_groups && history->change_count <= most_changes)
        return MT_OK;
    for (uint32_t i = 0; i < history->group_count && !status; i++) {
        status = mt_history_groups_find(&groups, &history->groups[i], &index);
        if (!status)
            groups.list[index].most_bytes = history->groups[i].most_bytes;
    }
    while (!status && (groups.count > most_groups || history->change_count > most_changes) &&
           history->small_bytes <= UINT64_MAX / 2)
        status = reduce_once(history, &groups);
    history->group_count = groups.count;
    for (uint32_t i = 0; i < groups.count && !status; i++)
        history->groups[i] = groups.list[i];
    mt_history_groups_release(&groups);
    return status;
}
