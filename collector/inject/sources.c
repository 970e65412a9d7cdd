/* See inject_source.h. One line per source. */
#include "inject_source.h"

#include <stddef.h>

#include "core.h"
#include "driver_hooks.h"
#include "modules_scan.h"
#include "nccl_calls.h"
#include "nvtx_parts.h"
#include "python_stack.h"
#include "run_facts.h"
#include "source_cupti.h"
#include "source_device.h"
#include "source_nvml.h"
#include "thread_names.h"
#include "torch_parts.h"

// clang-format off
static const struct mt_inject_source *const sources[] = {
    &mt_modules_source, /* first: stacks of the others refer to modules */
    &mt_python_source,
    &mt_cupti_source,
    &mt_interposer_source,
    &mt_nvml_source,
    &mt_device_source,
    &mt_mesh_source,
    &mt_nvtx_source,
    &mt_nccl_source,
    &mt_torch_source,
    &mt_thread_names_source,
    NULL,
};
// clang-format on

__attribute__((constructor)) static void hand_in(void)
{
    mt_core.sources = sources;
}
