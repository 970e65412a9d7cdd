/* Packs pixels as the zlib stream of a PNG: 8-bit RGB without row filters. */
#ifndef MT_RENDER_PNG_PACK_H
#define MT_RENDER_PNG_PACK_H

#include "buf.h"

struct mt_png_pack;

/* `width` is at least 1. The stream is appended to `out`, which the caller may empty after each
 * call. Needs about 400 KB. */
struct mt_png_pack *mt_png_pack_new(size_t width, struct mt_buf *out);

/* Adds the next row: `width` words 0x00RRGGBB, whose highest bytes are ignored. */
void mt_png_pack_add(struct mt_png_pack *pack, const uint32_t *words);

/* Ends the stream. */
void mt_png_pack_end(struct mt_png_pack *pack);
void mt_png_pack_free(struct mt_png_pack *pack);

#endif
