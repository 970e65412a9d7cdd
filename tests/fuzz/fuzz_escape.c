/* Hostile text within every kind of document: it stays text. */
#include "cli.h"
#include "escape.h"
#include "json.h"
#include "output_checks.h"

static void check_printable(const char *text, size_t length, struct mt_buf *out)
{
    mt_buf_reset(out);
    mt_buf_add_printable(out, text, length);
    FUZZ_CHECK(!out->length || (is_clean_text(out->data, out->length) && !strchr(out->data, '\n')));
}

static void check_json(const char *text, struct mt_buf *out, bool pretty)
{
    struct mt_json json;

    mt_buf_reset(out);
    mt_json_init(&json, out, pretty);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, text, text);
    mt_json_array_begin(&json, "list");
    mt_json_text(&json, NULL, text);
    mt_json_share(&json, NULL, (double)strlen(text) / 3);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
    FUZZ_CHECK(!pretty ? is_clean_text(out->data, out->length) && is_json(out->data)
                       : is_clean_text(out->data, out->length));
}

static void check_documents(const char *text, struct mt_buf *out, size_t columns)
{
    mt_buf_reset(out);
    mt_buf_add_text(out, "");
    mt_escape_add_xml(out, text);
    FUZZ_CHECK(!out->data || is_xml_text(out->data));
    mt_buf_reset(out);
    mt_escape_add_script_string(out, text, columns);
    FUZZ_CHECK(is_clean_text(out->data, out->length) && is_json(out->data));
    FUZZ_CHECK(!strpbrk(out->data, "<>&"));
    mt_buf_reset(out);
    mt_buf_add_char(out, ' ');
    mt_escape_add_markdown(out, text, columns);
    FUZZ_CHECK(is_clean_text(out->data, out->length));
    FUZZ_CHECK(!strpbrk(out->data, "<>|`*_[]\n") && !strstr(out->data, "://"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mt_buf out = {0};

    check_printable(text, size, &out);
    check_json(text, &out, false);
    check_json(text, &out, true);
    check_documents(text, &out, size % 40 + 1);
    mt_buf_release(&out);
    free(text);
    return 0;
}
