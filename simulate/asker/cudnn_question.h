/* Messages between the simulated cuDNN and the asker, which are two processes on one machine with
 * one version of memtrace. Each question and each answer is one packet. */
#ifndef MT_CUDNN_QUESTION_H
#define MT_CUDNN_QUESTION_H

#include <stdint.h>

#include "convolution.h"

enum {
    CUDNN_QUESTION_MARK = 0x6d746371,
    CUDNN_ANSWER_MARK = 0x6d746361,
    MAX_CUDNN_CONFIGURATIONS = 64,
    CUDNN_KNOB_TYPES = 32, /* values of cudnnBackendKnobType_t below this are passed on */
    CUDNN_NO_KNOB = -1
};

/* The descriptor of the asker that is connected to the simulated cuDNN. */
enum { CUDNN_ASKER_SOCKET = 0 };

struct cudnn_question {
    uint32_t mark;
    uint32_t number; /* the answer repeats it */
    struct convolution convolution;
};

struct cudnn_configuration {
    int64_t workspace_bytes;
    uint32_t numerical_notes;        /* 1 << cudnnBackendNumericalNote_t */
    int32_t engine;                  /* global index of the engine */
    int32_t knobs[CUDNN_KNOB_TYPES]; /* by type, or CUDNN_NO_KNOB */
};

enum cudnn_answer_state {
    CUDNN_ANSWERED,    /* the answer has all configurations, possibly none */
    CUDNN_CANNOT_PLAN, /* this library cannot plan for a device that is only described */
    CUDNN_ANSWER_STATES
};

struct cudnn_answer {
    uint32_t mark;
    uint32_t number;
    uint32_t state;
    uint32_t count;
    struct cudnn_configuration configurations[MAX_CUDNN_CONFIGURATIONS]; /* the best one first */
};

#endif
