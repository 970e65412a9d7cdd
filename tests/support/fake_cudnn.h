/* Behavior of fake_cudnn.c, by the first size of x. */
#ifndef MT_FAKE_CUDNN_H
#define MT_FAKE_CUDNN_H

enum {
    FAKE_STREAM_K = 10, /* the knobs are those of a stream-K kernel */
    FAKE_CRASH = 666,
    FAKE_HANG,
    FAKE_NOTHING,     /* proposes no configuration */
    FAKE_DRIVER,      /* workspace: result of cuInit, -1: there is no function */
    FAKE_LEAKS,       /* workspace: descriptors that were not destroyed */
    FAKE_ENVIRONMENT, /* workspace: a bit for each thing inherited from the program */
};

/* A library that has no plans for a described device. */
#define FAKE_OLD_DEVICE "{old}"

#endif
