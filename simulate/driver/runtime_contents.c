/* Data of small copies to the device, as words of 8 bytes. Words are never removed from the table.
 * When it is full, it accepts no new ones. */
#include <pthread.h>
#include <string.h>

#include "simulated_runtime.h"

/* Results of small copies to the host that code outside of the runtime sets: the Python part of a
 * dry run sets the number of elements that a mask selects before PyTorch reads it. */

enum { MAX_ANSWER_BYTES = 8 };

static _Thread_local struct {
    unsigned char bytes[MAX_ANSWER_BYTES];
    size_t size_bytes; /* 0: there is none */
} next_answer;

/* After this call, copies to the host of at most 8 bytes on this thread return the first bytes of
 * BYTES, until a call with a SIZE_BYTES of 0. A SIZE_BYTES above 8 is the same as 0. */
void memtrace_simulated_answer(const void *bytes, size_t size_bytes);

void memtrace_simulated_answer(const void *bytes, size_t size_bytes)
{
    next_answer.size_bytes = bytes != NULL && size_bytes <= MAX_ANSWER_BYTES ? size_bytes : 0;
    if (next_answer.size_bytes > 0) {
        memcpy(next_answer.bytes, bytes, size_bytes);
    }
}

/* Fills `host`, the target of a small copy to the host, with the answer of
 * memtrace_simulated_answer(). Returns false if there is none. */
static bool sim_answer_read(void *host, size_t bytes)
{
    if (next_answer.size_bytes == 0 || bytes > next_answer.size_bytes) {
        return false;
    }
    memcpy(host, next_answer.bytes, bytes);
    return true;
}

enum { SLOT_COUNT = 1 << 16, WORD_BYTES = 8, MAX_BYTES = 64 << 10, MAX_STEPS = 64 };

struct word {
    uint64_t address; /* 0: free */
    uint64_t value;
};

static struct word slots[SLOT_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool asked(void)
{
    static int answer = -1;
    if (answer < 0) {
        answer = sim_option("MEMTRACE_SIMULATED_CONTENTS") != 0;
    }
    return answer > 0;
}

/* Returns the slot of an address, a free one, or NULL. The caller holds the lock. */
static struct word *slot_of(uint64_t address)
{
    uint64_t at = (address >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 48;
    for (int step = 0; step < MAX_STEPS; step++) {
        struct word *slot = &slots[(at + (uint64_t)step) % SLOT_COUNT];
        if (slot->address == address || slot->address == 0) {
            return slot;
        }
    }
    return NULL;
}

static uint64_t read_word(uint64_t address)
{
    const struct word *slot = slot_of(address);
    return slot != NULL && slot->address == address ? slot->value : 0;
}

static void write_word(uint64_t address, uint64_t value)
{
    struct word *slot = slot_of(address);
    if (slot != NULL) {
        *slot = (struct word){address, value};
    }
}

void sim_contents_write(uint64_t device, const void *host, size_t bytes)
{
    if (!asked() || bytes > MAX_BYTES || device % WORD_BYTES != 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < bytes; at += WORD_BYTES) {
        uint64_t value = 0;
        memcpy(&value, (const char *)host + at, bytes - at < WORD_BYTES ? bytes - at : WORD_BYTES);
        write_word(device + at, value);
    }
    pthread_mutex_unlock(&lock);
}

void sim_contents_read(uint64_t device, void *host, size_t bytes)
{
    if (sim_answer_read(host, bytes)) {
        return;
    }
    memset(host, 0, bytes);
    if (!asked() || bytes > MAX_BYTES || device % WORD_BYTES != 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < bytes; at += WORD_BYTES) {
        uint64_t value = read_word(device + at);
        memcpy((char *)host + at, &value, bytes - at < WORD_BYTES ? bytes - at : WORD_BYTES);
    }
    pthread_mutex_unlock(&lock);
}

void sim_contents_move(uint64_t to, uint64_t from, size_t bytes)
{
    char buffer[4096];
    for (size_t at = 0; asked() && bytes <= MAX_BYTES && at < bytes; at += sizeof buffer) {
        size_t part = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
        sim_contents_read(from + at, buffer, part);
        sim_contents_write(to + at, buffer, part);
    }
}
