/* One algorithm for every matrix product; it needs no workspace. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wheel_versions.h"

typedef int cublasStatus_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque *cublasLtMatmulPreference_t;

/* Layout as in cublasLt.h. */
typedef struct {
    uint64_t algorithm[8];
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned)
{
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *returned = requested > 0;
    if (requested > 0) {
        memset(&results[0], 0, sizeof results[0]);
        results[0].wavesCount = 1.0F;
    }
    return 0;
}

size_t cublasLtGetVersion(void)
{
    return (size_t)(sim_cuda_version() * 10); /* 13.1 is 130100 */
}
