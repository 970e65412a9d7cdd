#include "device_model.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

/* Highest synthetic address; recorded ones lie in 0x7f.. and above. */
static const uint64_t SYNTHETIC_TOP = UINT64_C(1) << 46;

void mt_device_init(struct mt_device_model *device, uint64_t limit_bytes,
                    uint64_t total_memory_bytes, bool use_bases)
{
    memset(device, 0, sizeof *device);
    device->limit_bytes = limit_bytes;
    device->total_memory_bytes = total_memory_bytes;
    device->next_synthetic = SYNTHETIC_TOP;
    device->use_bases = use_bases;
}

void mt_device_release(struct mt_device_model *device)
{
    free(device->ops);
    free(device->bases);
    memset(device, 0, sizeof *device);
}

void mt_device_clear(struct mt_device_model *device)
{
    device->op_count = 0;
    device->base_count = 0;
    device->fail_next = false;
}
