-- Who waits for whom among the owners of fcntl locks, all of it in partition 0. Key: W, session (8),
-- owner (8). Value: whom he waits for (session, owner), then what tells this wait from others and
-- says what it is for (src/meta/session/wait.c). Each owner has one note at most.

local STEPS = 16 -- from note to note, at most; src/meta/session/wait.c knows it, too

-- mfs_wait owner note ttl_ms: takes the note. If those who are in the way wait for each other and
-- the last of them for the owner: their { owner, note, … } in this order.
redis.register_function{ function_name = 'mfs_wait', flags = { 'allow-oom' },
    callback = function(_, args)
        local owner, ring, holder = args[1], {}, sub(args[2], 1, 16)
        redis.call('SET', 'W' .. owner, args[2], 'PX', args[3])
        for _ = 1, STEPS do
            local note = redis.call('GET', 'W' .. holder)
            if not note then
                return nil
            end
            ring[#ring + 1] = holder
            ring[#ring + 1] = note
            holder = sub(note, 1, 16)
            if holder == owner then
                return ring
            end
        end
    end }

-- mfs_wait_over owner note [owner note …]: if all these notes stand, the first one goes, and 1.
redis.register_function{ function_name = 'mfs_wait_over', flags = { 'allow-oom' },
    callback = function(_, args)
        for i = 1, #args, 2 do
            if redis.call('GET', 'W' .. args[i]) ~= args[i + 1] then
                return 0
            end
        end
        return redis.call('DEL', 'W' .. args[1])
    end }
