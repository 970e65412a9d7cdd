/* See cupti_contexts.h. A call that creates a context names the device. CUPTI reports the new
 * context during that call, so the thread remembers the device. The table has few rows and is read
 * without a lock. */
#include "cupti_contexts.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collect.h"
#include "cupti_abi.h"
#include "cupti_tell.h"
#include "source_nvml.h"
#include "util.h"

enum { MAX_CONTEXTS = 128, MAX_DEVICES = 64 };

struct row {
    _Atomic uint64_t context; /* 0: free */
    _Atomic uint8_t device;
    _Atomic bool broken;
};

static struct row rows[MAX_CONTEXTS];
static _Atomic unsigned row_count; /* rows after it were never used */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int creating_on = -1; /* device of the current call of the thread */

static struct {
    uint64_t total_bytes;
    char name[64];
    bool told;
} devices[MAX_DEVICES]; /* what the driver returned to the program about its devices */

static int (*ask_device)(const void *context, uint32_t *device);

void mt_cupti_contexts_ask(int (*device_id)(const void *context, uint32_t *device))
{
    ask_device = device_id;
}

static struct row *find(uint64_t context)
{
    unsigned count = row_count;
    for (unsigned i = 0; context && i < count; i++)
        if (rows[i].context == context)
            return &rows[i];
    return NULL;
}

uint8_t mt_cupti_device_of(uint64_t context)
{
    const struct row *row = find(context);
    return row ? row->device : MT_CU_UNKNOWN_DEVICE;
}

uint32_t mt_cupti_contexts_devices(void)
{
    unsigned count = row_count;
    uint32_t found = 0;

    for (unsigned i = 0; i < count; i++)
        if (rows[i].context && rows[i].device < 32)
            found |= 1u << rows[i].device;
    return found;
}

static uint8_t device_number(int device)
{
    return device < 0 || device >= (int)MT_CU_UNKNOWN_DEVICE ? MT_CU_UNKNOWN_DEVICE
                                                             : (uint8_t)device;
}

static struct row *free_row(void)
{
    for (unsigned i = 0; i < row_count; i++)
        if (rows[i].context == 0)
            return &rows[i];
    return row_count < MAX_CONTEXTS ? &rows[row_count] : NULL;
}

static void learn(uint64_t context, int device)
{
    if (!context)
        return;
    pthread_mutex_lock(&lock);
    struct row *row = find(context);
    if (!row && (row = free_row()) != NULL) {
        row->broken = false;
        row->device = MT_CU_UNKNOWN_DEVICE;
        row->context = context;
        if (row == &rows[row_count])
            row_count++;
    }
    if (row && device >= 0)
        row->device = device_number(device);
    pthread_mutex_unlock(&lock);
}

void mt_cupti_contexts_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    row_count = 0;
    memset((void *)rows, 0, sizeof rows);
    memset(devices, 0, sizeof devices);
    creating_on = -1;
}

static void emit_about(uint8_t kind, uint8_t device, const char *text)
{
    struct mt_raw_event event = {.kind = kind,
                                 .id = mt_collect_name(text, strlen(text)),
                                 .heap = MT_RAW_DRIVER,
                                 .device = device};
    mt_collect_emit(&event);
}

void mt_cupti_context_created(uint64_t context)
{
    int device = creating_on;
    uint32_t answer;
    if (device < 0 && ask_device && ask_device((const void *)(uintptr_t)context, &answer) == 0)
        device = answer < MT_CU_UNKNOWN_DEVICE ? (int)answer : -1;
    learn(context, device);
    emit_about(MT_EVENT_CONTEXT, mt_cupti_device_of(context), "CUDA context");
    mt_nvml_sample_soon(mt_cupti_device_of(context));
}

void mt_cupti_context_destroyed(uint64_t context)
{
    mt_cupti_free_all_of(context);
    emit_about(MT_EVENT_MARK, mt_cupti_device_of(context), "CUDA context destroyed");
    struct row *row = find(context);
    if (row)
        row->context = 0;
}

/* Errors that persist in a context until it is destroyed. */
static bool is_lasting(uint32_t result)
{
    static const uint16_t lasting[] = {214, 220, 226, 700, 702, 709, 710,
                                       714, 715, 716, 717, 718, 719, 721};
    for (size_t i = 0; i < MT_ARRAY_LEN(lasting); i++)
        if (result == lasting[i])
            return true;
    return false;
}

bool mt_cupti_is_broken(uint64_t context)
{
    const struct row *row = find(context);
    return row && row->broken;
}

void mt_cupti_see_result(const struct mt_cupti_call *call)
{
    struct row *row = find(call->context);
    char text[64];
    if (!row || row->broken || !is_lasting(call->result))
        return;
    row->broken = true;
    snprintf(text, sizeof text, "CUDA error %u: the context is broken", call->result);
    emit_about(MT_EVENT_MARK, row->device, text);
}

void mt_cupti_enter_context_v2(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_create_v2 *)call->params)->dev;
}

void mt_cupti_enter_context_v3(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_create_v3 *)call->params)->dev;
}

void mt_cupti_enter_context_v4(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_create_v4 *)call->params)->dev;
}

void mt_cupti_enter_context_retain(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_retain *)call->params)->dev;
}

void mt_cupti_enter_green(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_green_create *)call->params)->dev;
}

/* For all calls that create a context: the first argument is the address of the handle. */
void mt_cupti_exit_context(const struct mt_cupti_call *call)
{
    const struct mt_cu_import *params = call->params;
    if (call->result == 0 && params->out)
        learn(*params->out, creating_on);
    creating_on = -1;
}

void mt_cupti_exit_green_context(const struct mt_cupti_call *call)
{
    const struct mt_cu_green_context *params = call->params;
    uint8_t device = mt_cupti_device_of(params->hCtx);
    if (call->result == 0 && params->pContext && device != MT_CU_UNKNOWN_DEVICE)
        learn(*params->pContext, device);
}

static void tell_device(int device)
{
    if (!mt_collect_is_running() || devices[device].told || !devices[device].total_bytes ||
        !devices[device].name[0])
        return;
    devices[device].told = true;
    mt_collect_device((uint32_t)device, devices[device].total_bytes, devices[device].name);
}

void mt_cupti_contexts_tell_devices(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < MAX_DEVICES; device++)
        tell_device(device);
    pthread_mutex_unlock(&lock);
}

bool mt_cupti_asks_device(const struct mt_cupti_entry *entry)
{
    return entry->at_exit == mt_cupti_exit_device_total ||
           entry->at_exit == mt_cupti_exit_device_name;
}

void mt_cupti_exit_device_total(const struct mt_cupti_call *call)
{
    const struct mt_cu_device_total *params = call->params;
    if (call->result || !params->bytes || params->dev < 0 || params->dev >= MAX_DEVICES)
        return;
    pthread_mutex_lock(&lock);
    devices[params->dev].total_bytes = *params->bytes;
    tell_device(params->dev);
    pthread_mutex_unlock(&lock);
}

void mt_cupti_exit_device_name(const struct mt_cupti_call *call)
{
    const struct mt_cu_device_name *params = call->params;
    if (call->result || !params->name || params->len <= 0 || params->dev < 0 ||
        params->dev >= MAX_DEVICES)
        return;
    pthread_mutex_lock(&lock);
    char *name = devices[params->dev].name;
    size_t most =
        (size_t)params->len < sizeof devices->name ? (size_t)params->len : sizeof devices->name;
    size_t length = strnlen(params->name, most - 1);
    memcpy(name, params->name, length);
    name[length] = 0;
    tell_device(params->dev);
    pthread_mutex_unlock(&lock);
}
