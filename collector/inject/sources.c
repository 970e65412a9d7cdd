/* See sources.h. One line a source. */
#include "sources.h"

#include <stddef.h>

const struct mt_inject_source *const mt_inject_sources[] = {
    NULL,
};
