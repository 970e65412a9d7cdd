/* Checks of the driver, of NVML, which is part of it, and of CUPTI; see probes.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "child_run.h"
#include "probes.h"
#include "program_kind.h"
#include "units.h"
#include "util.h"

/* Lists the copies of CUPTI on this machine in the order in which the collector tries them: a
 * framework's own copy first, because its version fits. */

struct copy_search {
    bool (*visit)(void *context, const char *name);
    void *context;
};

/* The pattern is `rest` after the first `length` bytes of `folder`. */
static bool visit_pattern(const struct copy_search *search, const char *folder, size_t length,
                          const char *rest)
{
    struct mt_buf pattern = {0};
    glob_t found = {0};
    bool done = false;

    mt_buf_add(&pattern, folder, length);
    mt_buf_add(&pattern, rest, strlen(rest) + 1);
    if (!pattern.failed && glob(pattern.data, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i > 0 && !done; i--) /* the highest version first */
            done = search->visit(search->context, found.gl_pathv[i - 1]);
    globfree(&found);
    mt_buf_release(&pattern);
    return done;
}

/* The vendor's wheels are beside the framework; conda's package is in `lib`. */
static bool visit_packages(const struct copy_search *search, const char *interpreter)
{
    static const char *const rests[] = {
        "/../lib/python3*/*-packages/nvidia/cu1*/lib/libcupti.so.1*",
        "/../lib/python3*/*-packages/nvidia/cuda_cupti/lib/libcupti.so.1*",
        "/../lib/libcupti.so.1*"};
    const char *slash = strrchr(interpreter, '/');

    for (size_t i = 0; slash && i < MT_ARRAY_LEN(rests); i++)
        if (visit_pattern(search, interpreter, (size_t)(slash - interpreter), rests[i]))
            return true;
    return false;
}

/* Searches the folder of a script (torchrun) and the folder of a link, because the interpreter of a
 * virtual environment is a link. */
static bool visit_python(const struct copy_search *search, const struct mt_program *program)
{
    char real[PATH_MAX];

    return visit_packages(search, program->path) || visit_packages(search, program->binary) ||
           (realpath(program->binary, real) && visit_packages(search, real));
}

static bool visit_toolkits(const struct copy_search *search)
{
    static const char *const rests[] = {"/extras/CUPTI/lib64/libcupti.so", "/lib64/libcupti.so.1*",
                                        "/targets/*/lib/libcupti.so.1*"};
    const char *folders[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
                             "/usr/local/cuda-*"};

    for (size_t i = 0; i < MT_ARRAY_LEN(folders); i++)
        for (size_t k = 0; folders[i] && *folders[i] && k < MT_ARRAY_LEN(rests); k++)
            if (visit_pattern(search, folders[i], strlen(folders[i]), rests[k]))
                return true;
    return false;
}

static bool visit_names(const struct copy_search *search)
{
    static const char *const names[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                        "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5",
                                        "libcupti.so.11.4", "libcupti.so.11.3", "libcupti.so.11.2",
                                        "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so"};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (search->visit(search->context, names[i]))
            return true;
    return false;
}

/* Calls `visit` with names for dlopen until it returns true or the list ends. Returns whether a
 * call returned true. `program` (may be NULL) is the program to run; if it is a Python interpreter
 * or a Python script, its packages are searched. If MEMTRACE_CUPTI is set, it is the only candidate
 * ("none": no candidate). */
static bool cupti_copies(const struct mt_program *program,
                         bool (*visit)(void *context, const char *name), void *context)
{
    const struct copy_search search = {visit, context};
    const char *told = getenv("MEMTRACE_CUPTI");

    if (told && *told)
        return strcmp(told, "none") != 0 && visit(context, told);
    return (program && visit_python(&search, program)) || visit_toolkits(&search) ||
           visit_names(&search);
}

/* The part of libcuda that the checks need. It is not linked: a missing library is a result, not
 * an error. */
struct driver_library {
    void *library;
    int (*init)(unsigned flags);
    int (*version)(int *version); /* 13000 = CUDA 13.0; works before init */
    int (*count)(int *count);
    int (*name)(char *name, int length, int device); /* these three may be NULL */
    int (*total)(size_t *bytes, int device);
    int (*error_text)(int error, const char **text);
};

enum { NVML_NAME_BYTES = 96, NVML_NO_ROOM = 7 };

/* Like dlsym, but stores the result at `function`, the address of a function pointer. ISO C does
 * not allow the conversion of a void pointer to a function pointer; POSIX does. */
static void find_function(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    memcpy(function, &address, sizeof address);
}

/* Loads libcuda. Returns false if the library or one of its first three functions is missing. Call
 * it only in a separate process. */
static bool driver_open(struct driver_library *driver)
{
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver->library)
        return false;
    find_function(driver->library, "cuInit", &driver->init);
    find_function(driver->library, "cuDriverGetVersion", &driver->version);
    find_function(driver->library, "cuDeviceGetCount", &driver->count);
    find_function(driver->library, "cuDeviceGetName", &driver->name);
    find_function(driver->library, "cuDeviceTotalMem_v2", &driver->total);
    find_function(driver->library, "cuGetErrorString", &driver->error_text);
    return driver->init && driver->version && driver->count;
}

static void describe_devices(const struct driver_library *driver, struct mt_probe_result *result,
                             int version)
{
    char name[128] = "", bytes[MT_UNITS_TEXT];
    size_t total = 0;
    int count = 0;

    driver->count(&count);
    if (driver->name)
        driver->name(name, sizeof name, 0);
    if (driver->total)
        driver->total(&total, 0);
    if (!count)
        mt_probe_set(result, MT_PROBE_MISSING, "check CUDA_VISIBLE_DEVICES",
                     "CUDA %d.%d, but no GPU", version / 1000, version % 1000 / 10);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "CUDA %d.%d, %d GPU%s: %s, %s%s", version / 1000,
                     version % 1000 / 10, count, count == 1 ? "" : "s", name,
                     mt_format_bytes(bytes, total), count == 1 ? "" : ", ...");
}

void mt_probe_driver(struct mt_probe_result *result)
{
    struct driver_library driver;
    const char *text = NULL;
    int version = 0;

    if (!driver_open(&driver)) {
        mt_probe_set(result, MT_PROBE_MISSING,
                     "install the NVIDIA driver; start a container with --gpus all",
                     "libcuda.so.1 is not on this machine");
        return;
    }
    int error = driver.init(0);
    if (error && driver.error_text)
        driver.error_text(error, &text);
    driver.version(&version);
    if (error)
        mt_probe_set(result, MT_PROBE_MISSING, "run nvidia-smi for details",
                     "cuInit fails: %s (%d)", text ? text : "unknown error", error);
    else
        describe_devices(&driver, result, version);
}

void mt_probe_nvml(struct mt_probe_result *result)
{
    int (*init)(void), (*count)(unsigned *count), (*at)(unsigned index, void **device);
    int (*processes)(void *device, unsigned *count, void *infos);
    int (*driver)(char *text, unsigned length);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
    char version[NVML_NAME_BYTES] = "?";
    unsigned devices = 0, running = 0;

    if (!library) {
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                     "libnvidia-ml.so.1 is not on this machine: the memory of the whole device is "
                     "not sampled");
        return;
    }
    find_function(library, "nvmlInit_v2", &init);
    find_function(library, "nvmlDeviceGetCount_v2", &count);
    find_function(library, "nvmlDeviceGetHandleByIndex_v2", &at);
    find_function(library, "nvmlDeviceGetComputeRunningProcesses_v3", &processes);
    find_function(library, "nvmlSystemGetDriverVersion", &driver);
    int error = init ? init() : -1;
    if (error) {
        mt_probe_set(result, MT_PROBE_DEGRADED, "run nvidia-smi for details", "nvmlInit fails (%d)",
                     error);
        return;
    }
    if (driver)
        driver(version, sizeof version);
    if (count)
        count(&devices);
    error =
        at && processes && devices && at(0, &device) == 0 ? processes(device, &running, NULL) : -1;
    if (error == 0 || error == NVML_NO_ROOM)
        mt_probe_set(result, MT_PROBE_OK, "", "driver %.90s, %u GPU%s, memory per process", version,
                     devices, devices == 1 ? "" : "s");
    else
        mt_probe_set(
            result, MT_PROBE_DEGRADED, "",
            "driver %.90s, %u GPU%s; no memory per process (%d): samples are of the whole device",
            version, devices, devices == 1 ? "" : "s", error);
}

/* Check of CUPTI; see probes.h and probes.h. */

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

struct probe_search {
    struct driver_library driver;
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

static bool driver_starts(struct probe_search *search)
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
    struct probe_search *search = context;
    struct mt_cupti_answer *answer = search->answer;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct cupti cupti;

    if (!library)
        return false;
    find_function(library, "cuptiGetVersion", &cupti.version);
    find_function(library, "cuptiSubscribe", &cupti.subscribe);
    find_function(library, "cuptiSubscribe_v2", &cupti.subscribe_v2);
    find_function(library, "cuptiUnsubscribe", &cupti.unsubscribe);
    find_function(library, "cuptiGetResultString", &cupti.error_text);
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
    struct probe_search search = {.answer = answer};

    memset(answer, 0, sizeof *answer);
    answer->state = MT_CUPTI_NO_DRIVER;
    if (!driver_open(&search.driver) || (thorough && !driver_starts(&search)))
        return;
    if (!thorough)
        search.driver.version(&search.driver_version);
    answer->state = MT_CUPTI_NOT_FOUND;
    cupti_copies(program, try_copy, &search);
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
    const struct mt_child_call call = {try_for, program, &answer, sizeof answer, LIMIT_S};
    int signal_number;

    *why = '\0';
    if (told && strcmp(told, "none") == 0)
        return true;
    if (mt_child_run(&call, &signal_number) != MT_CHILD_ANSWERED)
        return false; /* unknown, but the program may have more success */
    explain(&answer, why, capacity);
    return *why != '\0';
}
