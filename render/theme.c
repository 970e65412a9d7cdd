/* Roles have the colors of Okabe and Ito, which people with the common kinds of color blindness can
 * distinguish. Phases and origins are paler, so that they are not mistaken for roles: a test has
 * the least distance. Changes range from blue (decrease) over gray to orange (increase). */
#include "theme.h"

#include <math.h>

struct pair {
    uint32_t light, dark;
};

static const struct pair colors[MT_COLOR_COUNT] = {
    [MT_COLOR_BACKGROUND] = {0xFFFFFF, 0x0D1117},   [MT_COLOR_PANEL] = {0xF6F8FA, 0x161B22},
    [MT_COLOR_GRID] = {0xD8DEE4, 0x2B323B},         [MT_COLOR_AXIS] = {0x8C959F, 0x6E7681},
    [MT_COLOR_TEXT] = {0x1F2328, 0xE6EDF3},         [MT_COLOR_MUTED] = {0x59636E, 0x9AA4AF},
    [MT_COLOR_FAINT] = {0x6E7781, 0x8B949E},        [MT_COLOR_RESERVED] = {0x1F2328, 0xE6EDF3},
    [MT_COLOR_UNUSED] = {0xB6BEC7, 0x4A535E},       [MT_COLOR_GOOD] = {0x1A7F37, 0x3FB950},
    [MT_COLOR_WARN] = {0x9A6700, 0xD29922},         [MT_COLOR_BAD] = {0xC0392B, 0xFF7B72},
    [MT_COLOR_LIMIT] = {0xC0392B, 0xFF7B72},        [MT_COLOR_ON_DARK] = {0xFFFFFF, 0xFFFFFF},
    [MT_COLOR_ON_LIGHT] = {0x1F2328, 0x1F2328},     [MT_COLOR_CURVE] = {0x1F2328, 0xE6EDF3},
    [MT_COLOR_CURVE_FILL] = {0xC8D3DF, 0x37424F},   [MT_COLOR_ROOT] = {0x4B5563, 0x4B5563},
    [MT_COLOR_STEP_TINT] = {0xF6F8FA, 0x161B22},    [MT_COLOR_LEVEL] = {0x44678A, 0x6C93BC},
    [MT_COLOR_LEVEL_RANGE] = {0x86A3BF, 0x4B6C8F},  [MT_COLOR_LEVEL_PEAK] = {0xBFCFDE, 0x2F4860},
    [MT_COLOR_ROLE_0 + 0] = {0x0072B2, 0x0072B2},   /* parameters */
    [MT_COLOR_ROLE_0 + 1] = {0x56B4E9, 0x56B4E9},   /* optimizer state */
    [MT_COLOR_ROLE_0 + 2] = {0xE69F00, 0xE69F00},   /* gradients */
    [MT_COLOR_ROLE_0 + 3] = {0x009E73, 0x009E73},   /* activations */
    [MT_COLOR_ROLE_0 + 4] = {0xD55E00, 0xD55E00},   /* temporaries */
    [MT_COLOR_ROLE_0 + 5] = {0xCC79A7, 0xCC79A7},   /* workspace */
    [MT_COLOR_ROLE_0 + 6] = {0xD9CB3A, 0xD9CB3A},   /* inputs */
    [MT_COLOR_ROLE_0 + 7] = {0x5B4FA8, 0x6F63C0},   /* KV cache */
    [MT_COLOR_ROLE_0 + 8] = {0x8D7B9E, 0x8D7B9E},   /* other */
    [MT_COLOR_ROLE_0 + 9] = {0x7A5C3E, 0x9A7650},   /* weight copies */
    [MT_COLOR_ORIGIN_0 + 0] = {0xE9C060, 0xE0B450}, /* your code */
    [MT_COLOR_ORIGIN_0 + 1] = {0x9EC5E5, 0x8DB6D8}, /* torch.nn */
    [MT_COLOR_ORIGIN_0 + 2] = {0xC3ADD2, 0xB79AC8}, /* torch.optim */
    [MT_COLOR_ORIGIN_0 + 3] = {0xA8CFC0, 0x94BFAE}, /* framework */
    [MT_COLOR_ORIGIN_0 + 4] = {0xCED2D8, 0xB4BBC3}, /* engine */
    [MT_COLOR_ORIGIN_0 + 5] = {0xDDB7A0, 0xCDA48B}, /* native */
    [MT_COLOR_PHASE_0 + 0] = {0xCBDFF9, 0x354D67},  /* blue: forward */
    [MT_COLOR_PHASE_0 + 1] = {0xF5D4E4, 0x634153},  /* pink: backward */
    [MT_COLOR_PHASE_0 + 2] = {0xC8E4CE, 0x36523D},  /* green: optimizer */
    [MT_COLOR_PHASE_0 + 3] = {0xE8DCC0, 0x554A2F},  /* sand: loss */
    [MT_COLOR_PHASE_0 + 4] = {0xC6C6C6, 0x595959},  /* gray: zero_grad */
    [MT_COLOR_PHASE_0 + 5] = {0xDBBEAC, 0x6C584B},  /* clay */
    [MT_COLOR_PHASE_0 + 6] = {0xA0CCCF, 0x416164},  /* teal */
    [MT_COLOR_PHASE_0 + 7] = {0xD7CDE9, 0x4F485B},  /* lilac */
    [MT_COLOR_PHASE_0 + 8] = {0xE2BABB, 0x705556},  /* rose */
    [MT_COLOR_PHASE_0 + 9] = {0xBDC8AD, 0x575F4C},  /* moss */
    [MT_COLOR_PHASE_0 + 10] = {0xA9CBBC, 0x496156}, /* mint */
    [MT_COLOR_STREAM_0 + 0] = {0x3D5A98, 0x4A6BB0}, [MT_COLOR_STREAM_0 + 1] = {0x7E9BD1, 0x8FA9D9},
    [MT_COLOR_STREAM_0 + 2] = {0x7A4E8C, 0x8E5FA1}, [MT_COLOR_STREAM_0 + 3] = {0xB08CC0, 0xBC9BCB},
    [MT_COLOR_STREAM_0 + 4] = {0x3B7D7A, 0x4A918E}, [MT_COLOR_STREAM_0 + 5] = {0x86B9B5, 0x95C4C1},
    [MT_COLOR_STREAM_0 + 6] = {0x9AA5C4, 0xA6B1CE}, [MT_COLOR_HEAT] = {0x163F6B, 0x5091CE},
};

static const struct {
    struct pair shrank, same, grew;
} change = {{0x5E7FB8, 0x5E7FB8}, {0xEEF0F3, 0x2B323B}, {0xE08214, 0xE08214}};

/* Returns a mix of two colors. A `share` of 0 is a, and 1 is b. */
static uint32_t mix(uint32_t a, uint32_t b, double share)
{
    uint32_t result = 0;

    for (int shift = 0; shift < 24; shift += 8) {
        double from = (double)(a >> shift & 0xFF), to = (double)(b >> shift & 0xFF);
        result |= (uint32_t)(from + (to - from) * share + 0.5) << shift;
    }
    return result;
}

static uint32_t of_theme(const struct pair *pair, enum mt_theme theme)
{
    return theme == MT_THEME_DARK ? pair->dark : pair->light;
}

uint32_t mt_theme_rgb(enum mt_theme theme, enum mt_color color)
{
    if (color < MT_COLOR_CHANGE_0 || color > MT_COLOR_CHANGE_LAST)
        return of_theme(&colors[color], theme);
    int distance = (int)color - (int)MT_COLOR_CHANGE_0 - 8;
    return mix(of_theme(&change.same, theme),
               of_theme(distance < 0 ? &change.shrank : &change.grew, theme),
               (distance < 0 ? -distance : distance) / 8.0);
}

uint32_t mt_theme_shade(enum mt_theme theme, enum mt_color color, unsigned shade)
{
    static const struct {
        uint32_t toward;
        double share;
    } shades[] = {{0, 0}, {0xFFFFFF, 0.14}, {0x000000, 0.09}, {0xFFFFFF, 0.26}};

    return mix(mt_theme_rgb(theme, color), shades[shade & 3].toward, shades[shade & 3].share);
}

uint32_t mt_theme_hatch_ground(enum mt_theme theme, enum mt_color color)
{
    return mix(mt_theme_rgb(theme, MT_COLOR_BACKGROUND), mt_theme_rgb(theme, color), 0.37);
}

uint32_t mt_theme_tint(enum mt_theme theme, enum mt_color color, unsigned level)
{
    return mix(mt_theme_hatch_ground(theme, MT_COLOR_UNUSED), mt_theme_rgb(theme, color),
               (double)level / (MT_TINTS - 1));
}

/* Returns the relative luminance as WCAG defines it. */
static double luminance(uint32_t rgb)
{
    static const double weights[] = {0.0722, 0.7152, 0.2126}; /* blue, green, red */
    double sum = 0, part;

    for (int i = 0; i < 3; i++) {
        part = (double)(rgb >> (8 * i) & 0xFF) / 255;
        sum += weights[i] * (part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(uint32_t a, uint32_t b)
{
    double la = luminance(a) + 0.05, lb = luminance(b) + 0.05;

    return la > lb ? la / lb : lb / la;
}

/* Returns the lower of the contrasts in both themes. */
static double least_contrast(enum mt_color text, enum mt_color ground, unsigned shade)
{
    double light =
        contrast(mt_theme_rgb(MT_THEME_LIGHT, text), mt_theme_shade(MT_THEME_LIGHT, ground, shade));
    double dark =
        contrast(mt_theme_rgb(MT_THEME_DARK, text), mt_theme_shade(MT_THEME_DARK, ground, shade));

    return light < dark ? light : dark;
}

enum mt_color mt_theme_text_on_shade(enum mt_color color, unsigned shade)
{
    static const enum mt_color others[] = {MT_COLOR_ON_LIGHT, MT_COLOR_TEXT};
    enum mt_color best = MT_COLOR_ON_DARK;

    /* White looks better on saturated cells, so it is used if it is readable. */
    if (least_contrast(best, color, shade) >= 3)
        return best;
    for (size_t i = 0; i < 2; i++)
        if (least_contrast(others[i], color, shade) > least_contrast(best, color, shade))
            best = others[i];
    return best;
}

enum mt_color mt_theme_text_on(enum mt_color color)
{
    return mt_theme_text_on_shade(color, 0);
}
