/* One line per call stack with its bytes, the input of flamegraph.pl and similar programs. */
#include "export_format.h"

#include <string.h>

#include "foreign_text.h"

/* Names may contain control characters. */
static void add_folded(struct mt_buf *out, const struct mt_export *what)
{
    struct mt_buf lines = {0};
    const char *at;

    mt_icicle_fold(what->icicle, what->report->symbols, what->with_blocks, &lines);
    for (at = lines.data; at && *at;) {
        size_t length = strcspn(at, "\n");

        mt_buf_add_printable(out, at, length);
        mt_buf_add_char(out, '\n');
        at += length + (at[length] == '\n');
    }
    mt_buf_release(&lines);
}

const struct mt_export_format mt_export_folded = {"folded", &mt_file_folded, add_folded};
