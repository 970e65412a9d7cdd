#include "communicator_json.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

void mt_json_told_communicator(struct mt_json *json, uint64_t id, uint64_t rank, uint64_t ranks,
                               uint64_t registered_peak_bytes)
{
    char text[sizeof "0x0123456789abcdef"];

    snprintf(text, sizeof text, "0x%" PRIx64, id);
    mt_json_text(json, "id", id ? text : NULL);
    mt_json_u64_or_null(json, "rank", ranks, rank);
    mt_json_u64_or_null(json, "ranks", ranks, ranks);
    mt_json_u64_or_null(json, "registered_peak_bytes", registered_peak_bytes,
                        registered_peak_bytes);
}
