/* Rules for groups of ranks: which axis a name is of, and what is said if there is no memory. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "fleet_rules.h"

/* Reads a budget while allocation `fails` fails, 0 = none. `said` is what standard error got. */
static int read_budget(struct mt_fleet_rules *rules, const char *path, size_t fails,
                       char said[4096])
{
    const struct mt_fleet_gate_options options = {.budget = path};
    int before = dup(2), code;
    FILE *file = tmpfile();
    ssize_t length;

    assert_true(before >= 0 && file && dup2(fileno(file), 2) == 2);
    memset(rules, 0, sizeof *rules);
    fail_allocation(fails, false);
    code = mt_fleet_rules_read(rules, &options);
    (void)stop_failing();
    assert_int_equal(dup2(before, 2), 2);
    length = pread(fileno(file), said, 4095, 0);
    assert_true(length >= 0);
    said[length] = '\0';
    close(before);
    (void)fclose(file);
    return code;
}

static void write_budget(char *path, const char *text)
{
    int file;

    strcpy(path, "/tmp/memtrace-rules-XXXXXX");
    file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
}

static void a_failed_allocation_is_not_too_many_groups(void **state)
{
    char path[32], said[4096];
    struct mt_fleet_rules rules;
    size_t failed = 0;
    int code = -1;

    (void)state;
    write_budget(path, "[group.pp.0.max-peak]\nreserved = \"1GiB\"\n"
                       "[group.pp.1.max-peak]\nreserved = \"2GiB\"\n");
    for (size_t n = 1; code != MT_EXIT_OK && n < 1000; n++) {
        code = read_budget(&rules, path, n, said);
        assert_null(strstr(said, "more than"));
        assert_true(code == MT_EXIT_OK || strstr(said, "memory"));
        failed += code != MT_EXIT_OK;
        if (code == MT_EXIT_OK)
            assert_int_equal(rules.group_count, 2);
        mt_fleet_rules_release(&rules);
    }
    assert_int_equal(code, MT_EXIT_OK);
    assert_in_range(failed, 3, 100);
    (void)unlink(path);
}

static void check_group(const char *key, const char *axis, uint32_t coordinate)
{
    char path[32], text[200], said[4096];
    struct mt_fleet_rules rules;

    snprintf(text, sizeof text, "[group.%s.max-peak]\nreserved = \"1GiB\"\n", key);
    write_budget(path, text);
    if (axis) {
        assert_int_equal(read_budget(&rules, path, 0, said), MT_EXIT_OK);
        assert_int_equal(rules.group_count, 1);
        assert_string_equal(rules.groups[0].axis, axis);
        assert_int_equal(rules.groups[0].coordinate, coordinate);
        assert_int_equal(rules.groups[0].rules.count, 1);
    } else {
        assert_int_equal(read_budget(&rules, path, 0, said), MT_EXIT_INPUT);
        if (!strstr(said, "is not a rule for a group"))
            fail_msg("%s: '%s'", key, said);
    }
    mt_fleet_rules_release(&rules);
    (void)unlink(path);
}

static void names_of_axes_may_have_dots(void **state)
{
    (void)state;
    check_group("pp.7", "pp", 7);
    check_group("\"a.b\".1", "a.b", 1);
    check_group("a.b.1", "a.b", 1);
    check_group("\"a.0\".12", "a.0", 12);
    check_group("pp", NULL, 0);
    check_group("pp.x", NULL, 0);
    check_group("7", NULL, 0);
    check_group("pp.1234567890", NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_axes_may_have_dots),
        /* the last: a failed allocation is remembered for the whole process */
        cmocka_unit_test(a_failed_allocation_is_not_too_many_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
