#include "dry_run_annex.h"

#include <limits.h>

#include "environment.h"
#include "probes.h"

/* The simulated libraries are machine code that memtrace writes (simulate/site). */
static void check(struct mt_probe_result *result)
{
#if defined(__x86_64__)
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char path[PATH_MAX];

    if (mt_collector_library(MT_SIMULATED_NAME, path, &error) == MT_OK)
        mt_probe_set(result, MT_PROBE_OK, "", "ready");
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, mt_probe_remedy(error.status), "no dry runs: %s",
                     error.text);
#else
    mt_probe_set(result, MT_PROBE_DEGRADED,
                 "run memtrace dry-run on an x86-64 machine; its trace can be analyzed here",
                 "no dry runs: they need an x86-64 processor");
#endif
}

const struct mt_probe mt_dry_run_probe = {"dry-run", "runs on a simulated GPU", check, 10};
