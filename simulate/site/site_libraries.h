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

/* Adds the libraries that a program may open by name although no library of PyTorch needs them:
 * the driver, NVML, CUPTI, and the runtime of this version of CUDA. */
enum mt_status mt_site_add_expected(struct mt_wanted *wanted, const struct mt_wheel *wheel,
                                    struct mt_error *error) MT_MUST_USE;

/* Writes the libraries of `wanted`, which must be sorted, to an open folder, and MT_SITE_PRELOAD,
 * which needs all of them. `simulated` has the symbols of the library at `simulated_path`. */
enum mt_status mt_site_write(int folder, const struct mt_wanted *wanted,
                             const struct mt_wheel *wheel, const struct mt_elf *simulated,
                             const char *simulated_path, struct mt_site_counts *counts,
                             struct mt_error *error) MT_MUST_USE;

#endif
