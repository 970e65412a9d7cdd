/* Error messages about memory, as text and without a trace: finds the last one, reads its numbers,
 * and derives what they prove. Call mt_oom_find, then mt_oom_judge. The cost is linear in the text.
 *
 * A wording is a row of mt_oom_wordings. Wordings are compared in lower case and without white
 * space, because terminals, logs and Markdown wrap messages anywhere. */
#ifndef MT_CLI_OOM_TEXT_H
#define MT_CLI_OOM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "status.h"

enum mt_oom_text_cause {
    MT_OOM_CAUSE_UNKNOWN,
    MT_OOM_CAUSE_THIS_PROCESS,
    MT_OOM_CAUSE_OUTSIDE_PYTORCH, /* memory of this process that PyTorch did not allocate */
    MT_OOM_CAUSE_OTHER_PROCESS,
    MT_OOM_CAUSE_OWN_LIMIT,
    MT_OOM_CAUSE_FRAGMENTATION,
    MT_OOM_CAUSE_PRIVATE_POOL, /* unused memory that only graphs or pools may use */
    MT_OOM_CAUSE_IMPOSSIBLE_SIZE,
    MT_OOM_CAUSE_DEVICE_MEMORY, /* the card refused; the text does not show who holds it */
    MT_OOM_CAUSE_HOST_MEMORY,
    MT_OOM_CAUSE_SHARED_MEMORY, /* /dev/shm */
    MT_OOM_CAUSE_ADDRESS_SPACE,
    MT_OOM_CAUSE_HANDLES,
    MT_OOM_CAUSE_KV_CACHE,
    MT_OOM_CAUSE_LIBRARY, /* a library failed, perhaps for want of memory */
    MT_OOM_CAUSE_KILLED,  /* by a signal, perhaps for want of host memory */
    MT_OOM_CAUSE_NOT_MEMORY
};

enum mt_oom_device { MT_OOM_DEVICE_CUDA, MT_OOM_DEVICE_HIP, MT_OOM_DEVICE_XPU, MT_OOM_DEVICE_NPU };

/* How the numbers of a wording are judged. */
enum mt_oom_form {
    MT_OOM_NO_MESSAGE, /* the text is no error: it is skipped */
    MT_OOM_FIXED,      /* the row has the whole answer */
    MT_OOM_PYTORCH,
    MT_OOM_ASYNC, /* backend:cudaMallocAsync */
    MT_OOM_MPS,
    MT_OOM_BFC,       /* allocator of XLA and TensorFlow */
    MT_OOM_HBM,       /* compiler of XLA for TPUs */
    MT_OOM_NO_BLOCKS, /* vLLM: nothing is left for the KV cache */
    MT_OOM_SEQUENCE,  /* vLLM: the KV cache holds fewer tokens than a sequence */
    MT_OOM_NEEDED,    /* vLLM: the KV cache is smaller than a sequence needs */
    MT_OOM_STATIC,    /* SGLang: nothing is left; the row has the answer without numbers */
    MT_OOM_START      /* vLLM: less is free at the start than it may use */
};

struct mt_oom_wording {
    const char *anchor; /* in lower case, without white space */
    /* Another text near it, or after it (">"), after it on its line ("|"), or in the traceback
     * above it ("<"). "^": it is a line, or begins one and this text follows. */
    const char *also;
    bool is_echo; /* repeats another message, which is preferred */
    enum mt_oom_form form;
    const char *software;
    enum mt_oom_text_cause cause; /* of MT_OOM_FIXED, like the members below; also of MT_OOM_BFC */
    bool is_proved;
    const char *headline, *unknown, *next;
};
extern const struct mt_oom_wording mt_oom_wordings[]; /* ends with a NULL anchor */

/* Numbers of a message. Bytes unless noted. */
enum mt_oom_number {
    MT_OOM_REQUEST,
    MT_OOM_CAPACITY,
    MT_OOM_FREE,
    MT_OOM_THIS_PROCESS,
    MT_OOM_ALLOCATED, /* by the framework */
    MT_OOM_RESERVED,
    MT_OOM_UNUSED,       /* reserved, but not allocated */
    MT_OOM_POOLS_UNUSED, /* kept for private pools, unused */
    MT_OOM_LIMIT,
    MT_OOM_OUTSIDE, /* MPS: other allocations */
    MT_OOM_POOL,    /* taken from the device, of MT_OOM_LIMIT */
    MT_OOM_WEIGHTS,
    MT_OOM_PEAK_ACTIVATIONS,
    MT_OOM_KV_CACHE, /* available for it; may be negative (is_negative) */
    MT_OOM_KV_NEEDED,
    MT_OOM_UTILIZATION, /* of the capacity, in millionths, like the next one */
    MT_OOM_FREE_GIB,    /* in GiB */
    MT_OOM_TOKENS,      /* of a sequence: a count */
    MT_OOM_TOKENS_FIT,  /* a count */
    MT_OOM_NUMBERS
};

struct mt_oom_value {
    uint64_t value, error; /* error: at most this much was rounded away */
    bool is_known, is_negative;
};

/* Where a number is: `before` and `after` enclose it. One of them may be empty. */
struct mt_oom_field {
    enum mt_oom_form form;
    enum mt_oom_number number;
    const char *before, *after;
};
extern const struct mt_oom_field mt_oom_fields[]; /* ends with a `before` of NULL */

enum { MT_OOM_NO_NUMBER = -1, MT_OOM_ERROR_BYTES = 48, MT_OOM_MAX_PROCESSES = 32 };

struct mt_oom_message {
    const struct mt_oom_wording *wording;
    const char *software;
    enum mt_oom_device device_kind;
    bool is_host_pool;  /* MT_OOM_BFC: its memory is of the host */
    bool is_in_capture; /* the traceback captures a CUDA graph */
    uint64_t line;      /* of its beginning, from 1 */
    uint64_t count;     /* messages in the text, without echoes */
    int64_t rank, device;
    struct mt_oom_value numbers[MT_OOM_NUMBERS];
    uint64_t processes[MT_OOM_MAX_PROCESSES]; /* bytes of the processes that it lists */
    size_t process_count;
    uint64_t processes_error;
    char later_error[MT_OOM_ERROR_BYTES]; /* what ends the text instead, or "" */
    struct mt_buf script;                 /* of the traceback above it; empty = none */
};

enum { MT_OOM_KEPT_BYTES = 32 * 1024 * 1024 }; /* of a long text */

/* Reads a file, or standard input ("-"), with or without zstd compression. Keeps at least the last
 * `most` bytes, and less than three times as many: *lines_cut lines before them are missing.
 * Release the text in either case. */
enum mt_status mt_oom_read(const char *path, size_t most, struct mt_buf *text, uint64_t *lines_cut,
                           struct mt_error *error) MT_MUST_USE;

/* Returns whether this file is a text with a message that mt_oom_find finds, and no echo only. */
bool mt_oom_is_in_file(const char *path);

/* Returns false if the text has no such message. Release the message in either case. */
bool mt_oom_find(const char *text, size_t length, struct mt_oom_message *message);
void mt_oom_message_release(struct mt_oom_message *message);

/* The text in lower case, without white space, escape sequences and the prefixes of lines. Release
 * the members with free. */
struct mt_oom_squeezed {
    char *bytes;
    size_t length;
    uint8_t *line_begins; /* a bit for each byte: it is the first one of its line */
};
struct mt_oom_squeezed mt_oom_squeeze(const char *text, size_t length);

struct mt_oom_place {
    uint64_t line;     /* from 1 */
    size_t begin, end; /* of the line, in the text */
};
/* Returns the line of a position in the squeezed text. Reads the text up to it. */
struct mt_oom_place mt_oom_find_place(const char *text, size_t length, size_t position);

/* The name of the last Python error below a traceback, unless it came from the error before it. */
void mt_oom_read_later_error(const char *text, const char *end, char name[MT_OOM_ERROR_BYTES]);
/* The script of the last traceback: File "train.py", line 3, in <module>. */
void mt_oom_read_script(const char *text, const char *end, struct mt_buf *script);

#define MT_OOM_SMI "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv"

enum { MT_OOM_MAX_PARTS = 8, MT_OOM_MAX_UNKNOWN = 4 };

struct mt_oom_part {
    const char *what;
    uint64_t bytes;
};

struct mt_oom_verdict {
    enum mt_oom_text_cause cause;
    bool is_proved;
    struct mt_buf headline, next; /* next: a command */
    const char *whole;            /* what the parts add up to; NULL = nothing */
    uint64_t whole_bytes;
    struct mt_oom_part parts[MT_OOM_MAX_PARTS];
    size_t part_count;
    struct mt_buf unknown[MT_OOM_MAX_UNKNOWN];
    size_t unknown_count;
};

void mt_oom_judge(const struct mt_oom_message *message, struct mt_oom_verdict *verdict);
void mt_oom_verdict_release(struct mt_oom_verdict *verdict);
const char *mt_oom_cause_name(enum mt_oom_text_cause cause); /* "own_limit" */

/* Parts of mt_oom_judge. */
void mt_oom_judge_fixed(const struct mt_oom_message *message, struct mt_oom_verdict *verdict);
void mt_oom_judge_mps(const struct mt_oom_message *message, struct mt_oom_verdict *verdict);
void mt_oom_judge_serving(const struct mt_oom_message *message, struct mt_oom_verdict *verdict);
void mt_oom_conclude(struct mt_oom_verdict *verdict, enum mt_oom_text_cause cause, bool is_proved);
/* `bytes` is UINT64_MAX for the rest of the whole. */
void mt_oom_verdict_part(struct mt_oom_verdict *verdict, const char *what, uint64_t bytes);
/* Sets amounts[i] of each part in units of `unit` bytes, so that they add up to the whole, which it
 * returns. The largest parts take what rounding did to the sum. */
uint64_t mt_oom_verdict_parts(const struct mt_oom_verdict *verdict, uint64_t unit,
                              uint64_t amounts[MT_OOM_MAX_PARTS]);
void mt_oom_verdict_unknown(struct mt_oom_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The next command lists the processes of the device. */
void mt_oom_verdict_list(struct mt_oom_verdict *verdict, const struct mt_oom_message *message);
/* The next command records the program: the script of the traceback, if its name is short. */
void mt_oom_verdict_record(struct mt_oom_verdict *verdict, const struct mt_oom_message *message);

#endif
