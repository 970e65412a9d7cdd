/* Any bytes as PYTORCH_CUDA_ALLOC_CONF and as the settings of a snapshot: what is
 * accepted can be spelled and read again, and sizes keep their rules. */
#include "fuzz.h"
#include "pytorch_config.h"

static void check_sizes(const struct mt_pytorch_config *config)
{
    static const uint64_t sizes[] = {
        0, 1, 512, 513, 1 << 20, (1 << 20) + 1, 10 << 20, 20u << 20, UINT64_C(5) << 30};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t rounded = mt_pytorch_round_size(config, sizes[i]);
        FUZZ_CHECK(rounded >= sizes[i] && rounded > 0);
        FUZZ_CHECK(mt_pytorch_segment_size(config, rounded) >= rounded);
    }
}

static void check_spelling(const struct mt_pytorch_config *config)
{
    char first[1024], second[1024];
    struct mt_pytorch_config again;
    struct mt_error error;

    mt_pytorch_config_spell(config, first, sizeof first);
    mt_pytorch_config_defaults(&again);
    FUZZ_CHECK(mt_pytorch_config_parse(first, &again, &error) == MT_OK);
    mt_pytorch_config_spell(&again, second, sizeof second);
    FUZZ_CHECK(strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_trace_header header = {0};
    struct mt_pytorch_config config;
    struct mt_error error = {0};
    char *text = fuzz_text(data, size), *settings = strchr(text, '|');

    if (settings)
        *settings++ = '\0';
    mt_pytorch_config_defaults(&config);
    if (mt_pytorch_config_parse(text, &config, &error) == MT_OK) {
        check_sizes(&config);
        check_spelling(&config);
    } else {
        FUZZ_CHECK(error.text[0]);
    }
    header.allocator_options = text;
    header.settings = settings;
    mt_pytorch_config_defaults(&config);
    if (mt_pytorch_config_recorded(&header, &config, &error) == MT_OK)
        check_sizes(&config);
    free(text);
    return 0;
}
