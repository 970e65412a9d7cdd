/* Adds the communicator that NCCL reported to a JSON document. */
#ifndef MT_CLI_COMMUNICATOR_JSON_H
#define MT_CLI_COMMUNICATOR_JSON_H

#include <stdint.h>

#include "json.h"

/* Adds members to the open object. "id" is a string, "0xa4ca2addf5eba5", as in NCCL's log, because
 * people compare ids of different ranks, and many JSON readers would round a number of this size.
 * An argument of 0 means unknown and becomes null. */
void mt_json_told_communicator(struct mt_json *json, uint64_t id, uint64_t rank, uint64_t ranks,
                               uint64_t registered_peak_bytes);

#endif
