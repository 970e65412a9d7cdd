/* The memory of the simulated devices. Each device has a range of addresses, in which blocks are
 * placed first-fit, and pages of 2 MiB, which count their users. */
#include "simulated_driver.h"

#include <stdlib.h>
#include <sys/mman.h>

struct device {
    uint64_t total, base, span;
    _Atomic uint64_t used; /* NVML reads it in another thread, without the lock */
    uint32_t *page_users;
    struct sd_block *blocks; /* by address */
};

static struct device devices[SD_DEVICES_MAX];
static int device_count;
static struct sd_block *others; /* blocks whose address is outside the range of the device */

static uint64_t bytes_from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void start_device(struct device *device)
{
    device->total = bytes_from_environment("MEMTRACE_SIMULATED_MEMORY", UINT64_C(80) << 30);
    device->span = 8 * device->total + (UINT64_C(1) << 38);
    void *base = MAP_FAILED;
    while (base == MAP_FAILED && device->span > SD_PAGE) {
        base = mmap(NULL, device->span + SD_PAGE, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED)
            device->span /= 2;
    }
    device->base = ((uint64_t)(uintptr_t)base + SD_PAGE - 1) & ~(SD_PAGE - 1);
    device->page_users = calloc(device->span / SD_PAGE + 1, sizeof *device->page_users);
}

void sd_memory_init(int devices_wanted)
{
    for (device_count = 0; device_count < devices_wanted; device_count++)
        start_device(&devices[device_count]);
}

bool sd_is_device(CUdevice device)
{
    return device >= 0 && device < device_count;
}

uint64_t sd_memory_total(int device)
{
    return devices[device].total;
}

uint64_t sd_memory_used(int device)
{
    return devices[device].used;
}

SD_EXPORT uint64_t memtrace_simulated_used_bytes(int device)
{
    return device >= 0 && device < device_count ? devices[device].used : 0;
}

bool sd_take(int device, uint64_t bytes)
{
    if (bytes > devices[device].total - devices[device].used)
        return false;
    devices[device].used += bytes;
    return true;
}

void sd_give(int device, uint64_t bytes)
{
    devices[device].used -= bytes;
}

/* Returns the link after which a block of these bytes fits at the highest address, and sets that
 * address: the driver assigns descending addresses. */
static struct sd_block **last_fit(struct device *device, uint64_t bytes, uint64_t *addr)
{
    uint64_t alignment = bytes >= SD_PAGE / 2 ? SD_PAGE : 512;
    uint64_t end = device->base;
    struct sd_block **found = NULL;
    for (struct sd_block **link = &device->blocks;; link = &(*link)->next) {
        uint64_t limit = *link ? (*link)->addr : device->base + device->span;
        uint64_t highest = bytes <= limit ? (limit - bytes) & ~(alignment - 1) : 0;
        if (highest >= end) {
            found = link;
            *addr = highest;
        }
        if (!*link)
            return found;
        end = (*link)->addr + (*link)->bytes;
    }
}

static uint64_t first_page(const struct device *device, const struct sd_block *block)
{
    return (block->addr - device->base) / SD_PAGE;
}

static uint64_t last_page(const struct device *device, const struct sd_block *block)
{
    return (block->addr - device->base + block->bytes - 1) / SD_PAGE;
}

CUresult sd_back(struct sd_block *block)
{
    struct device *device = &devices[block->device];
    uint64_t first = first_page(device, block), last = last_page(device, block), fresh = 0;
    for (uint64_t page = first; page <= last; page++)
        fresh += device->page_users[page] == 0;
    if (!sd_take(block->device, fresh * SD_PAGE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint64_t page = first; page <= last; page++)
        device->page_users[page]++;
    block->paged = true;
    return CUDA_SUCCESS;
}

void sd_unback(struct sd_block *block)
{
    struct device *device = &devices[block->device];
    if (!block->paged)
        return;
    for (uint64_t page = first_page(device, block); page <= last_page(device, block); page++)
        if (--device->page_users[page] == 0)
            sd_give(block->device, SD_PAGE);
    block->paged = false;
}

CUresult sd_place(const struct sd_block *wanted, uint64_t *addr)
{
    if (wanted->bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct device *device = &devices[wanted->device];
    struct sd_block **link = last_fit(device, wanted->bytes, addr);
    struct sd_block *block = link ? malloc(sizeof *block) : NULL;
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *block = *wanted;
    block->addr = *addr;
    block->paged = false;
    if (wanted->paged && sd_back(block) != CUDA_SUCCESS) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->next = *link;
    *link = block;
    return CUDA_SUCCESS;
}

bool sd_note(const struct sd_block *block)
{
    struct sd_block *noted = malloc(sizeof *noted);
    if (!noted)
        return false;
    *noted = *block;
    noted->next = others;
    others = noted;
    return true;
}

/* Returns list number `index`: those of the devices, then those of other blocks; NULL after the
 * last one. */
static struct sd_block **list(int index)
{
    if (index < device_count)
        return &devices[index].blocks;
    return index == device_count ? &others : NULL;
}

struct sd_block *sd_find(uint64_t addr, enum sd_kind kind)
{
    for (int i = 0; list(i); i++)
        for (struct sd_block *block = *list(i); block; block = block->next)
            if (block->addr == addr && block->kind == kind)
                return block;
    return NULL;
}

struct sd_block *sd_find_around(uint64_t addr)
{
    for (int i = 0; i < device_count; i++)
        for (struct sd_block *block = devices[i].blocks; block; block = block->next)
            if (addr >= block->addr && addr - block->addr < block->bytes)
                return block;
    return NULL;
}

struct sd_block *sd_find_host_around(uint64_t addr)
{
    for (struct sd_block *block = others; block; block = block->next)
        if ((block->kind == SD_HOST || block->kind == SD_REGISTERED) && addr >= block->addr &&
            addr - block->addr < block->bytes)
            return block;
    return NULL;
}

void sd_drop(struct sd_block *block)
{
    for (int i = 0; list(i); i++) {
        struct sd_block **link = list(i);
        while (*link && *link != block)
            link = &(*link)->next;
        if (!*link)
            continue;
        *link = block->next;
        sd_unback(block);
        sd_give(block->device, block->physical);
        free(block);
        return;
    }
}

void sd_drop_context(CUcontext context)
{
    for (int i = 0; list(i); i++)
        for (struct sd_block *block = *list(i), *next; block; block = next) {
            next = block->next;
            if (block->context == context)
                sd_drop(block);
        }
}
