/* The part of `memtrace analyze --json` about programs of XLA. */
#include "analyze_output.h"
#include "json.h"

void mt_json_xla(struct mt_json *json, const struct mt_xla_use *xla)
{
    if (!xla) {
        mt_json_null(json, "xla");
        return;
    }
    mt_json_object_begin(json, "xla");
    mt_json_bool(json, "requests_missing", xla->requests_missing);
    for (struct mt_json_list row = mt_json_lines(json, "arenas", xla->arena_count);
         mt_json_next(&row);) {
        const struct mt_xla_arena *arena = &xla->arenas[row.i];

        mt_json_text(json, "policy", arena->policy);
        mt_json_bool(json, "preallocated", arena->preallocated);
        mt_json_u64(json, "peak_pool_bytes", arena->pool_bytes);
        mt_json_u64(json, "peak_bytes_in_use", arena->in_use_bytes);
        mt_json_u64(json, "num_allocs", arena->requests);
        mt_json_u64(json, "failures", arena->failures);
        mt_json_u64(json, "address_ties", arena->address_ties);
    }
    mt_json_object_end(json);
}
