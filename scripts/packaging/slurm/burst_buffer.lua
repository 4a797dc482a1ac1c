-- For Slurm's plug-in burst_buffer/lua, beside slurm.conf: a batch script asks for a deployment on the hosts of
-- its job by a line among its first comments,
--
--     #BB memefs [OPTION of cm start]…
--
-- What it asks for goes to the job as MEMEFS_BB, and task_prolog starts it. The functions are all that this plug-in
-- wants; slurmctld waits for those that do something, so these read the script and no more.
-- docs/how-to/run-in-slurm.md has the rest.

local MOUNT = "/mnt/memefs"

-- The options that the script's line has: nil where there is no such line. Second, what is wrong with it.
local function request(job_script)
    local script, why = io.open(job_script)
    local found

    if not script then
        return nil, why
    end
    for line in script:lines() do
        local what, options = line:match("^#BB%s+(%S+)%s*(.-)%s*$")

        if not line:match("^#") then
            break
        elseif what and what ~= "memefs" then
            why = '#BB asks for "' .. what .. '"; here it can ask for memefs'
        elseif what and found then
            why = "there is more than one line #BB memefs"
        elseif what and options:match("[^%w%s/%%@:=,.+_%-%[%]]") then
            why = "#BB memefs: its options are words without quotes and marks of the shell"
        elseif what then
            found = options
        end
    end
    script:close()
    return not why and found or nil, why
end

function slurm_bb_job_process(job_script)
    local _, why = request(job_script)

    if why then
        return slurm.ERROR, why
    end
    return slurm.SUCCESS
end

-- Each line of the file is a variable of the job.
function slurm_bb_paths(job_id, job_script, path_file)
    local options, why = request(job_script)
    local file

    if not options then
        return why and slurm.ERROR or slurm.SUCCESS, why
    end
    if not options:match("%-%-mount[=%s]") then
        options = "--mount " .. MOUNT .. " " .. options
    end
    file, why = io.open(path_file, "w")
    if not file then
        return slurm.ERROR, why
    end
    file:write("MEMEFS_BB=", options, "\n")
    file:close()
    return slurm.SUCCESS
end

local function nothing()
    return slurm.SUCCESS
end

slurm_bb_pools = nothing
slurm_bb_setup = nothing
slurm_bb_data_in = nothing
slurm_bb_test_data_in = nothing
slurm_bb_real_size = nothing
slurm_bb_pre_run = nothing
slurm_bb_post_run = nothing
slurm_bb_data_out = nothing
slurm_bb_test_data_out = nothing
slurm_bb_job_teardown = nothing

function slurm_bb_get_status()
    return slurm.SUCCESS, "cm status, on a host of the job, tells\n"
end
