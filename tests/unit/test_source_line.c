/* The innermost line of a Python traceback. */
#include "cmocka_all.h"

#include <string.h>

#include "torch_names.h"

static void expect(const char *text, const char *file, unsigned line, const char *function)
{
    struct mt_source_line found;

    assert_true(mt_source_line_last(text, &found));
    assert_int_equal(found.file_length, strlen(file));
    assert_memory_equal(found.file, file, strlen(file));
    assert_int_equal(found.line, line);
    assert_int_equal(found.function_length, strlen(function));
    assert_memory_equal(found.function, function, strlen(function));
}

TEST(the_last_line_is_the_innermost_call)
{
    expect("  File \"model.py\", line 12, in forward\n    x = self.fc(x)\n", "model.py", 12,
           "forward");
    expect("File \"a.py\", line 1, in f\n  g()\nFile \"dir/b c.py\", line 29, in g\n  1 / 0",
           "dir/b c.py", 29, "g");
    expect("File \"a.py\", line 1, in f\r\nFile \"broken\nFile \"c\", line x, in h", "a.py", 1,
           "f");
    expect("File \"say \"hi\".py\", line 3, in <module>", "say \"hi\".py", 3, "<module>");
}

TEST(other_texts_have_none)
{
    static const char *const texts[] = {"",
                                        "File \"",
                                        "File \"a.py",
                                        "File \"a.py\", line ",
                                        "File \"a.py\", line 3",
                                        "File \"a.py\", line 3, in ",
                                        "File \"\", line 3, in f",
                                        "File \"a.py\",\nline 3, in f",
                                        "File \"a.py\", line -3, in f",
                                        "File \"a.py\", line 12345678901, in f"};
    struct mt_source_line found;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(mt_source_line_last(texts[i], &found));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
