-- Sessions must live on when memory is full, which plain SET and HINCRBY would not let them.

-- Forgets a session that has ended.
local function forget_ended(sid)
    if redis.call('EXISTS', 'Z' .. sid) == 0 then
        redis.call('SREM', '#sessions', sid)
    end
end

-- mfs_session sid ttl_ms text
redis.register_function{ function_name = 'mfs_session', flags = { 'allow-oom' },
    callback = function(_, args)
        for _, sid in ipairs(redis.call('SRANDMEMBER', '#sessions', 4)) do
            forget_ended(sid)
        end
        redis.call('SADD', '#sessions', args[1])
        return redis.call('SET', 'Z' .. args[1], args[3], 'PX', args[2])
    end }

-- mfs_sessions_keep ms: nobody will be able to refresh a session here for a while, as the partition
-- is about to be fenced for long: those that are alive live at least that long. Their next refresh
-- sets the usual time again.
redis.register_function{ function_name = 'mfs_sessions_keep', flags = { 'allow-oom' },
    callback = function(_, args)
        for _, sid in ipairs(redis.call('SMEMBERS', '#sessions')) do
            if redis.call('PEXPIRE', 'Z' .. sid, args[1]) == 0 then
                redis.call('SREM', '#sessions', sid)
            end
        end
    end }

-- mfs_reopen ino sid count: what a session's successor has open.
redis.register_function{ function_name = 'mfs_reopen', flags = { 'allow-oom' },
    callback = function(_, args)
        if get_record(args[1]) then
            redis.call('HINCRBY', 'O' .. args[1], args[2], args[3])
        end
    end }
