/* What programs say through NVTX, and what the trace hears. */
#include "nvtx_copies.h"

TEST_WITH(every_copy_is_filled, two_copies, NULL)
{
    for (int number = 0; number < 2; number++) {
        for (int i = 1; i < NVTX_SLOT_COUNT; i++)
            assert_ptr_not_equal((void *)copies[number].core[i], (void *)stub);
        /* Resources, DomainDestroy and Initialize are not ours. */
        assert_ptr_equal((void *)copies[number].core2[6], (void *)stub);
        assert_ptr_equal((void *)copies[number].core2[14], (void *)stub);
        assert_int_equal(copies[number].tool_version, 3);
        assert_int_equal(CALL(number, core, 9, int, (const char *))("a"), number);
    }
    assert_int_equal(pop(), 1);
    assert_int_equal(pop(), 0);
    assert_string_equal(recorded_story(), "push a|push a|pop a|pop a");
}

TEST_WITH(pops_carry_the_name_of_their_range, two_copies, NULL)
{
    void *one = domain("one"), *two = domain("two");
    const struct nvtx_attributes a = ascii("a"), b = ascii("b");

    assert_int_equal(push("x"), 0);
    assert_int_equal(push_in(one, &a), 0);
    assert_int_equal(push_in(two, &b), 0);
    assert_int_equal(push_in(one, &b), 1);
    assert_int_equal(push("y"), 1);
    assert_int_equal(pop_in(two), 0);
    assert_int_equal(pop_in(one), 1);
    assert_int_equal(pop(), 1);
    assert_int_equal(pop_in(one), 0);
    assert_int_equal(pop_in(one), -1);
    assert_int_equal(pop(), 0);
    assert_int_equal(pop(), -1);
    assert_string_equal(recorded_story(), "push x|push one: a|push two: b|push one: b|push y|"
                                          "pop two: b|pop one: b|pop y|pop one: a|pop x");
}

TEST_WITH(no_domain_is_the_default_domain, two_copies, NULL)
{
    const struct nvtx_attributes a = ascii("a");
    static int something;

    push("x");
    assert_int_equal(push_in(NULL, &a), 1);
    /* Handles that nobody gave out. */
    assert_int_equal(push_in(&something, &a), 2);
    assert_int_equal(push_in((void *)UINT64_C(0x6d640000ffffffff), &a), 3);
    assert_int_equal(push_in((void *)UINTPTR_MAX, &a), 4);
    for (int level = 4; level >= 0; level--)
        assert_int_equal(pop(), level);
    assert_string_equal(recorded_story(),
                        "push x|push a|push a|push a|push a|pop a|pop a|pop a|pop a|pop x");
}

TEST_WITH(equal_names_are_one_domain, two_copies, NULL)
{
    void *one = domain("same");

    assert_non_null(one);
    assert_ptr_equal(one, domain("same"));
    assert_ptr_equal(one, CALL(1, core2, 13, void *, (const wchar_t *))(L"same"));
    assert_ptr_not_equal(one, domain("other"));
    assert_null(domain(""));
    assert_null(domain(NULL));
}

TEST_WITH(wide_texts_are_utf8, two_copies, NULL)
{
    static const wchar_t text[] = {'a', 0xe9, 0x7ff, 0x800, 0x20ac, 0x1f600, 0xd800, 0x110000, 0};
    struct nvtx_attributes a = {
        .size = sizeof a, .message_type = NVTX_MESSAGE_IS_WIDE, .message = {.wide = text}};

    CALL(0, core, 3, void, (const wchar_t *))(text);
    CALL(0, core, 1, void, (const struct nvtx_attributes *))(&a);
    assert_int_equal(CALL(0, core, 10, int, (const wchar_t *))(L"w"), 0);
    end(CALL(0, core, 6, uint64_t, (const wchar_t *))(L"s"));
    pop();
    assert_string_equal(
        recorded_story(),
        "mark a\xc3\xa9\xdf\xbf\xe0\xa0\x80\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd|"
        "mark a\xc3\xa9\xdf\xbf\xe0\xa0\x80\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd|"
        "push w|push s|pop s|pop w");
}

TEST_WITH(registered_strings, two_copies, NULL)
{
    void *one = domain("one");
    void *hello = string(one, "hello"), *bare = string(NULL, "bare");
    void *wide = CALL(0, core2, 11, void *, (void *, const wchar_t *))(one, L"\x20ac");
    void *handles[] = {
        hello, bare, wide, one, NULL, (void *)8, (void *)UINT64_C(0x6d7300000fffffff)};
    struct nvtx_attributes a = {.size = sizeof a, .message_type = NVTX_MESSAGE_IS_REGISTERED};

    assert_ptr_equal(hello, string(one, "hello"));
    assert_ptr_not_equal(hello, string(one, "hello2"));
    assert_ptr_not_equal(bare, string(one, "bare"));
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        a.message.registered = handles[i];
        CALL(0, core2, 1, void, (void *, const struct nvtx_attributes *))(one, &a);
    }
    assert_string_equal(recorded_story(),
                        "mark one: hello|mark bare|mark one: \xe2\x82\xac|mark one: (unnamed)|"
                        "mark one: (unnamed)|mark one: (unnamed)|mark one: (unnamed)");
}

TEST_WITH(events_without_a_message, two_copies, NULL)
{
    void *one = domain("one");
    struct nvtx_attributes a = {.size = sizeof a, .category = 7};

    CALL(0, core, 12, void, (uint32_t, const char *))(7, "io");
    CALL(0, core2, 9, void, (void *, uint32_t, const wchar_t *))(one, 7, L"net");
    push_in(NULL, &a);
    push_in(one, &a);
    a.message_type = NVTX_MESSAGE_IS_ASCII; /* a NULL text */
    push_in(NULL, &a);
    a.message.ascii = "not there";
    a.size = offsetof(struct nvtx_attributes, message_type);
    push_in(NULL, &a);
    a.size = 4; /* not even a category */
    push_in(NULL, &a);
    push_in(one, NULL);
    push(NULL);
    push("");
    assert_string_equal(recorded_story(), "push io|push one: net|push io|push io|push (unnamed)|"
                                          "push one: (unnamed)|push (unnamed)|push (unnamed)");
    while (pop() >= 0)
        ;
    while (pop_in(one) >= 0)
        ;
}

/* Names longer than the limit are cut where a character ends. */
TEST_WITH(long_names, two_copies, NULL)
{
    static char text[3 * MT_MAX_NVTX_TEXT_BYTES];
    void *one;

    memset(text, 'x', sizeof text - 1);
    push(text);
    assert_int_equal(strlen(recorded.names[recorded.name_count - 1]), MT_MAX_NVTX_TEXT_BYTES);
    text[MT_MAX_NVTX_TEXT_BYTES - 2] = '\xe2';
    text[MT_MAX_NVTX_TEXT_BYTES - 1] = '\x82';
    text[MT_MAX_NVTX_TEXT_BYTES] = '\xac';
    push(text);
    assert_int_equal(strlen(recorded.names[recorded.name_count - 1]), MT_MAX_NVTX_TEXT_BYTES - 2);
    one = domain(text);
    push_in(one, &(struct nvtx_attributes){.size = sizeof(struct nvtx_attributes),
                                           .message_type = NVTX_MESSAGE_IS_REGISTERED,
                                           .message = {.registered = string(one, text)}});
    assert_in_range(strlen(recorded.names[recorded.name_count - 1]), MT_MAX_NVTX_TEXT_BYTES - 2,
                    MT_MAX_NVTX_TEXT_BYTES);
    while (pop() >= 0)
        ;
    pop_in(one);
}

static void *end_elsewhere(void *id)
{
    end(*(uint64_t *)id);
    return NULL;
}

TEST_WITH(started_ranges_end_on_any_thread, two_copies, NULL)
{
    uint64_t a = start("a"), b = start("b");
    uint32_t here = mt_collect_thread();
    char wanted[128];
    pthread_t thread;

    assert_true(a && b && a != b);
    assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, &a), 0);
    pthread_join(thread, NULL);
    end(b);
    end(b); /* twice, and ids that nobody gave out */
    end(0);
    end(UINT64_MAX);
    end(123456789);
    snprintf(wanted, sizeof wanted, "push a|push b|pop a of %u|pop b", here);
    assert_string_equal(recorded_story(), wanted);
}

TEST_WITH(too_many_started_ranges, two_copies, NULL)
{
    enum { COUNT = 50000 };
    static uint64_t ids[COUNT];

    for (int i = 0; i < COUNT; i++)
        ids[i] = start("leak");
    size_t begun = recorded.count;
    assert_in_range(begun, 10000, COUNT - 1);
    assert_string_equal(recorded.said,
                        "too many NVTX ranges were started and not ended: the trace lacks some");
    for (int i = 0; i < COUNT; i++)
        end(ids[i]);
    assert_int_equal(recorded.count, 2 * begun);
    recorded_clear();
    end(start("again"));
    assert_string_equal(recorded_story(), "push again|pop again");
}

TEST_WITH(deep_nesting, two_copies, NULL)
{
    enum { DEPTH = 70000 };

    for (int i = 0; i < DEPTH; i++)
        push("deep");
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(pop(), DEPTH - 1 - i < 65536 ? DEPTH - 1 - i : 65536);
    assert_int_equal(pop(), -1);
    assert_int_equal(recorded.count, 2 * 65536);
    recorded_clear();
}

TEST_WITH(a_collector_that_does_not_run, two_copies, NULL)
{
    recorded.refuses = true;
    assert_int_equal(push("a"), 0);
    uint64_t id = start("s");
    assert_int_not_equal(id, 0);
    recorded.refuses = false;
    assert_int_equal(push("b"), 1);
    assert_int_equal(pop(), 1);
    assert_int_equal(pop(), 0);
    end(id);
    assert_string_equal(recorded_story(), "push b|pop b");
}

TEST_WITH(a_forked_child_forgets, two_copies, NULL)
{
    uint64_t id = start("s");

    push("a");
    recorded_clear();
    mt_nvtx_source.forked();
    push("b");
    assert_int_equal(pop(), 1);
    assert_int_equal(pop(), 0);
    end(id);
    assert_string_equal(recorded_story(), "push b|pop b");
}

static _Atomic bool registering;

static void *register_for_ever(void *unused)
{
    char name[16];

    for (int i = 0; registering; i++) {
        snprintf(name, sizeof name, "r%d", i % 50);
        string(NULL, name);
    }
    return unused;
}

/* Whatever another thread was doing at the fork, a child can go on. */
TEST_WITH(forks_beside_other_threads, two_copies, NULL)
{
    pthread_t thread;
    int status;

    registering = true;
    assert_int_equal(pthread_create(&thread, NULL, register_for_ever, NULL), 0);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            _exit(domain("of a child") && string(NULL, "r1") ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    registering = false;
    pthread_join(thread, NULL);
}

TEST_WITH(names_of_threads, two_copies, NULL)
{
    CALL(0, core, 14, void, (uint32_t, const char *))(4711, "loader");
    assert_string_equal(thread_name_told, "4711 loader");
    CALL(0, core, 15, void, (uint32_t, const wchar_t *))(12, L"\x20ac");
    assert_string_equal(thread_name_told, "12 \xe2\x82\xac");
}

TEST_WITH(errno_is_kept, two_copies, NULL)
{
    errno = 77;
    push("a");
    pop();
    end(start("b"));
    string(domain("errno"), "c");
    InitializeInjectionNvtx2(get_0);
    assert_int_equal(errno, 77);
    recorded_clear();
}

TEST_WITH(nobody_asked, two_copies, NULL)
{
    for (int i = 0; i < 2; i++) {
        recorded_settings = (struct mt_inject_settings){.asked = i == 1, .phases_nvtx = i == 0};
        fresh_copy(&copies[0]);
        assert_int_equal(InitializeInjectionNvtx2(get_0), 0);
        assert_ptr_equal((void *)copies[0].core[9], (void *)stub);
    }
}

/* What libnvToolsExt shows to tools of NVTX 1: another table, of another size. */
static const void *get_nvtx1(uint32_t id)
{
    static const struct {
        size_t size;
        nvtx_function subscribe, enable;
    } table = {sizeof table, stub, stub};

    return id == 1 ? &table : NULL;
}

static const void *get_nothing(uint32_t id)
{
    (void)id;
    return NULL;
}

TEST_WITH(tables_that_are_not_known, two_copies, NULL)
{
    assert_int_equal(InitializeInjectionNvtx(get_nvtx1), 0);
    assert_int_equal(InitializeInjectionNvtx2(get_nothing), 0);
    assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
    assert_int_equal(InitializeInjectionNvtx(get_0), 1);
}

enum { THREADS = 4, ROUNDS = 500 };

static pthread_barrier_t all_ready;

/* Two threads fill a copy each, at the same time; then all use them. */
static void *use_everything(void *number)
{
    char name[16];

    if (*(int *)number < 2)
        InitializeInjectionNvtx2(*(int *)number ? get_1 : get_0);
    pthread_barrier_wait(&all_ready);
    for (int i = 0; i < ROUNDS; i++) {
        struct nvtx_attributes a;
        void *in;
        snprintf(name, sizeof name, "d%d", i % 100);
        in = domain(name);
        a = (struct nvtx_attributes){.size = sizeof a,
                                     .message_type = NVTX_MESSAGE_IS_REGISTERED,
                                     .message = {.registered = string(in, "m")}};
        push_in(in, &a);
        uint64_t id = start("s");
        push("p");
        end(id);
        pop();
        pop_in(in);
    }
    return NULL;
}

TEST_WITH(several_threads, two_copies, NULL)
{
    int numbers[THREADS], open[THREADS + 16] = {0};
    pthread_t threads[THREADS];

    pthread_barrier_init(&all_ready, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, use_everything, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(recorded.count, THREADS * ROUNDS * 6);
    for (size_t i = 0; i < recorded.count; i++) {
        const struct mt_raw_event *event = &recorded.events[i];
        const char *name = recorded.names[event->id - 1];
        assert_true(!strcmp(name, "s") || !strcmp(name, "p") || !strcmp(strchr(name, ':'), ": m"));
        open[event->ticks % 16] += event->kind == MT_EVENT_PHASE_PUSH ? 1 : -1;
        assert_in_range(open[event->ticks % 16], 0, 3);
    }
    recorded_clear();
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
