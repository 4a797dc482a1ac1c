-- Leases: Y ino holds the sessions (8 bytes each) whose mounts go on to show something without asking: of a directory
-- its entry in this partition or its inode at its home, of a regular file both, if they are in one partition. Who
-- changes that tells them, and waits until they don't. The key lasts for long after the last of them has asked, and
-- after the inode.

local HOLDERS_MAX = 512 * 8
local LEASE_SECONDS = '120'

local function is_holder(holders, sid)
    for at = 1, #holders, 8 do
        if sub(holders, at, at + 7) == sid then
            return true
        end
    end
    return false
end

-- Registers the session; false when it asks for none, or when there are too many already.
local function lease(ino, sid)
    if sid == '' then
        return false
    end
    local key = 'Y' .. ino
    local holders = redis.call('SET', key, sid, 'NX', 'GET', 'EX', LEASE_SECONDS)
    if not holders then
        return true
    end
    if not is_holder(holders, sid) then
        if #holders >= HOLDERS_MAX then
            return false
        end
        redis.call('APPEND', key, sid)
    end
    redis.call('EXPIRE', key, LEASE_SECONDS)
    return true
end

-- The sessions but this one, 8 bytes each.
local function other_holders(ino, sid)
    local holders = redis.call('GET', 'Y' .. ino)
    if not holders or holders == sid then
        return ''
    end
    local out = ''
    for at = 1, #holders, 8 do
        local other = sub(holders, at, at + 7)
        if other ~= sid then
            out = out .. other
        end
    end
    return out
end

-- One name less, as unref has it: length (1 byte) of what it says, that, other holders.
local function unref_leased(ino, time, stripe_size, sid)
    local said = unref(ino, time, tonumber(stripe_size))
    return char(#said) .. said .. other_holders(ino, sid)
end

-- mfs_unref ino time stripe_size sid
redis.register_function{ function_name = 'mfs_unref', flags = { 'allow-oom' },
    callback = function(_, args)
        return unref_leased(args[1], args[2], args[3], args[4])
    end }

-- The keeper of this shard of a directory, K ino, is the session that put the first name into it and that is told, also
-- before the call returns, of each name that others add: it knows which names are not there. Its right ends by itself.
local function other_keeper(dir, sid)
    local keeper = redis.call('GET', 'K' .. dir)
    return keeper and keeper ~= sid and keeper or ''
end

-- After a name was added, by a session that says what it is: 'n' not the keeper, 'k' that, 'p' that and wants to be for
-- longer. '\1': it is the keeper now, of this one name; '\2': it still is, for longer; '\0': neither. Behind it another
-- keeper, who has to be told.
local function kept(dir, sid, what)
    local keeper = redis.call('GET', 'K' .. dir)
    local other = keeper and keeper ~= sid and keeper or ''
    if what == 'n' and redis.call('HLEN', 'D' .. dir) == 1 then
        redis.call('SET', 'K' .. dir, sid, 'EX', LEASE_SECONDS)
        return '\1' .. other
    elseif what == 'p' and keeper == sid then
        redis.call('EXPIRE', 'K' .. dir, LEASE_SECONDS)
        return '\2'
    end
    return '\0' .. other
end

-- mfs_lease ino sid, at the inode's home: whether it is registered ('\1' or '\0') and the record; nil without an inode.
redis.register_function{ function_name = 'mfs_lease', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        return rec and (lease(args[1], args[2]) and '\1' or '\0') .. rec
    end }
