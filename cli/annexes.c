/* The annexes of this build. Their commands are in commands.c. */
#include "annexes.h"

#if MEMTRACE_DRY_RUN
#include "dry_run_annex.h"
#endif
#if MEMTRACE_FLEET
#include "fleet_annex.h"
#endif

#if MEMTRACE_FLEET
const struct mt_annex_files *const mt_annex_files = &mt_fleet_annex;
#else
const struct mt_annex_files *const mt_annex_files = NULL;
#endif

const struct mt_probe *const mt_annex_probes[] = {
#if MEMTRACE_DRY_RUN
    &mt_dry_run_probe,
#endif
    NULL,
};

const char *const mt_annex_absent[] = {
#if !MEMTRACE_DRY_RUN
    "dry-run",
    "plan",
#endif
#if !MEMTRACE_FLEET
    "fleet",
#endif
    NULL,
};
