/* Contents of each pool of PyTorch's allocator: the default pool and those of CUDA graphs and
 * MemPools. */
#include "analyze_output.h"
#include "report_rows.h"
#include "text_table.h"

enum { MAX_POOLS = 16 };

void mt_reporter_pools(const struct mt_reporter *reporter)
{
    struct mt_table table;

    if (!reporter->detail->whole || !reporter->device->pool_count)
        return;
    mt_reporter_heading(reporter, "Pools of the allocator, at the end");
    mt_table_begin(&table, MT_POOL_TITLES);
    mt_report_rows_add_pools(&table, reporter->device, MAX_POOLS);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}
