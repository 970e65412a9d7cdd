/* See export_formats.h. One line a format. */
#include "export_formats.h"

#include <stddef.h>

const struct mt_export_format *const mt_export_formats[] = {
    &mt_export_folded,
    &mt_export_speedscope,
    NULL,
};
