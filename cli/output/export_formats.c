/* See export_format.h. One line per format. */
#include "export_format.h"

#include <stddef.h>

const struct mt_export_format *const mt_export_formats[] = {
    &mt_export_folded,
    &mt_export_speedscope,
    NULL,
};
