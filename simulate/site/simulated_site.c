/* The site of a dry run: its libraries, and its place in the cache. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_reader.h"
#include "elf_writer.h"
#include "grow.h"
#include "io.h"
#include "python_of_command.h"
#include "safe_path.h"
#include "sha256.h"
#include "simulated_site.h"
#include "site_cache.h"
#include "status.h"
#include "wheel.h"
#include "wheel_libraries.h"

/* Makes the libraries of a site. */

#define SITE_PRELOAD "libmemtrace-simulated-preload.so"

struct site_counts {
    unsigned libraries, functions, simulated;
};

/* The same name as in simulated.map of simulate/driver. */
#define SIMULATED_VERSION "MEMTRACE_SIMULATED"

struct making {
    int folder;
    const char *simulated_path;
    const struct mt_elf *simulated;
    struct mt_stub *stubs;
    size_t stub_count, stub_capacity;
    const char **made; /* names of libraries */
    size_t made_count, made_capacity;
    struct site_counts *counts;
    struct mt_error *error;
};

static enum mt_status no_memory(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for the simulated libraries");
}

/* Adds the libraries that a program may open by name although no library of PyTorch needs them: the
 * driver, NVML, CUPTI, and the runtime of this version of CUDA. */
static enum mt_status site_add_expected(struct mt_wanted *wanted, const struct mt_wheel *wheel,
                                        struct mt_error *error)
{
    static const char *const names[] = {"libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.%d",
                                        "libcupti.so.%d"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        const char *number = strchr(names[i], '%');
        int stem = number ? (int)(number - names[i]) : (int)strlen(names[i]);
        if (number)
            snprintf(name, sizeof name, "%.*s%d", stem, names[i], wheel->cuda / 1000);
        else
            snprintf(name, sizeof name, "%s", names[i]);
        if (mt_wanted_add(wanted, name, NULL, NULL))
            return no_memory(error);
    }
    return MT_OK;
}

static enum mt_status write_file(const struct making *making, const char *name,
                                 const struct mt_buf *bytes)
{
    int fd = strchr(name, '/')
                 ? -1
                 : mt_io_open_at(making->folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    struct mt_error reason;

    if (fd < 0)
        return mt_io_fail_output(making->error);
    bool is_written = mt_io_write(fd, bytes->data, bytes->length);
    if (!is_written)
        (void)mt_io_fail_output(&reason);
    bool is_closed = mt_io_close(fd);
    if (is_written && !is_closed)
        (void)mt_io_fail_output(&reason);
    return is_written && is_closed
               ? MT_OK
               : mt_fail(making->error, reason.status, MT_NO_OFFSET, "%s", reason.text);
}

/* PyTorch 2.11 searches the memory map of its process for "libcudart.so". If it finds that name, it
 * opens the vendor's libraries by their paths. So the file of the runtime has another name, and a
 * link has this one. */
#define RUNTIME "libcudart.so"

static enum mt_status write_runtime(const struct making *making, const char *name,
                                    const struct mt_buf *bytes)
{
    char file[NAME_MAX + 1];
    int length = snprintf(file, sizeof file, "libcudart-simulated.so%s", name + strlen(RUNTIME));

    if (length > NAME_MAX)
        return mt_fail(making->error, MT_ERR_OUTPUT, MT_NO_OFFSET, "a name is too long");
    enum mt_status status = write_file(making, file, bytes);
    if (!status && symlinkat(file, making->folder, name) != 0)
        status = mt_io_fail_output(making->error);
    return status;
}

static enum mt_status write_library(struct making *making, const struct mt_elf_recipe *recipe)
{
    struct mt_buf bytes = {0};
    enum mt_status status = mt_elf_write(recipe, &bytes, making->error);

    if (!status && !strncmp(recipe->soname, RUNTIME, strlen(RUNTIME)))
        status = write_runtime(making, recipe->soname, &bytes);
    else if (!status)
        status = write_file(making, recipe->soname, &bytes);
    mt_buf_release(&bytes);
    return status;
}

static enum mt_status add_stub(struct making *making, struct mt_stub stub)
{
    if (making->stub_count == making->stub_capacity &&
        mt_grow(&making->stubs, &making->stub_capacity, making->stub_count + 1,
                sizeof *making->stubs))
        return no_memory(making->error);
    making->stubs[making->stub_count++] = stub;
    return MT_OK;
}

static int by_stub_name(const void *a, const void *b)
{
    const struct mt_stub *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (y->kind == MT_STUB_JUMP) - (x->kind == MT_STUB_JUMP);
}

/* Keeps one stub per name; a jump has priority. */
static void keep_one_each(struct making *making)
{
    size_t kept = 0;

    if (making->stub_count)
        qsort(making->stubs, making->stub_count, sizeof *making->stubs, by_stub_name);
    for (size_t i = 0; i < making->stub_count; i++)
        if (!kept || strcmp(making->stubs[kept - 1].name, making->stubs[i].name) != 0)
            making->stubs[kept++] = making->stubs[i];
    making->stub_count = kept;
}

/* The functions that are required of one library, and all functions that the simulated library has
 * of it. */
static enum mt_status collect_stubs(struct making *making, const struct mt_wanted_function *wanted,
                                    size_t count)
{
    const char *version = NULL;
    enum mt_status status = MT_OK;

    making->stub_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!version)
            version = wanted[i].version;
    for (size_t i = 0; i < count && !status; i++)
        if (wanted[i].name)
            status =
                add_stub(making, mt_toolkit_stub(wanted[i].name,
                                                 wanted[i].version ? wanted[i].version : version));
    for (size_t i = 0; i < making->simulated->symbol_count && !status; i++) {
        const struct mt_elf_symbol *symbol = &making->simulated->symbols[i];
        if (symbol->is_defined && symbol->version && !strcmp(symbol->version, SIMULATED_VERSION) &&
            mt_toolkit_is_of(symbol->name, wanted->library))
            status = add_stub(making, (struct mt_stub){symbol->name, version, MT_STUB_JUMP, 0});
    }
    if (!status)
        keep_one_each(making);
    return status;
}

static enum mt_status make_library(struct making *making, const struct mt_wanted_function *wanted,
                                   size_t count)
{
    enum mt_status status = collect_stubs(making, wanted, count);

    if (status)
        return status;
    for (size_t i = 0; i < making->stub_count; i++)
        making->counts->simulated += making->stubs[i].kind == MT_STUB_JUMP;
    making->counts->functions += (unsigned)making->stub_count;
    making->counts->libraries++;
    if (making->made_count == making->made_capacity &&
        mt_grow(&making->made, &making->made_capacity, making->made_count + 1,
                sizeof *making->made))
        return no_memory(making->error);
    making->made[making->made_count++] = wanted->library;
    const struct mt_elf_recipe recipe = {.soname = wanted->library,
                                         .needed = &making->simulated_path,
                                         .needed_count = 1,
                                         .target = making->simulated_path,
                                         .target_version = SIMULATED_VERSION,
                                         .stubs = making->stubs,
                                         .stub_count = making->stub_count};
    return write_library(making, &recipe);
}

/* Its functions return the versions (wheel_versions.h of simulate/driver). */
static enum mt_status make_preload(struct making *making, const struct mt_wheel *wheel)
{
    const struct mt_stub versions[] = {
        {"memtrace_wheel_cuda", NULL, MT_STUB_ANSWER, wheel->cuda},
        {"memtrace_wheel_cudnn", NULL, MT_STUB_ANSWER, wheel->cudnn},
        {"memtrace_wheel_nccl", NULL, MT_STUB_ANSWER, wheel->nccl},
    };
    const struct mt_elf_recipe recipe = {.soname = SITE_PRELOAD,
                                         .needed = making->made,
                                         .needed_count = making->made_count,
                                         .search = "$ORIGIN",
                                         .stubs = versions,
                                         .stub_count = sizeof versions / sizeof *versions};
    return write_library(making, &recipe);
}

static enum mt_status make_all(struct making *making, const struct mt_wanted *wanted,
                               const struct mt_wheel *wheel)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0, next; i < wanted->count && !status; i = next) {
        const struct mt_wanted_function *first = &wanted->functions[i];
        for (next = i + 1; next < wanted->count; next++)
            if (strcmp(wanted->functions[next].library, first->library) != 0)
                break;
        status = make_library(making, first, next - i);
    }
    return status ? status : make_preload(making, wheel);
}

/* Writes the libraries of `wanted`, which must be sorted, to an open folder, and SITE_PRELOAD,
 * which needs all of them. `simulated` has the symbols of the library at `simulated_path`. */
static enum mt_status site_write(int folder, const struct mt_wanted *wanted,
                                 const struct mt_wheel *wheel, const struct mt_elf *simulated,
                                 const char *simulated_path, struct site_counts *counts,
                                 struct mt_error *error)
{
    struct making making = {.folder = folder,
                            .simulated_path = simulated_path,
                            .simulated = simulated,
                            .counts = counts,
                            .error = error};
    *counts = (struct site_counts){0};
    enum mt_status status = make_all(&making, wanted, wheel);
    free(making.stubs);
    free(making.made);
    return status;
}

/* Increment it when the same input produces different libraries. */
enum { SITE_FORMAT = 3 };

struct preparing {
    const struct mt_simulated_site_request *request;
    struct mt_simulated_site *site;
    struct mt_error *error;
    struct mt_wheel wheel;
    struct mt_arena arena;
    struct mt_library_list libraries;  /* of PyTorch */
    struct mt_library_list extensions; /* of other packages */
    struct mt_cache cache;
    char key[MT_SHA256_TEXT];
    char cudnn[PATH_MAX];
};

static void hash_text(struct mt_sha256 *sha, const char *text)
{
    mt_sha256_add(sha, text, strlen(text) + 1);
}

static void hash_number(struct mt_sha256 *sha, uint64_t number)
{
    mt_sha256_add(sha, &number, sizeof number);
}

static void hash_file(struct mt_sha256 *sha, const struct mt_library_file *file)
{
    hash_text(sha, file->path);
    hash_number(sha, file->bytes);
    hash_number(sha, (uint64_t)file->modified_ns);
}

/* Everything that the libraries of the site depend on. */
static enum mt_status make_key(struct preparing *preparing)
{
    const char *simulated = preparing->request->simulated_library;
    struct mt_sha256 sha;
    struct stat info;

    if (stat(simulated, &info) != 0)
        return mt_fail(preparing->error, MT_ERR_IO, MT_NO_OFFSET, "%.180s: %s", simulated,
                       strerror(errno));
    mt_sha256_init(&sha);
    hash_number(&sha, SITE_FORMAT);
    hash_file(&sha, &(struct mt_library_file){simulated, (uint64_t)info.st_size,
                                              (int64_t)info.st_mtim.tv_sec * 1000000000 +
                                                  info.st_mtim.tv_nsec});
    hash_number(&sha, (uint64_t)preparing->wheel.cuda);
    hash_number(&sha, (uint64_t)preparing->wheel.cudnn);
    hash_number(&sha, (uint64_t)preparing->wheel.nccl);
    for (size_t i = 0; i < preparing->libraries.count; i++)
        hash_file(&sha, &preparing->libraries.files[i]);
    for (size_t i = 0; i < preparing->extensions.count; i++)
        hash_file(&sha, &preparing->extensions.files[i]);
    mt_sha256_finish(&sha, preparing->key);
    preparing->key[MT_SITE_KEY_DIGITS] = '\0';
    return MT_OK;
}

static enum mt_status collect_wanted(struct preparing *preparing, struct mt_wanted *wanted)
{
    enum mt_status status = site_add_expected(wanted, &preparing->wheel, preparing->error);

    for (size_t i = 0; i < preparing->libraries.count && !status; i++) {
        const char *path = preparing->libraries.files[i].path;
        status = mt_wanted_add_file(wanted, path, preparing->error);
        if (!status && strstr(path, "/libc10_cuda.so"))
            status = mt_wanted_add_names(wanted, path, preparing->error);
    }
    for (size_t i = 0; i < preparing->extensions.count && !status; i++) {
        status = mt_wanted_add_file(wanted, preparing->extensions.files[i].path, preparing->error);
        if (status && status != MT_ERR_MEMORY)
            status = MT_OK; /* of another machine, or not a library: PyTorch does not load it */
    }
    if (!status)
        mt_wanted_sort(wanted);
    return status;
}

static enum mt_status list_extensions(struct preparing *preparing)
{
    enum mt_status status = MT_OK;
    char *folders = preparing->wheel.packages, *rest = NULL;

    for (char *folder = strtok_r(folders, ":", &rest); folder && !status;
         folder = strtok_r(NULL, ":", &rest))
        status = mt_wheel_extensions_list(folder, &preparing->arena, &preparing->extensions,
                                          preparing->error);
    return status;
}

/* The sum of the sizes of all libraries, which a power failure may have cut short. */
static uint64_t count_bytes(int folder)
{
    DIR *entries = mt_io_open_entries(folder);
    uint64_t bytes = 0;
    struct stat info;

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] == 'l' &&
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)info.st_size;
    if (entries)
        (void)closedir(entries);
    return bytes;
}

static enum mt_status write_facts(int folder, const struct site_counts *counts,
                                  struct mt_error *error)
{
    char text[96];
    int length =
        snprintf(text, sizeof text, "%u %u %u %llu\n", counts->libraries, counts->functions,
                 counts->simulated, (unsigned long long)count_bytes(folder));
    int fd = mt_io_open_at(folder, MT_SITE_FACTS, O_WRONLY | O_CREAT | O_EXCL, 0600);

    if (fd < 0)
        return mt_io_fail_output(error);
    enum mt_status status =
        mt_io_write(fd, text, (size_t)length) ? MT_OK : mt_io_fail_output(error);
    if (!mt_io_close(fd) && !status)
        status = mt_io_fail_output(error);
    return status;
}

bool mt_site_facts_read(const char *text, struct mt_simulated_site *site)
{
    unsigned long long bytes = 0;
    bool is_whole = text[strspn(text, "0123456789 ")] == '\n' &&
                    sscanf(text, "%9u %9u %9u %19llu", &site->library_count, &site->function_count,
                           &site->simulated_count, &bytes) == 4;

    site->library_bytes = bytes;
    return is_whole;
}

static bool read_facts(int folder, struct mt_simulated_site *site)
{
    char text[96];
    int fd = mt_io_open_at(folder, MT_SITE_FACTS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    ssize_t length = fd < 0 ? -1 : mt_io_read_full(fd, text, sizeof text - 1);

    if (fd >= 0)
        (void)mt_io_close(fd);
    text[length > 0 ? length : 0] = '\0';
    return mt_site_facts_read(text, site) && site->library_bytes == count_bytes(folder);
}

/* If the preloaded library were missing, the loader would use the vendor's libraries. Another user
 * who could write to the cache earlier may have created a site in it. */
static bool is_complete(const struct preparing *preparing)
{
    int folder = mt_cache_site_open(&preparing->cache, preparing->key);
    bool is_whole = folder >= 0 && faccessat(folder, SITE_PRELOAD, R_OK, 0) == 0 &&
                    read_facts(folder, preparing->site);

    if (folder >= 0)
        (void)mt_io_close(folder);
    return is_whole;
}

/* Creates the libraries in `folder`, which is empty. */
static enum mt_status fill_folder(struct preparing *preparing, int folder)
{
    const char *simulated_path = preparing->request->simulated_library;
    struct mt_wanted wanted = {0};
    struct mt_elf simulated = {0};
    struct site_counts counts;
    enum mt_status status = collect_wanted(preparing, &wanted);

    if (!status)
        status = mt_elf_read(simulated_path, &simulated, preparing->error);
    if (!status)
        status = site_write(folder, &wanted, &preparing->wheel, &simulated, simulated_path, &counts,
                            preparing->error);
    if (!status)
        status = write_facts(folder, &counts, preparing->error);
    mt_elf_release(&simulated);
    mt_wanted_release(&wanted);
    return status;
}

static enum mt_status make_site(struct preparing *preparing)
{
    struct mt_cache_making making;
    enum mt_status status = mt_cache_begin(&preparing->cache, &making, preparing->error);

    if (!status) {
        status = fill_folder(preparing, making.fd);
        if (status)
            mt_cache_abandon(&preparing->cache, &making);
        else
            status = mt_cache_finish(&preparing->cache, &making, preparing->key, preparing->error);
    }
    if (status == MT_ERR_OUTPUT) {
        struct mt_error reason = *preparing->error;
        return mt_fail(preparing->error, status, MT_NO_OFFSET,
                       "cannot write the simulated libraries to %.100s: %.60s",
                       preparing->cache.path, reason.text);
    }
    preparing->site->was_made = true;
    return status;
}

static enum mt_status find_site(struct preparing *preparing)
{
    struct mt_simulated_site *site = preparing->site;
    char cupti[32];
    enum mt_status status = make_key(preparing);

    if (status)
        return status;
    snprintf(cupti, sizeof cupti, "libcupti.so.%d", preparing->wheel.cuda / 1000);
    if (!mt_path_join(site->folder, preparing->cache.path, preparing->key) ||
        !mt_path_join(site->preload, site->folder, SITE_PRELOAD) ||
        !mt_path_join(site->cupti, site->folder, cupti))
        return mt_fail(preparing->error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                       "the path of the cache is too long");
    /* A folder is renamed when it is complete, so an existing one that is incomplete was damaged. A
     * folder that appears now belongs to another process, which is about to use it. */
    bool was_there = faccessat(preparing->cache.fd, preparing->key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_complete(preparing)) {
        if (was_there)
            mt_cache_remove(&preparing->cache, preparing->key);
        status = make_site(preparing);
        if (!status && !is_complete(preparing))
            status = mt_fail(preparing->error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                             "%.140s belongs to another user or has files that memtrace did not "
                             "make; remove it",
                             site->folder);
    }
    if (!status)
        mt_cache_tidy(&preparing->cache, preparing->key);
    return status;
}

static void tell(struct preparing *preparing)
{
    struct mt_simulated_site *site = preparing->site;
    const struct mt_wheel *wheel = &preparing->wheel;
    const char *shim = preparing->request->python_shim_folder;

    snprintf(site->torch_version, sizeof site->torch_version, "%s", wheel->torch_version);
    snprintf(site->torch_folder, sizeof site->torch_folder, "%s", wheel->folder);
    snprintf(site->cuda_version, sizeof site->cuda_version, "%s", wheel->cuda_version);
    snprintf(site->python, sizeof site->python, "%s", wheel->python);
    snprintf(site->python_version, sizeof site->python_version, "%s", wheel->python_version);
    snprintf(site->cache, sizeof site->cache, "%s", preparing->cache.path);
    snprintf(site->cudnn, sizeof site->cudnn, "%s", preparing->cudnn);
    snprintf(site->python_path, sizeof site->python_path, "%s", shim ? shim : "");
}

static enum mt_status prepare(struct preparing *preparing)
{
    struct mt_python_choice choice;
    char folder[PATH_MAX];
    enum mt_status status =
        mt_python_of_command(preparing->request->command, &choice, preparing->error);

    if (!status) {
        snprintf(preparing->site->python_from, sizeof preparing->site->python_from, "%s",
                 choice.from);
        if (preparing->request->before_python)
            preparing->request->before_python(preparing->request->context, &choice);
        status = mt_wheel_find(&choice, &preparing->wheel, preparing->error);
    }
    if (!status && !mt_path_join(folder, preparing->wheel.folder, "lib"))
        status =
            mt_fail(preparing->error, MT_ERR_IO, MT_NO_OFFSET, "the path of PyTorch is too long");
    if (!status)
        status = mt_wheel_libraries_list(folder, &preparing->arena, &preparing->libraries,
                                         preparing->error);
    if (!status) {
        mt_wheel_cudnn(&preparing->wheel, preparing->cudnn);
        status = list_extensions(preparing);
    }
    if (!status)
        status =
            mt_cache_open(preparing->request->cache_folder, &preparing->cache, preparing->error);
    if (status)
        return status;
    tell(preparing);
    return find_site(preparing);
}

enum mt_status mt_simulated_site_prepare(const struct mt_simulated_site_request *request,
                                         struct mt_simulated_site *site, struct mt_error *error)
{
    struct preparing preparing = {.request = request, .site = site, .error = error, .cache.fd = -1};

    *site = (struct mt_simulated_site){0};
#if !defined(__x86_64__) || !defined(__linux__)
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "a dry run works on Linux with an x86-64 processor only");
#endif
    enum mt_status status = prepare(&preparing);
    mt_cache_close(&preparing.cache);
    mt_arena_release(&preparing.arena);
    free(preparing.libraries.files);
    free(preparing.extensions.files);
    return status;
}
