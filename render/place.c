#include "place.h"

#include <math.h>
#include <string.h>

void mt_placer_init(struct mt_placer *placer, struct mt_arena *arena, struct mt_box frame)
{
    memset(placer, 0, sizeof *placer);
    placer->arena = arena;
    placer->frame = frame;
    placer->limit = MT_PLACE_LIMIT;
}

void mt_placer_avoid(struct mt_placer *placer, struct mt_box box, double weight)
{
    if (placer->count == placer->capacity) {
        size_t capacity = placer->capacity ? placer->capacity * 2 : 64;
        struct mt_obstacle *obstacles = mt_arena_array(placer->arena, capacity, sizeof *obstacles);

        if (placer->count)
            memcpy(obstacles, placer->obstacles, placer->count * sizeof *obstacles);
        placer->obstacles = obstacles;
        placer->capacity = capacity;
    }
    placer->obstacles[placer->count].box = box;
    placer->obstacles[placer->count++].weight = weight;
}

double mt_box_overlap(const struct mt_box *a, const struct mt_box *b)
{
    /* for speed: there are thousands of pairs per label, and most are disjoint */
    if (a->x >= b->x + b->width || b->x >= a->x + a->width || a->y >= b->y + b->height ||
        b->y >= a->y + a->height)
        return 0;
    return (fmin(a->x + a->width, b->x + b->width) - fmax(a->x, b->x)) *
           (fmin(a->y + a->height, b->y + b->height) - fmax(a->y, b->y));
}

static bool is_inside(const struct mt_box *box, const struct mt_box *frame)
{
    return box->x >= frame->x && box->y >= frame->y &&
           box->x + box->width <= frame->x + frame->width &&
           box->y + box->height <= frame->y + frame->height;
}

/* Returns the length of the part of the line from p to q that is inside a box (Liang-Barsky). */
static double length_inside(const struct mt_box *box, struct mt_point p, struct mt_point q)
{
    const double dx = q.x - p.x, dy = q.y - p.y;
    const double steps[4] = {-dx, dx, -dy, dy};
    const double rooms[4] = {p.x - box->x, box->x + box->width - p.x, p.y - box->y,
                             box->y + box->height - p.y};
    double from = 0, to = 1;

    /* for speed */
    if ((p.x < box->x && q.x < box->x) || (p.y < box->y && q.y < box->y) ||
        (p.x > box->x + box->width && q.x > box->x + box->width) ||
        (p.y > box->y + box->height && q.y > box->y + box->height))
        return 0;
    for (int i = 0; i < 4; i++) {
        if (steps[i] == 0 && rooms[i] < 0)
            return 0;
        if (steps[i] < 0)
            from = fmax(from, rooms[i] / steps[i]);
        else if (steps[i] > 0)
            to = fmin(to, rooms[i] / steps[i]);
    }
    return to > from ? (to - from) * hypot(dx, dy) : 0;
}

#define FAR          120.0 /* pixels; a longer leader is hard to follow */
#define CROSSED_MARK 60.0  /* cost for each pixel of a leader on a ring, a flag or a fold */

static bool holds(const struct mt_box *box, struct mt_point at)
{
    return at.x >= box->x && at.x <= box->x + box->width && at.y >= box->y &&
           at.y <= box->y + box->height;
}

/* Returns the cost for each pixel of a leader on an obstacle. An obstacle that contains `at`, where
 * the leader begins, costs little: every leader must leave it, such as the ring around a peak. */
static double crossing_cost(const struct mt_obstacle *obstacle, struct mt_point at)
{
    if (obstacle->weight < MT_PLACE_MARK || holds(&obstacle->box, at))
        return fmin(obstacle->weight, MT_PLACE_LINE);
    return obstacle->weight < MT_PLACE_TEXT ? CROSSED_MARK : MT_PLACE_TEXT;
}

/* Returns the cost of a box for a label: the area that it covers, the obstacles that the leader
 * crosses, and the distance. Stops when the cost reaches `enough`. */
static double score(const struct mt_placer *placer, const struct mt_box *box, struct mt_point at,
                    double enough)
{
    struct mt_point end = {fmin(fmax(at.x, box->x), box->x + box->width),
                           fmin(fmax(at.y, box->y), box->y + box->height)};
    double length = hypot(end.x - at.x, end.y - at.y);
    double cost = 0.6 * length + 3 * fmax(length - FAR, 0);

    for (size_t i = 0; i < placer->count && cost < enough; i++) {
        const struct mt_obstacle *obstacle = &placer->obstacles[i];

        cost += obstacle->weight * mt_box_overlap(box, &obstacle->box);
        if (obstacle->weight > MT_PLACE_TINT)
            cost += crossing_cost(obstacle, at) * length_inside(&obstacle->box, at, end);
    }
    return cost;
}

double mt_placer_cost(const struct mt_placer *placer, const struct mt_box *box)
{
    double cost = 0;

    for (size_t i = 0; i < placer->count; i++)
        cost += placer->obstacles[i].weight * mt_box_overlap(box, &placer->obstacles[i].box);
    return cost;
}

static void try_box(const struct mt_placer *placer, struct mt_point at, struct mt_box box,
                    double *best_score, struct mt_box *best)
{
    if (!is_inside(&box, &placer->frame))
        return;
    double cost = score(placer, &box, at, *best_score);
    if (cost < *best_score) {
        *best_score = cost;
        *best = box;
    }
}

/* Tries all of the frame for a box with a score below `best_score`. Returns the best score. */
static double try_everywhere(const struct mt_placer *placer, struct mt_point at, double width,
                             double height, double best_score, struct mt_box *best)
{
    const struct mt_box *frame = &placer->frame;
    struct mt_box box = {0, frame->y, width, height};

    for (; box.y + height <= frame->y + frame->height; box.y += 9)
        for (box.x = frame->x; box.x + width <= frame->x + frame->width; box.x += 17)
            try_box(placer, at, box, &best_score, best);
    return best_score;
}

double mt_placer_label(struct mt_placer *placer, double x, double y, double width, double height,
                       struct mt_box *best)
{
    static const double distances[] = {12, 22, 36, 56, 84, 120, 170};
    struct mt_point at = {x, y};
    double best_score = HUGE_VAL;

    /* Tries 16 directions at each of 7 distances, first above the point. */
    for (size_t ring = 0; ring < sizeof distances / sizeof distances[0]; ring++) {
        for (int turn = 0; turn < 16; turn++) {
            int side = (turn % 2 ? 1 : -1) * (turn + 1) / 2; /* 0, 1, -1, 2, -2, ... */
            double angle = side * M_PI / 8 - M_PI / 2;
            double dx = cos(angle), dy = sin(angle);
            struct mt_box box = {x + dx * distances[ring] + (dx - 1) * width / 2,
                                 y + dy * distances[ring] + (dy - 1) * height / 2, width, height};

            try_box(placer, at, box, &best_score, best);
        }
    }
    if (best_score >= MT_PLACE_CLEAR)
        best_score = try_everywhere(placer, at, width, height, best_score, best);
    if (best_score < placer->limit)
        mt_placer_avoid(placer, *best, MT_PLACE_TEXT);
    return best_score;
}

struct mt_box mt_text_box(const struct mt_op *op)
{
    static const double anchors[] = {0, 0.5, 1};
    double size = op->style.size, before = anchors[op->style.anchor] * op->text_width;
    struct mt_box box = {op->x - before, op->y - 0.76 * size, op->text_width, 0.97 * size};

    if (op->style.vertical) {
        box.x = op->x - 0.76 * size;
        box.y = op->y - op->text_width + before;
        box.width = 0.97 * size;
        box.height = op->text_width;
    }
    return box;
}
