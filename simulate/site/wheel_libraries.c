/* The libraries of PyTorch, and the functions of CUDA that they import. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arena.h"
#include "ascii.h"
#include "buf.h"
#include "elf_reader.h"
#include "elf_writer.h"
#include "grow.h"
#include "io.h"
#include "sorted.h"
#include "status.h"
#include "wheel_libraries.h"

/* Prefixes of functions, and names of libraries without their version. The first match counts.
 * `upper`: a capital letter follows. */
static const struct {
    const char *function;
    bool upper;
    const char *library;
} rows[] = {
    {"nccl", true, "libnccl"},
    {"pnccl", true, "libnccl"},
    {"nvml", true, "libnvidia-ml"},
    {"nvtx", true, "libnvToolsExt"},
    {"nvrtc", true, "libnvrtc"},
    {"nvJitLink", false, "libnvJitLink"},
    {"nvshmem", false, "libnvshmem_host"},
    {"cuFile", true, "libcufile"},
    {"cusparseLt", true, "libcusparseLt"},
    {"cusparse", true, "libcusparse"},
    {"cusolver", true, "libcusolver"},
    {"cublasLt", true, "libcublasLt"},
    {"cublas", true, "libcublas"},
    {"cudnn", true, "libcudnn"},
    {"cudss", true, "libcudss"},
    {"cufft", true, "libcufft"},
    {"curand", true, "libcurand"},
    {"cupti", true, "libcupti"},
    {"cutensor", true, "libcutensor"},
    {"cuda", true, "libcudart"},
    {"__cuda", true, "libcudart"},
    {"cu", true, "libcuda"},
};

#define LENGTH(rows) (sizeof(rows) / sizeof *(rows))

enum { NVML_NOT_SUPPORTED = 3 };

/* Returns true if `soname` is a library of CUDA, such as "libcublas.so.13" or
 * "libcusparseLt-f80c68d1.so.0". */
static bool toolkit_has(const char *soname)
{
    static const char *const others[] = {"libcurl", "libcups", "libcunit", "libnvidia-egl"};

    for (size_t i = 0; i < LENGTH(others); i++)
        if (mt_begins_with(soname, others[i]))
            return false;
    return mt_begins_with(soname, "libcu") || mt_begins_with(soname, "libnv") ||
           mt_begins_with(soname, "libnccl");
}

static const char *library_stem(const char *function)
{
    for (size_t i = 0; i < LENGTH(rows); i++)
        if (mt_begins_with(function, rows[i].function) &&
            (!rows[i].upper || mt_is_upper(function[strlen(rows[i].function)])))
            return rows[i].library;
    return NULL;
}

bool mt_toolkit_is_of(const char *function, const char *soname)
{
    const char *stem = library_stem(function);

    /* Wheels rename copies: libcudart.faf08d9a.so.13, libcusparseLt-f80c68d1.so.0. */
    return stem && mt_begins_with(soname, stem) && strchr(".-", soname[strlen(stem)]);
}

/* Returns the library among `needed` to which a function without a version belongs. NULL: the
 * function is not part of CUDA. */
static const char *toolkit_library_of(const char *function, const char *const *needed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (toolkit_has(needed[i]) && mt_toolkit_is_of(function, needed[i]))
            return needed[i];
    return NULL;
}

/* "cublasCreate", "cufftInit", not "ncclGetCreated", "cufftInitialized". */
static bool makes_something(const char *function)
{
    static const char *const words[] = {"Create", "Init"};
    static const char not_followed_by[] = {'d', 'i'};

    for (size_t i = 0; i < LENGTH(words); i++)
        for (const char *at = function; (at = strstr(at, words[i])) != NULL; at++)
            if (at[strlen(words[i])] != not_followed_by[i])
                return true;
    return false;
}

struct mt_stub mt_toolkit_stub(const char *function, const char *version)
{
    bool is_nvml = mt_begins_with(function, "nvml"),
         is_compiler = mt_begins_with(function, "nvrtc");

    return (struct mt_stub){
        .name = function,
        .version = version,
        .kind = !is_nvml && !is_compiler && makes_something(function) ? MT_STUB_COUNTER
                                                                      : MT_STUB_ANSWER,
        .answer = is_nvml ? NVML_NOT_SUPPORTED : 0,
    };
}

enum { MAX_SEARCHED_BYTES = 64 << 20, MAX_NAME = 80, MAX_TEXT = 255 };

#define NVML "libnvidia-ml.so.1"

static bool is_library_name(const char *name)
{
    const char *so = strstr(name, ".so");

    return so && (so[3] == '\0' || so[3] == '.') && !toolkit_has(name);
}

MT_DEFINE_ORDER(by_path, struct mt_library_file, MT_BY_TEXT(path))

static enum mt_status add_file(const char *folder, const char *name, struct mt_arena *arena,
                               struct mt_library_list *list)
{
    const char *path = mt_arena_printf(arena, "%s/%s", folder, name);
    struct stat info;

    if (!path)
        return MT_ERR_MEMORY;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return MT_OK;
    if (list->count == list->capacity &&
        mt_grow(&list->files, &list->capacity, list->count + 1, sizeof *list->files))
        return MT_ERR_MEMORY;
    list->files[list->count++] =
        (struct mt_library_file){path, (uint64_t)info.st_size,
                                 (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec};
    return MT_OK;
}

enum mt_status mt_wheel_libraries_list(const char *folder, struct mt_arena *arena,
                                       struct mt_library_list *list, struct mt_error *error)
{
    DIR *entries = opendir(folder);
    enum mt_status status = MT_OK;

    if (!entries)
        return mt_io_fail(error, MT_ERR_IO, folder);
    for (const struct dirent *entry; !status && (entry = readdir(entries)) != NULL;)
        if (is_library_name(entry->d_name))
            status = add_file(folder, entry->d_name, arena, list);
    (void)closedir(entries);
    if (status)
        return mt_fail(error, status, MT_NO_OFFSET, "no memory for a list of libraries");
    if (list->count)
        qsort(list->files, list->count, sizeof *list->files, by_path);
    return MT_OK;
}

/* Any folder in PYTHONPATH can be a folder of packages. */
enum { MAX_EXTENSIONS = 20000, MAX_DEPTH = 3 };

static bool is_searched(const char *name, int depth)
{
    static const char *const others[] = {"torch", "torchgen", "nvidia", "__pycache__"};

    if (*name == '.')
        return false;
    if (depth == 2)
        return !strcmp(name, "lib") || !strcmp(name, "_C");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i]))
            return false;
    return !strstr(name, ".dist-info") && !strstr(name, ".egg-info");
}

static bool is_folder(const char *path, const struct dirent *entry)
{
    struct stat info;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Descends at most MAX_DEPTH folders. */
static enum mt_status add_extensions(const char *folder, int depth, struct mt_arena *arena,
                                     struct mt_library_list *list)
{
    DIR *entries = opendir(folder);
    enum mt_status status = MT_OK;

    for (const struct dirent *entry;
         entries && !status && list->count < MAX_EXTENSIONS && (entry = readdir(entries));) {
        bool is_library = is_library_name(entry->d_name);
        bool may_go_down = depth < MAX_DEPTH && is_searched(entry->d_name, depth);
        char *path = is_library || may_go_down
                         ? mt_arena_printf(arena, "%s/%s", folder, entry->d_name)
                         : NULL;
        if (!path && (is_library || may_go_down))
            status = MT_ERR_MEMORY;
        else if (may_go_down && is_folder(path, entry))
            status = add_extensions(path, depth + 1, arena, list);
        else if (is_library)
            status = add_file(folder, entry->d_name, arena, list);
    }
    if (entries)
        (void)closedir(entries);
    return status;
}

enum mt_status mt_wheel_extensions_list(const char *folder, struct mt_arena *arena,
                                        struct mt_library_list *list, struct mt_error *error)
{
    if (add_extensions(folder, 1, arena, list))
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for a list of libraries");
    if (list->count)
        qsort(list->files, list->count, sizeof *list->files, by_path);
    return MT_OK;
}

enum mt_status mt_wanted_add(struct mt_wanted *wanted, const char *library, const char *name,
                             const char *version)
{
    struct mt_wanted_function function = {
        .library = mt_arena_text(&wanted->arena, library, strlen(library)),
        .name = name ? mt_arena_text(&wanted->arena, name, strlen(name)) : NULL,
        .version = version ? mt_arena_text(&wanted->arena, version, strlen(version)) : NULL,
    };
    if (!function.library || (name && !function.name) || (version && !function.version))
        return MT_ERR_MEMORY;
    if (wanted->count == wanted->capacity && mt_grow(&wanted->functions, &wanted->capacity,
                                                     wanted->count + 1, sizeof *wanted->functions))
        return MT_ERR_MEMORY;
    wanted->functions[wanted->count++] = function;
    return MT_OK;
}

/* Texts of a damaged library may overlap, so copies of long ones would take all memory. */
static bool is_short(const char *text)
{
    return !text || strnlen(text, MAX_TEXT + 1) <= MAX_TEXT;
}

static enum mt_status add_wants_of(struct mt_wanted *wanted, const struct mt_elf *elf)
{
    const char *const *needed = (const char *const *)elf->needed;
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < elf->needed_count && !status; i++)
        if (toolkit_has(needed[i]) && is_short(needed[i]))
            status = mt_wanted_add(wanted, needed[i], NULL, NULL);
    for (size_t i = 0; i < elf->symbol_count && !status; i++) {
        const struct mt_elf_symbol *symbol = &elf->symbols[i];
        const char *library = symbol->is_defined ? NULL : symbol->library;
        if (!symbol->is_defined && !library)
            library = toolkit_library_of(symbol->name, needed, elf->needed_count);
        if (library && toolkit_has(library) && is_short(library) && is_short(symbol->name) &&
            is_short(symbol->version))
            status = mt_wanted_add(wanted, library, symbol->name, symbol->version);
    }
    return status;
}

enum mt_status mt_wanted_add_file(struct mt_wanted *wanted, const char *path,
                                  struct mt_error *error)
{
    struct mt_elf elf;
    struct mt_error reason = {0};
    enum mt_status status = mt_elf_read(path, &elf, &reason);

    if (status)
        return mt_fail(error, status, reason.offset, "%.130s: %.90s", path, reason.text);
    status = add_wants_of(wanted, &elf);
    mt_elf_release(&elf);
    return status ? mt_fail(error, status, MT_NO_OFFSET, "no memory for a list of functions")
                  : MT_OK;
}

static bool is_name_char(char c)
{
    return mt_is_alnum(c) || c == '_';
}

/* "nvmlInit_v2" between two NULs. */
static enum mt_status add_names_in(struct mt_wanted *wanted, const char *bytes, size_t length)
{
    const char *end = bytes + length;

    for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), "\0nvml", 5)) != NULL;) {
        const char *name = ++at;
        while (at < end && is_name_char(*at))
            at++;
        if (at < end && !*at && at - name < MAX_NAME && name[4] >= 'A' && name[4] <= 'Z' &&
            mt_wanted_add(wanted, NVML, name, NULL))
            return MT_ERR_MEMORY;
    }
    return MT_OK;
}

enum mt_status mt_wanted_add_names(struct mt_wanted *wanted, const char *path,
                                   struct mt_error *error)
{
    struct mt_buf bytes = {0};
    struct stat info;
    int fd = mt_io_open(path, O_RDONLY | O_NONBLOCK, 0);
    enum mt_status status = MT_OK;

    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size > MAX_SEARCHED_BYTES) {
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%.200s cannot be read", path);
    } else {
        char *room = mt_buf_reserve(&bytes, (size_t)info.st_size + 1);
        ssize_t got = room ? mt_io_pread_full(fd, room, (size_t)info.st_size, 0) : -1;
        if (!room || (got >= 0 && add_names_in(wanted, room, (size_t)got)))
            status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for a library");
        else if (got < 0)
            status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%.200s cannot be read", path);
    }
    if (fd >= 0)
        (void)mt_io_close(fd);
    mt_buf_release(&bytes);
    return status;
}

static int by_name(const void *a, const void *b)
{
    const struct mt_wanted_function *x = a, *y = b;
    int order = strcmp(x->library, y->library);

    if (order)
        return order;
    if (!x->name || !y->name)
        return (x->name != NULL) - (y->name != NULL);
    order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->version ? x->version : "", y->version ? y->version : "");
}

static bool is_same(const struct mt_wanted_function *x, const struct mt_wanted_function *y)
{
    return !strcmp(x->library, y->library) &&
           (x->name == y->name || (x->name && y->name && !strcmp(x->name, y->name)));
}

void mt_wanted_sort(struct mt_wanted *wanted)
{
    size_t kept = 0;

    if (!wanted->count)
        return;
    qsort(wanted->functions, wanted->count, sizeof *wanted->functions, by_name);
    for (size_t i = 0; i < wanted->count; i++) {
        struct mt_wanted_function *last = kept ? &wanted->functions[kept - 1] : NULL;
        if (!last || !is_same(last, &wanted->functions[i]))
            wanted->functions[kept++] = wanted->functions[i];
        else if (!last->version) /* keeps the one with a version */
            last->version = wanted->functions[i].version;
    }
    wanted->count = kept;
}

void mt_wanted_release(struct mt_wanted *wanted)
{
    mt_arena_release(&wanted->arena);
    free(wanted->functions);
    *wanted = (struct mt_wanted){0};
}
