/* The pickle reader: every opcode, every refusal, and the rules of hooks. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "map.h"
#include "pickle.h"
#include "util.h"

#define BYTES(text) (text), sizeof(text) - 1

static enum mt_status read_bytes(const void *bytes, size_t length,
                                 const struct mt_pickle_hooks *hooks, struct mt_pickle **pickle,
                                 struct mt_pickle_value *root, struct mt_error *error)
{
    /* an exact copy, so that sanitizers detect reads past the end */
    void *copy = malloc(length ? length : 1);
    struct mt_feed *feed = NULL;
    enum mt_status status;

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    assert_int_equal(mt_feed_open_memory(copy, length, &feed, error), MT_OK);
    status = mt_pickle_read(feed, hooks, pickle, root, error);
    mt_feed_close(feed);
    free(copy);
    return status;
}

static void add_repr(const struct mt_pickle *pickle, struct mt_pickle_value value, int depth,
                     struct mt_buf *out);

static void add_items(const struct mt_pickle *pickle, struct mt_pickle_value value, int depth,
                      struct mt_buf *out)
{
    static const char *const around[] = {"[]", "()", "{}", "{}"};
    const char *brackets = around[value.kind - MT_PICKLE_LIST];
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, value, &count);

    mt_buf_add_char(out, brackets[0]);
    for (size_t i = 0; i < count; i++) {
        bool is_value = value.kind == MT_PICKLE_DICT && i % 2;
        mt_buf_add_text(out, i == 0 ? "" : is_value ? ":" : ",");
        add_repr(pickle, items[i], depth + 1, out);
    }
    mt_buf_add_char(out, brackets[1]);
}

/* Close to Python's format. */
static void add_repr(const struct mt_pickle *pickle, struct mt_pickle_value value, int depth,
                     struct mt_buf *out)
{
    double number;
    size_t length;

    if (depth > 4) {
        mt_buf_add_text(out, "...");
        return;
    }
    switch (value.kind) {
    case MT_PICKLE_NONE: mt_buf_add_text(out, "None"); break;
    case MT_PICKLE_BOOL: mt_buf_add_text(out, value.bits ? "True" : "False"); break;
    case MT_PICKLE_INT: mt_buf_add_i64(out, (int64_t)value.bits); break;
    case MT_PICKLE_UINT: mt_buf_add_u64(out, value.bits); break;
    case MT_PICKLE_BIG: mt_buf_add_text(out, "big"); break;
    case MT_PICKLE_FLOAT:
        memcpy(&number, &value.bits, sizeof number);
        mt_buf_add_decimal(out, number, 6);
        mt_buf_add_char(out, 'f');
        break;
    case MT_PICKLE_TEXT:
    case MT_PICKLE_BYTES:
        mt_buf_add_text(out, value.kind == MT_PICKLE_TEXT ? "'" : "b'");
        mt_pickle_text(pickle, value, &length);
        mt_buf_add(out, mt_pickle_text(pickle, value, &length), length);
        mt_buf_add_char(out, '\'');
        break;
    case MT_PICKLE_HOST: mt_buf_printf(out, "<%d:%d>", value.host, (int)value.bits); break;
    default: add_items(pickle, value, depth, out); break;
    }
}

static void expect(const void *bytes, size_t length, const struct mt_pickle_hooks *hooks,
                   const char *wanted)
{
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_error error = {.text = ""};
    struct mt_buf repr = {0};

    if (read_bytes(bytes, length, hooks, &pickle, &root, &error) != MT_OK)
        fail_msg("%s: %s", wanted, error.text);
    add_repr(pickle, root, 0, &repr);
    assert_string_equal(repr.data, wanted);
    assert_true(mt_pickle_bytes(pickle) <= length);
    mt_buf_release(&repr);
    mt_pickle_free(pickle);
}

/* Each supported opcode, in the smallest pickle that needs it. */
TEST(test_opcodes)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *repr;
    } cases[] = {
        {BYTES("N."), "None"},
        {BYTES("\x80\x05N."), "None"},
        {BYTES("\x80\x04\x95\x02\0\0\0\0\0\0\0N."), "None"},
        {BYTES("\x88."), "True"},
        {BYTES("\x89."), "False"},
        {BYTES("I01\n."), "True"},
        {BYTES("I00\n."), "False"},
        {BYTES("I-12\n."), "-12"},
        {BYTES("I7\n."), "7"},
        {BYTES("L12L\n."), "12"},
        {BYTES("L-9223372036854775808L\n."), "-9223372036854775808"},
        {BYTES("L18446744073709551615L\n."), "18446744073709551615"},
        {BYTES("L18446744073709551616L\n."), "big"},
        {BYTES("L-9223372036854775809L\n."), "big"},
        {BYTES("K\xff."), "255"},
        {BYTES("M\x01\x02."), "513"},
        {BYTES("J\xff\xff\xff\xff."), "-1"},
        {BYTES("J\0\0\0\x7f."), "2130706432"},
        {BYTES("\x8a\0."), "0"},
        {BYTES("\x8a\x01\xff."), "-1"},
        {BYTES("\x8a\x03\x01\0\x80."), "-8388607"},
        {BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "9223372036854775807"},
        {BYTES("\x8a\x08\0\0\0\0\0\0\0\x80."), "-9223372036854775808"},
        {BYTES("\x8a\x09\0\0\0\0\0\0\0\x80\0."), "9223372036854775808"},
        {BYTES("\x8a\x09\0\0\0\0\0\0\0\0\x01."), "big"},
        {BYTES("\x8a\x09\0\0\0\0\0\0\0\x7f\xff."), "big"},
        {BYTES("\x8b\x02\0\0\0\x01\x01."), "257"},
        {BYTES("G\x3f\xf8\0\0\0\0\0\0."), "1.5f"},
        {BYTES("F-2.25\n."), "-2.25f"},
        {BYTES("F12.5e-1\n."), "1.25f"},
        {BYTES("F1e3\n."), "1000f"},
        {BYTES("\x8c\x02hi."), "'hi'"},
        {BYTES("X\x02\0\0\0hi."), "'hi'"},
        {BYTES("\x8d\x02\0\0\0\0\0\0\0hi."), "'hi'"},
        {BYTES("U\x02hi."), "'hi'"},
        {BYTES("T\x02\0\0\0hi."), "'hi'"},
        {BYTES("S'h\\'i\\n\\x41\\101'\n."), "'h'i\nAA'"},
        {BYTES("S\"h\"\n."), "'h'"},
        {BYTES("Vh\\u00e9\\U0001F600\xe9\n."), "'h\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9'"},
        {BYTES("C\x02hi."), "b'hi'"},
        {BYTES("B\x02\0\0\0hi."), "b'hi'"},
        {BYTES("\x8e\x02\0\0\0\0\0\0\0hi."), "b'hi'"},
        {BYTES("\x96\x02\0\0\0\0\0\0\0hi."), "b'hi'"},
        {BYTES(")."), "()"},
        {BYTES("K\x01\x85."), "(1)"},
        {BYTES("K\x01K\x02\x86."), "(1,2)"},
        {BYTES("K\x01K\x02K\x03\x87."), "(1,2,3)"},
        {BYTES("(K\x01K\x02K\x03K\x04t."), "(1,2,3,4)"},
        {BYTES("]."), "[]"},
        {BYTES("(K\x01K\x02l."), "[1,2]"},
        {BYTES("]K\x01\x61."), "[1]"},
        {BYTES("](K\x01K\x02\x65."), "[1,2]"},
        {BYTES("](K\x01\x65(K\x02\x65."), "[1,2]"},
        {BYTES("}."), "{}"},
        {BYTES("(K\x01K\x02\x64."), "{1:2}"},
        {BYTES("}K\x01K\x02s."), "{1:2}"},
        {BYTES("}(K\x01K\x02K\x03K\x04u."), "{1:2,3:4}"},
        {BYTES("\x8f(K\x01K\x02\x90."), "{1,2}"},
        {BYTES("(K\x01\x91."), "{1}"},
        {BYTES("K\x01K\x02\x30."), "1"},
        {BYTES("K\x01(K\x02\x31."), "1"},
        {BYTES("K\x01(0."), "1"}, /* POP of a mark */
        {BYTES("K\x01\x32\x86."), "(1,1)"},
        {BYTES("\x8c\x01x\x94h\0\x86."), "('x','x')"},
        {BYTES("\x8c\x01xq\x05h\x05\x86."), "('x','x')"},
        {BYTES("\x8c\x01xr\x05\0\0\0j\x05\0\0\0\x86."), "('x','x')"},
        {BYTES("S'x'\np5\ng5\n\x86."), "('x','x')"},
        {BYTES("J\xff\xff\xff\xff\x94h\0\x86."), "(-1,-1)"}, /* boxed in the memo */
        {BYTES("]\x94(h\0h\0\x65."), "[[[[[...,...],[...,...]],[[...,...],[...,...]]],[[[...,...],"
                                     "[...,...]],[[...,...],[...,...]]]],[[[[...,...],[...,...]],"
                                     "[[...,...],[...,...]]],[[[...,...],[...,...]],[[...,...],"
                                     "[...,...]]]]]"},
        {BYTES("N.trailing bytes are not ours"), "None"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        expect(cases[i].bytes, cases[i].length, NULL, cases[i].repr);
}

static void expect_error(const void *bytes, size_t length, enum mt_status status, uint64_t offset,
                         const char *text)
{
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_error error = {.text = ""};

    assert_int_equal(read_bytes(bytes, length, NULL, &pickle, &root, &error), status);
    if (!strstr(error.text, text) || error.offset != offset)
        fail_msg("'%s' at %llu instead of '%s' at %llu", error.text,
                 (unsigned long long)error.offset, text, (unsigned long long)offset);
    assert_null(pickle);
}

/* Opcodes that import, call, or refer to external data are refused, with name and position. */
TEST(test_refusals)
{
    static const struct {
        const char *bytes;
        size_t length;
        uint64_t offset;
        const char *name;
    } cases[] = {
        {BYTES("cos\nsystem\n(S'true'\ntR."), 0, "GLOBAL"},
        {BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), 14, "STACK_GLOBAL"},
        {BYTES("N)R."), 2, "REDUCE"},
        {BYTES("N}b."), 2, "BUILD"},
        {BYTES("(ios\nsystem\n."), 1, "INST"},
        {BYTES("(No."), 2, "OBJ"},
        {BYTES("N)\x81."), 2, "NEWOBJ"},
        {BYTES("N)}\x92."), 3, "NEWOBJ_EX"},
        {BYTES("\x82\x01."), 0, "EXT1"},
        {BYTES("\x83\x01\x01."), 0, "EXT2"},
        {BYTES("\x84\x01\x01\x01\x01."), 0, "EXT4"},
        {BYTES("Pid\n."), 0, "PERSID"},
        {BYTES("NQ."), 1, "BINPERSID"},
        {BYTES("\x97."), 0, "NEXT_BUFFER"},
        {BYTES("C\0\x98."), 2, "READONLY_BUFFER"},
    };
    char text[64];

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        snprintf(text, sizeof text, "refused opcode %s:", cases[i].name);
        expect_error(cases[i].bytes, cases[i].length, MT_ERR_UNSUPPORTED, cases[i].offset, text);
    }
    expect_error(BYTES("\x80\x06N."), MT_ERR_UNSUPPORTED, 0, "protocol 6");
}

TEST(test_errors)
{
    static const struct {
        const char *bytes;
        size_t length;
        uint64_t offset;
        const char *text;
    } cases[] = {
        {BYTES(""), 0, "no STOP"},
        {BYTES("N"), 1, "no STOP"},
        {BYTES("."), 0, "STOP without a value"},
        {BYTES("(N."), 2, "inside of a container"},
        {BYTES("\xff."), 0, "unknown opcode 0xff"},
        {BYTES("K"), 0, "copied in part"},
        {BYTES("\x8c\x05hi"), 0, "copied in part"},
        {BYTES("X\xff\xff\xff\xffhi"), 0, "copied in part"},
        {BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi"), 0, "copied in part"},
        {BYTES("\x8b\xff\xff\xff\xff."), 0, "negative length"},
        {BYTES("NI12"), 1, "copied in part"},
        {BYTES("Ix\n."), 0, "not a number"},
        {BYTES("I\n."), 0, "not a number"},
        {BYTES("F1.2.3\n."), 0, "not a number"},
        {BYTES("F.\n."), 0, "not a number"},
        {BYTES("S'x\n."), 0, "not quoted or escaped correctly"},
        {BYTES("V\\u12\n."), 0, "not quoted or escaped correctly"},
        {BYTES("0."), 0, "nothing on the stack"},
        {BYTES("1."), 0, "no mark"},
        {BYTES("2."), 0, "nothing on the stack"},
        {BYTES("t."), 0, "no mark"},
        {BYTES("N\x86."), 1, "not enough values"},
        {BYTES("N(N\x86."), 3, "not enough values"},
        {BYTES("Na."), 1, "not enough values"},
        {BYTES("NNa."), 2, "cannot hold"},
        {BYTES("](N(Na."), 5, "not enough values"},
        {BYTES("}NNs]NNs."), 7, "cannot hold"},
        {BYTES("](NNu."), 4, "cannot hold"},
        {BYTES("}(Nu."), 3, "without a value"},
        {BYTES("}(]Nu."), 4, "key that is a container"},
        {BYTES("(Ne."), 2, "no container below"},
        {BYTES("h\x01."), 0, "never set"},
        {BYTES("j\x01\x02\x03\x04."), 0, "never set"},
        {BYTES("Nr\xf0\xff\xff\xff."), 1, "larger than the data"},
        {BYTES("Np4294967295\n."), 1, "larger than the data"},
        {BYTES("Np-1\n."), 1, "not a number"},
        {BYTES("q\x01."), 0, "nothing on the stack"},
        {BYTES("Nq\x07h\x06\x86."), 3, "never set"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        expect_error(cases[i].bytes, cases[i].length, MT_ERR_FORMAT, cases[i].offset,
                     cases[i].text);
}

/* Text longer than the window, and text across its edge. */
TEST(test_long_texts)
{
    size_t lengths[] = {100, 20000, 300000, 1000000}, i, j;

    for (i = 0; i < MT_ARRAY_LEN(lengths); i++) {
        struct mt_buf bytes = {0};
        struct mt_pickle_value root;
        struct mt_pickle *pickle = NULL;
        struct mt_error error = {.text = ""};
        const struct mt_pickle_value *items;
        size_t count, length;

        mt_buf_add(&bytes, BYTES("("));
        for (j = 0; j < 3; j++) {
            uint32_t claimed = (uint32_t)lengths[i];
            mt_buf_add_char(&bytes, 'X');
            mt_buf_add(&bytes, &claimed, 4);
            memset(mt_buf_reserve(&bytes, claimed), 'a' + (int)j, claimed);
            bytes.length += claimed;
        }
        mt_buf_add(&bytes, BYTES("l."));
        assert_int_equal(read_bytes(bytes.data, bytes.length, NULL, &pickle, &root, &error), MT_OK);
        items = mt_pickle_items(pickle, root, &count);
        assert_int_equal(count, 3);
        for (j = 0; j < 3; j++) {
            const char *text = mt_pickle_text(pickle, items[j], &length);
            assert_int_equal(length, lengths[i]);
            assert_int_equal(text[0], 'a' + (int)j);
            assert_int_equal(text[length - 1], 'a' + (int)j);
        }
        mt_pickle_free(pickle);
        mt_buf_release(&bytes);
    }
}

struct recorder {
    int calls, converted;
};

/* Dictionaries with the key "x" (text 0) become <1:value of x>, pairs <2:sum>. */
static enum mt_status convert(void *context, struct mt_pickle *pickle,
                              const struct mt_pickle_value *items, size_t count,
                              struct mt_pickle_value *value, struct mt_error *error)
{
    struct recorder *recorder = context;

    (void)pickle;
    (void)error;
    recorder->calls++;
    if (value->kind == MT_PICKLE_TUPLE && count == 2) {
        *value = (struct mt_pickle_value){items[0].bits + items[1].bits, MT_PICKLE_HOST, 2};
        return MT_OK;
    }
    for (size_t i = 0; value->kind == MT_PICKLE_DICT && i + 1 < count; i += 2) {
        if (items[i].kind != MT_PICKLE_TEXT || items[i].bits != 0)
            continue;
        recorder->converted++;
        *value = (struct mt_pickle_value){items[i + 1].bits, MT_PICKLE_HOST, 1};
        return MT_OK;
    }
    return MT_OK;
}

static void expect_converted(const void *bytes, size_t length, const char *repr, int converted)
{
    static const char *const texts[] = {"x"};

    for (int quick = 0; quick < 2; quick++) {
        struct recorder recorder = {0, 0};
        struct mt_pickle_hooks hooks = {.context = &recorder,
                                        .complete = convert,
                                        .texts = texts,
                                        .text_count = 1,
                                        .no_short_cuts = quick == 0};
        expect(bytes, length, &hooks, repr);
        assert_int_equal(recorder.converted, converted);
    }
}

TEST(test_hooks)
{
    expect_converted(BYTES("](}(\x8c\x01xK\x05u\x65."), "[<1:5>]", 1);
    expect_converted(BYTES("](}\x8c\x01xK\x05s\x65."), "[<1:5>]", 1);
    /* one item at a time: complete only when used */
    expect_converted(BYTES("](}\x8c\x01yK\x04s\x8c\x01xK\x05s\x65."), "[<1:5>]", 1);
    /* memoized before its items came, and used twice */
    expect_converted(BYTES("](}\x94(\x8c\x01xK\x05uh\0h\0\x65."), "[<1:5>,<1:5>,<1:5>]", 1);
    /* memoized after, as torch::jit does it */
    expect_converted(BYTES("](}(\x8c\x01xK\x05uq\x01h\x01\x65."), "[<1:5>,<1:5>]", 1);
    /* referred to while it is still open */
    expect_converted(BYTES("(}\x94\x32\x8c\x01xK\x05sh\0l."), "[<1:5>,<1:5>,<1:5>]", 1);
    expect_converted(BYTES("](K\x01K\x02\x86K\x03K\x04\x86\x65."), "[<2:3>,<2:7>]", 0);
    expect_converted(BYTES("}(\x8c\x01yK\x05u."), "{'y':5}", 0);
    expect_converted(BYTES("}(\x8c\x01xK\x05u."), "<1:5>", 1);
    /* the next container reuses the object: it must be empty */
    expect_converted(BYTES("](}(\x8c\x01xK\x05u}\x94}\x8c\x01yNs\x65."), "[<1:5>,{},{'y':None}]",
                     1);
}

TEST(test_converted_is_final)
{
    static const char *const texts[] = {"x"};
    struct recorder recorder = {0, 0};
    struct mt_pickle_hooks hooks = {
        .context = &recorder, .complete = convert, .texts = texts, .text_count = 1};
    static const char bytes[] = "](}\x94(\x8c\x01xK\x05u\x65h\0(\x8c\x01yNu.";
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_error error = {.text = ""};

    assert_int_equal(read_bytes(bytes, sizeof bytes - 1, &hooks, &pickle, &root, &error),
                     MT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "already in use"));
}

static enum mt_status out_of_memory(void *context, struct mt_pickle *pickle,
                                    const struct mt_pickle_value *items, size_t count,
                                    struct mt_pickle_value *value, struct mt_error *error)
{
    (void)context;
    (void)pickle;
    (void)items;
    (void)count;
    (void)value;
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "hook");
}

TEST(test_hook_errors)
{
    struct mt_pickle_hooks hooks = {.complete = out_of_memory};
    static const char *const pickles[] = {"](}(K\x01Nu\x65.", "].", "]]\x61.", "N\x85.", "]N\x61."};
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_error error;

    for (size_t i = 0; i < MT_ARRAY_LEN(pickles); i++)
        assert_int_equal(read_bytes(pickles[i], strlen(pickles[i]), &hooks, &pickle, &root, &error),
                         MT_ERR_MEMORY);
}

/* Dictionaries with the same bits have the same keys. */
static struct {
    uint64_t bits, keys;
} last_shape;

static void check_shape(const struct mt_pickle_value *items, size_t count, uint64_t bits)
{
    uint64_t keys = count;

    for (size_t i = 0; i < count; i += 2)
        keys = mt_hash_u64(keys * 31 + items[i].bits);
    if (!bits)
        return;
    if (bits == last_shape.bits)
        assert_true(keys == last_shape.keys);
    last_shape.bits = bits;
    last_shape.keys = keys;
}

/* Reads ten thousand dictionaries, with one of each kind of value, through the fast path and
 * without it: the values and their order are the same. A container becomes a hash of its items, so
 * the root's hash covers everything. */
static enum mt_status hash_items(void *context, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *items, size_t count,
                                 struct mt_pickle_value *value, struct mt_error *error)
{
    uint64_t hash = count;

    (void)context;
    (void)pickle;
    (void)error;
    if (value->kind == MT_PICKLE_DICT)
        check_shape(items, count, value->bits);
    else
        assert_int_equal(value->bits, 0);
    if ((!count && value->kind == MT_PICKLE_DICT) || count > 600)
        return MT_OK;
    for (size_t i = 0; i < count; i++)
        hash = mt_hash_u64(hash * 31 + items[i].bits * 7 + items[i].kind);
    *value = (struct mt_pickle_value){hash >> 16, MT_PICKLE_HOST, value->kind};
    return MT_OK;
}

static uint64_t hash_all(const struct mt_buf *bytes, bool no_short_cuts)
{
    struct mt_pickle_hooks hooks = {.complete = hash_items,
                                    .interchangeable = 1u << MT_PICKLE_LIST,
                                    .no_short_cuts = no_short_cuts};
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_error error = {.text = ""};
    const struct mt_pickle_value *items;
    uint64_t hash = 0;
    size_t count;

    if (read_bytes(bytes->data, bytes->length, &hooks, &pickle, &root, &error) != MT_OK)
        fail_msg("%s", error.text);
    items = mt_pickle_items(pickle, root, &count);
    assert_int_equal(count, 6 + 10000 + 10000 / 7 + 1);
    for (size_t i = 0; i < count; i++)
        hash = mt_hash_u64(hash * 31 + items[i].bits * 7 + items[i].kind + items[i].host);
    mt_pickle_free(pickle);
    return hash;
}

static void make_shapes(struct mt_buf *bytes)
{
    uint32_t slot = 7; /* "]" and the keys */

    mt_buf_add(bytes, BYTES("\x80\x04]\x94("));
    mt_buf_add(bytes, BYTES("\x8c\x01\x61\x94\x8c\x01\x62\x94\x8c\x01\x63\x94\x8c\x01\x64\x94"
                            "\x8c\x01\x65\x94K\x01\x85\x94"));
    for (int i = 0; i < 10000; i++) {
        uint32_t own = slot++;
        mt_buf_add(bytes, BYTES("}\x94("));
        mt_buf_add(bytes, i % 3 ? "h\x01M" : "h\x02M", 3);
        mt_buf_add_char(bytes, (char)i);
        mt_buf_add_char(bytes, (char)(i >> 8));
        mt_buf_add(bytes, BYTES("j\x03\0\0\0\x8a\x06\x01\x02\x03\x04\x05\xf6h\x04\x8c\x03N/A\x94"));
        slot++;
        if (i % 5 == 0) {
            mt_buf_add(bytes, BYTES("h\x05]\x94"));
            slot++;
        } else if (i % 5 == 1) {
            mt_buf_add(bytes, BYTES("h\x05]\x94(h\x01h\x02\x65"));
            slot++;
        } else if (i % 5 == 2) {
            mt_buf_add(bytes, BYTES("h\x05]\x94h\x01\x61"));
            slot++;
        } else if (i % 5 == 3) {
            mt_buf_add(bytes, BYTES("h\x05J\xff\xff\xff\xff"));
        } else {
            mt_buf_add(bytes, BYTES("h\x05N")); /* not in the fast path */
        }
        mt_buf_add_char(bytes, 'u');
        if (i % 7 == 0) {
            mt_buf_add_char(bytes, 'j');
            mt_buf_add(bytes, &own, 4);
        }
        if (i % 1000 == 999) { /* another text for "a", which is a key and in lists */
            mt_buf_add(bytes, BYTES("\x8c\x01"));
            mt_buf_add_char(bytes, (char)('m' + i / 1000));
            mt_buf_add(bytes, BYTES("q\x01\x30"));
        }
    }
    mt_buf_add(bytes, BYTES("e."));
}

TEST(test_fast_path)
{
    struct mt_buf bytes = {0};

    make_shapes(&bytes);
    uint64_t hash = hash_all(&bytes, true);
    assert_int_equal(last_shape.bits, 0);
    assert_true(hash == hash_all(&bytes, false));
    assert_true(last_shape.bits > 0);
    mt_buf_release(&bytes);
}

/* Truncation and bit flips of a small pickle cause at most an error with a position inside the
 * file. */
static void check_any(const char *bytes, size_t length)
{
    struct recorder recorder = {0, 0};
    static const char *const texts[] = {"x"};
    struct mt_pickle_hooks hooks = {
        .context = &recorder, .complete = convert, .texts = texts, .text_count = 1};
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_error error = {.text = ""};
    enum mt_status status = read_bytes(bytes, length, &hooks, &pickle, &root, &error);

    if (status == MT_OK) {
        mt_pickle_free(pickle);
        return;
    }
    assert_true(status == MT_ERR_FORMAT || status == MT_ERR_UNSUPPORTED);
    assert_true(error.text[0] != '\0' && error.offset <= length);
}

TEST(test_damage)
{
    char bytes[] =
        "\x80\x04\x95\x20\0\0\0\0\0\0\0}\x94(\x8c\x01x\x94](}\x94(h\x01K\x05\x8c\x01y\x94"
        "\x8a\x03\x01\x02\x03uh\x02}\x94(h\x03G\x3f\xf0\0\0\0\0\0\0uNK\x01\x86\x94\x65"
        "X\x03\0\0\0abc\x94(S'q'\np9\nI12\ng9\nlu.";
    size_t length = sizeof bytes - 1, i;

    check_any(bytes, length);
    for (i = 0; i < length; i++) {
        char kept = bytes[i];
        check_any(bytes, i);
        for (int bit = 0; bit < 256; bit++) {
            bytes[i] = (char)bit;
            check_any(bytes, length);
        }
        bytes[i] = kept;
    }
}

TEST(test_probe)
{
    assert_true(mt_pickle_probe(BYTES("\x80\x04\x95")));
    assert_true(mt_pickle_probe(BYTES("\x80\x02}q")));
    assert_true(mt_pickle_probe(BYTES("(dp0")));
    assert_true(mt_pickle_probe(BYTES("}q\0")));
    assert_false(mt_pickle_probe(BYTES("")));
    assert_false(mt_pickle_probe(BYTES("\x80\x09")));
    assert_false(mt_pickle_probe(BYTES("{\"a\":1}")));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
