/* The models that pictures read, one file each (timeline_model.h, ...) behind one
 * table: made after the first reading, when peaks, steps and pauses are known, fed
 * in the second, and part of the report after it. Whatever the trace, the size of a
 * model is bounded. */
#ifndef MT_ANALYZER_MODELS_H
#define MT_ANALYZER_MODELS_H

#include "report.h"

struct mt_analysis;

/* A block that the program holds, or held, from the request to its free request. */
struct mt_block_life {
    uint64_t addr, requested_bytes, block_bytes;
    uint64_t birth_t_ns, birth_event;
    uint64_t end_t_ns, end_event; /* end_event UINT64_MAX: it was there at the end */
    uint32_t block;               /* no two that live at the same time have the same */
    uint32_t stack, tied;         /* see mt_holding */
    uint32_t stream;              /* symbols */
    int32_t phase;                /* innermost, at its birth */
    uint8_t role, tie;            /* enum mt_role, enum mt_tie */
    bool initial;                 /* it is older than the recorded history */
};

/* A device after an event that concerns its memory. */
struct mt_model_state {
    const struct mt_event *event; /* of any kind that mt_event_is_memory() has */
    int32_t phase;                /* innermost, of the event's thread */
    const struct mt_bytes *now;
    const uint64_t *role_bytes; /* sum = allocated */
    uint64_t allocated_before;
};

/* What a model wants to hear, in the order of events; NULL = nothing of it. Of one
 * event births and ends come first, then the state after it. */
struct mt_model_feed {
    void *builder;
    enum mt_status (*on_birth)(void *builder, const struct mt_block_life *life);
    enum mt_status (*on_end)(void *builder, const struct mt_block_life *life);
    enum mt_status (*on_state)(void *builder, const struct mt_model_state *state);
    void (*release)(void *builder); /* in any case, last of all */
};

#define MT_MODELS_MAX 16

/* Of one device. */
struct mt_model_feeds {
    struct mt_model_feed feeds[MT_MODELS_MAX];
    uint8_t rows[MT_MODELS_MAX]; /* of the table, parallel */
    uint32_t count;
    bool wants_lives; /* any births or ends */
};

/* Part of a run that some models are of. */
struct mt_model_window {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event; /* ends inclusive */
    int64_t step;                                          /* MT_NO_STEP = the whole run */
    int32_t phase;                                         /* that it is, or MT_NO_PHASE */
    bool missing; /* the part that was asked for does not exist: the whole run instead */
};

/* As the options wish; the whole run if that part does not exist. */
struct mt_model_window mt_model_window(const struct mt_analysis *analysis, uint32_t slot);

/* Begins the models that the options ask for, of the survey's device `slot`. */
enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds) MT_MUST_USE;
/* After the last event: the models are the report's. */
enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out) MT_MUST_USE;
void mt_models_release(struct mt_model_feeds *feeds);

#endif
