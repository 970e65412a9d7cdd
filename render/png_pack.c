/* Deflate (RFC 1951) for pictures of charts: areas of one color, and rows that repeat the row
 * above. The search for repetitions works with pixels, which have three bytes, and tries three
 * places: the pixel before, the row above, and the last place with the same two pixels. A row that
 * is equal to the row above costs one comparison. Each block has its own Huffman codes. */
#include "png_pack.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "process_memory.h"
#include "util.h"

#define WINDOW        32768 /* bytes: the largest distance */
#define MATCH_PIXELS  86    /* in the longest match, 258 bytes */
#define BLOCK_TOKENS  65536
#define LITERALS      286 /* bytes, the end of a block, lengths of matches */
#define DISTANCES     30
#define END_OF_BLOCK  256
#define FIRST_LENGTH  257
#define LONGEST_MATCH 285 /* symbol */
#define MAX_CODE_BITS 15
#define PLACES        4096
#define PRIME         0x9E3779B97F4A7C15u
#define ADLER         65521
#define LANES         4
#define MOST_SUMMED   4096 /* pixels: more could overflow a lane */
#define OUTPUT_BYTES  1024

/* A token is a pixel, FILTER (the byte 0 that begins a row), or a match:
 * MATCH | pixels << 15 | distance in bytes - 1. */
#define FILTER (1u << 30)
#define MATCH  (1u << 31)

/* Pixels at which a processor looks at once. */
typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

struct huffman {
    uint32_t counts[LITERALS];
    uint16_t codes[LITERALS];
    uint8_t bits[LITERALS];
};

struct mt_png_pack {
    struct mt_buf *out;
    size_t width, row_bytes;   /* row_bytes: with the byte of the filter */
    size_t kept;               /* rows in `rows`: those in the window and the current row */
    uint64_t y;                /* the current row */
    uint32_t *rows;            /* a ring */
    uint64_t places[PLACES];   /* pixel number + 1, by a hash of two pixels */
    uint64_t plain, weighted;  /* what the row adds to the two sums of Adler-32 */
    uint64_t adler_a, adler_b; /* Adler-32 of all rows */
    struct huffman literals, distances;
    size_t token_count;
    uint64_t waiting; /* bits that are not in `bytes` yet */
    unsigned waiting_bits;
    size_t ready;
    uint8_t bytes[OUTPUT_BYTES]; /* those that are not in `out` yet */
    uint32_t tokens[BLOCK_TOKENS];
};

/* A length or a distance is a symbol and extra bits. */
struct symbol {
    unsigned symbol, extra, extra_bits;
};

/* 2^k symbols share a number of extra bits. */
static struct symbol symbol_of(unsigned value, unsigned k)
{
    if (value < 2u << k)
        return (struct symbol){value, 0, 0};
    unsigned bits = 31 - (unsigned)__builtin_clz(value) - k;
    return (struct symbol){(bits << k) + (value >> bits), value & ((1u << bits) - 1), bits};
}

static struct symbol length_symbol(uint32_t token)
{
    unsigned pixels = token >> 15 & 0xFF;
    struct symbol symbol = symbol_of(3 * pixels - 3, 2);

    if (pixels == MATCH_PIXELS)
        return (struct symbol){LONGEST_MATCH, 0, 0};
    symbol.symbol += FIRST_LENGTH;
    return symbol;
}

static struct symbol distance_symbol(uint32_t token)
{
    return symbol_of(token & (WINDOW - 1), 1);
}

static void flush(struct mt_png_pack *pack)
{
    mt_buf_add(pack->out, pack->bytes, pack->ready);
    pack->ready = 0;
}

static void put(struct mt_png_pack *pack, uint64_t value, unsigned bits)
{
    pack->waiting |= value << pack->waiting_bits;
    for (pack->waiting_bits += bits; pack->waiting_bits >= 32; pack->waiting_bits -= 32) {
        if (pack->ready == OUTPUT_BYTES)
            flush(pack);
        for (int i = 0; i < 4; i++)
            pack->bytes[pack->ready++] = (uint8_t)(pack->waiting >> 8 * i);
        pack->waiting >>= 32;
    }
}

/* Lists the symbols that occur, rarest first. Returns how many they are. */
static size_t sort_symbols(const struct huffman *huffman, size_t symbols, uint16_t *sorted)
{
    size_t count = 0, at;

    for (size_t i = 0; i < symbols; i++) {
        if (!huffman->counts[i])
            continue;
        for (at = count++; at && huffman->counts[sorted[at - 1]] > huffman->counts[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = (uint16_t)i;
    }
    return count;
}

/* Sets the length of each code. Returns false if one has more than MAX_CODE_BITS bits. At least two
 * counts are not 0. Nodes `count` and up are sums of two others, which also become no smaller. */
static bool set_lengths(struct huffman *huffman, size_t symbols)
{
    uint64_t weights[2 * LITERALS];
    uint16_t sorted[LITERALS], parents[2 * LITERALS];
    uint8_t depths[2 * LITERALS];
    size_t count = sort_symbols(huffman, symbols, sorted), leaf = 0, sum = count, taken;
    bool fits = true;

    for (size_t i = 0; i < count; i++)
        weights[i] = huffman->counts[sorted[i]];
    for (size_t node = count; node < 2 * count - 1; node++) {
        weights[node] = 0;
        for (int child = 0; child < 2; child++) {
            bool is_leaf = leaf < count && (sum == node || weights[leaf] <= weights[sum]);

            taken = is_leaf ? leaf++ : sum++;
            weights[node] += weights[taken];
            parents[taken] = (uint16_t)node;
        }
    }
    depths[2 * count - 2] = 0;
    for (size_t i = 2 * count - 2; i-- > 0;)
        depths[i] = (uint8_t)(depths[parents[i]] + 1);
    memset(huffman->bits, 0, sizeof huffman->bits);
    for (size_t i = 0; i < count; i++) {
        huffman->bits[sorted[i]] = depths[i];
        fits &= depths[i] <= MAX_CODE_BITS;
    }
    return fits;
}

/* Sets the codes: in order of length, then of symbol. A stream has the highest bit first. */
static void set_codes(struct huffman *huffman, size_t symbols)
{
    unsigned code = 0;

    while (!set_lengths(huffman, symbols))
        for (size_t i = 0; i < symbols; i++)
            huffman->counts[i] = (huffman->counts[i] + 1) / 2;
    for (unsigned bits = 1; bits <= MAX_CODE_BITS; bits++, code <<= 1)
        for (size_t i = 0; i < symbols; i++) {
            if (huffman->bits[i] != bits)
                continue;
            huffman->codes[i] = 0;
            for (unsigned bit = 0; bit < bits; bit++)
                huffman->codes[i] |= (uint16_t)((code >> bit & 1) << (bits - 1 - bit));
            code++;
        }
}

static void put_symbol(struct mt_png_pack *pack, const struct huffman *huffman, size_t symbol)
{
    put(pack, huffman->codes[symbol], huffman->bits[symbol]);
}

static void put_token(struct mt_png_pack *pack, uint32_t token)
{
    if (token & MATCH) {
        struct symbol length = length_symbol(token), distance = distance_symbol(token);

        put_symbol(pack, &pack->literals, length.symbol);
        put(pack, length.extra, length.extra_bits);
        put_symbol(pack, &pack->distances, distance.symbol);
        put(pack, distance.extra, distance.extra_bits);
    } else if (token & FILTER) {
        put_symbol(pack, &pack->literals, 0);
    } else {
        for (int shift = 16; shift >= 0; shift -= 8)
            put_symbol(pack, &pack->literals, token >> shift & 0xFF);
    }
}

/* The lengths of the codes of a block: each as four bits, which are a Huffman code of its own. */
static void put_lengths(struct mt_png_pack *pack, const struct huffman *huffman, size_t symbols)
{
    for (size_t i = 0; i < symbols; i++) {
        unsigned bits = huffman->bits[i];

        put(pack, (bits & 1) << 3 | (bits & 2) << 1 | (bits & 4) >> 1 | bits >> 3, 4);
    }
}

static void begin_block(struct mt_png_pack *pack)
{
    memset(pack->literals.counts, 0, sizeof pack->literals.counts);
    memset(pack->distances.counts, 0, sizeof pack->distances.counts);
    pack->literals.counts[END_OF_BLOCK] = 1;
    /* a complete code has two symbols */
    pack->literals.counts[0] = pack->distances.counts[0] = pack->distances.counts[1] = 1;
    pack->token_count = 0;
}

static void put_block(struct mt_png_pack *pack, bool is_last)
{
    set_codes(&pack->literals, LITERALS);
    set_codes(&pack->distances, DISTANCES);
    put(pack, is_last | 2 << 1, 3);
    put(pack, (LITERALS - 257) | (DISTANCES - 1) << 5 | (19 - 4) << 10, 14);
    put(pack, 0, 9); /* the lengths 16, 17 and 18, which repeat, are not used */
    for (int i = 0; i < 16; i++)
        put(pack, 4, 3);
    put_lengths(pack, &pack->literals, LITERALS);
    put_lengths(pack, &pack->distances, DISTANCES);
    for (size_t i = 0; i < pack->token_count; i++)
        put_token(pack, pack->tokens[i]);
    put_symbol(pack, &pack->literals, END_OF_BLOCK);
    flush(pack);
    begin_block(pack);
}

static void add_token(struct mt_png_pack *pack, uint32_t token)
{
    if (pack->token_count == BLOCK_TOKENS)
        put_block(pack, false);
    pack->tokens[pack->token_count++] = token;
    if (token & MATCH) {
        pack->literals.counts[length_symbol(token).symbol]++;
        pack->distances.counts[distance_symbol(token).symbol]++;
    } else if (token & FILTER) {
        pack->literals.counts[0]++;
    } else {
        for (int shift = 16; shift >= 0; shift -= 8)
            pack->literals.counts[token >> shift & 0xFF]++;
    }
}

static void add_match(struct mt_png_pack *pack, size_t pixels, size_t distance)
{
    MT_ASSERT(distance > 0 && distance <= WINDOW);
    for (size_t piece; pixels; pixels -= piece) {
        piece = mt_min_u64(pixels, MATCH_PIXELS);
        add_token(pack, MATCH | (uint32_t)piece << 15 | (uint32_t)(distance - 1));
    }
}

static uint32_t *row_at(const struct mt_png_pack *pack, uint64_t y)
{
    return pack->rows + y % pack->kept * pack->width;
}

/* Returns how many pixels are equal. */
static size_t same(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    if (!most || *a != *b)
        return 0;
    for (; i + 2 * LANES <= most; i += 2 * LANES) {
        lanes x[2], y[2], z;
        uint64_t words[2];

        memcpy(x, a + i, sizeof x);
        memcpy(y, b + i, sizeof y);
        z = (x[0] ^ y[0]) | (x[1] ^ y[1]);
        memcpy(words, &z, sizeof words);
        if (words[0] | words[1])
            break;
    }
    while (i < most && a[i] == b[i])
        i++;
    return i;
}

struct match {
    size_t pixels, distance;
};

static void consider(struct match *best, size_t pixels, size_t distance)
{
    if (pixels > best->pixels)
        *best = (struct match){pixels, distance};
}

/* Tries the last place that had the same two pixels, and remembers this place. */
static void consider_place(struct mt_png_pack *pack, const uint32_t *row, size_t x,
                           struct match *best)
{
    uint64_t here = pack->y * pack->width + x, hash = ((uint64_t)row[x] << 32 | row[x + 1]) * PRIME;
    uint64_t *place = &pack->places[hash >> 52], there = *place - 1, y = there / pack->width;
    size_t from = there % pack->width, distance;

    if (*place && pack->y - y < pack->kept) {
        distance = (pack->y - y) * pack->row_bytes + 3 * x - 3 * from;
        if (distance <= WINDOW)
            consider(best,
                     same(row + x, row_at(pack, y) + from, pack->width - (x > from ? x : from)),
                     distance);
    }
    *place = here + 1;
}

static void add_changed_row(struct mt_png_pack *pack, const uint32_t *row, const uint32_t *above)
{
    for (size_t x = 0; x < pack->width;) {
        struct match best = {0, 0};

        if (x)
            consider(&best, same(row + x, row + x - 1, pack->width - x), 3);
        if (above)
            consider(&best, same(row + x, above + x, pack->width - x), pack->row_bytes);
        if (best.pixels < 4 && x + 1 < pack->width)
            consider_place(pack, row, x, &best);
        if (best.pixels > 1 || best.distance == 3) {
            add_match(pack, best.pixels, best.distance);
            x += best.pixels;
        } else {
            add_token(pack, row[x++]);
        }
    }
}

/* Adler-32 adds each byte to one sum, and this sum to another one. The second sum of a row is that
 * of its bytes, each times the number of bytes from there to the end of the row. */
struct sums {
    uint64_t plain, weighted; /* weighted: of pixels instead of bytes */
    uint64_t less;            /* what 3 * weighted counts too often */
};

/* Adds `count` pixels, a multiple of LANES and at most MOST_SUMMED. Lane i has the pixels i, i +
 * LANES, and so on, so that a processor can add LANES pixels at once. */
static void sum_pixels(struct sums *sums, const uint32_t *pixels, size_t count)
{
    lanes plain = {0}, weighted = {0}, less = {0};

    for (size_t x = 0; x < count; x += LANES) {
        lanes piece, blue, green;

        memcpy(&piece, pixels + x, sizeof piece);
        blue = piece & 0xFF;
        green = piece >> 8 & 0xFF;
        plain += (piece >> 16) + green + blue;
        weighted += plain;
        less += green + 2 * blue;
    }
    sums->weighted += count * sums->plain;
    for (size_t i = 0; i < LANES; i++) {
        sums->weighted += LANES * (uint64_t)weighted[i] - i * (uint64_t)plain[i];
        sums->plain += plain[i];
        sums->less += less[i];
    }
}

static void sum_row(struct mt_png_pack *pack, const uint32_t *row)
{
    size_t rest = pack->width % LANES, end = pack->width - rest;
    uint32_t last[LANES] = {0};
    struct sums sums = {0, 0, 0};

    for (size_t x = 0; x < end; x += MOST_SUMMED)
        sum_pixels(&sums, row + x, mt_min_u64(end - x, MOST_SUMMED));
    if (rest) { /* black pixels after the end change nothing but the number of sums */
        memcpy(last, row + end, rest * sizeof *last);
        sum_pixels(&sums, last, LANES);
        sums.weighted -= (LANES - rest) * sums.plain;
    }
    pack->plain = sums.plain;
    pack->weighted = 3 * sums.weighted - sums.less;
}

void mt_png_pack_add(struct mt_png_pack *pack, const uint32_t *words)
{
    uint32_t *row = row_at(pack, pack->y);
    const uint32_t *above = pack->y && pack->kept > 1 ? row_at(pack, pack->y - 1) : NULL;

    for (size_t x = 0; x < pack->width; x++)
        row[x] = words[x] & 0xFFFFFF;
    add_token(pack, FILTER);
    if (above && !memcmp(row, above, pack->width * sizeof *row)) {
        add_match(pack, pack->width, pack->row_bytes);
    } else {
        sum_row(pack, row);
        add_changed_row(pack, row, above);
    }
    pack->adler_b = (pack->adler_b + pack->row_bytes * pack->adler_a + pack->weighted) % ADLER;
    pack->adler_a = (pack->adler_a + pack->plain) % ADLER;
    pack->y++;
}

void mt_png_pack_end(struct mt_png_pack *pack)
{
    put_block(pack, true);
    put(pack, 0, -pack->waiting_bits & 7);
    for (int shift = 8; shift >= 0; shift -= 8)
        put(pack, pack->adler_b >> shift & 0xFF, 8);
    for (int shift = 8; shift >= 0; shift -= 8)
        put(pack, pack->adler_a >> shift & 0xFF, 8);
    flush(pack);
    for (; pack->waiting_bits; pack->waiting_bits -= 8, pack->waiting >>= 8)
        mt_buf_add_char(pack->out, (char)pack->waiting);
}

struct mt_png_pack *mt_png_pack_new(size_t width, struct mt_buf *out)
{
    struct mt_png_pack *pack = mt_memory_zeroed(1, sizeof *pack);

    pack->out = out;
    pack->width = width;
    pack->row_bytes = 1 + 3 * width;
    pack->kept = WINDOW / pack->row_bytes + 1;
    pack->rows = mt_memory_new(pack->kept * width * sizeof *pack->rows);
    pack->adler_a = 1;
    begin_block(pack);
    put(pack, 0x0178, 16); /* deflate, a window of 32 KiB; stays in `waiting` */
    return pack;
}

void mt_png_pack_free(struct mt_png_pack *pack)
{
    if (pack)
        free(pack->rows);
    free(pack);
}
