-- Sessions must live on when memory is full, which plain SET and HINCRBY would not let them.

-- #sessions has those that live here, and those that have died: until all partitions have been searched for what they
-- left (src/fsck/tidy.c).

local function is_dead(sid)
    return redis.call('EXISTS', 'Z' .. sid) == 0
end

local function dead_sessions()
    local dead = {}
    for _, sid in ipairs(redis.call('SMEMBERS', '#sessions')) do
        if is_dead(sid) then
            dead[#dead + 1] = sid
        end
    end
    return dead
end

-- mfs_session sid ttl_ms text
redis.register_function{ function_name = 'mfs_session', flags = { 'allow-oom' },
    callback = function(_, args)
        redis.call('SADD', '#sessions', args[1])
        return redis.call('SET', 'Z' .. args[1], args[3], 'PX', args[2])
    end }

-- mfs_session_end sid: it has given everything back.
redis.register_function{ function_name = 'mfs_session_end', flags = { 'allow-oom' },
    callback = function(_, args)
        redis.call('DEL', 'Z' .. args[1])
        redis.call('SREM', '#sessions', args[1])
    end }

-- mfs_sessions_dead: those of #sessions that have died.
redis.register_function{ function_name = 'mfs_sessions_dead', flags = { 'no-writes' },
    callback = function()
        return dead_sessions()
    end }

-- mfs_session_bury sid: nothing is left of it any more.
redis.register_function{ function_name = 'mfs_session_bury', flags = { 'allow-oom' },
    callback = function(_, args)
        if is_dead(args[1]) then
            redis.call('SREM', '#sessions', args[1])
        end
    end }

-- mfs_sessions_keep ms: nobody will be able to refresh a session here for a while, as the partition
-- is about to be fenced for long: those that are alive live at least that long. Their next refresh
-- sets the usual time again.
redis.register_function{ function_name = 'mfs_sessions_keep', flags = { 'allow-oom' },
    callback = function(_, args)
        for _, sid in ipairs(redis.call('SMEMBERS', '#sessions')) do
            redis.call('PEXPIRE', 'Z' .. sid, args[1])
        end
    end }

-- mfs_reopen ino sid count [number]: what a session has open that is not registered yet. With a number, which grows from
-- one to the next of the session and inode, it is done once, however often it comes: the last one is kept behind the count.
redis.register_function{ function_name = 'mfs_reopen', flags = { 'allow-oom' },
    callback = function(_, args)
        local openers, number = 'O' .. args[1], tonumber(args[4] or 0)
        local have = redis.call('HGET', openers, args[2]) or '0'
        local count, last = have:match('^(%d+) ?(%d*)$')
        last = tonumber(last) or 0
        if not get_record(args[1]) or (number > 0 and number <= last) then
            return
        end
        redis.call('HSET', openers, args[2], ('%d %d'):format(count + args[3], number > 0 and number or last))
    end }
