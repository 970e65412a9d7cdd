/* Results of small copies to the host that code outside of the runtime sets: the Python part of a
 * dry run sets the number of elements that a mask selects before PyTorch reads it. */
#include <string.h>

#include "simulated_runtime.h"

enum { MAX_ANSWER_BYTES = 8 };

static _Thread_local struct {
    unsigned char bytes[MAX_ANSWER_BYTES];
    size_t size_bytes; /* 0: there is none */
} answer;

/* After this call, copies to the host of at most 8 bytes on this thread return the first bytes of
 * BYTES, until a call with a SIZE_BYTES of 0. A SIZE_BYTES above 8 is the same as 0. */
void memtrace_simulated_answer(const void *bytes, size_t size_bytes);

void memtrace_simulated_answer(const void *bytes, size_t size_bytes)
{
    answer.size_bytes = bytes != NULL && size_bytes <= MAX_ANSWER_BYTES ? size_bytes : 0;
    if (answer.size_bytes > 0) {
        memcpy(answer.bytes, bytes, size_bytes);
    }
}

bool sim_answer_read(void *host, size_t bytes)
{
    if (answer.size_bytes == 0 || bytes > answer.size_bytes) {
        return false;
    }
    memcpy(host, answer.bytes, bytes);
    return true;
}
