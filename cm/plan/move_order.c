/* The order of moves. */
#include "cm/plan/move_order.h"

static uint32_t look(struct mfs_order_node *nodes, uint32_t nnodes,
                     const struct mfs_order_move *moves, uint32_t nmoves)
{
    uint32_t under_way = 0;

    for (uint32_t i = 0; i < nnodes; i++) {
        nodes[i].outgoing = nodes[i].incoming = 0;
        nodes[i].promised = nodes[i].give = nodes[i].take = 0;
    }
    for (uint32_t i = 0; i < nmoves; i++) {
        const struct mfs_order_move *m = &moves[i];

        if (m->state == MFS_ORDER_OVER)
            continue;
        if (m->state == MFS_ORDER_UNDER_WAY)
            nodes[m->to].promised += m->bytes;
        if (m->state == MFS_ORDER_UNDER_WAY && m->copied)
            continue;
        nodes[m->from].give += m->bytes;
        nodes[m->to].take += m->bytes;
        if (m->state != MFS_ORDER_UNDER_WAY)
            continue;
        nodes[m->from].outgoing++;
        nodes[m->to].incoming++;
        under_way++;
    }
    return under_way;
}

static bool has_room(const struct mfs_order_node *n, uint64_t bytes)
{
    return n->used + n->promised + bytes <= n->capacity;
}

static bool may_begin(const struct mfs_order_node *nodes, const struct mfs_order_move *m,
                      const struct mfs_order_limits *limits)
{
    const struct mfs_order_node *from = &nodes[m->from], *to = &nodes[m->to];
    uint32_t copies = m->cold || from->used <= from->capacity / 2 ? limits->per_source : 1;

    return m->state == MFS_ORDER_WAITING && from->up && to->up && from->outgoing < copies &&
           to->incoming < limits->per_target && has_room(to, m->bytes);
}

/* Does another move wait for what leaves this node? */
static bool short_of_memory(const struct mfs_order_node *n)
{
    return n->used + n->take > n->capacity;
}

static uint32_t copies(const struct mfs_order_node *nodes, const struct mfs_order_move *m)
{
    return nodes[m->from].outgoing + nodes[m->to].incoming;
}

static uint64_t load(const struct mfs_order_node *nodes, const struct mfs_order_move *m)
{
    uint64_t give = nodes[m->from].give, take = nodes[m->to].take;

    return give > take ? give : take;
}

static bool before(const struct mfs_order_node *nodes, const struct mfs_order_move *a,
                   const struct mfs_order_move *b, bool small_first)
{
    bool short_a = short_of_memory(&nodes[a->from]), short_b = short_of_memory(&nodes[b->from]);
    uint32_t copies_a = copies(nodes, a), copies_b = copies(nodes, b);
    uint64_t load_a = load(nodes, a), load_b = load(nodes, b);

    if (small_first && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (short_a != short_b)
        return short_a;
    if (copies_a != copies_b)
        return copies_a < copies_b;
    return load_a != load_b ? load_a > load_b : a->bytes > b->bytes;
}

int mfs_order_next(struct mfs_order_node *nodes, uint32_t nnodes,
                   const struct mfs_order_move *moves, uint32_t nmoves,
                   const struct mfs_order_limits *limits)
{
    int best = -1;

    if (look(nodes, nnodes, moves, nmoves) >= limits->all)
        return -1;
    for (uint32_t i = 0; i < nmoves; i++)
        if (may_begin(nodes, &moves[i], limits) &&
            (best < 0 || before(nodes, &moves[i], &moves[best], limits->small_first)))
            best = (int)i;
    return best;
}
