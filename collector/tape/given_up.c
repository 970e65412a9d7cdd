/* See given_up.h. */
#include "given_up.h"

#include <stdlib.h>

#include "grow.h"

struct mt_number_range {
    uint64_t first, end;
};

void mt_given_up_release(struct mt_given_up *self)
{
    free(self->ranges);
    *self = (struct mt_given_up){0};
}

void mt_given_up_add(struct mt_given_up *self, uint64_t first, uint64_t end)
{
    if (first < end &&
        (self->count < self->capacity ||
         !mt_grow(&self->ranges, &self->capacity, self->count + 1, sizeof *self->ranges)))
        self->ranges[self->count++] = (struct mt_number_range){first, end};
}

bool mt_given_up_take(struct mt_given_up *self, uint64_t number)
{
    size_t i = 0;
    uint64_t end;

    while (i < self->count && (number < self->ranges[i].first || number >= self->ranges[i].end))
        i++;
    if (i == self->count)
        return false;
    end = self->ranges[i].end;
    self->ranges[i].end = number;
    if (self->ranges[i].first == number)
        self->ranges[i] = self->ranges[--self->count];
    mt_given_up_add(self, number + 1, end);
    return true;
}
