/* Inside two_mounts_model: the model of the tree. */
#ifndef MFS_TESTS_TWO_MOUNTS_MODEL_H
#define MFS_TESTS_TWO_MOUNTS_MODEL_H

#include "fs_pair.h"

enum { NODES = 48, NAMES = 5, CONTENT_MAX = PAIR_STRIPE + 300000, NONE = -1, ROOT = 0, CLEAN = -1 };

enum type { FREE, FILE_NODE, DIR_NODE, LINK_NODE };

struct node {
    enum type type;
    unsigned links;   /* of a file or symbolic link: its names */
    int parent;       /* of a directory */
    int child[NAMES]; /* of a directory: node or NONE */
    mode_t mode;
    size_t size;
    unsigned char *data;
    int fd[2];       /* open on each mount, or NONE */
    bool strayed[2]; /* a directory's: moved since it was opened, without its kernel knowing */
    int dirty;       /* the mount that has written and not yet synced, or CLEAN */
};

/* How a call names an entry: relative to a directory kept open, or by its whole path. */
struct place {
    int dir, name; /* in the model */
    int at;        /* for the call */
    bool strayed;  /* relative to a directory that has strayed */
    char path[PAIR_PATH + 4 * NODES];
};

extern struct node nodes[NODES];

int model_new_node(enum type type, int parent);

/* Forgets a node without a name once no file of it is open. */
void model_release(int n);
void model_drop_name(int n);
bool model_is_empty(int dir);
bool model_is_below(int dir, int top);
unsigned model_depth(int dir);
unsigned model_link_count(int n);

/* Some directory that has a name. */
int model_draw_dir(struct pair *p);

/* NODES names of three characters each fit beside the lane's own path. */
void model_path_of_dir(struct pair *p, int dir, int mount, char *out);
void model_place_by_path(struct pair *p, int mount, struct place *at);

/* Somewhere in the tree; mostly where there is an entry, or is none, as wanted. */
void model_random_place(struct pair *p, int mount, bool taken, struct place *out);
int model_node_at(const struct place *at);

/* The call must have ended as the model says: 0, or -1 with that errno. */
void model_expect_rc(int rc, int error, const char *what, const struct place *at);
void model_sync_node(int n);

#endif
