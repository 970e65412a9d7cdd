/* Sets of records: any tree of unions, in any order, gives one set. */
#include "cmocka_all.h"

#include "record_maker.h"

enum { MOST_RECORDS = 24 };

static void shuffle(struct record_maker *maker, uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = (uint32_t)maker_dice(maker, i), kept = numbers[i - 1];

        numbers[i - 1] = numbers[k];
        numbers[k] = kept;
    }
}

/* Sets of one record each, united two by two until one is left; some are sorted in between, some
 * records are there twice. */
static struct mt_rank_set unite_in_a_tree(struct record_maker *maker,
                                          const struct mt_rank_set *source, uint32_t count)
{
    static struct mt_rank_set sets[2 * MOST_RECORDS];
    uint32_t order[2 * MOST_RECORDS], n = 0;

    for (uint32_t i = 0; i < count; i++) {
        order[n++] = i;
        if (!maker_dice(maker, 4))
            order[n++] = i;
    }
    shuffle(maker, order, n);
    for (uint32_t i = 0; i < n; i++) {
        struct mt_rank_set all = {0};

        memset(&sets[i], 0, sizeof sets[i]);
        /* A set with the paths of all, and one record. */
        mt_rank_set_unite(&all, source);
        all.records[0] = all.records[order[i]];
        all.record_count = 1;
        mt_rank_set_unite(&sets[i], &all);
        mt_rank_set_release(&all);
    }
    while (n > 1) {
        uint32_t a = (uint32_t)maker_dice(maker, n),
                 b = (a + 1 + (uint32_t)maker_dice(maker, n - 1)) % n;

        if (maker_dice(maker, 2))
            mt_rank_set_sort(&sets[b]);
        if (maker_dice(maker, 2)) {
            mt_rank_set_unite(&sets[a], &sets[b]);
            mt_rank_set_release(&sets[b]);
        } else {
            mt_rank_set_take(&sets[a], &sets[b]);
            assert_int_equal(sets[b].record_count + sets[b].path_count, 0);
        }
        sets[b] = sets[--n];
    }
    mt_rank_set_sort(&sets[0]);
    return sets[0];
}

TEST(any_tree_of_unions_gives_the_same_set)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct mt_rank_set source = {0}, first = {0};
        struct record_maker maker = {seed, &source};
        uint32_t count = 1 + (uint32_t)maker_dice(&maker, MOST_RECORDS);
        const char *why = "";

        for (uint32_t i = 0; i < count; i++) {
            struct mt_rank_record record = make_record(&maker);

            mt_rank_set_add(&source, &record);
        }
        for (int tree = 0; tree < 4; tree++) {
            struct mt_rank_set set = unite_in_a_tree(&maker, &source, count);

            if (!mt_rank_set_is_sound(&set, &why))
                fail_msg("seed %llu: %s", (unsigned long long)seed, why);
            if (!tree)
                mt_rank_set_unite(&first, &set);
            mt_rank_set_sort(&first);
            if (!sets_are_equal(&first, &set))
                fail_msg("seed %llu: tree %d differs", (unsigned long long)seed, tree);
            mt_rank_set_release(&set);
        }
        assert_int_equal(first.record_count, count);
        mt_rank_set_release(&first);
        mt_rank_set_release(&source);
    }
}

/* For each field, and each field of a list's element: another value is another record. */
TEST(no_field_is_left_out)
{
    struct mt_rank_set source = {0};
    struct record_maker maker = {11, &source};
    struct mt_rank_record record = make_record(&maker), other;

    for (uint32_t i = 0; i < mt_record_field_count; i++) {
        other = record;
        if (mt_record_fields[i].kind == MT_FIELD_TEXT)
            mt_field_set_text(&other, &mt_record_fields[i], "another");
        else
            assert_true(mt_field_set(&other, &mt_record_fields[i],
                                     mt_field_get(&record, &mt_record_fields[i]) ^ 1));
        assert_int_equal(mt_rank_record_compare(&record, &record), 0);
        if (!mt_rank_record_compare(&record, &other))
            fail_msg("%s", mt_record_fields[i].name);
        assert_true((mt_rank_record_compare(&record, &other) < 0) ==
                    (mt_rank_record_compare(&other, &record) > 0));
    }
    mt_rank_set_release(&source);
}

TEST(a_field_refuses_what_it_cannot_hold)
{
    struct mt_rank_record record = {0};

    for (uint32_t i = 0; i < mt_record_field_count; i++) {
        const struct mt_record_field *field = &mt_record_fields[i];

        if (field->kind == MT_FIELD_TEXT || field->kind == MT_FIELD_U64 ||
            field->kind == MT_FIELD_I64)
            continue;
        assert_false(mt_field_set(&record, field, UINT64_C(1) << 32));
        assert_int_equal(mt_field_get(&record, field), 0);
    }
}

/* What the table of lists says beside the fields of their elements follows from these. */
TEST(lists_agree_with_their_fields)
{
    size_t longest_bytes = 0, largest_bytes = 0;
    unsigned packed = 0;

    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];
        bool has_links = false;

        for (uint32_t f = 0; f < list->field_count; f++)
            has_links |=
                list->fields[f].kind == MT_FIELD_TEXT || list->fields[f].kind == MT_FIELD_PATH;
        if (list->has_links != has_links)
            fail_msg("%s", list->name);
        longest_bytes = mt_max_u64(longest_bytes, list->most * list->element_bytes);
        largest_bytes = mt_max_u64(largest_bytes, list->element_bytes);
        if (list->packed >= 0) {
            assert_int_equal(packed >> list->packed & 1, 0);
            packed |= 1u << list->packed;
        }
    }
    assert_int_equal(longest_bytes, MT_LIST_BYTES);
    assert_int_equal(largest_bytes, MT_ELEMENT_BYTES);
    assert_int_equal(packed, 0xf);
}

TEST(elements_are_those_of_their_lists)
{
    struct mt_record_step step = {.begin_t_ns = 1};
    struct mt_record_column column = {.allocated_bytes = 2};
    struct mt_record_level level = {.t_ns = 3};
    struct mt_record_leaf leaf = {.bytes = 4};
    struct mt_rank_record record = {
        .steps = &step, .columns = &column, .levels = &level, .leaves = &leaf};

    record.step_count = record.column_count = record.level_count = record.leaf_count = 1;
    assert_int_equal(mt_step_at(&record, 0).begin_t_ns, 1);
    assert_int_equal(mt_column_at(&record, 0).allocated_bytes, 2);
    assert_int_equal(mt_level_at(&record, 0).t_ns, 3);
    assert_int_equal(mt_leaf_at(&record, 0).bytes, 4);
}

/* A record that is moved keeps its lists as they are: plain, or packed. */
TEST(moving_packs_nothing)
{
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        struct mt_rank_set set = {0}, other = {0};
        struct record_maker maker = {5, &set}, their = {6, &other};
        struct mt_rank_record mine = make_record(&maker), record = make_record(&their);

        assert_int_not_equal(record.leaf_count, 0);
        mt_rank_set_add(&set, &mine);
        if (is_packed)
            mt_rank_set_add_packed(&other, &record);
        else
            mt_rank_set_add(&other, &record);
        mt_rank_set_take(&set, &other);
        assert_int_equal(set.records[1].leaves == NULL, is_packed);
        assert_int_equal(set.records[1].packed[3] != NULL, is_packed);
        mt_rank_set_release(&set);
    }
}

TEST(what_does_not_sum_up_is_not_sound)
{
    struct mt_rank_set set = {0};
    struct record_maker maker = {3, &set};
    struct mt_rank_record record = make_record(&maker);
    const char *why = "";

    mt_rank_set_add(&set, &record);
    assert_true(mt_rank_set_is_sound(&set, &why));
    set.records[0].role_bytes[2] ^= 1;
    assert_false(mt_rank_set_is_sound(&set, &why));
    set.records[0].role_bytes[2] ^= 1;
    set.records[0].death_path = set.path_count;
    assert_false(mt_rank_set_is_sound(&set, &why));
    mt_rank_set_release(&set);
}

/* In any order, but each role and path once: leaves that repeat have no place in the order. */
TEST(leaves_that_repeat_are_not_sound)
{
    struct mt_rank_set set = {0};
    struct mt_record_leaf leaves[] = {{.path = MT_NO_PATH, .bytes = 5}, {.path = 0, .bytes = 7}};
    struct mt_rank_record record = {.death_path = MT_NO_PATH, .leaves = leaves, .leaf_count = 2};
    const char *why = "";
    uint32_t path = MT_NO_PATH;

    for (uint32_t i = 0; i < mt_record_field_count; i++)
        if (mt_record_fields[i].kind == MT_FIELD_TEXT)
            mt_field_set_text(&record, &mt_record_fields[i], "");
    record.allocated_peak.bytes = record.role_bytes[leaves[0].role] = 12;
    path = mt_rank_set_path(&set, MT_NO_PATH, "main", 4);
    mt_rank_set_add(&set, &record);
    assert_true(mt_rank_set_is_sound(&set, &why));
    set.records[0].leaves[0].path = path;
    assert_false(mt_rank_set_is_sound(&set, &why));
    assert_non_null(strstr(why, "leaves_ascend"));
    mt_rank_set_release(&set);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
