/* A baseline: the memory that a run needed, in a file that is small enough to commit. Later runs
 * are compared with it. The file is JSON (memtrace.baseline/1). */
#ifndef MT_ANALYZER_BASELINE_H
#define MT_ANALYZER_BASELINE_H

#include "report.h"
#include "settings_text.h"
#include "source.h"

#define MT_BASELINE_SCHEMA "memtrace.baseline/1"
#define MT_BASELINE_SITES  64

struct mt_baseline_site {
    const char *site, *phase; /* of the allocations; "" = none */
    uint64_t bytes;
};

struct mt_baseline_device {
    uint16_t device;
    uint64_t requested_peak_bytes, allocated_peak_bytes;
    bool has_reserved; /* what an allocator above the driver reserved is known */
    uint64_t active_peak_bytes, reserved_peak_bytes;
    uint64_t device_peak_bytes;                       /* 0 = unknown */
    struct mt_baseline_site sites[MT_BASELINE_SITES]; /* at the allocated peak, largest first */
    uint32_t site_count;
    bool all_sites; /* the list is complete */
};

struct mt_baseline {
    struct mt_arena arena;
    const char *name, *sha256, *framework; /* NULL = unknown */
    const char *options; /* options of PyTorch's allocator that differ from its defaults; NULL =
                            unknown, or another allocator */
    const char *doubt;   /* reason why its peaks may be too small, NULL = none */
    struct mt_baseline_device *devices; /* ascending */
    uint32_t device_count;
};

/* Sets *bytes to the process's largest use of a device, according to the driver's calls and NVML's
 * samples. Returns false if neither was recorded. *is_sampled: the number comes from NVML's
 * samples. */
bool mt_device_peak(const struct mt_report *report, uint16_t device, uint64_t *bytes,
                    bool *is_sampled);

/* Fills *baseline. Release it even after an error. baseline->doubt is that of the first device that
 * has one. `header` is the header of the source, for the effective options. */
void mt_baseline_of_report(struct mt_baseline *baseline, const struct mt_report *report,
                           const struct mt_trace_header *header);

/* Reads a baseline file. Returns MT_ERR_UNSUPPORTED for another schema, or MT_ERR_FORMAT with a
 * reason. Release *baseline even after an error. */
enum mt_status mt_baseline_read(struct mt_baseline *baseline, const struct mt_settings *settings,
                                struct mt_error *error) MT_MUST_USE;
void mt_baseline_release(struct mt_baseline *baseline);

const struct mt_baseline_device *mt_baseline_device(const struct mt_baseline *baseline,
                                                    uint16_t device);

#endif
