#include "analyze_progress.h"

#include "progress.h"

static void show(void *progress, const char *what, double share)
{
    mt_progress_update(progress, what, share);
}

enum mt_status mt_analyze_with_progress(struct mt_source *source,
                                        const struct mt_analyze_options *options, bool quiet,
                                        struct mt_report **report, struct mt_error *error)
{
    struct mt_analyze_options shown = *options;
    struct mt_progress progress;
    enum mt_status status;

    shown.progress = (struct mt_analyze_progress){show, &progress};
    mt_progress_start(&progress, quiet);
    status = mt_analyze(source, &shown, report, error);
    mt_progress_end(&progress);
    return status;
}
