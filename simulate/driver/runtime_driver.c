#include <pthread.h>
#include <stdlib.h>

#include "simulated_runtime.h"

static bool usable;

static void start_driver(void)
{
    usable = cuInit(0) == CUDA_SUCCESS;
}

bool sim_driver_is_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_driver);
    return usable;
}

unsigned sim_option(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}
