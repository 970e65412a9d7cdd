#include "simulated_site.h"

#include "io.h"
#include "sha256.h"
#include "site_cache.h"
#include "site_libraries.h"
#include "wheel.h"
#include "wheel_cudnn.h"
#include "wheel_libraries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);

    return length > 0 && length < PATH_MAX;
}

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
    enum mt_status status = mt_site_add_expected(wanted, &preparing->wheel, preparing->error);

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
        status =
            mt_list_extensions(folder, &preparing->arena, &preparing->extensions, preparing->error);
    return status;
}

/* The sum of the sizes of all libraries, which a power failure may have cut short. */
static uint64_t count_bytes(int folder)
{
    int copy = mt_io_open_at(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    uint64_t bytes = 0;
    struct stat info;

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] == 'l' &&
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)info.st_size;
    if (entries)
        (void)closedir(entries);
    else if (copy >= 0)
        (void)mt_io_close(copy);
    return bytes;
}

static enum mt_status write_facts(int folder, const struct mt_site_counts *counts,
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
    bool is_whole = folder >= 0 && faccessat(folder, MT_SITE_PRELOAD, R_OK, 0) == 0 &&
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
    struct mt_site_counts counts;
    enum mt_status status = collect_wanted(preparing, &wanted);

    if (!status)
        status = mt_elf_read(simulated_path, &simulated, preparing->error);
    if (!status)
        status = mt_site_write(folder, &wanted, &preparing->wheel, &simulated, simulated_path,
                               &counts, preparing->error);
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
    if (!join(site->folder, preparing->cache.path, preparing->key) ||
        !join(site->preload, site->folder, MT_SITE_PRELOAD) ||
        !join(site->cupti, site->folder, cupti))
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
    if (!status && !join(folder, preparing->wheel.folder, "lib"))
        status =
            mt_fail(preparing->error, MT_ERR_IO, MT_NO_OFFSET, "the path of PyTorch is too long");
    if (!status)
        status =
            mt_list_libraries(folder, &preparing->arena, &preparing->libraries, preparing->error);
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
