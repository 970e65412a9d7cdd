/* Check of CUPTI; see probe.h and probe_cupti.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "probe_cupti.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apart.h"
#include "cupti_copies.h"
#include "probe_driver.h"
#include "probe_result.h"

enum {
    CUPTI_TAKEN = 39,          /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    CUPTI_NOT_INITIALIZED = 15 /* newer than the driver */
};

struct subscriber_params {
    size_t struct_size;
    const char *name;
    char *old_name;
    size_t old_name_size;
};

struct cupti {
    int (*version)(uint32_t *version);
    int (*subscribe)(void **handle, void (*callback)(void), void *user);
    int (*subscribe_v2)(void **handle, void (*callback)(void), void *user,
                        struct subscriber_params *params);
    int (*unsubscribe)(void *handle);
    int (*error_text)(int error, const char **text);
};

struct search {
    struct mt_driver_library driver;
    int driver_version; /* 0: try to subscribe, regardless of versions */
    bool started;
    int start_error;
    struct mt_cupti_answer *answer;
};

static void nothing(void) {}

static void describe_holder(const struct cupti *cupti, char *holder, size_t capacity)
{
    struct subscriber_params params = {sizeof params, "memtrace", holder, capacity};
    void *handle = NULL;

    snprintf(holder, capacity, "another tool");
    if (cupti->subscribe_v2)
        (void)cupti->subscribe_v2(&handle, nothing, NULL, &params);
    holder[capacity - 1] = '\0';
}

/* "13.0". Versions of CUPTI before 12 are plain numbers (18 = 11.8). */
static void format_version(char *text, size_t capacity, uint32_t version)
{
    if (version >= 100000)
        snprintf(text, capacity, "%u.%u", version / 10000, version % 10000 / 100);
    else
        snprintf(text, capacity, "API %u", version);
}

static void try_to_subscribe(const struct cupti *cupti, struct mt_cupti_answer *answer)
{
    const char *text = NULL;
    void *handle = NULL;
    int error = cupti->subscribe(&handle, nothing, NULL);

    answer->error = error;
    if (!error) {
        answer->state = MT_CUPTI_FREE;
        if (cupti->unsubscribe)
            cupti->unsubscribe(handle);
        return;
    }
    answer->state = error == CUPTI_TAKEN             ? MT_CUPTI_TAKEN
                    : error == CUPTI_NOT_INITIALIZED ? MT_CUPTI_TOO_NEW
                                                     : MT_CUPTI_REFUSES;
    if (error == CUPTI_TAKEN)
        describe_holder(cupti, answer->holder, sizeof answer->holder);
    if (cupti->error_text && cupti->error_text(error, &text) == 0 && text)
        snprintf(answer->reason, sizeof answer->reason, "%s", text);
}

static uint32_t describe_copy(void *library, const struct cupti *cupti, const char *name,
                              struct mt_cupti_answer *answer)
{
    uint32_t version = 0;
    Dl_info where;

    snprintf(answer->path, sizeof answer->path, "%s",
             dladdr(dlsym(library, "cuptiSubscribe"), &where) && where.dli_fname ? where.dli_fname
                                                                                 : name);
    cupti->version(&version);
    format_version(answer->version, sizeof answer->version, version);
    return version;
}

/* CUPTI's 130000 corresponds to the driver's 13000. Plain numbers belong to CUDA 12 or older. */
static bool is_not_newer(uint32_t cupti_version, int driver_version)
{
    if (driver_version <= 0)
        return false;
    return cupti_version >= 100000 ? cupti_version / 10 <= (uint32_t)driver_version
                                   : driver_version >= 13000;
}

static bool driver_starts(struct search *search)
{
    if (!search->started)
        search->start_error = search->driver.init(0);
    search->started = true;
    return search->start_error == 0;
}

/* Returns true, which ends the search, for a copy that works. A copy that fails is closed;
 * otherwise dlopen would return it again for its name. */
static bool try_copy(void *context, const char *name)
{
    struct search *search = context;
    struct mt_cupti_answer *answer = search->answer;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct cupti cupti;

    if (!library)
        return false;
    mt_find_function(library, "cuptiGetVersion", &cupti.version);
    mt_find_function(library, "cuptiSubscribe", &cupti.subscribe);
    mt_find_function(library, "cuptiSubscribe_v2", &cupti.subscribe_v2);
    mt_find_function(library, "cuptiUnsubscribe", &cupti.unsubscribe);
    mt_find_function(library, "cuptiGetResultString", &cupti.error_text);
    if (cupti.version && cupti.subscribe) {
        uint32_t version = describe_copy(library, &cupti, name, answer);
        if (is_not_newer(version, search->driver_version))
            answer->state = MT_CUPTI_FREE;
        else if (driver_starts(search))
            try_to_subscribe(&cupti, answer);
    }
    if (answer->state != MT_CUPTI_FREE)
        dlclose(library);
    return answer->state == MT_CUPTI_FREE;
}

void mt_cupti_try(const struct mt_program *program, bool thorough, struct mt_cupti_answer *answer)
{
    struct search search = {.answer = answer};

    memset(answer, 0, sizeof *answer);
    answer->state = MT_CUPTI_NO_DRIVER;
    if (!mt_driver_open(&search.driver) || (thorough && !driver_starts(&search)))
        return;
    if (!thorough)
        search.driver.version(&search.driver_version);
    answer->state = MT_CUPTI_NOT_FOUND;
    mt_cupti_copies(program, try_copy, &search);
    if (search.start_error)
        answer->state = MT_CUPTI_NO_DRIVER;
}

/* Describes the problem for a user; "" if there is none. */
static void explain(const struct mt_cupti_answer *answer, char *text, size_t capacity)
{
    switch (answer->state) {
    case MT_CUPTI_NO_DRIVER:
    case MT_CUPTI_FREE: *text = '\0'; break;
    case MT_CUPTI_NOT_FOUND: snprintf(text, capacity, "no libcupti found"); break;
    case MT_CUPTI_TAKEN:
        snprintf(text, capacity, "%s uses CUPTI, which supports only one tool at a time",
                 answer->holder);
        break;
    case MT_CUPTI_TOO_NEW:
        snprintf(text, capacity, "%.200s, version %s, is newer than the driver", answer->path,
                 answer->version);
        break;
    case MT_CUPTI_REFUSES:
        snprintf(text, capacity, "%.100s, version %.15s, returns an error: %.60s (%d)",
                 answer->path, answer->version, answer->reason, answer->error);
        break;
    }
}

static const char *remedy(enum mt_cupti_state state)
{
    switch (state) {
    case MT_CUPTI_NOT_FOUND:
        return "install the CUDA toolkit or a wheel such as nvidia-cuda-cupti-cu12, or set "
               "MEMTRACE_CUPTI to a libcupti.so";
    case MT_CUPTI_TAKEN: return "stop the other tool, or do not run memtrace under it";
    case MT_CUPTI_TOO_NEW: return "update the driver, or set MEMTRACE_CUPTI to an older libcupti";
    default: return "";
    }
}

void mt_probe_cupti(struct mt_probe_result *result)
{
    struct mt_cupti_answer answer;
    struct mt_program python;
    char matter[480];

    mt_program_look("python3", &python);
    mt_cupti_try(mt_program_runs(&python) ? &python : NULL, true, &answer);
    explain(&answer, matter, sizeof matter);
    if (answer.state == MT_CUPTI_NO_DRIVER)
        mt_probe_set(result, MT_PROBE_MISSING, "", "not tested, because there is no driver");
    else if (answer.state == MT_CUPTI_FREE)
        mt_probe_set(result, MT_PROBE_OK, "", "%.200s, version %s, available", answer.path,
                     answer.version);
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, remedy(answer.state),
                     "%s; memtrace wraps the functions of the driver instead", matter);
}

enum { LIMIT_S = 20 };

/* Another tool will also be injected and may take CUPTI. */
static bool has_rival(void)
{
    const char *other = getenv("CUDA_INJECTION64_PATH");

    return other && *other && !strstr(other, "libmemtrace-inject.so");
}

static void try_for(const void *subject, void *answer)
{
    mt_cupti_try(subject, has_rival(), answer);
}

bool mt_cupti_needs_substitute(const struct mt_program *program, char *why, size_t capacity)
{
    const char *told = getenv("MEMTRACE_CUPTI");
    struct mt_cupti_answer answer = {.state = MT_CUPTI_NO_DRIVER};
    const struct mt_apart_call call = {try_for, program, &answer, sizeof answer, LIMIT_S};
    int signal_number;

    *why = '\0';
    if (told && strcmp(told, "none") == 0)
        return true;
    if (mt_run_apart(&call, &signal_number) != MT_APART_ANSWERED)
        return false; /* unknown, but the program may have more success */
    explain(&answer, why, capacity);
    return *why != '\0';
}
