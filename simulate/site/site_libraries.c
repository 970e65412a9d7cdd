#include "site_libraries.h"

#include "elf_writer.h"
#include "grow.h"
#include "io.h"
#include "toolkit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    struct mt_site_counts *counts;
    struct mt_error *error;
};

static enum mt_status no_memory(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for the simulated libraries");
}

enum mt_status mt_site_add_expected(struct mt_wanted *wanted, const struct mt_wheel *wheel,
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
    const struct mt_elf_recipe recipe = {.soname = MT_SITE_PRELOAD,
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

enum mt_status mt_site_write(int folder, const struct mt_wanted *wanted,
                             const struct mt_wheel *wheel, const struct mt_elf *simulated,
                             const char *simulated_path, struct mt_site_counts *counts,
                             struct mt_error *error)
{
    struct making making = {.folder = folder,
                            .simulated_path = simulated_path,
                            .simulated = simulated,
                            .counts = counts,
                            .error = error};
    *counts = (struct mt_site_counts){0};
    enum mt_status status = make_all(&making, wanted, wheel);
    free(making.stubs);
    free(making.made);
    return status;
}
