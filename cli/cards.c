#include "cards.h"

/* Total memory as a program sees it (cudaMemGetInfo), which is less than what
 * is printed on the box: error correction and the driver take their part. It
 * differs by 0.1 to 0.2 GiB between drivers. Sources: what PyTorch's
 * out-of-memory messages call "total capacity" in the named public reports, in
 * hundredths of a GiB; H200: cudaMemGetInfo of the runs in fixtures/captures. */
#define HUNDREDTHS_GIB(n) ((uint64_t)(n)*1024 * 1024 * 1024 / 100)

const struct mt_card mt_cards[] = {
    {"RTX 3060 12 GB", HUNDREDTHS_GIB(1175)}, /* smy20011/dreambooth-gui issue 78 */
    {"T4 16 GB", HUNDREDTHS_GIB(1456)},       /* Zheng-Chong/CatVTON issue 133 */
    {"V100 16 GB", HUNDREDTHS_GIB(1577)},     /* meta-llama/llama issue 918 */
    {"RTX 4090 24 GB", HUNDREDTHS_GIB(2352)}, /* Soul-AILab/SoulX-FlashTalk issue 5 */
    {"RTX 3090 24 GB", HUNDREDTHS_GIB(2369)}, /* vllm-project/vllm issue 2140 */
    {"V100 32 GB", HUNDREDTHS_GIB(3174)},     /* haotian-liu/LLaVA issue 812 */
    {"A100 40 GB", HUNDREDTHS_GIB(3950)},     /* TianheWu/CoSeR issue 10 */
    {"L40S 48 GB", HUNDREDTHS_GIB(4453)},     /* vllm-project/vllm issue 15598 */
    {"H100 80 GB", HUNDREDTHS_GIB(7911)},     /* vllm-project/vllm issue 27508 */
    {"A100 80 GB", HUNDREDTHS_GIB(7914)},     /* lianqi1008/Control-GIC issue 6 */
    {"H200 141 GB", UINT64_C(150109880320)},  /* fixtures/captures: *.truth.json */
    {NULL, 0},
};

enum mt_card_verdict mt_card_verdict(const struct mt_card *card, uint64_t fit_bytes)
{
    if (fit_bytes > card->memory_bytes)
        return MT_CARD_NO;
    return card->memory_bytes - fit_bytes < MT_CARD_OVERHEAD_BYTES ? MT_CARD_TIGHT : MT_CARD_FITS;
}

const char *mt_card_verdict_name(enum mt_card_verdict verdict)
{
    static const char *const names[] = {"no", "tight", "fits"};

    return names[verdict];
}
