/* The estimator; see the header.
 *
 * Each node has two sides, in and out. Once a second every pair of nodes that is busy votes for the
 * side that it must be waiting for, if just one can be. A side with enough votes is saturated in
 * that second; one that was in most of the last seconds, at a steady rate, gets that rate as its
 * capacity. That stands until the side is saturated at another rate, or carries more, or is seen
 * to be less busy than it would be. */
#include "cm/plan/estimator.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECENT 4   /* seconds that are looked at */
#define ENOUGH 3   /* of them that a side must have been saturated */
#define STALE  2.5 /* seconds after which a report says nothing any more */
#define BLEND  0.5 /* of the newest report in the pairs' averages */

#define LEAST   16384.0 /* bytes/s of a side: less is no link's limit */
#define NOTABLE 0.03    /* of a side's traffic: pairs with less say nothing about it */
#define BUSY    0.75    /* of the time: a pair that waits all along, but for moments */
#define CALM    0.7     /* one that does not */
#define FASTER  1.5     /* so much, for a difference that counts */
#define SLIGHT  0.1     /* of the time: with less, it may have little to send */
#define AS_MUCH 1.0     /* of what a busy pair sends */
#define FORGET  0.97    /* of the best rate, each second */
#define VOTES   0.5     /* of a side's traffic, for it to be saturated */

#define LONG      6    /* seconds for one pair alone */
#define COLLAPSE  0.5  /* of the best rate */
#define STEADY    0.35 /* (most - least) / most of a saturated side's rates */
#define SAME      0.1  /* between two estimates of the same capacity */
#define GLIDE     0.25 /* of the difference, from one to the next */
#define FALLEN    0.8  /* of the former: remembered, as it may come back */
#define EXCEEDED  1.15 /* rate / capacity */
#define CARRIES   0.4  /* of its capacity: enough to judge it by how busy it is */
#define BETTER    1.5  /* capacity by how busy it is / capacity */
#define OBJECTION 4    /* seconds of that */

enum { IN, OUT };

/* What goes over one side of a node's link: a summary of its pairs, made anew each second. */
struct traffic {
    double total;    /* bytes/s */
    double quiet;    /* of the time, that no pair is busy, were they independent */
    double calm;     /* bytes/s of calm pairs */
    double speed;    /* of the fastest calm pair, while it sends */
    double votes;    /* bytes/s of pairs that wait for this side */
    unsigned voters; /* such pairs */
    double spare;    /* best / rate: how much more it has carried lately */
};

struct side {
    double rate[RECENT]; /* of the interface, the newest first */
    bool full[RECENT];   /* it was saturated */
    double capacity;     /* 0: unknown */
    double former;       /* before it fell; 0: it did not */
    double best;         /* rate of late, slowly forgotten */
    unsigned together;   /* seconds that several pairs have waited for it */
    unsigned alone;      /* and that any have */
    unsigned objections; /* seconds that speak against `capacity` */
    struct traffic now;
};

struct node {
    uint32_t id;
    bool used, fresh; /* fresh: reported since the last look */
    double when;      /* of the last report */
    double rate[2];   /* in it */
    struct side side[2];
};

/* From one node to another, averages over the last reports. */
struct pair {
    float rate, busy;
};

struct mfs_estimator {
    uint32_t room; /* nodes that there is memory for */
    struct node *node;
    struct pair *pair; /* [sender * room + receiver] */
};

/* ---- nodes ----------------------------------------------------------------------------------- */

struct mfs_estimator *mfs_estimator_create(void)
{
    return calloc(1, sizeof(struct mfs_estimator));
}

void mfs_estimator_destroy(struct mfs_estimator *e)
{
    if (!e)
        return;
    free(e->node);
    free(e->pair);
    free(e);
}

static struct node *find(const struct mfs_estimator *e, uint32_t id)
{
    for (uint32_t i = 0; i < e->room; i++)
        if (e->node[i].used && e->node[i].id == id)
            return &e->node[i];
    return NULL;
}

static struct pair *pair_of(const struct mfs_estimator *e, uint32_t from, uint32_t to)
{
    return &e->pair[(size_t)from * e->room + to];
}

static int grow(struct mfs_estimator *e)
{
    uint32_t room = e->room ? e->room * 2 : 8;
    struct node *node = calloc(room, sizeof *node);
    struct pair *pair = calloc((size_t)room * room, sizeof *pair);

    if (!node || !pair) {
        free(node);
        free(pair);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < e->room; i++) {
        node[i] = e->node[i];
        memcpy(&pair[(size_t)i * room], pair_of(e, i, 0), e->room * sizeof *pair);
    }
    free(e->node);
    free(e->pair);
    e->node = node;
    e->pair = pair;
    e->room = room;
    return 0;
}

int mfs_estimator_add(struct mfs_estimator *e, uint32_t id)
{
    uint32_t at = 0;

    if (find(e, id))
        return 0;
    while (at < e->room && e->node[at].used)
        at++;
    if (at == e->room && grow(e))
        return -ENOMEM;
    e->node[at] = (struct node){.id = id, .used = true, .when = -STALE};
    for (uint32_t i = 0; i < e->room; i++)
        *pair_of(e, at, i) = *pair_of(e, i, at) = (struct pair){0};
    return 0;
}

void mfs_estimator_remove(struct mfs_estimator *e, uint32_t id)
{
    struct node *n = find(e, id);

    if (n)
        n->used = false;
}

void mfs_estimator_recall(struct mfs_estimator *e, uint32_t id, double capacity)
{
    struct node *n = find(e, id);

    if (n)
        n->side[IN].capacity = n->side[OUT].capacity = capacity;
}

double mfs_estimator_capacity(const struct mfs_estimator *e, uint32_t id)
{
    const struct node *n = find(e, id);
    double in = n ? n->side[IN].capacity : 0, out = n ? n->side[OUT].capacity : 0;

    return in > 0 && (out <= 0 || in < out) ? in : out;
}

/* ---- what they report ------------------------------------------------------------------------ */

static void blend(struct pair *p, const struct mfs_report_peer *r)
{
    p->rate += BLEND * ((r ? (float)r->rate : 0) - p->rate);
    p->busy += BLEND * ((r ? (float)r->busy : 0) - p->busy);
}

static const struct mfs_report_peer *about(const struct mfs_report_peer *peer, uint32_t n,
                                           uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (peer[i].node == id)
            return &peer[i];
    return NULL;
}

void mfs_estimator_report(struct mfs_estimator *e, double now, uint32_t id, double in, double out,
                          const struct mfs_report_peer *peer, uint32_t npeers)
{
    struct node *n = find(e, id);

    if (!n)
        return;
    n->when = now;
    n->fresh = true;
    n->rate[IN] = in;
    n->rate[OUT] = out;
    for (uint32_t i = 0; i < e->room; i++)
        if (e->node[i].used && &e->node[i] != n)
            blend(pair_of(e, (uint32_t)(n - e->node), i), about(peer, npeers, e->node[i].id));
}

/* ---- which node waits for which
 * ---------------------------------------------------------------------- */

typedef void on_pair(const struct pair *p, struct traffic *out, struct traffic *in);

static bool speaks(const struct node *n, double now)
{
    return n->used && now - n->when < STALE;
}

static void each_pair(struct mfs_estimator *e, double now, on_pair *act)
{
    for (uint32_t i = 0; i < e->room; i++) {
        if (!speaks(&e->node[i], now))
            continue;
        for (uint32_t j = 0; j < e->room; j++) {
            const struct pair *p = pair_of(e, i, j);

            if (e->node[j].used && p->rate > 0)
                act(p, &e->node[i].side[OUT].now, &e->node[j].side[IN].now);
        }
    }
}

static void sum(const struct pair *p, struct traffic *out, struct traffic *in)
{
    out->total += p->rate;
    in->total += p->rate;
    out->quiet *= 1 - (double)p->busy;
    in->quiet *= 1 - (double)p->busy;
}

static bool notable(const struct pair *p, const struct traffic *t)
{
    return t->total >= LEAST && p->rate >= NOTABLE * t->total;
}

static double speed(const struct pair *p)
{
    return p->rate / (double)p->busy;
}

static void add_calm(const struct pair *p, struct traffic *t)
{
    if (!notable(p, t))
        return;
    if (p->busy <= SLIGHT)
        t->calm += p->rate;
    else if (speed(p) > t->speed)
        t->speed = speed(p);
}

static void find_calm(const struct pair *p, struct traffic *out, struct traffic *in)
{
    if (p->busy > CALM)
        return;
    add_calm(p, out);
    add_calm(p, in);
}

/* On a link that is full a pair that is there but part of the time gets, while it sends, what those
 * get that are always there. So one that gets much more shows that they wait for something else,
 * and so do pairs that get as much without waiting. Pairs that hardly wait and send less may have
 * little to send. */
static bool cleared(const struct pair *p, const struct traffic *t)
{
    return t->speed >= FASTER * speed(p) || t->calm >= AS_MUCH * p->rate;
}

/* The one that is not cleared, or, when the traffic of now does not tell, the one that has not
 * carried more lately. */
static struct traffic *waited_for(const struct pair *p, struct traffic *out, struct traffic *in)
{
    bool not_out = cleared(p, out), not_in = cleared(p, in);

    if (!not_out && !not_in) {
        not_out = out->spare >= FASTER;
        not_in = in->spare >= FASTER;
    }
    return not_out == not_in ? NULL : not_out ? in : out;
}

static void vote(const struct pair *p, struct traffic *out, struct traffic *in)
{
    struct traffic *t = p->busy >= BUSY ? waited_for(p, out, in) : NULL;

    if (!t)
        return;
    t->votes += p->rate;
    t->voters++;
}

/* ---- capacities ------------------------------------------------------------------------------ */

/* Seconds in a row, nearly: one that is missing takes one away. */
static unsigned in_a_row(unsigned seconds, bool another)
{
    if (another)
        return seconds < LONG ? seconds + 1 : LONG;
    return seconds ? seconds - 1 : 0;
}

/* `any`: one pair is enough. */
static void push(struct side *s, double rate, bool any)
{
    bool full = s->now.total >= LEAST && s->now.votes >= VOTES * s->now.total;

    memmove(&s->rate[1], &s->rate[0], sizeof s->rate - sizeof *s->rate);
    memmove(&s->full[1], &s->full[0], sizeof s->full - sizeof *s->full);
    s->rate[0] = rate;
    s->full[0] = full;
    s->best = fmax(s->best * FORGET, fmin(rate, s->rate[1]));
    s->together = in_a_row(s->together, full && s->now.voters > 1);
    s->alone = in_a_row(s->alone, full && any);
}

/* Connections that share a link may get very different parts of it, for seconds. So one pair alone
 * is believed later than several are, and that only of the receiver's side, where it is the
 * sender's own other connections that are faster. A link that has lately carried much more is
 * given a moment, too. */
static bool believed(const struct side *s, double rate)
{
    unsigned enough = rate < COLLAPSE * s->best ? ENOUGH + 1 : ENOUGH;

    return s->together >= enough || s->alone >= LONG;
}

/* The rate at which it has been saturated lately, 0 when it has not, or at no steady rate. It is
 * that of the two best seconds: in the others it may have been idle for a moment. */
static double plateau(const struct side *s)
{
    double most = 0, second = 0, least = INFINITY, rate;
    unsigned n = 0;

    for (unsigned i = 0; i < RECENT; i++) {
        if (!s->full[i])
            continue;
        second = fmax(second, fmin(most, s->rate[i]));
        most = fmax(most, s->rate[i]);
        least = fmin(least, s->rate[i]);
        n++;
    }
    rate = (most + second) / 2;
    if (!s->full[0] || n < ENOUGH || most - least > STEADY * most || !believed(s, rate))
        return 0;
    return rate;
}

static void conclude(struct side *s, double rate)
{
    double change = rate - s->capacity;

    s->objections = 0;
    if (s->capacity > 0 && change <= SAME * s->capacity && change >= -SAME * s->capacity) {
        s->capacity += GLIDE * change;
        return;
    }
    if (rate < FALLEN * s->capacity && s->capacity > s->former)
        s->former = s->capacity;
    s->capacity = rate;
}

/* Would a link of this capacity be as little busy as this one is, with what it carries? */
static bool too_calm(const struct side *s)
{
    double busy = 1 - s->now.quiet;

    return s->now.total >= CARRIES * s->capacity && s->now.total >= BETTER * s->capacity * busy;
}

/* Of the last two seconds the lesser, as a bucket of tokens may have let a moment's more through.
 */
static double carried(const struct side *s)
{
    return fmin(s->rate[0], s->rate[1]);
}

/* What it was before it fell, if that may be so again. */
static void withdraw(struct side *s)
{
    s->capacity = s->former >= carried(s) ? s->former : 0;
    s->former = 0;
    s->objections = 0;
}

static void object(struct side *s, const struct side *other)
{
    if (carried(other) > EXCEEDED * s->capacity || too_calm(s))
        s->objections++;
    else if (s->objections && s->now.total >= CARRIES * s->capacity)
        s->objections--;
    if (s->objections >= OBJECTION || carried(s) > EXCEEDED * s->capacity)
        withdraw(s);
}

static void judge(struct side *s, const struct side *other)
{
    double rate = plateau(s);

    if (rate > 0)
        conclude(s, rate);
    else if (s->capacity > 0 && !s->full[0])
        object(s, other);
}

static void clear(struct mfs_estimator *e)
{
    for (uint32_t i = 0; i < e->room; i++)
        for (int s = IN; s <= OUT; s++)
            e->node[i].side[s].now = (struct traffic){
                .quiet = 1,
                .spare = e->node[i].rate[s] > 0 ? e->node[i].side[s].best / e->node[i].rate[s] : 0};
}

void mfs_estimator_look(struct mfs_estimator *e, double now)
{
    clear(e);
    each_pair(e, now, sum);
    each_pair(e, now, find_calm);
    each_pair(e, now, vote);
    for (uint32_t i = 0; i < e->room; i++) {
        struct node *n = &e->node[i];

        if (!n->used || !n->fresh)
            continue;
        push(&n->side[IN], n->rate[IN], true);
        push(&n->side[OUT], n->rate[OUT], false);
        judge(&n->side[IN], &n->side[OUT]);
        judge(&n->side[OUT], &n->side[IN]);
        n->fresh = false;
    }
}
