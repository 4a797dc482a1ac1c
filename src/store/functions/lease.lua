-- Leases and keepers (src/partition/leases.c has their commands).

-- Registers the session for a directory whose entry is here.
local function lease(ino, sid)
    redis.call('mfs_lease', ino, sid, 'entry')
end

-- The other sessions with a lease of the inode, 8 bytes each.
local function other_holders(ino, sid)
    return redis.call('mfs_holders', ino, sid)
end

-- The keeper of this shard of a directory, K ino, is the session that put the first name into it and that is told, also
-- before the call returns, of each name that others add: it knows which names are not there. Its right ends by itself.
local function other_keeper(dir, sid)
    local keeper = redis.call('GET', 'K' .. dir)
    return keeper and keeper ~= sid and keeper or ''
end
