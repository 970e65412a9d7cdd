/* Options of a policy as a user writes them, "name=value,name=value" (':' for
 * '=' is accepted), read by one table a policy. */
#ifndef MT_ANALYZER_POLICY_OPTIONS_H
#define MT_ANALYZER_POLICY_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct mt_trace_header; /* source.h */

enum mt_policy_option_kind {
    MT_POLICY_BYTES, /* "8GiB" */
    MT_POLICY_COUNT, /* "22" */
    MT_POLICY_SHARE, /* "0.75": in millionths, at most 1 */
    MT_POLICY_BOOL,  /* "True", "False" */
    MT_POLICY_CHOICE /* one of `choices`: its index */
};

struct mt_policy_option {
    const char *name;
    enum mt_policy_option_kind kind;
    uint64_t normal; /* the default */
    uint64_t least, most;
    const char *const *choices; /* ends with NULL; NULL for the other kinds */
};

enum { MT_POLICY_WHOLE = 1000000 }; /* a share of 1 */

/* One value per option: the default where `text`, which may be NULL, names none. */
enum mt_status mt_policy_options_parse(const char *text, const struct mt_policy_option *options,
                                       size_t count, uint64_t *values,
                                       struct mt_error *error) MT_MUST_USE;

/* "name:a=1,b=True" of the values that are not the default; the bare name if none is. */
void mt_policy_options_spell(const char *name, const struct mt_policy_option *options,
                             const uint64_t *values, size_t count, char *text, size_t size);

/* The options of the policy of that name in the recorded run, if its allocator was that policy:
 * then the header's settings are "policy=NAME:OPTIONS". NULL: it was another. */
const char *mt_policy_recorded_options(const struct mt_trace_header *header, const char *name);

/* The policy of the allocator above the driver: "bfc" if the header says so, else "pytorch".
 * Static.
 */
const char *mt_policy_of_run(const struct mt_trace_header *header);

#endif
