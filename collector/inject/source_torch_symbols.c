/* A build of PyTorch that is not a release has no entry in the table of versions, but usually has
 * symbols: they name the functions of the allocator, including local ones. They are read from the
 * library's file, which is 64-bit ELF. Everything in it is compared with the table of functions in
 * memory. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "torch_parts.h"

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
    uint64_t i;

    for (i = 0; (found = section(image, i)) != NULL; i++) {
        if (found->sh_type == SHT_SYMTAB && found->sh_offset % 8 == 0)
            return found;
    }
    return NULL;
}

/* The part of a function that the compiler moved away (".cold") has the same name. */
static void match(const char *name, size_t room, uint64_t value, uint64_t values[WANTED])
{
    size_t i, length = strnlen(name, room);

    if (length == room || memchr(name, '.', length))
        return;
    for (i = 0; i < WANTED; i++) {
        if (strncmp(name, wanted[i], strlen(wanted[i])) == 0)
            values[i] = value;
    }
}

static bool find_values(const struct image *image, uint64_t values[WANTED])
{
    const Elf64_Shdr *symbols = is_elf(image) ? symbol_section(image) : NULL;
    const Elf64_Shdr *names = symbols ? section(image, symbols->sh_link) : NULL;
    const Elf64_Sym *symbol;
    const char *texts;
    uint64_t i;

    if (!names || !(symbol = part(image, symbols->sh_offset, symbols->sh_size)) ||
        !(texts = part(image, names->sh_offset, names->sh_size)))
        return false;
    for (i = 0; i < symbols->sh_size / sizeof *symbol; i++) {
        if (symbol[i].st_value && symbol[i].st_name < names->sh_size)
            match(texts + symbol[i].st_name, names->sh_size - symbol[i].st_name, symbol[i].st_value,
                  values);
    }
    for (i = 0; i < WANTED; i++) {
        if (!values[i])
            return false;
    }
    return true;
}

static bool place_of(uintptr_t function, const uintptr_t *functions, size_t count, uint16_t *place)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (functions[i] == function) {
            *place = (uint16_t)i;
            return true;
        }
    }
    return false;
}

static bool find_places(const struct image *image, uintptr_t base, const uintptr_t *functions,
                        struct mt_torch_version *version)
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
    bool found;

    if (!map_file(library_path, &image))
        return false;
    found = find_places(&image, base, functions, version);
    munmap((void *)(uintptr_t)image.bytes, image.length);
    return found;
}
