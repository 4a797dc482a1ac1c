#include "cm/provider/slurm/rest_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "proto/json.h"

/* ---- a job to submit ------------------------------------------------------------------------- */

/* An object of names and values, as sbatch's options have it, or a list. */
static bool add_environment(cJSON *job, int version, const char *const *environment)
{
    cJSON *all = version < MFS_SLURM_API_TYPED ? cJSON_AddObjectToObject(job, "environment")
                                               : cJSON_AddArrayToObject(job, "environment");
    bool good = all;

    for (; good && *environment; environment++) {
        const char *value = strchr(*environment, '=');
        char name[128];

        if (version >= MFS_SLURM_API_TYPED)
            good = cJSON_AddItemToArray(all, cJSON_CreateString(*environment));
        else if (value && !mfs_text_format(name, sizeof name, "%.*s", (int)(value - *environment),
                                           *environment))
            good = cJSON_AddStringToObject(all, name, value + 1);
    }
    return good;
}

static bool add_text(cJSON *job, const char *name, const char *value)
{
    return !value || cJSON_AddStringToObject(job, name, value);
}

static bool add_word_list(cJSON *job, const char *name, const char *word)
{
    cJSON *list = cJSON_AddArrayToObject(job, name);

    return list && cJSON_AddItemToArray(list, cJSON_CreateString(word));
}

/* The warning before its end goes to steps alone there, not to the script. */
static bool add_options(cJSON *job, const struct mfs_slurm_submission *s)
{
    char mib[32];

    snprintf(mib, sizeof mib, "%" PRIu64 "M", s->mib);
    return cJSON_AddNumberToObject(job, "nodes", 1) &&
           cJSON_AddStringToObject(job, "exclusive", "exclusive") &&
           cJSON_AddTrueToObject(job, "no_requeue") &&
           cJSON_AddStringToObject(job, "memory_per_node", mib) &&
           add_text(job, "time_limit", s->minutes);
}

static bool add_types(cJSON *job, const struct mfs_slurm_submission *s)
{
    uint64_t minutes = 0;

    if (s->minutes && mfs_text_u64(s->minutes, &minutes))
        return false;
    return cJSON_AddStringToObject(job, "nodes", "1") && add_word_list(job, "shared", "none") &&
           cJSON_AddFalseToObject(job, "requeue") &&
           cJSON_AddStringToObject(job, "kill_warning_signal", "TERM") &&
           cJSON_AddNumberToObject(job, "kill_warning_delay", MFS_SLURM_WARNING) &&
           add_word_list(job, "kill_warning_flags", "BATCH_JOB") &&
           cJSON_AddNumberToObject(job, "memory_per_node", (double)s->mib) &&
           (!s->minutes || cJSON_AddNumberToObject(job, "time_limit", (double)minutes));
}

int mfs_slurm_rest_body(int version, const struct mfs_slurm_submission *s, struct mfs_buf *out)
{
    cJSON *body = cJSON_CreateObject(), *job = cJSON_AddObjectToObject(body, "job");
    bool good = job && add_text(body, "script", s->script) && add_text(job, "name", s->name) &&
                add_text(job, "comment", s->comment) &&
                add_text(job, "current_working_directory", s->directory) &&
                add_text(job, "standard_output", "/dev/null") &&
                add_text(job, "partition", s->partition) && add_text(job, "account", s->account) &&
                cJSON_AddNumberToObject(job, "tasks", 1) &&
                (version < MFS_SLURM_API_TYPED ? add_options(job, s) : add_types(job, s)) &&
                add_environment(job, version, s->environment);

    if (good)
        return mfs_json_print(body, false, out);
    cJSON_Delete(body);
    return -ENOMEM;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* 12, or {"set": true, "infinite": false, "number": 12}. 0: none that is set. */
static int64_t number(const cJSON *object, const char *name)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, name);

    if (cJSON_IsObject(n)) {
        const cJSON *is_set = cJSON_GetObjectItemCaseSensitive(n, "set");

        n = cJSON_IsTrue(is_set) ? cJSON_GetObjectItemCaseSensitive(n, "number") : NULL;
    }
    if (!n || !cJSON_IsNumber(n) || !(n->valuedouble > -9e15 && n->valuedouble < 9e15))
        return 0;
    return (int64_t)n->valuedouble;
}

/* What is longer is cut. */
static void take_text(const cJSON *object, const char *name, char *out, size_t n)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(object, name);

    snprintf(out, n, "%s", cJSON_IsString(text) ? text->valuestring : "");
}

/* One word; or a list of the state and flags that say more than it: the first that is known. */
static void take_state(const cJSON *job, char *out, size_t n)
{
    static const char *const strongest[] = {"COMPLETING", "STAGE_OUT", "CONFIGURING", "REQUEUED",
                                            "STOPPED"};
    const cJSON *state = cJSON_GetObjectItemCaseSensitive(job, "job_state"), *word;

    take_text(job, "job_state", out, n);
    if (!cJSON_IsArray(state))
        return;
    word = cJSON_GetArrayItem(state, 0);
    snprintf(out, n, "%s", cJSON_IsString(word) ? word->valuestring : "");
    for (size_t i = 0; i < sizeof strongest / sizeof *strongest; i++)
        cJSON_ArrayForEach(word, state) if (cJSON_IsString(word) &&
                                            !strcmp(word->valuestring, strongest[i]))
        {
            mfs_text_copy(out, n, strongest[i]);
            return;
        }
}

/* As squeue(1) shows it. */
static void take_time(const cJSON *job, const char *name, char *out, size_t n)
{
    time_t t = (time_t)number(job, name);
    struct tm tm;

    if (t <= 0 || !localtime_r(&t, &tm) || !strftime(out, n, "%Y-%m-%dT%H:%M:%S", &tm))
        mfs_text_copy(out, n, "N/A");
}

static void take_job(const cJSON *job, struct mfs_slurm_job *out)
{
    int64_t id = number(job, "job_id");

    memset(out, 0, sizeof *out);
    if (id > 0)
        snprintf(out->id, sizeof out->id, "%" PRId64, id);
    take_text(job, "name", out->name, sizeof out->name);
    take_text(job, "state_reason", out->reason, sizeof out->reason);
    take_text(job, "nodes", out->host, sizeof out->host);
    take_text(job, "comment", out->comment, sizeof out->comment);
    take_state(job, out->state, sizeof out->state);
    out->end = number(job, "end_time");
    take_time(job, "start_time", out->start, sizeof out->start);
}

/* "what went wrong: how", of which one may be missing. */
static void take_error(const cJSON *answer, struct mfs_slurm_answer *out)
{
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(answer, "errors"), 0);
    char what[140], how[140];

    if (!first)
        return;
    take_text(first, "description", what, sizeof what);
    take_text(first, "error", how, sizeof how);
    out->number = number(first, "error_number");
    if (!out->number)
        out->number = number(first, "error_code");
    snprintf(out->error, sizeof out->error, "%s%s%s", what, *what && *how ? ": " : "", how);
    if (!out->error[0])
        snprintf(out->error, sizeof out->error, "error %" PRId64, out->number);
    if (out->number == -1) /* Slurm 22.05 */
        strncat(out->error, ": slurmctld may be away, or refuses the token",
                sizeof out->error - strlen(out->error) - 1);
    for (char *c = out->error; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static void take_number_of_job(const cJSON *answer, struct mfs_slurm_answer *out)
{
    int64_t id = number(answer, "job_id");

    if (id > 0)
        snprintf(out->job, sizeof out->job, "%" PRId64, id);
}

int mfs_slurm_rest_read(const char *text, size_t len,
                        void (*each)(void *arg, const struct mfs_slurm_job *j), void *arg,
                        struct mfs_slurm_answer *out, struct mfs_err *err)
{
    cJSON *answer = mfs_json_parse(text, len, err);
    const cJSON *job;

    memset(out, 0, sizeof *out);
    if (!answer)
        return err->code = -EPROTO;
    take_error(answer, out);
    take_number_of_job(answer, out);
    out->has_jobs = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(answer, "jobs"));
    if (each)
        cJSON_ArrayForEach(job, cJSON_GetObjectItemCaseSensitive(answer, "jobs"))
        {
            struct mfs_slurm_job j;

            take_job(job, &j);
            if (j.id[0] && j.state[0])
                each(arg, &j);
        }
    cJSON_Delete(answer);
    return 0;
}
