/* The libraries of PyTorch, and the functions of CUDA that they import. */
#ifndef MT_WHEEL_LIBRARIES_H
#define MT_WHEEL_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "elf_writer.h"
#include "status.h"

struct mt_library_file {
    const char *path;
    uint64_t bytes;
    int64_t modified_ns;
};

struct mt_library_list {
    struct mt_library_file *files; /* by path */
    size_t count, capacity;
};

/* Lists the shared libraries in `folder`, without those of CUDA that a wheel includes. Texts are
 * in the arena; the caller releases list->files with free. MT_ERR_IO: the folder cannot be read. */
enum mt_status mt_wheel_libraries_list(const char *folder, struct mt_arena *arena,
                                       struct mt_library_list *list,
                                       struct mt_error *error) MT_MUST_USE;

/* Adds the extension modules and libraries of other packages in `folder`, which may need functions
 * of CUDA that PyTorch does not need: files in it, in the packages, and in their folders `lib` and
 * `_C`. Omits those of PyTorch and of the vendor. Skips files and folders that cannot be read. */
enum mt_status mt_wheel_extensions_list(const char *folder, struct mt_arena *arena,
                                        struct mt_library_list *list,
                                        struct mt_error *error) MT_MUST_USE;

struct mt_wanted_function {
    const char *library, *name;
    const char *version; /* NULL: none */
};

/* Functions imported from CUDA. A library without imported functions has an entry with the name
 * NULL. */
struct mt_wanted {
    struct mt_wanted_function *functions; /* by library, then by name; each once */
    size_t count, capacity;
    struct mt_arena arena;
};

/* Adds the imports of one file; call mt_wanted_sort afterwards. */
enum mt_status mt_wanted_add_file(struct mt_wanted *wanted, const char *path,
                                  struct mt_error *error) MT_MUST_USE;
enum mt_status mt_wanted_add(struct mt_wanted *wanted, const char *library, const char *name,
                             const char *version) MT_MUST_USE;

/* Adds functions of NVML that a library looks up by name: those whose names are strings in its
 * file. */
enum mt_status mt_wanted_add_names(struct mt_wanted *wanted, const char *path,
                                   struct mt_error *error) MT_MUST_USE;

void mt_wanted_sort(struct mt_wanted *wanted);
void mt_wanted_release(struct mt_wanted *wanted);

/* Finds out from names which libraries and functions belong to CUDA. */

/* Returns true if `function` belongs to the library `soname`, according to its name. For the
 * functions of the simulated library, which have the vendor's names. */
bool mt_toolkit_is_of(const char *function, const char *soname);

/* Returns the stub for a function without an implementation. The stub returns a constant, or
 * consecutive numbers as handles. */
struct mt_stub mt_toolkit_stub(const char *function, const char *version);

#endif
