#include "probes.h"

#include <stdarg.h>
#include <stdio.h>

void mt_probe_set(struct mt_probe_result *result, enum mt_probe_state state, const char *fix,
                  const char *format, ...)
{
    va_list args;

    result->state = state;
    snprintf(result->fix, sizeof result->fix, "%s", fix);
    va_start(args, format);
    vsnprintf(result->text, sizeof result->text, format, args);
    va_end(args);
}
