/* See trace_name.h. */
#include "trace_name.h"

#include <string.h>

size_t mt_trace_stem_length(const char *path)
{
    static const char usual[] = ".trace.zst";
    const char *name = strrchr(path, '/'), *dot;
    size_t length = strlen(path);

    if (length > sizeof usual - 1 && !strcmp(path + length - (sizeof usual - 1), usual))
        return length - (sizeof usual - 1);
    dot = strrchr(name ? name : path, '.');
    return dot ? (size_t)(dot - path) : length;
}
