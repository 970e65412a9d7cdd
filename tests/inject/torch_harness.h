/* A collector that remembers, and the stand-ins of PyTorch's libraries, for tests
 * of source_torch*.c. Each case is a process of its own (run_case), as what is
 * hooked stays hooked. */
#ifndef TORCH_HARNESS_H
#define TORCH_HARNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "collect.h"
#include "settings.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum { MAX_EVENTS = 4096, MAX_NAMES = 64, MAX_SAID = 8, STACK = 7 };

/* What was emitted and told. */
extern struct collected {
    pthread_mutex_t lock;
    struct mt_raw_event events[MAX_EVENTS];
    unsigned count, name_count, pool_count, said_count, thread_count, stack_count;
    char names[MAX_NAMES][64], said[MAX_SAID][160], facts[1024];
    uint64_t pools[MAX_NAMES][2];
} collected;

extern struct mt_inject_settings settings;

/* libtorch_cuda.so: torch_standin.h. */
extern struct torch_library {
    int (*begin)(void);
    void *(*malloc)(int device, uint64_t bytes, uint64_t stream);
    void (*free)(void *block);
    void (*record_stream)(void *block);
    void (*use_pool)(uint64_t a, uint64_t b);
    void (*empty_cache)(void);
    void (*set_fraction)(double fraction, int device);
    double (*fraction)(void);
    unsigned (*reported)(void);
    void *(*scope_begin)(int scope, const char *name);
    void (*scope_end)(void *scope);
} torch;

void *need(void *library, const char *name);
void load(const char *package); /* nothing of it visible to others, as Python does */
/* A package of that version: the libraries, but another version.py, and the
 * allocator from `allocator_folder`; PyTorch has begun with CUDA. */
void load_package(const char *version, const char *allocator_folder);
void load_version(const char *version);
void begin(void);

const struct mt_raw_event *event_at(unsigned index);
void expect(unsigned index, unsigned kind, uint64_t size_bytes);
void poll_source(void);
bool has_fact(const char *line);

#endif
