/* What fake_cudnn.c does for the first size of x. */
#ifndef MT_FAKE_CUDNN_H
#define MT_FAKE_CUDNN_H

enum {
    FAKE_STREAM_K = 10, /* the knobs are those of a stream-K kernel */
    FAKE_CRASH = 666,
    FAKE_HANG,
    FAKE_NOTHING,     /* proposes no configuration */
    FAKE_DRIVER,      /* workspace: what cuInit says, -1: nothing to call */
    FAKE_LEAKS,       /* workspace: descriptors that were not destroyed */
    FAKE_ENVIRONMENT, /* workspace: a bit for each thing that came along from the program */
};

/* A library that does not plan for a device that is only described. */
#define FAKE_OLD_DEVICE "{old}"

#endif
