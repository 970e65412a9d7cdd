/* Numbers of events that the writer gave up on: recorded as missing, although their threads may
 * still deliver them. There are few: each range costs the writer two seconds of waiting. */
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

/* Adds the numbers in [first, end). If memory runs out, they are forgotten: such an event then
 * also counts as damage if it arrives. */
void mt_given_up_add(struct mt_given_up *self, uint64_t first, uint64_t end);

/* Returns true if the number was given up, and removes it, so that a second event with this
 * number is an error. */
bool mt_given_up_take(struct mt_given_up *self, uint64_t number);

#endif
