/* See probe.h. */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apart.h"
#include "process_memory.h"

const struct mt_probe mt_probes[] = {
    {"collector", "the library that records inside programs", mt_probe_library, 10},
    {"driver", "GPUs and their driver", mt_probe_driver, 60},
    {"cupti", "calls of the driver", mt_probe_cupti, 60},
    {"nvtx", "named ranges of programs", mt_probe_nvtx, 10},
    {"nvml", "memory in use on the whole device", mt_probe_nvml, 30},
    {"pytorch", "blocks of PyTorch's allocator", mt_probe_pytorch, 120},
    {"python", "Python call stacks", mt_probe_python, 20},
    {"native", "native call stacks", mt_probe_native, 10},
    {"symbols", "function names of native frames", mt_probe_symbols, 10},
    {"tape", "events that survive a killed process", mt_probe_tape, 30},
    {"clock", "timestamps", mt_probe_clock, 10},
    {NULL, NULL, NULL, 0},
};

static void check(const void *subject, void *answer)
{
    const struct mt_probe *probe = subject;

    probe->check(answer);
    if (mt_memory_has_failed()) /* the result then describes this moment, not the machine */
        mt_probe_set(answer, MT_PROBE_MISSING, "", "out of memory");
}

void mt_probe_run(const struct mt_probe *probe, struct mt_probe_result *result)
{
    const struct mt_apart_call call = {check, probe, result, sizeof *result, probe->limit_s};
    int signal_number;

    memset(result, 0, sizeof *result);
    switch (mt_run_apart(&call, &signal_number)) {
    case MT_APART_ANSWERED: break;
    case MT_APART_DIED:
        if (signal_number)
            mt_probe_set(result, MT_PROBE_MISSING, "", "the check was killed by signal %d (%s)",
                         signal_number, strsignal(signal_number));
        else
            mt_probe_set(result, MT_PROBE_MISSING, "", "the check ended without a result");
        break;
    case MT_APART_LATE:
        mt_probe_set(result, MT_PROBE_MISSING, "", "the check took longer than %u s",
                     probe->limit_s);
        break;
    case MT_APART_IMPOSSIBLE:
        mt_probe_set(result, MT_PROBE_MISSING, "", "cannot start a process: %s", strerror(errno));
        break;
    }
}
