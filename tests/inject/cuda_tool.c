/* An injection library that was there before ours. */
#include <stdlib.h>

int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    setenv("CUDA_TOOL_CALLED", "yes", 1);
    return 1;
}
