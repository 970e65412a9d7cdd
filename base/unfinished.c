#include "unfinished.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

void mt_unfinished_add(struct mt_unfinished *list, char *path)
{
    for (int i = 0; i < MT_MAX_UNFINISHED; i++) {
        char *expected = NULL;

        if (atomic_compare_exchange_strong(&list->paths[i], &expected, path))
            return;
    }
}

/* A handler that came first left NULL in the slot, and so does a list that was full: the two are
 * told apart by `handled`. */
bool mt_unfinished_take(struct mt_unfinished *list, char *path)
{
    for (int i = 0; i < MT_MAX_UNFINISHED; i++) {
        char *expected = path;

        if (atomic_compare_exchange_strong(&list->paths[i], &expected, NULL))
            return true;
    }
    return !atomic_load(&list->handled);
}

void mt_unfinished_unlink(struct mt_unfinished *list)
{
    atomic_store(&list->handled, true);
    for (int i = 0; i < MT_MAX_UNFINISHED; i++) {
        char *path = atomic_exchange(&list->paths[i], NULL);

        if (path)
            (void)unlink(path);
    }
}
