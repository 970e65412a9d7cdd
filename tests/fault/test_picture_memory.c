/* Pictures for which cairo has no memory: its own allocations are not seen by memtrace's counters.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends.h"
#include "capture.h"
#include "cli.h"
#include "failing_alloc.h"
#include "gallery.h"
#include "process_memory.h"

/* The linker sends raster.c's calls of cairo_status here. */
int __wrap_cairo_status(void *cairo);
int __wrap_cairo_status(void *cairo)
{
    enum { CAIRO_NO_MEMORY = 1 };

    (void)cairo;
    return CAIRO_NO_MEMORY;
}

/* What the run of a command writes to standard error. */
static int run_command(int (*command)(const struct mt_command *, int, char **), char **words,
                       char text[2000])
{
    const struct mt_command what = {.name = words[0]};
    FILE *file = tmpfile(), *quiet = fopen("/dev/null", "w");
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), count = 0, code;
    size_t length;

    while (words[count])
        count++;
    assert_true(file && quiet && out >= 0 && err >= 0);
    assert_true(dup2(fileno(quiet), STDOUT_FILENO) >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    code = command(&what, count, words);
    assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
    close(out);
    close(err);
    rewind(file);
    length = fread(text, 1, 1999, file);
    text[length] = '\0';
    fclose(file);
    fclose(quiet);
    return code;
}

static char analyze[] = "analyze", render[] = "render", timeline[] = "timeline", output[] = "-o";
static char trace[] = MEMTRACE_FIXTURES "/captures/leak.pickle.zst";

static void a_report_without_memory_for_its_pictures(void **state)
{
    char folder[] = "/tmp/memtrace-pictures-XXXXXX", command[100], text[2000];
    char *words[] = {analyze, trace, output, folder, NULL};

    (void)state;
    if (!mt_png_available(NULL))
        skip();
    assert_non_null(mkdtemp(folder));
    assert_int_equal(run_command(mt_cmd_analyze, words, text), MT_EXIT_INPUT);
    assert_false(mt_memory_has_failed());
    assert_non_null(strstr(text, "timeline.png': out of memory\n"));
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void one_picture_without_memory(void **state)
{
    char path[] = "/tmp/memtrace-picture-XXXXXX.png", text[2000];
    char *words[] = {render, timeline, trace, output, path, NULL};

    (void)state;
    if (!mt_png_available(NULL))
        skip();
    close(mkstemps(path, 4));
    unlink(path);
    assert_int_equal(run_command(mt_cmd_render, words, text), MT_EXIT_INPUT);
    assert_non_null(strstr(text, "out of memory\n"));
    assert_int_not_equal(access(path, F_OK), 0);
}

/* A list that is cut short names no file: its files, with the status 0, would count as written.
 * Last: the failure stays for the rest of the process. */
static void a_list_of_pictures_is_whole_or_empty(void **state)
{
    const struct mt_analyze_options models = {.models = mt_charts_models()};
    struct capture capture = capture_analyze(trace, &models);
    char directory[20000]; /* a chunk of the arena holds few of these paths */
    const struct mt_gallery_options options = {.directory = directory};
    size_t total = 0;

    (void)state;
    memset(directory, 'd', sizeof directory - 1);
    directory[sizeof directory - 1] = '\0';
    for (size_t n = 0; n <= total; n++) { /* 0: none fails, and all are counted */
        struct mt_gallery gallery;
        enum mt_status status;
        size_t failed = 0, made;

        fail_allocation(n, false);
        status = mt_gallery_check(capture.report, &options, &gallery, NULL);
        made = stop_failing();
        total = n ? total : made;
        for (size_t i = 0; i < gallery.count; i++) {
            assert_non_null(gallery.files[i].path);
            failed += gallery.files[i].status != MT_OK;
        }
        if (status != MT_OK && gallery.count && !failed)
            fail_msg("allocation %zu: %zu files count as written", n, gallery.count);
        mt_gallery_release(&gallery);
    }
    assert_true(total > 3);
    capture_close(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_report_without_memory_for_its_pictures),
                                       cmocka_unit_test(one_picture_without_memory),
                                       cmocka_unit_test(a_list_of_pictures_is_whole_or_empty)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
