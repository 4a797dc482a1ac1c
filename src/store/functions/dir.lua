-- Directories: their inode at its home, their shards, and how they go away (docs/METADATA.md,
-- "rmdir"). A transaction's outcome, T txn, is at the partition that decides it: absent (open),
-- 'A' (aborted, for a day), or 'C', the length of what the source entry becomes (1 byte), that
-- (an entry, or a whiteout: functions/rename.lua), and what is left to do, which only the client reads.

-- Longer than a client may be stopped before it sends what was aborted: a day, as for debts (entry.lua).
local ABORTED_SECONDS = 86400

local function now()
    return tonumber(redis.call('TIME')[1])
end

-- mfs_ptime ino time seen: names came or went at that time, in the eyes of a client that has seen so many settings of
-- its times (-1: it does not know, and clocks decide). They come late: those from before the last setting are dropped,
-- the first one after it replaces what was set.
local function parent_changed(rec, time, seen)
    local newer = later(time, sub(rec, 81, 92))
    local set, missed = has_flag(rec, F_MTIME), struct.unpack('<I2', rec, 3) - seen
    if seen >= 0 and missed % 65536 > 0 and missed % 65536 < 32768 or set and seen < 0 and not newer then
        return rec
    end
    if set or later(time, sub(rec, 69, 80)) then
        rec = splice(with_flag(rec, F_MTIME, false), 68, time)
    end
    return newer and splice(rec, 80, time) or rec
end

redis.register_function{ function_name = 'mfs_ptime', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        if rec then
            put_record(args[1], parent_changed(rec, args[2], tonumber(args[3])))
        end
    end }

-- mfs_nlink ino delta time seen: directories came or went in it; the new record, nil without an inode.
redis.register_function{ function_name = 'mfs_nlink', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        if not rec then
            return false
        end
        local nlink = record_nlink(rec)
        if nlink > 0 then
            nlink = math.max(2, nlink + tonumber(args[2]))
        end
        rec = parent_changed(splice(rec, 16, struct.pack('<I4', nlink)), args[3], tonumber(args[4]))
        put_record(args[1], rec)
        return rec
    end }

-- mfs_dirbit ino partition: the partition may hold entries of it from now on. '\0' record; '\4'.
redis.register_function{ function_name = 'mfs_dirbit', flags = { 'allow-oom' },
    callback = function(_, args)
        local ino, part = args[1], tonumber(args[2])
        local rec = get_record(ino)
        if not rec or record_nlink(rec) == 0 then
            return fail(errno.ENOENT, 'no directory')
        end
        if record_type(rec) ~= S_IFDIR then
            return fail(errno.ENOTDIR, 'no directory')
        end
        local seal = redis.call('HGET', 'D' .. ino, '')
        if seal then
            return '\4' .. seal
        end
        local at, bit = 108 + math.floor(part / 8), 2 ^ (part % 8)
        rec = rec .. string.rep('\0', at + 1 - #rec)
        local old = byte(rec, at + 1)
        if old % (2 * bit) < bit then
            rec = splice(rec, at, char(old + bit))
            put_record(ino, rec)
        end
        return '\0' .. rec
    end }

-- Has the directory's inode bits of other partitions than this one?
local function spread(rec, prefix)
    local own = struct.unpack('>I2', prefix)
    for at = 109, #rec do
        local bits = byte(rec, at)
        if bits ~= 0 and (at - 109 ~= math.floor(own / 8) or bits ~= 2 ^ (own % 8)) then
            return true
        end
    end
    return false
end

local function entomb(ino)
    local key = 'D' .. ino
    redis.call('HSET', key, '', TOMBSTONE)
    redis.call('EXPIRE', key, TOMBSTONE_SECONDS)
end

-- The inode of a directory that has no name any more goes, or stays for those who have it open.
local function kill_directory(ino, time)
    local rec = get_record(ino)
    if not rec then
        return
    end
    if #rec > 108 then
        entomb(ino)
    else
        redis.call('DEL', 'D' .. ino)
    end
    if redis.call('EXISTS', 'O' .. ino) == 0 then
        redis.call('DEL', 'I' .. ino, 'A' .. ino, 'L' .. ino)
        redis.call('INCR', '#freed')
        return
    end
    put_record(ino, splice(splice(rec, 16, '\0\0\0\0'), 80, time))
    redis.call('SADD', '#orphans', ino)
end

-- What keeps a shard of n names from being empty: nil; ENOTEMPTY; or, when a rename away from here
-- may have happened whose source is all that is left, '\6', the name's length (1 byte), name,
-- entry.
local FEW = 16

local function occupied(key, n)
    if n == 0 then
        return nil
    end
    local leftover
    if n <= FEW then
        local all = redis.call('HGETALL', key)
        for i = 1, #all, 2 do
            local name, entry = all[i], all[i + 1]
            if name ~= '' and #entry == ENTRY then
                return fail(errno.ENOTEMPTY, 'not empty')
            elseif name ~= '' then
                leftover = '\6' .. char(#name) .. name .. entry
            end
        end
    end
    return leftover or fail(errno.ENOTEMPTY, 'not empty')
end

-- Seals the shard here. nil: done; '\4' seal; or as occupied.
local function seal_shard(ino, seal)
    local key = 'D' .. ino
    local have = redis.call('HGET', key, '')
    if have and have ~= seal then
        return '\4' .. have
    end
    local refused = occupied(key, redis.call('HLEN', key) - (have and 1 or 0))
    if not refused then
        redis.call('HSET', key, '', seal)
    end
    return refused
end

-- mfs_rmdir parent name prefix seal time: the first step of rmdir. '\0' ino: removed, as it was
-- empty and never had entries elsewhere; '\1' ino: its home is elsewhere; '\5' ino record: sealed
-- here, other shards are to be sealed; '\3'; '\4' ino seal; '\6' ino ….
redis.register_function{ function_name = 'mfs_rmdir', flags = { 'allow-oom' },
    callback = function(_, args)
        local dir, name, prefix = 'D' .. args[1], args[2], args[3]
        local entry = redis.call('HGET', dir, name)
        if not entry then
            return fail(errno.ENOENT, 'no entry')
        end
        if #entry > ENTRY then -- an exchange may have made it something else
            return '\3' .. entry
        end
        if entry_type(entry) ~= S_IFDIR then
            return fail(errno.ENOTDIR, 'no directory')
        end
        local ino = sub(entry, 1, 8)
        if not home_here(ino, prefix) then
            return '\1' .. ino
        end
        local rec = get_record(ino)
        if not rec then
            redis.call('HDEL', dir, name)
            return fail(errno.ENOENT, 'no inode')
        end
        local refused = seal_shard(ino, args[4])
        if type(refused) == 'table' then
            return refused
        elseif refused then
            return sub(refused, 1, 1) .. ino .. sub(refused, 2)
        end
        if spread(rec, prefix) then
            return '\5' .. ino .. rec
        end
        redis.call('HDEL', dir, name)
        kill_directory(ino, args[5])
        return '\0' .. ino
    end }

-- mfs_seal_home ino seal: as above for a directory whose entry is elsewhere. '\5' record; '\4'
-- seal; '\6' ….
redis.register_function{ function_name = 'mfs_seal_home', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        if not rec or record_nlink(rec) == 0 then
            return fail(errno.ESTALE, 'no inode')
        end
        return seal_shard(args[1], args[2]) or '\5' .. rec
    end }

-- mfs_seal ino seal: seals another shard. '\0': done; '\4' seal; '\6' …; ENOTEMPTY.
redis.register_function{ function_name = 'mfs_seal', flags = { 'allow-oom' },
    callback = function(_, args)
        return seal_shard(args[1], args[2]) or '\0'
    end }

-- mfs_unseal ino seal: takes just that seal away.
redis.register_function{ function_name = 'mfs_unseal', flags = { 'allow-oom' },
    callback = function(_, args)
        local key = 'D' .. args[1]
        if redis.call('HGET', key, '') == args[2] then
            redis.call('HDEL', key, '')
        end
    end }

-- mfs_tomb ino: the directory is removed, its shard here stays closed for a while.
redis.register_function{ function_name = 'mfs_tomb', flags = { 'allow-oom' },
    callback = function(_, args)
        entomb(args[1])
    end }

-- mfs_kill ino time
redis.register_function{ function_name = 'mfs_kill', flags = { 'allow-oom' },
    callback = function(_, args)
        kill_directory(args[1], args[2])
    end }

-- Notes a transaction of which more is to be done than this partition knows.
local function note_transaction(txn)
    redis.call('HSET', '#intents', txn, struct.pack('>I8', now()))
end

-- mfs_rmdir_commit parent name ino txn todo: the moment of rmdir. '\0'; '\3'; ECANCELED when
-- somebody aborted it; ENOENT when the name means something else by now.
redis.register_function{ function_name = 'mfs_rmdir_commit', flags = { 'allow-oom' },
    callback = function(_, args)
        local dir, name, txn = 'D' .. args[1], args[2], args[4]
        if redis.call('EXISTS', 'T' .. txn) == 1 then
            return fail(errno.ECANCELED, 'aborted')
        end
        local entry = redis.call('HGET', dir, name)
        if not entry or sub(entry, 1, 8) ~= args[3] then
            return fail(errno.ENOENT, 'no entry')
        end
        if #entry > ENTRY then
            return '\3' .. entry
        end
        redis.call('HDEL', dir, name)
        redis.call('SET', 'T' .. txn, 'C\0' .. args[5])
        note_transaction(txn)
        return '\0'
    end }

-- mfs_abort txn: the outcome, which is 'A' unless it is decided already.
redis.register_function{ function_name = 'mfs_abort', flags = { 'allow-oom' },
    callback = function(_, args)
        local key = 'T' .. args[1]
        local outcome = redis.call('GET', key)
        if outcome then
            return outcome
        end
        redis.call('SET', key, 'A', 'EX', ABORTED_SECONDS)
        return 'A'
    end }

-- mfs_forget txn: everything that it entailed is done.
redis.register_function{ function_name = 'mfs_forget', flags = { 'allow-oom' },
    callback = function(_, args)
        if redis.call('GETRANGE', 'T' .. args[1], 0, 0) == 'C' then
            redis.call('DEL', 'T' .. args[1])
        end
        redis.call('HDEL', '#intents', args[1])
    end }
