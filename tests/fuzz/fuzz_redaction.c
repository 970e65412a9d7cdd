/* Redacts any text: nothing that identifies is left, and hashed names stay. */
#include "fuzz.h"
#include "redaction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mt_redaction salt = {.salt = {1}};
    struct mt_buf out = {0};

    if (!size)
        return 0;
    enum mt_text_kind kind = (enum mt_text_kind)(*data % (MT_TEXT_UUID + 1));
    mt_redact(&salt, kind, (const char *)data + 1, size - 1, &out);
    FUZZ_CHECK(!out.failed);
    FUZZ_CHECK(!mt_text_identifies(kind, out.data ? out.data : "", out.length));
    mt_buf_release(&out);
    return 0;
}
