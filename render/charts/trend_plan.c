#include "trend_plan.h"

#include "units.h"

enum mt_color mt_trend_color(const struct mt_trend *trend)
{
    switch (trend->verdict) {
    case MT_TREND_GROWS: return MT_COLOR_BAD;
    case MT_TREND_STEADY: return MT_COLOR_GOOD;
    case MT_TREND_NOT_JUDGED:
    case MT_TREND_TOO_SHORT: break;
    }
    return MT_COLOR_FAINT;
}

const char *mt_trend_slope_text(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    char change[MT_UNITS_TEXT];

    mt_format_change(change, trend->bytes_per_step);
    return mt_arena_printf(&drawing->arena, "%s", change);
}
