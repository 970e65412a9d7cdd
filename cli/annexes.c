/* The annexes of this build. Commands: see commands.c. */
#include "annexes.h"

#if MEMTRACE_FLEET
#include "fleet_annex.h"
const struct mt_annex_files *const mt_annex_files = &mt_fleet_annex;
#else
const struct mt_annex_files *const mt_annex_files = NULL;
#endif
