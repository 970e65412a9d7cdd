/* The allocator is a static object of a class with virtual functions. The exported pointer
 * c10::cuda::CUDACachingAllocator::allocator points to it. Everything that is used is checked
 * first: the object is writable data of a loaded library, its type has the name of the native
 * allocator, its table of functions has the number of entries of that version, and the functions
 * are in the code of the same library.
 *
 * The object then gets a copy of its table in which three functions are replaced:
 *     init(count)    when it returns, the allocators of all devices exist and nothing is allocated
 *                    yet, so the tracker is attached then
 *     emptyCache()   distinguishes its segment frees from those of an allocation that makes room
 *     setMemoryFraction(fraction, device)  sets the limit that replays need
 * Each one calls the original. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "originals.h"
#include "settings.h"
#include "torch_parts.h"

/* A build of PyTorch that is not a release has no entry in the table of versions, but usually has
 * symbols: they name the functions of the allocator, including local ones. They are read from the
 * library's file, which is 64-bit ELF. Everything in it is compared with the table of functions in
 * memory. */

#define CLASS "3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator"

enum { WANTED = 5 };

/* Beginnings of names, so other arguments do not matter. */
static const char *const wanted[WANTED] = {
    "_ZTVN" CLASS "E",
    "_ZN" CLASS "4initEi",
    "_ZN" CLASS "10emptyCacheE",
    "_ZN" CLASS "17setMemoryFractionEd",
    "_ZN" CLASS "27attachAllocatorTraceTrackerESt8functionIFv",
};

struct image {
    const unsigned char *bytes;
    size_t length;
};

static const void *part(const struct image *image, uint64_t offset, uint64_t length)
{
    if (offset > image->length || length > image->length - offset)
        return NULL;
    return image->bytes + offset;
}

static const Elf64_Shdr *section(const struct image *image, uint64_t index)
{
    const Elf64_Ehdr *header = part(image, 0, sizeof *header);

    if (!header || header->e_shoff % 8 || header->e_shentsize != sizeof(Elf64_Shdr) ||
        index >= header->e_shnum)
        return NULL;
    if (!part(image, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)))
        return NULL;
    return (const Elf64_Shdr *)(const void *)(image->bytes + header->e_shoff) + index;
}

static bool is_elf(const struct image *image)
{
    const Elf64_Ehdr *header = part(image, 0, sizeof *header);

    return header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64;
}

static const Elf64_Shdr *symbol_section(const struct image *image)
{
    const Elf64_Shdr *found;

    for (uint64_t i = 0; (found = section(image, i)) != NULL; i++)
        if (found->sh_type == SHT_SYMTAB && found->sh_offset % 8 == 0)
            return found;
    return NULL;
}

/* The part of a function that the compiler moved away (".cold") has the same name. */
static void match(const char *name, size_t room, uint64_t value, uint64_t values[WANTED])
{
    size_t length = strnlen(name, room);

    if (length == room || memchr(name, '.', length))
        return;
    for (size_t i = 0; i < WANTED; i++)
        if (strncmp(name, wanted[i], strlen(wanted[i])) == 0)
            values[i] = value;
}

static bool find_values(const struct image *image, uint64_t values[WANTED])
{
    const Elf64_Shdr *symbols = is_elf(image) ? symbol_section(image) : NULL;
    const Elf64_Shdr *names = symbols ? section(image, symbols->sh_link) : NULL;
    const Elf64_Sym *symbol;
    const char *texts;

    if (!names || !(symbol = part(image, symbols->sh_offset, symbols->sh_size)) ||
        !(texts = part(image, names->sh_offset, names->sh_size)))
        return false;
    for (uint64_t i = 0; i < symbols->sh_size / sizeof *symbol; i++) {
        if (symbol[i].st_value && symbol[i].st_name < names->sh_size)
            match(texts + symbol[i].st_name, names->sh_size - symbol[i].st_name, symbol[i].st_value,
                  values);
    }
    for (uint64_t i = 0; i < WANTED; i++)
        if (!values[i])
            return false;
    return true;
}

static bool place_of(uintptr_t function, const uintptr_t *functions, size_t count, uint16_t *place)
{
    for (size_t i = 0; i < count; i++) {
        if (functions[i] == function) {
            *place = (uint16_t)i;
            return true;
        }
    }
    return false;
}

static bool find_symbol_places(const struct image *image, uintptr_t base,
                               const uintptr_t *functions, struct mt_torch_version *version)
{
    uint64_t values[WANTED] = {0};
    size_t count = version->functions;

    return find_values(image, values) &&
           base + values[0] + 2 * sizeof(void *) == (uintptr_t)functions &&
           place_of(base + values[1], functions, count, &version->init) &&
           place_of(base + values[2], functions, count, &version->empty_cache) &&
           place_of(base + values[3], functions, count, &version->set_fraction) &&
           place_of(base + values[4], functions, count, &version->attach_tracker);
}

static bool map_file(const char *path, struct image *image)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    void *bytes = MAP_FAILED;

    if (fd < 0)
        return false;
    if (fstat(fd, &stat) == 0 && stat.st_size > 0)
        bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *image = (struct image){bytes, (size_t)stat.st_size};
    return true;
}

bool mt_torch_symbols_find(const char *library_path, uintptr_t base, const uintptr_t *functions,
                           struct mt_torch_version *version)
{
    struct image image;

    if (!map_file(library_path, &image))
        return false;
    bool found = find_symbol_places(&image, base, functions, version);
    munmap((void *)(uintptr_t)image.bytes, image.length);
    return found;
}

#define TYPE_NAME "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE"
/* Beginning of the type name for `backend:cudaMallocAsync`. */
#define ASYNC_TYPE "N3c104cuda20CUDACachingAllocator15CudaMallocAsync"
#define ALLOCATOR  "_ZN3c104cuda20CUDACachingAllocator9allocatorE"

enum { MAX_FUNCTIONS = 128 };

typedef void (*code)(void);
typedef void (*init_function)(void *self, int device_count);
typedef void (*empty_cache_function)(void *self, uint64_t pool_a, uint64_t pool_b);
typedef void (*set_fraction_function)(void *self, double fraction, int device);
typedef void (*attach_function)(void *self, struct mt_torch_functor *functor);

struct table {
    intptr_t offset_to_top;
    const void *type;
    code functions[MAX_FUNCTIONS];
};

static struct {
    atomic_flag met, attached;
    atomic_bool foreign; /* it has its own blocks, which are not recorded; not reported yet */
    bool has_reports;
    struct mt_torch_version version;
    struct table table;
    code init, empty_cache, set_fraction;
} hooked = {.met = ATOMIC_FLAG_INIT, .attached = ATOMIC_FLAG_INIT};

enum memory_kind { MEMORY_READ, MEMORY_DATA, MEMORY_CODE };

struct place {
    uintptr_t address;
    size_t bytes;
    enum memory_kind kind;
    bool found;
    uintptr_t base; /* out: base of its library */
    char path[4096];
};

static bool is_inside(const struct dl_phdr_info *info, const ElfW(Phdr) * segment,
                      const struct place *place)
{
    uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

    return place->address >= begin && place->address - begin < segment->p_memsz &&
           place->bytes <= segment->p_memsz - (place->address - begin);
}

static bool suits(const ElfW(Phdr) * segment, enum memory_kind kind)
{
    if (segment->p_type == PT_GNU_RELRO)
        return false;
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R))
        return false;
    return kind == MEMORY_READ || (kind == MEMORY_DATA && (segment->p_flags & PF_W)) ||
           (kind == MEMORY_CODE && (segment->p_flags & PF_X));
}

static int find_place(struct dl_phdr_info *info, size_t size, void *data)
{
    struct place *place = data;
    bool sealed = false;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (!is_inside(info, segment, place))
            continue;
        place->found |= suits(segment, place->kind);
        sealed |= segment->p_type == PT_GNU_RELRO && place->kind == MEMORY_DATA;
    }
    place->found &= !sealed;
    if (!place->found)
        return 0;
    place->base = info->dlpi_addr;
    strncpy(place->path, info->dlpi_name, sizeof place->path - 1);
    return 1;
}

static bool locate(const void *address, size_t bytes, enum memory_kind kind, struct place *place)
{
    memset(place, 0, sizeof *place);
    place->address = (uintptr_t)address;
    place->bytes = bytes;
    place->kind = kind;
    dl_iterate_phdr(find_place, place);
    return place->found;
}

static bool is_memory(const void *address, size_t bytes, enum memory_kind kind)
{
    struct place place;

    return locate(address, bytes, kind, &place);
}

/* std::type_info: a table of functions, then the name. */
static bool type_begins(const void *type, const char *name, size_t bytes)
{
    const char *const *fields = type;

    return is_memory(type, 2 * sizeof(void *), MEMORY_READ) &&
           is_memory(fields[1], bytes, MEMORY_READ) && memcmp(fields[1], name, bytes) == 0;
}

static size_t count_functions(const code *functions)
{
    size_t count = 0;

    while (count < MAX_FUNCTIONS && is_memory(&functions[count], sizeof(code), MEMORY_READ) &&
           is_memory((const void *)(uintptr_t)functions[count], 1, MEMORY_CODE))
        count++;
    return count;
}

static bool is_own_code(code function, uintptr_t library_base)
{
    struct place place;

    return locate((const void *)(uintptr_t)function, 16, MEMORY_CODE, &place) &&
           place.base == library_base;
}

static bool table_is_native(const struct table *table)
{
    return is_memory(table, offsetof(struct table, functions), MEMORY_READ) &&
           table->offset_to_top == 0 && type_begins(table->type, TYPE_NAME, sizeof TYPE_NAME);
}

/* Each block of this allocator is a call of the driver. */
static bool table_is_async(const struct table *table)
{
    return is_memory(table, offsetof(struct table, functions), MEMORY_READ) &&
           type_begins(table->type, ASYNC_TYPE, sizeof ASYNC_TYPE - 1);
}

static bool places_are_code(const struct table *table, const struct place *library)
{
    const struct mt_torch_version *version = &hooked.version;

    return is_own_code(table->functions[version->init], library->base) &&
           is_own_code(table->functions[version->empty_cache], library->base) &&
           is_own_code(table->functions[version->set_fraction], library->base) &&
           is_own_code(table->functions[version->attach_tracker], library->base);
}

/* The version determines the places of the functions in the table; otherwise the library's symbols
 * may. */
static bool find_places(const struct table *table, const struct place *library)
{
    const struct mt_torch_version *known = mt_torch_version_find(mt_torch_version_text());
    size_t count = count_functions(table->functions);

    if (known && known->functions == count) {
        hooked.version = *known;
    } else if (!hooked.has_reports) {
        return false;
    } else {
        hooked.version = (struct mt_torch_version){
            .functions = (uint16_t)count,
            .has_pool = mt_torch_version_has_pool(mt_torch_version_text())};
        if (!mt_torch_symbols_find(library->path, library->base,
                                   (const uintptr_t *)(const void *)table->functions,
                                   &hooked.version))
            return false;
    }
    return count < MAX_FUNCTIONS && places_are_code(table, library);
}

/* The caller loaded the address of the replaced table without an order. This load has one, so that
 * the originals, which were stored before that address, are visible to this thread. */
static void see_originals(void *self)
{
    (void)__atomic_load_n((void **)self, __ATOMIC_ACQUIRE);
}

static void our_init(void *self, int device_count)
{
    struct mt_torch_functor functor;

    see_originals(self);
    ((init_function)hooked.init)(self, device_count);
    if (atomic_flag_test_and_set(&hooked.attached))
        return;
    attach_function attach = (attach_function)hooked.table.functions[hooked.version.attach_tracker];
    mt_torch_tracker_begin(&hooked.version, &functor);
    if (!hooked.has_reports)
        mt_torch_set_mode(MT_TORCH_TRACKED);
    attach(self, &functor);
    mt_torch_scopes_begin();
}

/* If the original throws, the mark stays until the next event that cannot occur during the call. */
static void our_empty_cache(void *self, uint64_t pool_a, uint64_t pool_b)
{
    see_originals(self);
    mt_torch_tracker_empty_cache(true);
    ((empty_cache_function)hooked.empty_cache)(self, pool_a, pool_b);
    mt_torch_tracker_empty_cache(false);
}

/* The device is an int8 in most versions; the higher bits are undefined. */
static void our_set_fraction(void *self, double fraction, int device)
{
    see_originals(self);
    ((set_fraction_function)hooked.set_fraction)(self, fraction, device);
    mt_torch_limit_set(fraction, (int8_t)device);
}

static void replace_table(void **object, const struct table *table)
{
    const struct mt_torch_version *version = &hooked.version;
    struct table *copy = &hooked.table;

    memcpy(copy, table, offsetof(struct table, functions) + version->functions * sizeof(code));
    hooked.init = copy->functions[version->init];
    hooked.empty_cache = copy->functions[version->empty_cache];
    hooked.set_fraction = copy->functions[version->set_fraction];
    copy->functions[version->init] = (code)our_init;
    copy->functions[version->empty_cache] = (code)our_empty_cache;
    copy->functions[version->set_fraction] = (code)our_set_fraction;
    __atomic_store_n(object, (void *)copy->functions, __ATOMIC_RELEASE);
}

#define FOREIGN "an allocator other than its native one; only its calls of the driver are recorded"

static bool said;

static bool say(const char *what)
{
    const char *version = mt_torch_version_text();

    mt_collect_message(&said, "PyTorch%s%s: %s", *version ? " " : "", version, what);
    return false;
}

/* Call it on the writer thread. Sets the fact `not_recorded` if no source can record the
 * allocator's blocks. The blocks of cudaMallocAsync are recorded as driver calls. */
static void torch_allocator_tell(void)
{
    const char *version = mt_torch_version_text();

    if (!atomic_load(&hooked.foreign) || !mt_collect_enter())
        return;
    if (atomic_exchange(&hooked.foreign, false))
        mt_collect_not_recorded(&said, "PyTorch%s%s: %s", *version ? " " : "", version, FOREIGN);
    mt_collect_leave();
}

static void torch_allocator_forked(void)
{
    atomic_store(&hooked.foreign, false);
}

static bool hook(void **const *allocator)
{
    struct place library;
    const struct table *table;
    char text[MT_TORCH_VERSION_BYTES];

    if (!allocator || !is_memory(allocator, sizeof *allocator, MEMORY_READ))
        return false;
    void **object = __atomic_load_n(allocator, __ATOMIC_ACQUIRE);
    if (!object || !locate(object, sizeof *object, MEMORY_DATA, &library))
        return false;
    mt_torch_version_read(library.path, text, sizeof text);
    mt_torch_note_version(text);
    table = (const void *)((const char *)*object - offsetof(struct table, functions));
    if (!table_is_native(table)) {
        bool is_async = table_is_async(table);
        atomic_store(&hooked.foreign, !is_async);
        (void)say(FOREIGN);
        return is_async;
    }
    if (!find_places(table, &library))
        return say(hooked.has_reports
                       ? "an unknown build; sizes are those of blocks, not requests"
                       : "an unknown build that was loaded before memtrace's library");
    replace_table(object, table);
    return true;
}

/* A program that is linked to the library may have the pointer itself (a copy relocation). Then it
 * comes first in the global order. */
static void **const *find_allocator(void *library)
{
    void **const *allocator = dlsym(RTLD_DEFAULT, ALLOCATOR);

    return allocator ? allocator : mt_original_symbol(library, ALLOCATOR);
}

/* A process without a trace must not pay for the tracker. */
static bool is_followed(void)
{
    return mt_recorder_settings->asked &&
           (mt_recorder_settings->follow ||
            (uint32_t)getpid() == mt_recorder_settings->root_process);
}

bool mt_torch_allocator_meet(void *library, bool has_reports)
{
    if (!is_followed() || atomic_flag_test_and_set(&hooked.met))
        return false;
    hooked.has_reports = has_reports;
    mt_torch_note_options();
    mt_torch_reports_resolve(library);
    mt_torch_scopes_resolve(library);
    return hook(find_allocator(library));
}

/* PyTorch as a source: see torch_parts.h. */

static void poll(void)
{
    torch_allocator_tell();
    mt_torch_limit_record();
    mt_torch_scopes_begin();
}

static void stop(void)
{
    torch_allocator_tell(); /* the process may end before the next poll */
    mt_torch_limit_record();
    if (mt_torch_mode() == MT_TORCH_TRACKED && mt_torch_tracker_never_refused())
        mt_collect_fact("never_refused", "1");
}

static void forked(void)
{
    torch_allocator_forked();
    mt_torch_tracker_forked();
    mt_torch_scopes_forked();
    mt_torch_facts_forked();
}

const struct mt_inject_source mt_torch_source = {
    .name = "pytorch",
    .start = torch_allocator_tell,
    .poll = poll,
    .stop = stop,
    .forked = forked,
};
