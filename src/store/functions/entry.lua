-- Names: this partition's shard of a directory is a hash name → entry. Its field '' (no name is
-- empty) is a seal: while it is there no name can be added. A seal holds the transaction that is
-- removing the directory (16 bytes) and the partition that decides it (2); a removed directory's
-- shard is a tombstone for a while, so that nobody adds names by an old copy of its inode. What is
-- needed again and again is in C (src/partition/names.c).
--
-- Answers that are strings begin with a status byte. Those that ask for something to be done first:
-- '\3' entry: an intent is in the way; '\4' seal: the directory is, or may be, being removed.

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

-- How long it is remembered that a name has come, or will not, should its client die before it has said that it knows.
local DECIDED_SECONDS = 86400

-- mfs_put parent name entry sid [txn]: txn is that of mfs_link_begin, decided by the name's being there. ECANCELED:
-- somebody has decided that it will not be.
redis.register_function('mfs_put', function(_, args)
    local txn = args[5]
    if txn and redis.call('EXISTS', 'T' .. txn) == 1 then
        return fail(errno.ECANCELED, 'aborted')
    end
    local answer = put_entry(args[1], args[2], args[3], args[4])
    if txn and type(answer) == 'string' and byte(answer) == 0 then
        redis.call('SET', 'T' .. txn, 'C\0', 'EX', DECIDED_SECONDS)
    end
    return answer
end)

local function link(args)
    local ino = args[1]
    local rec = get_record(ino)
    if not rec then
        return fail(errno.ESTALE, 'no inode')
    end
    local nlink, kind = record_nlink(rec), record_type(rec)
    if kind == S_IFDIR then
        return fail(errno.EPERM, 'a directory')
    end
    if nlink == 0 and not has_flag(rec, F_TMPFILE) then
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
    if nlink == 0 then
        redis.call('SREM', '#orphans', ino)
    end
    return '\0' .. char(#keeper) .. keeper .. rec .. (kind == S_IFREG and other_holders(ino, args[3]) or '')
end

-- mfs_link ino time sid parent name: counts one more name and adds it. '\0', length (1 byte) of the other keeper, that,
-- record, and behind a regular file's other holders of a lease; '\3'; '\4'.
redis.register_function('mfs_link', function(_, args)
    return link(args)
end)

-- mfs_link_begin ino time sid txn decider: counts one more name, which is yet to come in another partition, and notes that
-- (functions/rename.lua). The same answer.
redis.register_function('mfs_link_begin', function(_, args)
    local answer = link({ args[1], args[2], args[3] })
    if type(answer) == 'string' then
        redis.call('HSET', '#intents', args[4], struct.pack('>I8', tonumber(redis.call('TIME')[1])) ..
                   '\0\0\0\0\0\0\0\0' .. args[5] .. args[1])
    end
    return answer
end)

-- mfs_tmpfile prefix sid record [xattr value …]: a file of no name, open for the session; its ino. It goes as one whose
-- last name has gone.
local NOWHERE = '\0\0\0\0\0\0\0\0'

redis.register_function('mfs_tmpfile', function(_, args)
    local said = redis.call('mfs_create', NOWHERE, 'x', args[1], char(S_IFREG), 'x', args[2], unpack(args, 3))
    if type(said) == 'table' then
        return said
    end
    local ino = sub(said, 2, 9)
    redis.call('DEL', 'D' .. NOWHERE)
    redis.call('SADD', '#orphans', ino)
    return ino
end)
