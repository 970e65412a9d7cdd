#include "glyphs.h"

#include <string.h>

#include "foreign_text.h"

#define REPLACEMENT 0xFFFDu

uint32_t mt_utf8_next(const char **text)
{
    uint32_t character = REPLACEMENT;

    if (!**text)
        return 0;
    size_t length = mt_utf8_read(*text, 4, &character); /* the NUL ends a shorter sequence */
    *text += length ? length : 1;
    return character;
}

/* Returns a character of the table that looks the same as `character`, if there is one. */
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
    uint32_t low = 0, high = table->count;

    character = same_look(character);
    if (character >= 0x20 && character < 0x7F)
        return &table->glyphs[character - 0x20];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->glyphs[middle].character == character)
            return &table->glyphs[middle];
        if (table->glyphs[middle].character < character)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static uint64_t advance(const struct mt_glyph_table *table, uint32_t character)
{
    const struct mt_glyph *glyph = mt_glyph_find(table, character);

    return glyph ? glyph->advance : MT_GLYPH_BOX_ADVANCE;
}

double mt_text_width(const char *text, double size, enum mt_weight weight)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[weight];
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;
    char escape[MT_FOREIGN_ESCAPE];
    uint64_t units = 0;

    while (mt_foreign_next(&foreign, &c)) {
        if (c.is_shown || c.code == '\n' || c.code == '\t') {
            units += advance(table, c.code);
            continue;
        }
        for (size_t i = mt_foreign_escape(&c, escape); i > 0; i--)
            units += advance(table, (unsigned char)escape[i - 1]);
    }
    return (double)units * size / MT_GLYPH_EM;
}
