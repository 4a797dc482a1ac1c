-- Leases (src/partition/leases.c has their commands).

-- The other sessions with a lease of the inode, 8 bytes each.
local function other_holders(ino, sid)
    return redis.call('mfs_holders', ino, sid)
end
