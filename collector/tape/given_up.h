/* Numbers of events that were given up: said to be missing, though their threads may still come
 * back. There are few: each range of them costs the writer two seconds of waiting. */
#ifndef MT_COLLECTOR_GIVEN_UP_H
#define MT_COLLECTOR_GIVEN_UP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_number_range;

struct mt_given_up {
    struct mt_number_range *ranges;
    size_t count, capacity;
};

void mt_given_up_release(struct mt_given_up *self);

/* Adds the numbers from `first` to before `end`. Without memory they are forgotten: if such an
 * event still comes, it is also counted as damage. */
void mt_given_up_add(struct mt_given_up *self, uint64_t first, uint64_t end);

/* Was the number given up? It counts once: its second event is another matter. */
bool mt_given_up_take(struct mt_given_up *self, uint64_t number);

#endif
