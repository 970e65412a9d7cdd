#include "pool_facts.h"

#include <stdlib.h>
#include <string.h>

void mt_pool_evidence_release(struct mt_pool_evidence *evidence)
{
    free(evidence->instances);
    mt_pool_pairs_release(&evidence->unequal);
    mt_pool_pairs_release(&evidence->kept);
    mt_pool_pairs_release(&evidence->turns);
    free(evidence->instance_of);
    memset(evidence, 0, sizeof *evidence);
}
