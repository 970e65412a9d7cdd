/* Any bytes as a block of events, without the compression around it, whose
 * checksum would turn away nearly everything that a fuzzer thinks up. What
 * decodes has to encode and decode to the same events again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    struct mt_symbols symbols;
    struct mt_ids ids;
    struct mt_decoder *decoder;
    struct mt_decoded decoded;
};

static bool read_block(struct reading *reading, const uint8_t *data, size_t size)
{
    struct mt_event_block block;
    const char *reason;

    memset(reading, 0, sizeof *reading);
    mt_ids_init(&reading->ids, size);
    reading->decoder = mt_decoder_new();
    return mt_symbols_init(&reading->symbols) == MT_OK && reading->decoder &&
           mt_event_block_parse(data, size, &block, &reason) == MT_OK &&
           mt_ids_define(&reading->ids, &reading->symbols, block.definitions, &reason) == MT_OK &&
           mt_event_block_decode(reading->decoder, &block, &reading->ids, &reading->symbols,
                                 &reading->decoded, &reason) == MT_OK;
}

static void end_reading(struct reading *reading)
{
    mt_decoder_free(reading->decoder);
    mt_ids_release(&reading->ids);
    mt_symbols_release(&reading->symbols);
}

/* Aborts if the events do not survive being written. */
static void check_round_trip(const struct reading *first)
{
    struct mt_definitions_written written = {0};
    struct mt_encoder *encoder = mt_encoder_new(MT_ENCODER_MAX_EVENTS);
    struct mt_buf definitions = {0}, out = {0};
    struct reading second;
    const char *reason;

    mt_definitions_write(&first->symbols, &written, SIZE_MAX, &definitions);
    if (!encoder ||
        mt_event_block_encode(encoder, &first->symbols, first->decoded.events, first->decoded.count,
                              &definitions, &out, &reason) != MT_OK)
        abort();
    if (!read_block(&second, (const uint8_t *)out.data, out.length) ||
        second.decoded.count != first->decoded.count || second.decoded.invalid ||
        memcmp(second.decoded.events, first->decoded.events,
               first->decoded.count * sizeof *first->decoded.events) != 0)
        abort();
    end_reading(&second);
    mt_encoder_free(encoder);
    mt_buf_release(&definitions);
    mt_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading reading;

    if (read_block(&reading, data, size) && reading.decoded.count &&
        reading.decoded.count <= MT_ENCODER_MAX_EVENTS)
        check_round_trip(&reading);
    end_reading(&reading);
    return 0;
}
