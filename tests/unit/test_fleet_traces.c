/* Finds the traces of a job by the names in its records, also if all traces have the same name. */
#include "cmocka_all.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_hash.h"
#include "fleet_traces.h"

enum { RANKS = 12 };

/* Folders 0 to RANKS - 1, each with a file "snapshot.pickle". */
struct place {
    char folder[64], paths[RANKS][PATH_MAX], hashes[RANKS][MT_SHA256_TEXT];
    struct mt_fleet_files files;
    struct mt_fleet_traces traces;
};

static void make_place(struct place *place)
{
    struct mt_error error = {0};

    memset(place, 0, sizeof *place);
    strcpy(place->folder, "/tmp/memtrace-traces-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    for (int i = 0; i < RANKS; i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/%02d", place->folder, i);
        assert_int_equal(mkdir(path, 0700), 0);
        strcat(strcpy(place->paths[i], path), "/snapshot.pickle");
        FILE *file = fopen(place->paths[i], "wb");
        assert_non_null(file);
        assert_true(fprintf(file, "trace of rank %d", i) > 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(mt_file_hash(place->paths[i], place->hashes[i], &error), MT_OK);
    }
    assert_int_equal(mt_fleet_files_add(&place->files, place->folder, &error), MT_OK);
    assert_int_equal(place->files.count, RANKS);
    mt_fleet_traces_find(&place->files, &place->traces);
}

static void remove_place(struct place *place)
{
    mt_fleet_traces_release(&place->traces);
    mt_fleet_files_release(&place->files);
    for (int i = 0; i < RANKS; i++) {
        (void)unlink(place->paths[i]);
        *strrchr(place->paths[i], '/') = '\0';
        (void)rmdir(place->paths[i]);
    }
    if (rmdir(place->folder) != 0)
        fail_msg("%s: %s", place->folder, strerror(errno));
}

/* Searching all files for each record would read RANKS * (RANKS + 1) / 2 of them. */
TEST(each_file_is_hashed_once)
{
    struct place place;
    const char *reason;

    make_place(&place);
    for (int round = 0; round < 2; round++)
        for (int i = RANKS - 1; i >= 0; i--) {
            const struct mt_rank_record record = {.trace_name = "snapshot.pickle",
                                                  .trace_sha256 = place.hashes[i]};

            assert_string_equal(mt_fleet_trace_of(&place.traces, &record, &reason), place.paths[i]);
        }
    assert_int_equal(place.traces.hashed_count, RANKS);
    remove_place(&place);
}

TEST(missing_traces_have_a_reason)
{
    struct mt_rank_record record = {.trace_name = "snapshot.pickle", .trace_sha256 = ""};
    struct place place;
    const char *reason;

    make_place(&place);
    assert_null(mt_fleet_trace_of(&place.traces, &record, &reason));
    assert_non_null(strstr(reason, "several files have the name of its trace"));
    assert_int_equal(place.traces.hashed_count, 0);
    record.trace_sha256 = "0123";
    assert_null(mt_fleet_trace_of(&place.traces, &record, &reason));
    assert_non_null(strstr(reason, "several files have the name of its trace"));
    record.trace_name = "other";
    assert_null(mt_fleet_trace_of(&place.traces, &record, &reason));
    assert_string_equal(reason, "there is no trace beside its summary");
    remove_place(&place);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
