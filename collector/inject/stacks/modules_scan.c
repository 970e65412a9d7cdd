/* Reads the address ranges of files from the loader's list, on the writer thread, after each load
 * or unload. */
#define _GNU_SOURCE 1
#include "modules_scan.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "buf.h"
#include "bytes.h"
#include "collect.h"
#include "intern.h"
#include "map.h"
#include "modules.h"
#include "stacks.h"
#include "util.h"

static struct {
    uint64_t adds, subs;  /* counters of the loader at the last scan */
    struct mt_map known;  /* hashes of the definitions of modules that are loaded */
    struct mt_map before; /* hashes of those that were loaded at the previous scan */
    struct mt_buf payload;
    bool told; /* the header lists the stacks */
} scan;

/* Page-aligned range of addresses of all segments. */
static bool find_range(const struct dl_phdr_info *info, struct mt_module_definition *module)
{
    uint64_t page = (uint64_t)getpagesize();

    module->begin = UINT64_MAX;
    module->end = 0;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !part->p_memsz)
            continue;
        module->begin =
            mt_min_u64(module->begin, mt_round_down(info->dlpi_addr + part->p_vaddr, page));
        module->end = mt_max_u64(
            module->end, mt_round_up(info->dlpi_addr + part->p_vaddr + part->p_memsz, page));
    }
    return module->begin < module->end;
}

static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * notes)
{
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_R && notes->p_vaddr >= part->p_vaddr &&
            notes->p_vaddr - part->p_vaddr <= part->p_filesz &&
            notes->p_memsz <= part->p_filesz - (notes->p_vaddr - part->p_vaddr))
            return true;
    }
    return false;
}

/* A note: three numbers, then the owner and the contents, both padded. */
static const uint8_t *id_in_notes(struct mt_cursor notes, uint32_t *bytes)
{
    for (;;) {
        const uint8_t *head = mt_cursor_take(&notes, 12);
        uint32_t owner_bytes = head ? mt_get_u32(head) : 0;
        const uint8_t *owner = mt_cursor_take(&notes, mt_round_up(owner_bytes, 4));
        const uint8_t *contents =
            mt_cursor_take(&notes, head ? mt_round_up(mt_get_u32(head + 4), 4) : 0);
        if (notes.bad)
            return NULL;
        *bytes = mt_get_u32(head + 4);
        if (mt_get_u32(head + 8) == NT_GNU_BUILD_ID && owner_bytes == sizeof ELF_NOTE_GNU &&
            !memcmp(owner, ELF_NOTE_GNU, owner_bytes) && *bytes <= MT_MAX_BUILD_ID_BYTES)
            return contents;
    }
}

static const uint8_t *find_build_id(const struct dl_phdr_info *info, uint32_t *bytes)
{
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uint8_t *begin = (const uint8_t *)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type != PT_NOTE || !is_loaded(info, part))
            continue;
        const uint8_t *id =
            id_in_notes((struct mt_cursor){begin, begin + part->p_memsz, false}, bytes);
        if (id)
            return id;
    }
    *bytes = 0;
    return NULL;
}

/* Finds the path of an address in /proc/self/maps, for modules whose name in the loader is relative
 * or empty. */
static bool path_of_mapping(uint64_t address, char path[PATH_MAX])
{
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;

    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        const char *at = strchr(line, '/');
        if (sscanf(line, "%lx-%lx", &begin, &end) != 2 || address < begin || address >= end || !at)
            continue;
        found = true;
        memcpy(path, at, strcspn(at, "\n"));
        path[strcspn(at, "\n")] = '\0';
    }
    if (maps)
        fclose(maps);
    return found;
}

/* Opens no file for the program and the vdso, which have no absolute name: the program may
 * close the descriptor meanwhile, and the number may be that of its own file by then. AT_BASE is 0
 * if the loader itself was started, as in "ld.so PROGRAM". The kernel's vdso has no file. */
static const char *path_of(const char *name, uint64_t begin, char path[PATH_MAX])
{
    ssize_t length;

    if (name[0] == '/' || begin == getauxval(AT_SYSINFO_EHDR))
        return name;
    if (!name[0] && getauxval(AT_BASE) &&
        (length = readlink("/proc/self/exe", path, PATH_MAX - 1)) > 0)
        path[length] = '\0';
    else if (!path_of_mapping(begin, path))
        return name[0] ? name : "?";
    return path;
}

static void define_if_new(void)
{
    uint64_t hash = mt_hash_bytes(scan.payload.data, scan.payload.length);

    if (mt_map_get(&scan.before, hash) == MT_MAP_NONE &&
        !mt_define(MT_DEFINE_MODULE, scan.payload.data, scan.payload.length))
        return; /* the tape is full */
    if (mt_map_set(&scan.known, hash, 1) != MT_OK)
        return; /* no memory: it will be defined again */
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct mt_module_definition module = {.bias = info->dlpi_addr};
    char path[PATH_MAX];

    (void)size;
    (void)context;
    if (!find_range(info, &module))
        return 0;
    const uint8_t *build_id = find_build_id(info, &module.build_id_bytes);
    mt_buf_reset(&scan.payload);
    mt_buf_add(&scan.payload, &module, sizeof module);
    mt_buf_add(&scan.payload, build_id, module.build_id_bytes);
    mt_buf_add_text(&scan.payload,
                    path_of(info->dlpi_name ? info->dlpi_name : "", module.begin, path));
    if (scan.payload.failed) {
        mt_buf_release(&scan.payload); /* the next scan starts without the failure */
        return 1;
    }
    module.path_bytes = (uint32_t)(scan.payload.length - sizeof module - module.build_id_bytes);
    memcpy(scan.payload.data, &module, sizeof module);
    define_if_new();
    return 0;
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *context)
{
    uint64_t *counters = context;

    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        counters[0] = info->dlpi_adds;
        counters[1] = info->dlpi_subs;
    }
    return 1;
}

static void scan_modules(void)
{
    mt_map_release(&scan.before);
    scan.before = scan.known;
    scan.known = (struct mt_map){0};
    dl_iterate_phdr(visit, NULL);
}

/* Records once, in the header, that the blocks of a framework have stacks. Stacks of driver calls
 * alone do not count. */
static void tell(void)
{
    if (scan.told || !mt_collect_has_requested_native())
        return;
    scan.told = true;
    mt_collect_fact("has_stacks", "1");
}

static void poll_modules(void)
{
    uint64_t counters[2] = {0, 0};

    tell();
    /* if Python was loaded later, the last native frames may be in a module that is not known
     * yet */
    if (!mt_collect_takes_native() && !mt_collect_has_native())
        return;
    dl_iterate_phdr(read_counters, counters);
    if (counters[0] == scan.adds && counters[1] == scan.subs)
        return;
    if (!mt_collect_enter())
        return;
    if (counters[1] != scan.subs)
        mt_native_stack_forget();
    scan.adds = counters[0];
    scan.subs = counters[1];
    scan_modules();
    mt_collect_leave();
}

/* The child begins its own tape. Memory that the parent allocated is leaked, because another thread
 * may have been changing it. */
static void forget_modules(void)
{
    memset(&scan, 0, sizeof scan);
    mt_native_stack_forget(); /* ids of stacks refer to the parent's tape */
}

const struct mt_inject_source mt_modules_source = {.name = "modules",
                                                   .start = poll_modules,
                                                   .poll = poll_modules,
                                                   .stop = tell,
                                                   .forked = forget_modules};
