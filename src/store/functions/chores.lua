-- What housekeeping has to look at, for one client at a time.

local function now()
    return tonumber(redis.call('TIME')[1])
end

local LOOK = 64 -- things of each kind in one round

-- mfs_chores ms: nil when somebody was here less than ms ago, otherwise { now in seconds,
-- { ino, end of data, … } of #reap, { ino, { session, … }, … } of #orphans,
-- { txn, since and source, … } of #intents, the lock on moves or '', how many sessions here have died }.
redis.register_function{ function_name = 'mfs_chores', flags = { 'allow-oom' },
    callback = function(_, args)
        if not redis.call('SET', '#chores', '1', 'PX', args[1], 'NX') then
            return false
        end
        local orphans = {}
        for _, ino in ipairs(redis.call('SRANDMEMBER', '#orphans', LOOK)) do
            orphans[#orphans + 1] = ino
            orphans[#orphans + 1] = redis.call('HKEYS', 'O' .. ino)
        end
        return { now(), redis.call('HRANDFIELD', '#reap', LOOK, 'WITHVALUES'), orphans,
                 redis.call('HRANDFIELD', '#intents', LOOK, 'WITHVALUES'),
                 redis.call('GET', '#moving') or '', #dead_sessions() }
    end }

-- mfs_tidy sid ms: nil when somebody searches for what the dead have left; else this session is to, and has ms for it.
-- Memory may be full of just that.
redis.register_function{ function_name = 'mfs_tidy', flags = { 'allow-oom' },
    callback = function(_, args)
        return redis.call('SET', '#tidy', args[1], 'PX', args[2], 'NX')
    end }
