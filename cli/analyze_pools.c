/* Contents of each pool of PyTorch's allocator: the default pool and those of CUDA graphs and
 * MemPools. */
#include "analyze_output.h"
#include "pool_rows.h"
#include "text_table.h"

enum { MAX_POOLS = 16 };

void mt_tell_pools(const struct mt_teller *teller)
{
    struct mt_table table;

    if (!teller->detail->whole || !teller->device->pool_count)
        return;
    mt_tell_heading(teller, "Pools of the allocator, at the end");
    mt_table_begin(&table, MT_POOL_TITLES);
    mt_add_pool_rows(&table, teller->device, MAX_POOLS);
    mt_add_text_table(teller->out, &table, 2, teller->style);
}
