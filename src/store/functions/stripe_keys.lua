-- Whole stripes: many taken away at once, and one brought to its exact size.

-- mfs_sdel key [key …]; bytes freed. Works when memory is full.
redis.register_function{ function_name = 'mfs_sdel', flags = { 'allow-oom' },
    callback = function(_, args)
        local freed = 0
        for i = 1, #args do
            local len, lost = stripe_len(args[i])
            if len > 0 or lost then
                freed = freed + len
                redis.call('UNLINK', args[i])
            end
        end
        return freed
    end }

-- mfs_sfit key: a value that SETRANGE lengthened step by step has up to its own size as spare room,
-- a copy has none.
redis.register_function('mfs_sfit', function(_, args)
    local key, copy = args[1], args[1] .. '~'
    local used = redis.call('MEMORY', 'USAGE', key)
    local len, lost = stripe_len(key)
    if used and not lost and used > len * 1.2 then
        redis.call('COPY', key, copy)
        redis.call('RENAME', copy, key)
    end
    return redis.status_reply('OK')
end)
