#include "simulated_site.h"

#include "io.h"
#include "python_of_command.h"
#include "sha256.h"
#include "site_cache.h"
#include "site_libraries.h"
#include "wheel.h"
#include "wheel_cudnn.h"
#include "wheel_libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Increment it when the same input produces different libraries. */
enum { SITE_FORMAT = 2 };

/* A file in a site with the numbers of what was made, as text. It is written last. */
#define FACTS "facts"

struct preparing {
    const struct mt_simulated_site_request *request;
    struct mt_simulated_site *site;
    struct mt_error *error;
    struct mt_wheel wheel;
    struct mt_arena arena;
    struct mt_library_list libraries;  /* of PyTorch */
    struct mt_library_list extensions; /* of other packages */
    char cache[PATH_MAX];
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
static enum mt_status make_key(struct preparing *preparing, char key[MT_SHA256_TEXT])
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
    mt_sha256_finish(&sha, key);
    key[MT_SITE_KEY_DIGITS] = '\0';
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

static enum mt_status write_facts(const char *folder, const struct mt_site_counts *counts,
                                  struct mt_error *error)
{
    char path[PATH_MAX], text[64];
    int length = snprintf(text, sizeof text, "%u %u %u\n", counts->libraries, counts->functions,
                          counts->simulated);
    int fd = join(path, folder, FACTS) ? mt_io_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600) : -1;

    if (fd < 0)
        return mt_io_fail_output(error);
    enum mt_status status =
        mt_io_write(fd, text, (size_t)length) ? MT_OK : mt_io_fail_output(error);
    if (!mt_io_close(fd) && !status)
        status = mt_io_fail_output(error);
    return status;
}

static bool read_facts(struct mt_simulated_site *site)
{
    char path[PATH_MAX], text[64];
    int fd = join(path, site->folder, FACTS) ? mt_io_open(path, O_RDONLY | O_NONBLOCK, 0) : -1;
    ssize_t length = fd < 0 ? -1 : mt_io_read_full(fd, text, sizeof text - 1);

    if (fd >= 0)
        (void)mt_io_close(fd);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%u %u %u", &site->library_count, &site->function_count,
                  &site->simulated_count) == 3;
}

/* If the preloaded library were missing, the loader would use the vendor's libraries. Another user
 * who could write to the cache earlier may have created a site in it. */
static bool is_complete(struct mt_simulated_site *site)
{
    return mt_cache_site_is_ours(site->folder) && access(site->preload, R_OK) == 0 &&
           read_facts(site);
}

/* Creates the libraries in `folder`, which is empty. */
static enum mt_status fill_folder(struct preparing *preparing, const char *folder)
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
    char made[PATH_MAX];
    enum mt_status status = mt_cache_begin(preparing->cache, made, preparing->error);

    if (!status) {
        status = fill_folder(preparing, made);
        if (status)
            mt_cache_remove(made);
        else
            status = mt_cache_finish(made, preparing->site->folder, preparing->error);
    }
    if (status == MT_ERR_OUTPUT) {
        struct mt_error reason = *preparing->error;
        return mt_fail(preparing->error, status, MT_NO_OFFSET,
                       "cannot write the simulated libraries to %.100s: %.60s", preparing->cache,
                       reason.text);
    }
    preparing->site->was_made = true;
    return status;
}

static enum mt_status find_site(struct preparing *preparing)
{
    struct mt_simulated_site *site = preparing->site;
    char key[MT_SHA256_TEXT], cupti[32];
    enum mt_status status = make_key(preparing, key);

    if (status)
        return status;
    snprintf(cupti, sizeof cupti, "libcupti.so.%d", preparing->wheel.cuda / 1000);
    if (!join(site->folder, preparing->cache, key) ||
        !join(site->preload, site->folder, MT_SITE_PRELOAD) ||
        !join(site->cupti, site->folder, cupti))
        return mt_fail(preparing->error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                       "the path of the cache is too long");
    /* A folder is renamed when it is complete, so an existing one that is incomplete was damaged. A
     * folder that appears now belongs to another process, which is about to use it. */
    bool was_there = access(site->folder, F_OK) == 0;
    if (!is_complete(site)) {
        if (was_there)
            mt_cache_remove(site->folder);
        status = make_site(preparing);
        if (!status && !is_complete(site))
            status = mt_fail(preparing->error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                             "%.160s belongs to another user or was changed by another process; "
                             "remove it",
                             site->folder);
    }
    if (!status)
        mt_cache_tidy(preparing->cache, site->folder);
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
    snprintf(site->cache, sizeof site->cache, "%s", preparing->cache);
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
            mt_cache_folder(preparing->request->cache_folder, preparing->cache, preparing->error);
    if (status)
        return status;
    tell(preparing);
    return find_site(preparing);
}

enum mt_status mt_simulated_site_prepare(const struct mt_simulated_site_request *request,
                                         struct mt_simulated_site *site, struct mt_error *error)
{
    struct preparing preparing = {.request = request, .site = site, .error = error};

    *site = (struct mt_simulated_site){0};
#if !defined(__x86_64__) || !defined(__linux__)
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "a dry run works on Linux with an x86-64 processor only");
#endif
    enum mt_status status = prepare(&preparing);
    mt_arena_release(&preparing.arena);
    free(preparing.libraries.files);
    free(preparing.extensions.files);
    return status;
}
