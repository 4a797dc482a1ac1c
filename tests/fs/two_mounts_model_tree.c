/* The model of the tree, and how calls name its entries. */
#include "two_mounts_model.h"

struct node nodes[NODES];

/* --- the model ---------------------------------------------------------------------------------
 */

int model_new_node(enum type type, int parent)
{
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].type != FREE)
            continue;
        nodes[i] = (struct node){.type = type, .parent = parent, .links = 1, .dirty = CLEAN};
        nodes[i].fd[0] = nodes[i].fd[1] = NONE;
        for (int j = 0; j < NAMES; j++)
            nodes[i].child[j] = NONE;
        return i;
    }
    return NONE;
}

void model_release(int n)
{
    if (nodes[n].links || nodes[n].fd[0] != NONE || nodes[n].fd[1] != NONE)
        return;
    free(nodes[n].data);
    nodes[n] = (struct node){.type = FREE};
}

void model_drop_name(int n)
{
    nodes[n].links--;
    if (nodes[n].type == DIR_NODE)
        nodes[n].links = 0;
    model_release(n);
}

bool model_is_empty(int dir)
{
    for (int i = 0; i < NAMES; i++)
        if (nodes[dir].child[i] != NONE)
            return false;
    return true;
}

bool model_is_below(int dir, int top)
{
    for (; dir != NONE; dir = nodes[dir].parent)
        if (dir == top)
            return true;
    return false;
}

unsigned model_depth(int dir)
{
    unsigned d = 0;

    for (; dir != ROOT; dir = nodes[dir].parent)
        d++;
    return d;
}

unsigned model_link_count(int n)
{
    unsigned links = 2;

    if (nodes[n].type != DIR_NODE)
        return nodes[n].links;
    for (int i = 0; i < NAMES; i++)
        if (nodes[n].child[i] != NONE && nodes[nodes[n].child[i]].type == DIR_NODE)
            links++;
    return links;
}

int model_draw_dir(struct pair *p)
{
    int n;

    do
        n = (int)pair_random(p, NODES);
    while (nodes[n].type != DIR_NODE || !nodes[n].links);
    return n;
}

/* --- from the model to calls -------------------------------------------------------------------
 */

static void append_path(int dir, char *out)
{
    int i = 0;

    if (dir == ROOT)
        return;
    append_path(nodes[dir].parent, out);
    while (nodes[nodes[dir].parent].child[i] != dir)
        i++;
    sprintf(out + strlen(out), "n%d/", i);
}

void model_path_of_dir(struct pair *p, int dir, int mount, char *out)
{
    sprintf(out, "%s/", p->dir[mount]);
    append_path(dir, out);
}

void model_place_by_path(struct pair *p, int mount, struct place *at)
{
    at->at = AT_FDCWD;
    at->strayed = false;
    model_path_of_dir(p, at->dir, mount, at->path);
    sprintf(at->path + strlen(at->path), "n%d", at->name);
}

static void draw_place(struct pair *p, int mount, int dir, int name, struct place *out)
{
    out->dir = dir;
    out->name = name;
    if (nodes[dir].fd[mount] != NONE && pair_random(p, 2)) {
        out->at = nodes[dir].fd[mount];
        out->strayed = nodes[dir].strayed[mount];
        snprintf(out->path, sizeof out->path, "n%d", name);
        return;
    }
    model_place_by_path(p, mount, out);
}

void model_random_place(struct pair *p, int mount, bool taken, struct place *out)
{
    int dir, name, tries = pair_random(p, 8) ? 10 : 0;

    do {
        dir = model_draw_dir(p);
        name = (int)pair_random(p, NAMES);
    } while ((nodes[dir].child[name] != NONE) != taken && tries-- > 0);
    draw_place(p, mount, dir, name, out);
}

int model_node_at(const struct place *at)
{
    return nodes[at->dir].child[at->name];
}

void model_expect_rc(int rc, int error, const char *what, const struct place *at)
{
    int got = rc < 0 ? errno : 0;

    if (got != error)
        fs_fail(__FILE__, __LINE__, "%s of %s: error %d, the model says %d", what, at->path, got,
                error);
}

void model_sync_node(int n)
{
    if (nodes[n].dirty == CLEAN)
        return;
    OK(fsync(nodes[n].fd[nodes[n].dirty]));
    nodes[n].dirty = CLEAN;
}
