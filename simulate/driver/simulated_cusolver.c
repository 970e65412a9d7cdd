/* cuSOLVER as far as PyTorch looks at its answers: how large a workspace a factorization needs.
 * What a real library asks for is known for few shapes; the sizes here are made up by one rule, a
 * panel of the matrix, and the status of every factorization is that of success. */
#include <stddef.h>
#include <stdint.h>

typedef void *any_t;
enum { SUCCESS = 0, PANEL_COLUMNS = 32 };

/* In elements, as the older functions count. */
static void answer_elements(int rows, int *elements)
{
    int64_t wanted = (int64_t)(rows > 0 ? rows : 0) * PANEL_COLUMNS;
    *elements = wanted > INT32_MAX ? INT32_MAX : (int)wanted;
}

/* In bytes, for the element type TYPE of cudaDataType. */
static size_t element_bytes(int type)
{
    enum { REAL_64 = 1, COMPLEX_32 = 4, COMPLEX_64 = 5 };
    return type == COMPLEX_64 ? 16 : type == REAL_64 || type == COMPLEX_32 ? 8 : 4;
}

static int answer_bytes(int64_t rows, int type, size_t *device_bytes, size_t *host_bytes)
{
    *device_bytes = (size_t)(rows > 0 ? rows : 0) * PANEL_COLUMNS * element_bytes(type);
    *host_bytes = 0;
    return SUCCESS;
}

/* Functions of the four element types that have the same arguments. */
#define FOUR(S, D, C, Z, name, parameters, rows)                                                   \
    ONE(S##name, parameters, rows)                                                                 \
    ONE(D##name, parameters, rows) ONE(C##name, parameters, rows) ONE(Z##name, parameters, rows)
#define ONE(name, parameters, rows)                                                                \
    int cusolverDn##name##_bufferSize parameters                                                   \
    {                                                                                              \
        answer_elements(rows, elements);                                                           \
        return SUCCESS;                                                                            \
    }

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

#pragma GCC diagnostic ignored "-Wunused-parameter"
FOUR(S, D, C, Z, getrf, GETRF, m > n ? m : n)
FOUR(S, D, C, Z, geqrf, GETRF, m > n ? m : n)
FOUR(S, D, C, Z, potrf, POTRF, n)
FOUR(S, D, C, Z, sytrf, SYTRF, n)
ONE(Sorgqr, ORGQR, m > n ? m : n)
ONE(Dorgqr, ORGQR, m > n ? m : n)
ONE(Cungqr, ORGQR, m > n ? m : n)
ONE(Zungqr, ORGQR, m > n ? m : n)
ONE(Sormqr, ORMQR, m > n ? m : n)
ONE(Dormqr, ORMQR, m > n ? m : n)
ONE(Cunmqr, ORMQR, m > n ? m : n)
ONE(Zunmqr, ORMQR, m > n ? m : n)
ONE(Ssyevd, SYEVD, n)
ONE(Dsyevd, SYEVD, n)
ONE(Cheevd, SYEVD, n)
ONE(Zheevd, SYEVD, n)
ONE(Ssyevj, SYEVJ, n)
ONE(Dsyevj, SYEVJ, n)
ONE(Cheevj, SYEVJ, n)
ONE(Zheevj, SYEVJ, n)
FOUR(S, D, C, Z, gesvd, GESVD, m > n ? m : n)
FOUR(S, D, C, Z, gesvdj, GESVDJ, m > n ? m : n)

int cusolverDnXpotrf_bufferSize(any_t handle, any_t parameters, int triangle, int64_t n, int type_a,
                                const void *a, int64_t lda, int type, size_t *device_bytes,
                                size_t *host_bytes)
{
    return answer_bytes(n, type_a, device_bytes, host_bytes);
}

int cusolverDnXgeqrf_bufferSize(any_t handle, any_t parameters, int64_t m, int64_t n, int type_a,
                                const void *a, int64_t lda, int type_tau, const void *tau, int type,
                                size_t *device_bytes, size_t *host_bytes)
{
    return answer_bytes(m > n ? m : n, type_a, device_bytes, host_bytes);
}

int cusolverDnXsyevd_bufferSize(any_t handle, any_t parameters, int vectors, int triangle,
                                int64_t n, int type_a, const void *a, int64_t lda, int type_w,
                                const void *w, int type, size_t *device_bytes, size_t *host_bytes)
{
    return answer_bytes(n, type_a, device_bytes, host_bytes);
}

int cusolverDnXsyevBatched_bufferSize(any_t handle, any_t parameters, int vectors, int triangle,
                                      int64_t n, int type_a, const void *a, int64_t lda, int type_w,
                                      const void *w, int type, size_t *device_bytes,
                                      size_t *host_bytes, int64_t batch)
{
    return answer_bytes(n * batch, type_a, device_bytes, host_bytes);
}

int cusolverDnXgeev_bufferSize(any_t handle, any_t parameters, int left, int right, int64_t n,
                               int type_a, const void *a, int64_t lda, int type_w, const void *w,
                               int type_left, const void *vl, int64_t ldvl, int type_right,
                               const void *vr, int64_t ldvr, int type, size_t *device_bytes,
                               size_t *host_bytes)
{
    return answer_bytes(n, type_a, device_bytes, host_bytes);
}
