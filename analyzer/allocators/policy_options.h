/* Options of a policy as users write them, "name=value,name=value" (':' also works for '='), read
 * with one table per policy. */
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

/* Sets one value per option: the default for options that `text` (may be NULL) does not name. */
enum mt_status mt_policy_options_parse(const char *text, const struct mt_policy_option *options,
                                       size_t count, uint64_t *values,
                                       struct mt_error *error) MT_MUST_USE;

/* Writes "name:a=1,b=True" with the values that are not the default; the bare name if none. */
void mt_policy_options_spell(const char *name, const struct mt_policy_option *options,
                             const uint64_t *values, size_t count, char *text, size_t size);

/* Returns the options of that policy in the recorded run if it was the run's allocator: then the
 * header's settings are "policy=NAME:OPTIONS". NULL: it was another one. */
const char *mt_policy_recorded_options(const struct mt_trace_header *header, const char *name);

/* Returns the policy of the allocator above the driver: "bfc" if the header names it, "recorded" if
 * the file does not name the allocator's rules, otherwise "pytorch". Static. */
const char *mt_policy_of_run(const struct mt_trace_header *header);

#endif
