#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "model_passes.h"

static struct mt_forward_call *call_at(struct mt_model_passes *passes, uint32_t line, uint32_t *id)
{
    uint64_t body = mt_line_body(passes->places, line);

    *id = mt_map_get(&passes->call_ids, body);
    if (*id != MT_MAP_NONE)
        return &passes->calls[*id];
    mt_grow_to(&passes->calls, &passes->call_capacity, passes->call_count + 1,
               sizeof *passes->calls);
    *id = (uint32_t)passes->call_count++;
    mt_map_put(&passes->call_ids, body, *id);
    passes->calls[*id] = (struct mt_forward_call){.begin = UINT32_MAX, .head = UINT32_MAX};
    return &passes->calls[*id];
}

static void note_line(struct mt_model_passes *passes, uint32_t line)
{
    uint32_t id;

    if (!mt_line_is_of_forward(passes->places, line))
        return;
    struct mt_forward_call *call = call_at(passes, line, &id);
    uint32_t number = mt_loop_places_at(passes->places, line).line;
    call->last = number;
    if (number > call->end)
        call->end = number;
    if (number < call->begin)
        call->begin = number;
}

/* Whether the caller of both called the second one first. */
static bool is_called_before(struct mt_model_passes *passes, const struct mt_line_parting *parting)
{
    uint64_t bodies[2] = {mt_line_body(passes->places, parting->from),
                          mt_line_body(passes->places, parting->to)};
    uint32_t order[2];

    for (int i = 0; i < 2; i++) {
        order[i] = mt_map_get(&passes->order, bodies[i]);
        if (order[i] == MT_MAP_NONE) {
            order[i] = (uint32_t)passes->order.count;
            mt_map_put(&passes->order, bodies[i], order[i]);
        }
    }
    return order[1] < order[0];
}

/* The turn of a loop around the line of the program that calls `node`. */
static bool turns_around(const struct mt_model_passes *passes, uint32_t node,
                         struct mt_pass_turn *turn)
{
    uint32_t caller = mt_loop_places_at(passes->places, node).body;
    uint32_t line = mt_line_of_program(passes->places, caller);

    if (line == MT_NO_ID)
        return false;
    turn->turn = mt_loop_places_at(passes->places, line);
    return true;
}

static bool turns_in_forward(struct mt_model_passes *passes, enum mt_line_move move,
                             const struct mt_line_parting *parting, struct mt_pass_turn *turn)
{
    if (move != MT_LINE_BACK && !passes->left)
        return false;
    if (!turns_around(passes, parting->to, turn))
        return false;
    if (passes->left)
        return true;
    call_at(passes, parting->to, &turn->call);
    turn->inner = mt_loop_places_at(passes->places, parting->to).line;
    turn->inner_from = mt_loop_places_at(passes->places, parting->from).line;
    return true;
}

static bool turns(struct mt_model_passes *passes, enum mt_line_move move,
                  const struct mt_line_parting *parting, struct mt_pass_turn *turn)
{
    if (move == MT_LINE_IN)
        return false;
    if (move == MT_LINE_CALLEES)
        return is_called_before(passes, parting) && turns_around(passes, parting->to, turn);
    if (mt_line_is_of_forward(passes->places, parting->to))
        return turns_in_forward(passes, move, parting, turn);
    if (move != MT_LINE_BACK)
        return false;
    turn->turn = mt_loop_places_at(passes->places, parting->to);
    turn->turn.from = mt_loop_places_at(passes->places, parting->from).line;
    return true;
}

static void leave(struct mt_model_passes *passes)
{
    uint32_t id;

    if (!passes->left && mt_line_is_of_forward(passes->places, passes->line))
        call_at(passes, passes->line, &id)->exits++;
    passes->left = true;
}

static void go_to(struct mt_model_passes *passes, uint32_t line)
{
    uint32_t site = mt_line_of_program(passes->places, line);

    passes->moved = passes->has_line && site != passes->site;
    passes->site = site;
    passes->has_line = true;
    passes->line = line;
    passes->left = false;
    note_line(passes, line);
}

bool mt_model_passes_move(struct mt_model_passes *passes, uint32_t line, bool is_free,
                          struct mt_pass_turn *turn)
{
    struct mt_line_parting parting = {line, line};
    enum mt_line_move move = MT_LINE_SAME;

    passes->moved = false;
    *turn = (struct mt_pass_turn){.turn.body = MT_NO_ID, .call = MT_NO_ID};
    if (line == MT_NO_ID || (passes->has_line && passes->line == line && !passes->left))
        return false;
    if (passes->has_line && passes->line != line)
        move = mt_line_move_between(passes->places, passes->line, line, &parting);
    if (move == MT_LINE_OUT ||
        (is_free && (move == MT_LINE_ON || move == MT_LINE_BACK || move == MT_LINE_CALLEES) &&
         !mt_line_is_of_forward(passes->places, parting.to)))
        leave(passes);
    if (move == MT_LINE_OUT || is_free)
        return false;
    bool is_turn = passes->has_line && turns(passes, move, &parting, turn);
    go_to(passes, line);
    return is_turn;
}

void mt_model_passes_learn(struct mt_model_passes *passes, const struct mt_pass_turn *turn)
{
    if (turn->call == MT_NO_ID)
        return;
    struct mt_forward_call *call = &passes->calls[turn->call];
    if (turn->inner_from != call->end)
        return;
    call->turns++;
    if (turn->inner < call->head)
        call->head = turn->inner;
}

bool mt_model_passes_counts(const struct mt_model_passes *passes, const struct mt_pass_turn *turn)
{
    if (turn->call == MT_NO_ID)
        return true;
    const struct mt_forward_call *call = &passes->calls[turn->call];
    if (turn->inner > call->begin)
        return false;
    if (turn->inner_from == call->end)
        return !call->exits || call->turns <= call->exits;
    /* only the first pass has events at the highest line: a table or mask that is kept */
    return call->turns == 1 && call->last != call->end && turn->inner <= call->head;
}

void mt_model_passes_release(struct mt_model_passes *passes)
{
    mt_map_release(&passes->order);
    mt_map_release(&passes->call_ids);
    free(passes->calls);
    memset(passes, 0, sizeof *passes);
}
