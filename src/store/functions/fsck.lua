-- Repairs of memefs fsck. Each changes only what still is as it was when it was found to be wrong: 1, otherwise 0.

-- mfs_fsck_record ino old new: the whole record.
redis.register_function{ function_name = 'mfs_fsck_record', flags = { 'allow-oom' },
    callback = function(_, args)
        if get_record(args[1]) ~= args[2] then
            return 0
        end
        put_record(args[1], args[3])
        return 1
    end }

-- mfs_fsck_entry parent name old new; new '': it goes.
redis.register_function{ function_name = 'mfs_fsck_entry', flags = { 'allow-oom' },
    callback = function(_, args)
        local dir = 'D' .. args[1]
        if redis.call('HGET', dir, args[2]) ~= args[3] then
            return 0
        end
        if args[4] == '' then
            return redis.call('HDEL', dir, args[2])
        end
        redis.call('HSET', dir, args[2], args[4])
        return 1
    end }

-- mfs_fsck_loose letter ino: what is kept beside an inode that is not there.
redis.register_function{ function_name = 'mfs_fsck_loose', flags = { 'allow-oom' },
    callback = function(_, args)
        if redis.call('EXISTS', 'I' .. args[2]) == 1 then
            return 0
        end
        return redis.call('DEL', args[1] .. args[2])
    end }

-- mfs_fsck_orphan ino: it is none, as it is not there or has a name.
redis.register_function{ function_name = 'mfs_fsck_orphan', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        if rec and record_nlink(rec) == 0 then
            return 0
        end
        return redis.call('SREM', '#orphans', args[1])
    end }

-- mfs_fsck_expire key seconds: a key that would live for ever.
redis.register_function{ function_name = 'mfs_fsck_expire', flags = { 'allow-oom' },
    callback = function(_, args)
        if redis.call('TTL', args[1]) ~= -1 then
            return 0
        end
        return redis.call('EXPIRE', args[1], args[2])
    end }

-- mfs_fsck_seq least freed: no ino is given out twice; so many of the numbers up to then have no inode.
redis.register_function{ function_name = 'mfs_fsck_seq', flags = { 'allow-oom' },
    callback = function(_, args)
        if tonumber(redis.call('GET', '#seq') or '0') >= tonumber(args[1]) then
            return 0
        end
        redis.call('SET', '#seq', args[1])
        redis.call('SET', '#freed', args[2])
        return 1
    end }
