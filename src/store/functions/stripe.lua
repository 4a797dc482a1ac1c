-- Content of one stripe, a string value that ends at its last byte that may not be zero. Writing it is in C
-- (src/partition/files.c).

-- mfs_strim key keep; old and new length.
redis.register_function{ function_name = 'mfs_strim', flags = { 'allow-oom' },
    callback = function(_, args)
        return { cut(args[1], tonumber(args[2])) }
    end }

-- mfs_szero key off len; old and new length.
redis.register_function{ function_name = 'mfs_szero', flags = { 'allow-oom' },
    callback = function(_, args)
        local key, off, len = args[1], tonumber(args[2]), tonumber(args[3])
        local old, lost = stripe_len(key)
        if off >= old then
            return { old, old }
        end
        if off + len >= old then
            return { cut(key, off) }
        end
        if lost then
            return { old, old }
        end
        redis.call('SETRANGE', key, off, string.rep('\0', len))
        return { old, old }
    end }
