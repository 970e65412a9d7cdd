#include "draw.h"
#include "glyphs.h"

#define REPLACEMENT 0xFFFDu

/* Bytes that follow a lead byte, and the bits that the lead byte carries. */
static unsigned utf8_tail(unsigned char lead, uint32_t *bits)
{
    if (lead >= 0xC2 && lead < 0xE0)
        return *bits = lead & 0x1Fu, 1;
    if (lead >= 0xE0 && lead < 0xF0)
        return *bits = lead & 0x0Fu, 2;
    if (lead >= 0xF0 && lead < 0xF5)
        return *bits = lead & 0x07u, 3;
    return 0;
}

uint32_t mt_utf8_next(const char **text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)*text;
    uint32_t character = 0;
    unsigned tail, i;

    if (!*at)
        return 0;
    *text += 1;
    if (*at < 0x80)
        return *at;
    tail = utf8_tail(*at, &character);
    for (i = 1; i <= tail; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return REPLACEMENT;
        character = character << 6 | (at[i] & 0x3Fu);
    }
    if (!tail || character < least[tail] || character > 0x10FFFF ||
        (character >= 0xD800 && character < 0xE000))
        return REPLACEMENT;
    *text += tail;
    return character;
}

/* Characters that look like one that the table has. */
static uint32_t same_look(uint32_t character)
{
    switch (character) {
    case '\t':
    case '\n':
    case 0xA0:
    case 0x202F: return ' ';
    case 0x3BC: return 0xB5; /* Greek mu, micro sign */
    case 0x2010:
    case 0x2011: return '-';
    default: return character;
    }
}

const struct mt_glyph *mt_glyph_find(const struct mt_glyph_table *table, uint32_t character)
{
    uint32_t low = 0, high = table->count, middle;

    character = same_look(character);
    if (character >= 0x20 && character < 0x7F)
        return &table->glyphs[character - 0x20];
    while (low < high) {
        middle = low + (high - low) / 2;
        if (table->glyphs[middle].character == character)
            return &table->glyphs[middle];
        if (table->glyphs[middle].character < character)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

double mt_text_width(const char *text, double size, enum mt_weight weight)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[weight];
    const struct mt_glyph *glyph;
    uint32_t character;
    uint64_t units = 0;

    while ((character = mt_utf8_next(&text))) {
        glyph = mt_glyph_find(table, character);
        units += glyph ? glyph->advance : MT_GLYPH_BOX_ADVANCE;
    }
    return (double)units * size / MT_GLYPH_EM;
}
