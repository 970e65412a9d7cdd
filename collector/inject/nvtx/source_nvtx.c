/* See nvtx_parts.h: how a copy of NVTX and the collector find each other.
 *
 * Several copies may initialize at the same time, with or without the loader's lock, so nothing
 * here takes a lock of its own. A tool that was set for NVTX before memtrace ($MEMTRACE_NVTX_NEXT)
 * is initialized first: it fills the slots. Its functions are then moved to mt_nvtx_next_* and
 * replaced in the slots. There is one such table for all copies. If a tool gives each copy
 * different functions, only the tool gets the second and later copies. */
#include "nvtx_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "collect.h"
#include "settings.h"
#include "thread_names.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int InitializeInjectionNvtx(nvtx_get_export_table get);
EXPORTED int InitializeInjectionNvtx2(nvtx_get_export_table get);
EXPORTED int InitializeInjectionNvtxExtension(struct nvtx_module_info *module);

#define REFUSED "NVTX ranges of one library are not recorded: %s accepts no second tool"

static _Atomic bool installed;
static _Atomic bool refused; /* by install */
static bool told;            /* used only by the writer thread, as is the next */
static bool told_refused;    /* recorded in this process's trace */

struct slots {
    nvtx_function *at[NVTX_SLOT_COUNT];    /* NULL: the copy has none */
    nvtx_function before[NVTX_SLOT_COUNT]; /* what was in it at the start */
};

static bool find_slots(nvtx_get_export_table get, int module, struct slots *slots)
{
    const struct nvtx_callbacks *callbacks = get(NVTX_TABLE_CALLBACKS);
    nvtx_function **table = NULL;
    unsigned count = 0;

    memset(slots, 0, sizeof *slots);
    /* NVTX 1 has another structure here, with another size. */
    if (!callbacks || callbacks->struct_size != sizeof *callbacks || !callbacks->module_table ||
        !callbacks->module_table(module, &table, &count) || !table)
        return false;
    for (unsigned i = 1; i < count && i < NVTX_SLOT_COUNT; i++)
        if (table[i]) {
            slots->at[i] = table[i];
            slots->before[i] = *table[i];
        }
    return true;
}

/* Undoes the changes of a tool that declined. */
static void put_back(const struct slots *slots)
{
    for (unsigned i = 0; i < NVTX_SLOT_COUNT; i++)
        if (slots->at[i] && *slots->at[i] != slots->before[i])
            *slots->at[i] = slots->before[i];
}

/* Stores the function that the other tool put into a slot that the collector uses. Returns false if
 * it differs from the one in the slots of another copy. */
static bool note_next(const nvtx_function *ours, nvtx_function before, nvtx_function now,
                      mt_nvtx_next_slot *next)
{
    nvtx_function other = NULL;

    if (!*ours || now == before || !now)
        return true;
    return atomic_compare_exchange_strong(next, &other, now) || other == now;
}

static bool note_all_next(const struct slots *slots, const nvtx_function *ours,
                          mt_nvtx_next_slot *next)
{
    for (unsigned i = 0; i < NVTX_SLOT_COUNT; i++)
        if (slots->at[i] && !note_next(&ours[i], slots->before[i], *slots->at[i], &next[i]))
            return false;
    return true;
}

static void put_ours(const struct slots *slots, const nvtx_function *ours)
{
    for (unsigned i = 0; i < NVTX_SLOT_COUNT; i++)
        if (slots->at[i] && ours[i])
            *slots->at[i] = ours[i];
}

/* Returns NULL if there is none, or if it is this library. Each call loads it again; the loader
 * keeps it. */
static void *next_entry(const char *name, nvtx_function own)
{
    if (!mt_recorder_settings->next_nvtx[0])
        return NULL;
    void *library = dlopen(mt_recorder_settings->next_nvtx, RTLD_LAZY | RTLD_LOCAL);
    void *entry = library ? dlsym(library, name) : NULL;
    return entry == (void *)own ? NULL : entry;
}

static bool ask_next(nvtx_get_export_table get)
{
    void *entry = next_entry("InitializeInjectionNvtx2", (nvtx_function)InitializeInjectionNvtx2);

    return entry && ((nvtx_initialize)entry)(get) != 0;
}

static void say_version(nvtx_get_export_table get)
{
    const struct nvtx_version *version = get(NVTX_TABLE_VERSION);

    if (version && version->struct_size >= sizeof *version && version->set_tool_version)
        version->set_tool_version(version->version < 3 ? version->version : 3);
}

/* Domains and names are kept even if the collector does not run. It is not notified of forks then,
 * so this handler releases their locks. */
static void locks_forked(void)
{
    mt_nvtx_domains_forked();
    mt_nvtx_schemas_forked();
    mt_thread_names_source.forked();
}

static void watch_forks(void)
{
    static _Atomic bool watching;

    if (!atomic_exchange(&watching, true))
        (void)pthread_atfork(NULL, NULL, locks_forked);
}

static bool install(const struct slots *core, const struct slots *core2)
{
    static bool said;

    if (!mt_recorder_settings->asked || !mt_recorder_settings->phases_nvtx)
        return false;
    if (!note_all_next(core, mt_nvtx_core_slots, mt_nvtx_next_core) ||
        !note_all_next(core2, mt_nvtx_core2_slots, mt_nvtx_next_core2)) {
        mt_collect_message(&said, REFUSED, mt_recorder_settings->next_nvtx);
        atomic_store(&refused, true); /* there may be no trace yet */
        return false;
    }
    watch_forks();
    put_ours(core, mt_nvtx_core_slots);
    put_ours(core2, mt_nvtx_core2_slots);
    atomic_store(&installed, true);
    return true;
}

static int initialize(nvtx_get_export_table get)
{
    struct slots core, core2;

    if (!get || !find_slots(get, NVTX_CORE, &core))
        return 0;
    find_slots(get, NVTX_CORE2, &core2); /* NVTX 1 programs have no domains */
    bool next = ask_next(get);
    if (!next) {
        put_back(&core);
        put_back(&core2);
    }
    bool ours = install(&core, &core2);
    if (ours && !next)
        say_version(get);
    return next || ours;
}

/* Each copy of NVTX 3 and libnvToolsExt call it. If the result is not 0, the copy uses the slots;
 * if it is 0, the copy does nothing more. */
int InitializeInjectionNvtx2(nvtx_get_export_table get)
{
    int saved = errno;
    int result = initialize(get);

    errno = saved;
    return result;
}

/* libnvToolsExt calls it if there is no InitializeInjectionNvtx2. It passes the table of NVTX 1,
 * which `initialize` rejects. */
int InitializeInjectionNvtx(nvtx_get_export_table get)
{
    return InitializeInjectionNvtx2(get);
}

static bool is_payload_extension(const struct nvtx_module_info *module)
{
    return module->module == NVTX_PAYLOAD_MODULE &&
           module->compatibility >= NVTX_PAYLOAD_OLDEST_COMPATIBILITY &&
           module->compatibility <= NVTX_PAYLOAD_COMPATIBILITY;
}

static struct nvtx_segment *find_segment(const struct nvtx_module_info *module)
{
    for (size_t i = 0; module->segments && i < module->segment_count; i++)
        if (module->segments[i].id == NVTX_PAYLOAD_SEGMENT && module->segments[i].slots)
            return &module->segments[i];
    return NULL;
}

static bool install_payloads(const struct nvtx_segment *segment)
{
    size_t count = segment->slot_count;

    if (count > NVTX_PAYLOAD_SLOT_COUNT)
        count = NVTX_PAYLOAD_SLOT_COUNT;
    /* Slot values up to 1 are states, not functions. */
    for (size_t i = 0; i < count; i++) {
        nvtx_function now = segment->slots[i] > 1 ? (nvtx_function)segment->slots[i] : NULL;
        if (!note_next(&mt_nvtx_payload_slots[i], NULL, now, &mt_nvtx_next_payload[i]))
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (mt_nvtx_payload_slots[i])
            segment->slots[i] = (intptr_t)mt_nvtx_payload_slots[i];
    return true;
}

static int initialize_extension(struct nvtx_module_info *module)
{
    void *entry = next_entry("InitializeInjectionNvtxExtension",
                             (nvtx_function)InitializeInjectionNvtxExtension);
    bool next = entry && ((nvtx_initialize_extension)entry)(module) != 0;
    struct nvtx_segment *segment = is_payload_extension(module) ? find_segment(module) : NULL;

    if (!mt_recorder_settings->asked || !mt_recorder_settings->phases_nvtx || !segment)
        return next;
    if (!next)
        memset(segment->slots, 0, segment->slot_count * sizeof *segment->slots);
    return install_payloads(segment) || next;
}

/* Each copy of an NVTX extension calls it. */
int InitializeInjectionNvtxExtension(struct nvtx_module_info *module)
{
    int saved = errno;

    if (!module || module->struct_size < sizeof *module)
        return 0;
    int result = initialize_extension(module);
    errno = saved;
    return result;
}

static void poll(void)
{
    static bool said = true; /* by install */

    if (atomic_load(&refused) && !told_refused) {
        told_refused = true;
        mt_collect_not_recorded(&said, REFUSED, mt_recorder_settings->next_nvtx);
    }
    if (told || !atomic_load_explicit(&installed, memory_order_relaxed))
        return;
    told = true;
    mt_collect_fact("sources", "nvtx");
}

static void forked(void)
{
    told = told_refused = false;
    mt_nvtx_ranges_forked();
    mt_nvtx_domains_forked();
    mt_nvtx_schemas_forked();
}

const struct mt_inject_source mt_nvtx_source = {
    .name = "nvtx", .poll = poll, .stop = poll, .forked = forked};
