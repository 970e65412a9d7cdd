/* Adds a communicator, as NCCL reported it, to the open JSON object. */
#ifndef MT_CLI_COMMUNICATOR_JSON_H
#define MT_CLI_COMMUNICATOR_JSON_H

#include <stdint.h>

#include "json.h"

/* "id" is a string, "0xa4ca2addf5eba5", as in NCCL's log. Ids are compared between ranks, and
 * readers that store numbers as doubles would round them. Values of 0 are unknown: null. */
void mt_json_told_communicator(struct mt_json *json, uint64_t id, uint64_t rank, uint64_t ranks,
                               uint64_t registered_peak_bytes);

#endif
