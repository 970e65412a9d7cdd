/* The functions of NCCL that this library interposes, and those that it calls. They are declared
 * here as in nccl.h (2.18 to 2.30), so that no NVIDIA header is needed to build. Communicators are
 * declared as void pointers, and ncclResult_t as int. */
#ifndef MT_INJECT_NCCL_CALLS_H
#define MT_INJECT_NCCL_CALLS_H

#include <stddef.h>

#include "inject_source.h"

/* ncclUniqueId, which is passed by value. */
struct mt_nccl_id {
    char bytes[128];
};

typedef int mt_nccl_init_fn(void **, int, struct mt_nccl_id, int);
typedef int mt_nccl_init_config_fn(void **, int, struct mt_nccl_id, int, void *);
typedef int mt_nccl_init_scalable_fn(void **, int, int, int, struct mt_nccl_id *, void *);
typedef int mt_nccl_split_fn(void *, int, int, void **, void *);
typedef int mt_nccl_end_fn(void *);
typedef int mt_nccl_register_fn(const void *, void *, size_t, void **);
typedef int mt_nccl_window_fn(void *, void *, size_t, void **, int);
typedef int mt_nccl_deregister_fn(const void *, void *);
typedef int mt_nccl_question_fn(const void *, int *);

#define MT_NCCL_EXPORT __attribute__((visibility("default")))

MT_NCCL_EXPORT int ncclCommInitRank(void **communicator, int ranks, struct mt_nccl_id id, int rank);
MT_NCCL_EXPORT int ncclCommInitRankConfig(void **communicator, int ranks, struct mt_nccl_id id,
                                          int rank, void *config);
MT_NCCL_EXPORT int ncclCommInitRankScalable(void **communicator, int ranks, int rank, int id_count,
                                            struct mt_nccl_id *ids, void *config);
MT_NCCL_EXPORT int ncclCommSplit(void *parent, int color, int key, void **communicator,
                                 void *config);
MT_NCCL_EXPORT int ncclCommDestroy(void *communicator);
MT_NCCL_EXPORT int ncclCommAbort(void *communicator);
MT_NCCL_EXPORT int ncclCommRegister(const void *communicator, void *buffer, size_t size_bytes,
                                    void **handle);
MT_NCCL_EXPORT int ncclCommDeregister(const void *communicator, void *handle);
MT_NCCL_EXPORT int ncclCommWindowRegister(void *communicator, void *buffer, size_t size_bytes,
                                          void **window, int flags);
MT_NCCL_EXPORT int ncclCommWindowDeregister(void *communicator, void *window);

extern const struct mt_inject_source mt_nccl_source;

#endif
