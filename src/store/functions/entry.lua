-- Names: this partition's shard of a directory is a hash name → entry. Its field '' (no name is
-- empty) is a seal: while it is there no name can be added. A seal holds the transaction that is
-- removing the directory (16 bytes) and the partition that decides it (2); a removed directory's
-- shard is a tombstone for a while, so that nobody adds names by an old copy of its inode.
--
-- Answers that are strings begin with a status byte. Those that ask for something to be done first:
-- '\3' entry: an intent is in the way; '\4' seal: the directory is, or may be, being removed.

-- mfs_lookup parent name prefix sid: nil, or whether this session now has a lease ('\1' or '\0'), length of the entry (1 byte), entry, and the inode's record where this is its home (empty when it is not there any
-- more).
redis.register_function{ function_name = 'mfs_lookup', flags = { 'allow-oom' },
    callback = function(_, args)
        local entry = redis.call('HGET', 'D' .. args[1], args[2])
        if not entry then
            return false
        end
        local ino = sub(entry, 1, 8)
        local rec = home_here(ino, args[3]) and get_record(ino) or ''
        local kind = entry_type(entry)
        local leased = #entry == ENTRY and (kind == S_IFDIR or (kind == S_IFREG and rec ~= '')) and
                       lease(ino, args[4])
        return (leased and '\1' or '\0') .. char(#entry) .. entry .. rec
    end }

-- mfs_create parent name prefix type how sid record [xattr value …]; how: 'x' fails on an existing
-- name, 'o' opens an existing regular file if its home is here; behind it, if it wants leases
-- (also of a file that it opens), what kept takes. '\0' ino and what kept says: created (open for sid
-- when that is not empty; a directory leased to it); '\1' ino record: existed, open now; '\2' entry:
-- exists, not opened; '\3', '\4'.
local EXCLUSIVE = byte('x')

redis.register_function('mfs_create', function(_, args)
    local dir, name, prefix = 'D' .. args[1], args[2], args[3]
    local sid = args[6]
    local found = redis.call('HMGET', dir, '', name)
    local entry = found[2]
    if entry then
        local ino = sub(entry, 1, 8)
        local rec = home_here(ino, prefix) and get_record(ino)
        if rec or not home_here(ino, prefix) then
            if #entry > ENTRY then
                return '\3' .. entry
            end
            if byte(args[5]) == EXCLUSIVE then
                return fail(errno.EEXIST, 'exists')
            end
            if not rec or entry_type(entry) ~= S_IFREG then
                return '\2' .. entry
            end
            redis.call('HINCRBY', 'O' .. ino, sid, 1)
            return '\1' .. ino .. rec
        end
    end
    if found[1] then
        return '\4' .. found[1]
    end
    local ino = prefix .. struct.pack('>I6', redis.call('INCR', '#seq'))
    put_record(ino, args[7])
    redis.call('HSET', dir, name, ino .. args[4])
    if byte(args[4]) == S_IFDIR then
        lease(ino, sid)
    elseif sid ~= '' then
        redis.call('HINCRBY', 'O' .. ino, sid, 1)
        if #args[5] > 1 then
            lease(ino, sid)
        end
    end
    if args[8] then
        redis.call('HSET', 'A' .. ino, unpack(args, 8))
    end
    return '\0' .. ino .. kept(args[1], sid, sid ~= '' and sub(args[5], 2))
end)

-- mfs_unlink parent name prefix time stripe_size sid. '\0' ino and what unref_leased says: done; '\1' ino: the entry is
-- gone, the inode's home is elsewhere; '\3'.
redis.register_function{ function_name = 'mfs_unlink', flags = { 'allow-oom' },
    callback = function(_, args)
        local dir, name = 'D' .. args[1], args[2]
        local entry = redis.call('HGET', dir, name)
        if not entry then
            return fail(errno.ENOENT, 'no entry')
        end
        if #entry > ENTRY then
            return '\3' .. entry
        end
        if entry_type(entry) == S_IFDIR then
            return fail(errno.EISDIR, 'a directory')
        end
        redis.call('HDEL', dir, name)
        local ino = sub(entry, 1, 8)
        if home_here(ino, args[3]) then
            return '\0' .. ino .. unref_leased(ino, args[4], args[5], args[6])
        end
        return '\1' .. ino
    end }

-- mfs_drop parent name ino: removes an entry whose inode is gone for good.
redis.register_function{ function_name = 'mfs_drop', flags = { 'allow-oom' },
    callback = function(_, args)
        local dir = 'D' .. args[1]
        local entry = redis.call('HGET', dir, args[2])
        if entry and sub(entry, 1, 8) == args[3] then
            redis.call('HDEL', dir, args[2])
        end
    end }

-- Adds a name for an inode that counts it already. '\0' other keeper; '\3'; '\4'; EEXIST.
local function put_entry(parent, name, entry, sid)
    local dir = 'D' .. parent
    local found = redis.call('HMGET', dir, '', name)
    if found[2] and #found[2] > ENTRY then
        return '\3' .. found[2]
    end
    if found[2] then
        return fail(errno.EEXIST, 'exists')
    end
    if found[1] then
        return '\4' .. found[1]
    end
    redis.call('HSET', dir, name, entry)
    return '\0' .. other_keeper(parent, sid)
end

-- mfs_put parent name entry sid
redis.register_function('mfs_put', function(_, args)
    return put_entry(args[1], args[2], args[3], args[4])
end)

-- mfs_link ino time sid [parent name]: counts one more name and, when it is given (its partition is this one), adds it.
-- '\0', length (1 byte) of the other keeper, that, record, and behind a regular file's other holders of a lease; '\3';
-- '\4'.
redis.register_function('mfs_link', function(_, args)
    local ino = args[1]
    local rec = get_record(ino)
    if not rec then
        return fail(errno.ESTALE, 'no inode')
    end
    local nlink, kind = record_nlink(rec), record_type(rec)
    if kind == S_IFDIR then
        return fail(errno.EPERM, 'a directory')
    end
    if nlink == 0 then
        return fail(errno.ENOENT, 'unlinked')
    end
    if nlink >= LINK_MAX then
        return fail(errno.EMLINK, 'too many links')
    end
    local keeper = ''
    if args[4] then
        local answer = put_entry(args[4], args[5], ino .. char(kind), args[3])
        if type(answer) == 'table' or byte(answer) ~= 0 then
            return answer
        end
        keeper = sub(answer, 2)
    end
    rec = splice(splice(rec, 16, struct.pack('<I4', nlink + 1)), 80, args[2])
    put_record(ino, rec)
    return '\0' .. char(#keeper) .. keeper .. rec .. (kind == S_IFREG and other_holders(ino, args[3]) or '')
end)
