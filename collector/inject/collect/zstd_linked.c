/* See zstd_library.h. */
#include "zstd_library.h"

bool mt_zstd_load(void)
{
    return true;
}
