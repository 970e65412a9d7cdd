#include "xla_names.h"

#include "util.h"

#include <string.h>

/* Tried in order; `key` names the module or the operation. */
static const struct {
    const char *prefix, *key;
    enum mt_xla_range kind;
} ranges[] = {
    {"TSL: XlaModule:#", "hlo_module", MT_XLA_MODULE},
    {"TSL: Thunk:#", "hlo_op", MT_XLA_THUNK},
    {"TSL: Xla", "module", MT_XLA_COMPILE},
};

/* Returns the start of the value of `key` in "key=value,key=value#", or NULL. Values may contain
 * commas and equal signs, so a key must follow '#' or ','. */
static const char *value_of(const char *arguments, const char *key)
{
    size_t length = strlen(key);

    for (const char *at = arguments; (at = strstr(at, key)); at++)
        if (at > arguments && (at[-1] == '#' || at[-1] == ',') && at[length] == '=')
            return at + length + 1;
    return NULL;
}

enum mt_xla_range mt_xla_range_of(const char *name, const char **module, size_t *length)
{
    *module = "";
    *length = 0;
    for (size_t i = 0; i < MT_ARRAY_LEN(ranges); i++) {
        if (strncmp(name, ranges[i].prefix, strlen(ranges[i].prefix)) != 0)
            continue;
        const char *arguments = strchr(name, '#');
        const char *value = arguments ? value_of(arguments, ranges[i].key) : NULL;
        if (value) {
            *module = value;
            *length = strcspn(value, ",#");
        }
        return ranges[i].kind;
    }
    return MT_XLA_NONE;
}

bool mt_xla_serves_itself(uint64_t module_runs, uint64_t device_allocations)
{
    return device_allocations < module_runs / 10;
}
