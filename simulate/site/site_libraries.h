/* Makes the libraries of a site. */
#ifndef MT_SITE_LIBRARIES_H
#define MT_SITE_LIBRARIES_H

#include "elf_reader.h"
#include "wheel.h"
#include "wheel_libraries.h"

#define MT_SITE_PRELOAD "libmemtrace-simulated-preload.so"

struct mt_site_counts {
    unsigned libraries, functions, simulated;
};

/* Adds the libraries that a program opens by name, though none of PyTorch's needs them: the driver,
 * NVML, CUPTI and the runtime of this version of CUDA. */
enum mt_status mt_site_add_expected(struct mt_wanted *wanted, const struct mt_wheel *wheel,
                                    struct mt_error *error) MT_MUST_USE;

/* Writes the libraries that are wanted, which is sorted, to `folder`, and MT_SITE_PRELOAD, which
 * needs them all. `simulated` is what the library at `simulated_path` has. */
enum mt_status mt_site_write(const char *folder, const struct mt_wanted *wanted,
                             const struct mt_wheel *wheel, const struct mt_elf *simulated,
                             const char *simulated_path, struct mt_site_counts *counts,
                             struct mt_error *error) MT_MUST_USE;

#endif
