#include "summary_of_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze.h"
#include "ascii.h"
#include "file_hash.h"
#include "import.h"
#include "io.h"
#include "outputs.h"
#include "process_memory.h"
#include "summarize.h"
#include "summary_file.h"

enum { PIECE_BYTES = 1 << 16 };
#define MAX_FILE_BYTES ((uint64_t)1 << 30)

const struct mt_file_kind mt_file_rank_summary = {.name = "the summary of a rank by memtrace",
                                                  .is_own = mt_summary_probe};

void mt_summary_add_path(struct mt_buf *out, const char *trace)
{
    mt_buf_add_text(out, trace);
    mt_buf_add_text(out, ".mtsum");
}

/* order->source is set. */
static enum mt_status summarize_source(const struct mt_summary_order *order,
                                       struct mt_rank_set *set, struct mt_error *error)
{
    const struct mt_analyze_options options = {.path = order->trace,
                                               .needs = true,
                                               .models = MT_MODEL_LEVEL_OVER_TIME,
                                               .bins = MT_RECORD_COLUMNS};
    struct mt_identity *identity = mt_memory_new(sizeof *identity);
    struct mt_report *report = NULL;
    enum mt_status status = mt_analyze(order->source, &options, &report, error);

    if (order->wait)
        order->wait(order->context);
    if (status == MT_OK)
        status = mt_file_hash(order->trace, report->sha256, error);
    if (status == MT_OK) {
        mt_identity_read(&order->source->header, order->trace, identity);
        status = mt_summarize(report, identity, set, error);
    }
    mt_report_release(report);
    free(identity);
    return status;
}

enum mt_status mt_summary_add_trace(const char *path, struct mt_rank_set *set,
                                    struct mt_error *error)
{
    struct mt_summary_order order = {.trace = path};
    enum mt_status status = mt_import_open_any(path, &order.source, error);

    if (status != MT_OK)
        return status;
    status = summarize_source(&order, set, error);
    mt_source_close(order.source);
    return status;
}

enum mt_status mt_summary_of_trace(const struct mt_summary_order *order, const char *out_path,
                                   struct mt_error *error)
{
    struct mt_outputs outputs = {.force = order->force};
    struct mt_rank_set set = {0};
    struct mt_buf bytes = {0};
    enum mt_status status = order->source ? summarize_source(order, &set, error)
                                          : mt_summary_add_trace(order->trace, &set, error);

    mt_outputs_add_input(&outputs, order->trace);
    struct mt_output_rules rules = mt_output_rules_of(&outputs, &mt_file_rank_summary);
    rules.is_private = true; /* the summary names code and machines, as the trace does */
    if (status == MT_OK)
        status = mt_summary_encode(&set, &bytes, error);
    if (status == MT_OK)
        status = mt_output_write(out_path, &rules, bytes.data, bytes.length, error);
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
    return status;
}

static enum mt_status read_all(int fd, struct mt_buf *bytes, struct mt_error *error)
{
    for (;;) {
        char *room = mt_buf_reserve(bytes, PIECE_BYTES);
        ssize_t length = mt_io_read(fd, room, PIECE_BYTES);

        if (length < 0)
            return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
        if (length == 0)
            return MT_OK;
        bytes->length += (size_t)length;
        if (bytes->length > MAX_FILE_BYTES)
            return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                           "the file is larger than 1 GiB, so it is not a summary");
    }
}

enum mt_status mt_summary_read(const char *path, struct mt_rank_set *set, struct mt_error *error)
{
    int fd = mt_io_open(path, O_RDONLY, 0);
    struct mt_buf bytes = {0};

    if (fd < 0)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    enum mt_status status = read_all(fd, &bytes, error);
    close(fd);
    if (status == MT_OK)
        status = mt_summary_decode(bytes.data, bytes.length, set, error);
    mt_buf_release(&bytes);
    return status;
}

/* Never opens a pipe, because its writer would lose its reader. */
bool mt_summary_is_file(const char *path)
{
    char start[8];

    if (strcmp(path, "-") == 0 || !mt_io_is_file(path))
        return false;
    int fd = mt_io_open(path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    bool is_summary = mt_io_read_full(fd, start, sizeof start) == sizeof start &&
                      mt_summary_probe(start, sizeof start);
    close(fd);
    return is_summary;
}

bool mt_is_summary_name(const char *path)
{
    return mt_ends_with(path, ".mtsum") && strlen(path) > strlen(".mtsum");
}
