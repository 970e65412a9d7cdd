/* What a PyTorch memory snapshot says, as flat arrays: the pickle reader hands
 * each dictionary to mt_torch_hook as soon as it is complete, which turns it
 * into one of these records. A dictionary is known by the keys it has, not by
 * its place, so that keys may come in any order and from any version. */
#ifndef MT_COLLECTOR_TORCH_RECORDS_H
#define MT_COLLECTOR_TORCH_RECORDS_H

#include "pickle.h"
#include "torch_facts.h"

/* The `complete` hook; its context is a struct mt_torch_records. */
enum mt_status mt_torch_hook(void *context, struct mt_pickle *pickle,
                             const struct mt_pickle_value *items, size_t count,
                             struct mt_pickle_value *value, struct mt_error *error);

/* The `append` hook: device traces. */
enum mt_status mt_torch_append(void *context, struct mt_pickle *pickle,
                               const struct mt_pickle_value *items, size_t count,
                               struct mt_pickle_value *list, bool *taken, struct mt_error *error);

void mt_torch_records_release(struct mt_torch_records *records);

#endif
