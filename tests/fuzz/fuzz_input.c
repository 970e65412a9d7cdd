/* Any bytes as an input of any command: opened as whatever they look like,
 * read to the end, analyzed with all models. Nothing may crash, leak or hang. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze.h"
#include "import.h"
#include "report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_to_the_end(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_error error;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        continue;
}

static void analyse(struct mt_source *source)
{
    struct mt_analyze_options options = {
        .models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART,
        .bins = 64,
    };
    struct mt_report *report = NULL;
    struct mt_error error;

    if (mt_source_rewind(source, &error) != MT_OK)
        return;
    if (mt_analyze(source, &options, &report, &error) == MT_OK)
        mt_report_release(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_source *source = NULL;
    struct mt_error error;
    char path[32];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mt_import_open_any(path, &source, &error) == MT_OK) {
        read_to_the_end(source);
        analyse(source);
        mt_source_close(source);
    }
    close(fd);
    return 0;
}
