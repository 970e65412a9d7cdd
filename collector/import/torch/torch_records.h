/* The contents of a PyTorch memory snapshot as flat arrays. The pickle reader passes each
 * complete dictionary to mt_torch_hook, which turns it into one of these records. A dictionary is
 * recognized by its keys, not by its position, so keys may be in any order and from any version. */
#ifndef MT_COLLECTOR_TORCH_RECORDS_H
#define MT_COLLECTOR_TORCH_RECORDS_H

#include "pickle.h"
#include "torch_facts.h"

/* The `complete` hook; its context is a struct mt_torch_records. */
enum mt_status mt_torch_hook(void *context, struct mt_pickle *pickle,
                             const struct mt_pickle_value *items, size_t count,
                             struct mt_pickle_value *value, struct mt_error *error);

/* The `append` hook, for device traces. */
enum mt_status mt_torch_append(void *context, struct mt_pickle *pickle,
                               const struct mt_pickle_value *items, size_t count,
                               struct mt_pickle_value *list, bool *taken, struct mt_error *error);

void mt_torch_records_release(struct mt_torch_records *records);

#endif
