-- Leases: Y ino holds the sessions (8 bytes each) whose mounts go on to show something of a directory without asking,
-- its entry in this partition or its inode at its home. Who changes that tells them, and waits until they don't.

local HOLDERS_MAX = 512 * 8

-- Registers the session; false when it asks for none, or when there are too many already.
local function lease(ino, sid)
    if sid == '' then
        return false
    end
    local holders = redis.call('GET', 'Y' .. ino)
    if not holders then
        redis.call('SET', 'Y' .. ino, sid)
        return true
    end
    for at = 1, #holders, 8 do
        if sub(holders, at, at + 7) == sid then
            return true
        end
    end
    if #holders >= HOLDERS_MAX then
        return false
    end
    redis.call('APPEND', 'Y' .. ino, sid)
    return true
end

-- mfs_lease ino sid, at the inode's home: whether it is registered ('\1' or '\0') and the record; nil without an inode.
redis.register_function{ function_name = 'mfs_lease', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        return rec and (lease(args[1], args[2]) and '\1' or '\0') .. rec
    end }

-- mfs_recall ino keep: all holders; none of them is one from now on, but for the session `keep` ('': none) if it was.
redis.register_function{ function_name = 'mfs_recall', flags = { 'allow-oom' },
    callback = function(_, args)
        local holders = redis.call('GETDEL', 'Y' .. args[1])
        for at = 1, holders and #holders or 0, 8 do
            if sub(holders, at, at + 7) == args[2] then
                redis.call('SET', 'Y' .. args[1], args[2])
            end
        end
        return holders or ''
    end }
