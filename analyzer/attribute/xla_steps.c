#include "xla_steps.h"

void mt_xla_steps_merge(const struct mt_stretches *stretches, bool *starts)
{
    const struct mt_xla_runs *runs = &stretches->xla_runs;
    uint32_t module = mt_xla_runs_main(runs);
    bool has_run = false;
    size_t run = 0;

    if (module == MT_NO_ID)
        return;
    for (size_t i = 0; i < stretches->count; i++) {
        uint64_t begin_seq = stretches->list[i].begin_seq;

        for (; run < runs->count && runs->list[run].begin_seq < begin_seq; run++)
            has_run |= runs->list[run].module == module;
        starts[i] = starts[i] && has_run;
        has_run = has_run && !starts[i];
    }
}
