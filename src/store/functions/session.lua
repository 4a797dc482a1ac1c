-- Sessions must live on when memory is full, which plain SET and HINCRBY would not let them.

-- mfs_session sid ttl_ms
redis.register_function{ function_name = 'mfs_session', flags = { 'allow-oom' },
    callback = function(_, args)
        return redis.call('SET', 'Z' .. args[1], '1', 'PX', args[2])
    end }

-- mfs_reopen ino sid count: what a session's successor has open.
redis.register_function{ function_name = 'mfs_reopen', flags = { 'allow-oom' },
    callback = function(_, args)
        if get_record(args[1]) then
            redis.call('HINCRBY', 'O' .. args[1], args[2], args[3])
        end
    end }
