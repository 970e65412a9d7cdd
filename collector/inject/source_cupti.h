/* CUPTI as a source of driver events. */
#ifndef MT_INJECT_SOURCE_CUPTI_H
#define MT_INJECT_SOURCE_CUPTI_H

#include "sources.h"

extern const struct mt_inject_source mt_cupti_source;

/* Called by the driver during cuInit (CUDA_INJECTION64_PATH); 1 = go on. */
int InitializeInjection(void);

#endif
