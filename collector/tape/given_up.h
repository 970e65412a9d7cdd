/* The numbers of events that the writer recorded as missing after waiting for them. Their threads
 * may still deliver them. The list is short, because the writer waits two seconds before it gives
 * up a range of numbers. */
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

/* Adds the numbers in [first, end). If memory runs out, the numbers are not kept. If such an event
 * arrives, it then also counts as damaged. */
void mt_given_up_add(struct mt_given_up *self, uint64_t first, uint64_t end);

/* Returns true if the number is in the list, and removes it. A second event with this number is
 * thus an error. */
bool mt_given_up_take(struct mt_given_up *self, uint64_t number);

#endif
