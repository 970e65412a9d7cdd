/* See sources.h. One line a source. */
#include "sources.h"

#include <stddef.h>

#include "driver_hooks.h"
#include "modules_scan.h"
#include "python_stack.h"
#include "source_cupti.h"
#include "source_nvml.h"
#include "source_nvtx.h"
#include "source_torch.h"
#include "thread_names.h"

// clang-format off
const struct mt_inject_source *const mt_inject_sources[] = {
    &mt_modules_source, /* first: the others' stacks lie in modules */
    &mt_python_source,
    &mt_cupti_source,
    &mt_interposer_source,
    &mt_nvml_source,
    &mt_nvtx_source,
    &mt_torch_source,
    &mt_thread_names_source,
    NULL,
};
// clang-format on
