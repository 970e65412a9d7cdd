/* Advice in the terms of the recorded framework. */
#ifndef MT_ANALYZER_FRAMEWORK_ADVICE_H
#define MT_ANALYZER_FRAMEWORK_ADVICE_H

#include "finding.h"

enum mt_framework {
    MT_FRAMEWORK_UNKNOWN, /* no framework, or one that is not named */
    MT_FRAMEWORK_TORCH,
    MT_FRAMEWORK_JAX,
    MT_FRAMEWORK_TENSORFLOW,
    MT_FRAMEWORK_COUNT
};

/* Returns the framework whose requests are analyzed. PyTorch is identified by its allocator. JAX
 * and TensorFlow are identified by names in stacks or modules of a program that runs modules of
 * XLA. O(frames + modules). */
enum mt_framework mt_framework_of(const struct mt_finding_search *search);

/* One text for each framework; NULL: uses the first one, which names no framework. */
struct mt_framework_texts {
    const char *of[MT_FRAMEWORK_COUNT];
};

const char *mt_framework_text(const struct mt_finding_search *search,
                              const struct mt_framework_texts *texts);

#endif
