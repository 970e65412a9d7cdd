/* The parts of cuBLASLt, cuSOLVER, cuSPARSE and NVRTC whose results PyTorch uses. */
#define _GNU_SOURCE

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wheel_versions.h"

/* One algorithm for every matrix product; it needs no workspace. */

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

/* The parts of cuSOLVER whose results PyTorch uses: the workspace sizes of factorizations. The
 * sizes are those of an H200 (cuSOLVER of CUDA 13.0) for matrices of 500 x 500 in single precision.
 * For other matrices they are a guess: they grow with what the workspace must hold. Every
 * factorization succeeds. */

typedef void *any_t;
enum { CUSOLVER_SUCCESS = 0, CHOLESKY = 288, LU = 2112, HOUSEHOLDER = 32 };

static int64_t area(int64_t rows, int64_t columns)
{
    return rows > 0 && columns > 0 ? rows * columns : 0;
}

/* A copy of the matrix, and bands. */
static int64_t eigenvalues(int64_t n)
{
    return area(n, n) + 38 * (n > 0 ? n : 0);
}

static int64_t singular_values(int m, int n)
{
    return 2 * area(m, n) + 71 * (int64_t)(m > n ? m : n);
}

/* In elements, as in the older functions. */
static void answer_elements(int64_t wanted, int *elements)
{
    *elements = wanted > INT32_MAX ? INT32_MAX : (int)wanted;
}

/* In bytes, for the element type TYPE (cudaDataType). */
static size_t element_bytes(int type)
{
    enum { REAL_64 = 1, COMPLEX_32 = 4, COMPLEX_64 = 5 };
    return type == COMPLEX_64 ? 16 : type == REAL_64 || type == COMPLEX_32 ? 8 : 4;
}

static int answer_bytes(int64_t elements, int type, size_t *device_bytes, size_t *host_bytes)
{
    *device_bytes = (size_t)elements * element_bytes(type);
    *host_bytes = 0;
    return CUSOLVER_SUCCESS;
}

#define ONE(name, parameters, wanted)                                                              \
    int cusolverDn##name##_bufferSize parameters                                                   \
    {                                                                                              \
        answer_elements(wanted, elements);                                                         \
        return CUSOLVER_SUCCESS;                                                                   \
    }

/* Functions of the four element types that have the same arguments. */
#define FOUR(S, D, C, Z, name, parameters, wanted)                                                 \
    ONE(S##name, parameters, wanted)                                                               \
    ONE(D##name, parameters, wanted)                                                               \
    ONE(C##name, parameters, wanted) ONE(Z##name, parameters, wanted)

#define GETRF (any_t handle, int m, int n, any_t a, int lda, int *elements)
#define POTRF (any_t handle, int triangle, int n, any_t a, int lda, int *elements)
#define SYTRF (any_t handle, int n, any_t a, int lda, int *elements)
#define ORGQR (any_t handle, int m, int n, int k, any_t a, int lda, any_t tau, int *elements)
#define ORMQR                                                                                      \
    (any_t handle, int side, int transposed, int m, int n, int k, any_t a, int lda, any_t tau,     \
     any_t c, int ldc, int *elements)
#define SYEVD                                                                                      \
    (any_t handle, int vectors, int triangle, int n, any_t a, int lda, any_t w, int *elements)
#define SYEVJ                                                                                      \
    (any_t handle, int vectors, int triangle, int n, any_t a, int lda, any_t w, int *elements,     \
     any_t parameters)
#define GESVD (any_t handle, int m, int n, int *elements)
#define GESVDJ                                                                                     \
    (any_t handle, int vectors, int economy, int m, int n, any_t a, int lda, any_t s, any_t u,     \
     int ldu, any_t v, int ldv, int *elements, any_t parameters)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
FOUR(S, D, C, Z, getrf, GETRF, LU)
FOUR(S, D, C, Z, geqrf, GETRF, 4 * area(m, n) + HOUSEHOLDER * (int64_t)(m > n ? m : n))
FOUR(S, D, C, Z, potrf, POTRF, CHOLESKY)
FOUR(S, D, C, Z, sytrf, SYTRF, HOUSEHOLDER *(int64_t)n)
ONE(Sorgqr, ORGQR, area(m, k) * 5 / 6)
ONE(Dorgqr, ORGQR, area(m, k) * 5 / 6)
ONE(Cungqr, ORGQR, area(m, k) * 5 / 6)
ONE(Zungqr, ORGQR, area(m, k) * 5 / 6)
ONE(Sormqr, ORMQR, area(m, n) * 5 / 6)
ONE(Dormqr, ORMQR, area(m, n) * 5 / 6)
ONE(Cunmqr, ORMQR, area(m, n) * 5 / 6)
ONE(Zunmqr, ORMQR, area(m, n) * 5 / 6)
ONE(Ssyevd, SYEVD, eigenvalues(n))
ONE(Dsyevd, SYEVD, eigenvalues(n))
ONE(Cheevd, SYEVD, eigenvalues(n))
ONE(Zheevd, SYEVD, eigenvalues(n))
ONE(Ssyevj, SYEVJ, eigenvalues(n))
ONE(Dsyevj, SYEVJ, eigenvalues(n))
ONE(Cheevj, SYEVJ, eigenvalues(n))
ONE(Zheevj, SYEVJ, eigenvalues(n))
FOUR(S, D, C, Z, gesvd, GESVD, singular_values(m, n))
FOUR(S, D, C, Z, gesvdj, GESVDJ, singular_values(m, n))

int cusolverDnXpotrf_bufferSize(any_t handle, any_t parameters, int triangle, int64_t n, int type_a,
                                const void *a, int64_t lda, int type, size_t *device_bytes,
                                size_t *host_bytes)
{
    return answer_bytes(CHOLESKY, type_a, device_bytes, host_bytes);
}

int cusolverDnXgeqrf_bufferSize(any_t handle, any_t parameters, int64_t m, int64_t n, int type_a,
                                const void *a, int64_t lda, int type_tau, const void *tau, int type,
                                size_t *device_bytes, size_t *host_bytes)
{
    return answer_bytes(4 * area(m, n) + HOUSEHOLDER * (m > n ? m : n), type_a, device_bytes,
                        host_bytes);
}

int cusolverDnXsyevd_bufferSize(any_t handle, any_t parameters, int vectors, int triangle,
                                int64_t n, int type_a, const void *a, int64_t lda, int type_w,
                                const void *w, int type, size_t *device_bytes, size_t *host_bytes)
{
    return answer_bytes(eigenvalues(n), type_a, device_bytes, host_bytes);
}

int cusolverDnXsyevBatched_bufferSize(any_t handle, any_t parameters, int vectors, int triangle,
                                      int64_t n, int type_a, const void *a, int64_t lda, int type_w,
                                      const void *w, int type, size_t *device_bytes,
                                      size_t *host_bytes, int64_t batch)
{
    return answer_bytes(eigenvalues(n) * batch, type_a, device_bytes, host_bytes);
}

int cusolverDnXgeev_bufferSize(any_t handle, any_t parameters, int left, int right, int64_t n,
                               int type_a, const void *a, int64_t lda, int type_w, const void *w,
                               int type_left, const void *vl, int64_t ldvl, int type_right,
                               const void *vr, int64_t ldvr, int type, size_t *device_bytes,
                               size_t *host_bytes)
{
    return answer_bytes(eigenvalues(n), type_a, device_bytes, host_bytes);
}

#pragma GCC diagnostic pop

/* cuSPARSE: how large buffers and products of sparse matrices are. The sizes of SpMM and SpMV are
 * those of an H200 (CUDA 13.0) for seven matrices of up to a million elements, byte for byte; the
 * others are rounded. Which elements are not 0 is not known here: a product of two sparse matrices
 * has as many as if they were spread evenly, as far as the number of products allows. */

enum { CUSPARSE_SUCCESS = 0, CUSPARSE_ALLOC_FAILED = 2, SPMM_CSR_ALG1 = 4, ALIGNMENT = 7 };

struct sparse_matrix {
    int64_t rows, columns, elements;
};

static int new_matrix(struct sparse_matrix **made, int64_t rows, int64_t columns, int64_t elements)
{
    struct sparse_matrix *matrix = malloc(sizeof *matrix);
    if (matrix == NULL)
        return CUSPARSE_ALLOC_FAILED;
    *matrix = (struct sparse_matrix){rows, columns, elements};
    *made = matrix;
    return CUSPARSE_SUCCESS;
}

/* Objects of functions that are not simulated are small numbers. */
static bool is_own(const struct sparse_matrix *matrix)
{
    enum { FIRST_ADDRESS = 65536 };
    return (uintptr_t)matrix >= FIRST_ADDRESS;
}

/* ENTRY bytes for each PART of the elements. */
static size_t buffer_of(const struct sparse_matrix *matrix, int64_t entry, int64_t part)
{
    int64_t elements = is_own(matrix) && matrix->elements > 0 ? matrix->elements : 0;
    return (size_t)(entry * ((elements + part - 1) / part) + ALIGNMENT);
}

/* How many products of two elements a product of A and B adds up, if theirs are spread evenly. */
static double products_of(const struct sparse_matrix *a, const struct sparse_matrix *b)
{
    return is_own(a) && is_own(b) && b->rows > 0
               ? (double)a->elements * ((double)b->elements / (double)b->rows)
               : 0;
}

/* How many elements of ALL get at least one of the products: 1 - exp(-products / all) of them. */
static int64_t elements_of(double products, double all)
{
    double r = all > 0 ? products / all : 0;
    double power = 1 + r * (1 + r / 2 * (1 + r / 3 * (1 + r / 4)));
    double elements = all * (1 - 1 / power);
    return elements < (double)INT32_MAX ? (int64_t)elements : INT32_MAX;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

int cusparseCreateCsr(struct sparse_matrix **made, int64_t rows, int64_t columns, int64_t elements,
                      any_t offsets, any_t indices, any_t values, int type_offsets,
                      int type_indices, int base, int type)
{
    return new_matrix(made, rows, columns, elements);
}

int cusparseCreateCoo(struct sparse_matrix **made, int64_t rows, int64_t columns, int64_t elements,
                      any_t row_indices, any_t column_indices, any_t values, int type_indices,
                      int base, int type)
{
    return new_matrix(made, rows, columns, elements);
}

int cusparseDestroySpMat(struct sparse_matrix *matrix)
{
    if (is_own(matrix))
        free(matrix);
    return CUSPARSE_SUCCESS;
}

int cusparseSpMatGetSize(const struct sparse_matrix *matrix, int64_t *rows, int64_t *columns,
                         int64_t *elements)
{
    *rows = is_own(matrix) ? matrix->rows : 0;
    *columns = is_own(matrix) ? matrix->columns : 0;
    *elements = is_own(matrix) ? matrix->elements : 0;
    return CUSPARSE_SUCCESS;
}

int cusparseSpMM_bufferSize(any_t handle, int op_a, int op_b, const void *alpha,
                            const struct sparse_matrix *a, any_t b, const void *beta, any_t c,
                            int type, int algorithm, size_t *bytes)
{
    *bytes = algorithm == SPMM_CSR_ALG1 ? buffer_of(a, 4, 256) : buffer_of(a, 8, 24);
    return CUSPARSE_SUCCESS;
}

int cusparseSpMV_bufferSize(any_t handle, int op_a, const void *alpha,
                            const struct sparse_matrix *a, any_t x, const void *beta, any_t y,
                            int type, int algorithm, size_t *bytes)
{
    *bytes = buffer_of(a, 8, 3072) + 8;
    return CUSPARSE_SUCCESS;
}

int cusparseSDDMM_bufferSize(any_t handle, int op_a, int op_b, const void *alpha, any_t a, any_t b,
                             const void *beta, const struct sparse_matrix *c, int type,
                             int algorithm, size_t *bytes)
{
    *bytes = 1;
    return CUSPARSE_SUCCESS;
}

int cusparseSpSV_bufferSize(any_t handle, int op_a, const void *alpha,
                            const struct sparse_matrix *a, any_t x, any_t y, int type,
                            int algorithm, any_t descriptor, size_t *bytes)
{
    *bytes = buffer_of(a, 16, 1);
    return CUSPARSE_SUCCESS;
}

int cusparseSpSM_bufferSize(any_t handle, int op_a, int op_b, const void *alpha,
                            const struct sparse_matrix *a, any_t b, any_t c, int type,
                            int algorithm, any_t descriptor, size_t *bytes)
{
    *bytes = buffer_of(a, 16, 1);
    return CUSPARSE_SUCCESS;
}

/* Called without a buffer for its size, then with it. */
int cusparseSpGEMM_workEstimation(any_t handle, int op_a, int op_b, const void *alpha,
                                  const struct sparse_matrix *a, const struct sparse_matrix *b,
                                  const void *beta, struct sparse_matrix *c, int type,
                                  int algorithm, any_t descriptor, size_t *bytes, any_t buffer)
{
    *bytes = buffer_of(a, 12, 1) + 1072;
    return CUSPARSE_SUCCESS;
}

int cusparseSpGEMM_compute(any_t handle, int op_a, int op_b, const void *alpha,
                           const struct sparse_matrix *a, const struct sparse_matrix *b,
                           const void *beta, struct sparse_matrix *c, int type, int algorithm,
                           any_t descriptor, size_t *bytes, any_t buffer)
{
    double products = products_of(a, b), most_bytes = (double)INT64_MAX / 2;
    if (is_own(a) && is_own(b) && is_own(c))
        c->elements = elements_of(products, (double)a->rows * (double)b->columns);
    *bytes = (size_t)(24 * products < most_bytes ? 24 * products : most_bytes) + ALIGNMENT;
    return CUSPARSE_SUCCESS;
}

int cusparseXcoosort_bufferSizeExt(any_t handle, int rows, int columns, int elements,
                                   const int *row_indices, const int *column_indices, size_t *bytes)
{
    *bytes = buffer_of(&(struct sparse_matrix){rows, columns, elements}, 16, 1);
    return CUSPARSE_SUCCESS;
}

int cusparseXcsrsort_bufferSizeExt(any_t handle, int rows, int columns, int elements,
                                   const int *offsets, const int *indices, size_t *bytes)
{
    *bytes = buffer_of(&(struct sparse_matrix){rows, columns, elements}, 16, 1);
    return CUSPARSE_SUCCESS;
}

#define CSRGEAM2(type)                                                                             \
    int cusparse##type##csrgeam2_bufferSizeExt(                                                    \
        any_t handle, int rows, int columns, const void *alpha, any_t descriptor_a,                \
        int elements_a, any_t values_a, any_t offsets_a, any_t indices_a, const void *beta,        \
        any_t descriptor_b, int elements_b, any_t values_b, any_t offsets_b, any_t indices_b,      \
        any_t descriptor_c, any_t values_c, any_t offsets_c, any_t indices_c, size_t *bytes)       \
    {                                                                                              \
        *bytes = 4 * ((size_t)(rows > 0 ? rows : 0) + 2);                                          \
        return CUSPARSE_SUCCESS;                                                                   \
    }

CSRGEAM2(S)
CSRGEAM2(D)
CSRGEAM2(C)
CSRGEAM2(Z)

/* No element of one matrix is where the other has one. */
int cusparseXcsrgeam2Nnz(any_t handle, int rows, int columns, any_t descriptor_a, int elements_a,
                         const int *offsets_a, const int *indices_a, any_t descriptor_b,
                         int elements_b, const int *offsets_b, const int *indices_b,
                         any_t descriptor_c, int *offsets_c, int *elements, any_t workspace)
{
    *elements = elements_a > INT32_MAX - elements_b ? INT32_MAX : elements_a + elements_b;
    return CUSPARSE_SUCCESS;
}

#pragma GCC diagnostic pop

/* NVRTC for a simulated device. PyTorch compiles some kernels when they are first used (products of
 * integers, gcd, special functions). Every program compiles, to an empty result. */

typedef int result;
enum { NVRTC_SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3 };

struct program {
    char unused;
};

result nvrtcVersion(int *major, int *minor)
{
    enum { MAJOR = 1000, MINOR = 10 };
    *major = sim_cuda_version() / MAJOR;
    *minor = sim_cuda_version() % MAJOR / MINOR;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(result error)
{
    return error == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}

result nvrtcCreateProgram(struct program **made, const char *source, const char *name,
                          int header_count, const char *const *headers, const char *const *names)
{
    (void)source, (void)name, (void)header_count, (void)headers, (void)names;
    *made = calloc(1, sizeof **made);
    return *made != NULL ? NVRTC_SUCCESS : OUT_OF_MEMORY;
}

result nvrtcDestroyProgram(struct program **program)
{
    if (program == NULL)
        return INVALID_INPUT;
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

result nvrtcGetLoweredName(struct program *program, const char *expression, const char **lowered)
{
    (void)program, (void)expression;
    *lowered = "kernel";
    return NVRTC_SUCCESS;
}

/* The size of an empty text, including the NUL. */
static result size_of_nothing(size_t *bytes)
{
    *bytes = 1;
    return NVRTC_SUCCESS;
}

static result nothing(char *text)
{
    *text = '\0';
    return NVRTC_SUCCESS;
}

#define NOTHING(size_function, function)                                                           \
    result size_function(struct program *program, size_t *bytes)                                   \
    {                                                                                              \
        (void)program;                                                                             \
        return size_of_nothing(bytes);                                                             \
    }                                                                                              \
    result function(struct program *program, char *text)                                           \
    {                                                                                              \
        (void)program;                                                                             \
        return nothing(text);                                                                      \
    }

NOTHING(nvrtcGetPTXSize, nvrtcGetPTX)
NOTHING(nvrtcGetCUBINSize, nvrtcGetCUBIN)
NOTHING(nvrtcGetProgramLogSize, nvrtcGetProgramLog)
