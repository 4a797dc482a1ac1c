-- rename. Within one partition it is one step; across partitions an intent goes into the source
-- entry (begin), the target's partition decides (commit), the source entry follows (settle). See
-- docs/METADATA.md. Answers are arrays that begin with a status:
--   0 done   3 which entry: an intent is in the way of the source (1) or target (2)
--   4 seal: the new parent is, or may be, being removed
--   7 source target: the directories that change their parent are not those that the caller has
--     checked while holding the lock on moves
--   8 target: the directory that is replaced is not the one that the caller has sealed

--
-- #intents holds what somebody may have to end, transaction → since when (8 bytes), and
--   nothing: decided here, with more to do (note_transaction)
--   directory, name: the source of a rename, here
--   ino: of a name that has gone here, which its home is yet to know (mfs_unref)
--   zeros (8 bytes), partition (2), ino: this counts a name that is yet to come there (mfs_link_begin)

local NOREPLACE, EXCHANGE = 1, 2
local NONE = '\0\0\0\0\0\0\0\0'

-- May `source` take the place of `target` (nil: nothing there)? nil: yes, otherwise the answer.
-- `locked`: '', or the caller holds the lock on moves and has checked just these two directories
-- (8 bytes each, zeros for none). `sealed`: the directory that it has sealed, or ''.
local function rename_refused(source, target, flags, same_parent, locked, sealed)
    local source_dir = entry_type(source) == S_IFDIR
    local target_dir = target and entry_type(target) == S_IFDIR
    if flags == EXCHANGE and not target then
        return fail(errno.ENOENT, 'no target')
    end
    if flags == NOREPLACE and target then
        return fail(errno.EEXIST, 'exists')
    end
    if target and sub(target, 1, 8) == sub(source, 1, 8) then
        return { 0, source, target, 'same' }
    end
    if target and flags ~= EXCHANGE then
        if source_dir and not target_dir then
            return fail(errno.ENOTDIR, 'target is no directory')
        end
        if target_dir and not source_dir then
            return fail(errno.EISDIR, 'target is a directory')
        end
    end
    local moves = not same_parent and
                  (source_dir or (flags == EXCHANGE and target_dir))
    if moves or locked ~= '' then
        local moved = (not same_parent and source_dir) and sub(source, 1, 8) or NONE
        local other = (not same_parent and flags == EXCHANGE and target_dir) and
                      sub(target, 1, 8) or NONE
        if locked ~= moved .. other then
            return { 7, source, target or '' }
        end
    end
    local victim = (target_dir and flags ~= EXCHANGE) and sub(target, 1, 8) or ''
    if sealed ~= victim then
        return { 8, target or '' }
    end
end

-- Takes one name from the inode that was replaced, if its home is here; what unref says, or ''.
-- Elsewhere it is to follow, which the transaction `debt` notes.
local function replaced(target, flags, prefix, time, stripe_size, sid, debt)
    if not target or flags == EXCHANGE or entry_type(target) == S_IFDIR then
        return ''
    end
    if not home_here(target, prefix) then
        redis.call('HSET', '#intents', debt, struct.pack('>I8', now()) .. sub(target, 1, 8))
        return ''
    end
    local said = redis.call('mfs_unref', sub(target, 1, 8), time, stripe_size, sid)
    return sub(said, 2, 1 + byte(said))
end

local function touch_ctime(entry, prefix, time)
    if not home_here(entry, prefix) then
        return
    end
    local ino = sub(entry, 1, 8)
    local rec = get_record(ino)
    if rec then
        put_record(ino, splice(rec, 80, time))
    end
end

-- A directory that has moved is leased to the session that moved it, whose kernel has its name already.
local function lease_moved(entry, sid)
    if entry_type(entry) == S_IFDIR then
        lease(sub(entry, 1, 8), sid)
    end
end

local function holders_here(entry, prefix)
    return entry and entry_type(entry) == S_IFREG and home_here(entry, prefix) and other_holders(sub(entry, 1, 8), '')
end

-- RENAME_WHITEOUT: makes what takes the source's place. `whiteout`: prefix of the partition that has the name (2),
-- record.
local S_IFCHR = 2

local function leave(parent, name, whiteout)
    redis.call('HDEL', 'D' .. parent, name)
    if whiteout ~= '' then
        redis.call('mfs_create', parent, name, sub(whiteout, 1, 2), char(S_IFCHR), 'x', '', sub(whiteout, 3))
    end
end

-- What leaves a whiteout has a name of its own, as it needs memory for good: it is refused when that is full.
local function register_rename(f)
    redis.register_function{ function_name = f.function_name, flags = { 'allow-oom' }, callback = f.callback }
    redis.register_function(f.function_name .. '_leaving', f.callback)
end

-- mfs_rename parent name new_parent new_name prefix time stripe_size flags txn locked sealed todo sid debt whiteout
-- { 0, source entry, target entry or '', what unref said or '' or 'same', holders of a lease of the source, of the
-- target, other keeper of the target's shard }; the holders only of a regular file that has its home here, else nil.
register_rename{ function_name = 'mfs_rename',
    callback = function(_, args)
        local from, name, to, new_name = 'D' .. args[1], args[2], 'D' .. args[3], args[4]
        local prefix, time, flags, txn = args[5], args[6], tonumber(args[8]), args[9]
        local source = redis.call('HGET', from, name)
        if not source then
            return fail(errno.ENOENT, 'no entry')
        end
        local found = redis.call('HMGET', to, '', new_name)
        local seal, target = found[1], found[2]
        if #source > ENTRY then
            return { 3, 1, source }
        end
        if target and #target > ENTRY then
            return { 3, 2, target }
        end
        local refused = rename_refused(source, target, flags, args[1] == args[3], args[10],
                                       args[11])
        if refused then
            return refused
        end
        if seal and not target then
            return { 4, seal }
        end
        if args[12] ~= '' then
            if redis.call('EXISTS', 'T' .. txn) == 1 then
                return fail(errno.ECANCELED, 'aborted')
            end
            redis.call('SET', 'T' .. txn, 'C\0' .. args[12])
            note_transaction(txn)
        end
        redis.call('HSET', to, new_name, source)
        if flags == EXCHANGE then
            redis.call('HSET', from, name, target)
            touch_ctime(target, prefix, time)
            lease_moved(target, args[13])
        else
            leave(args[1], name, args[15])
        end
        touch_ctime(source, prefix, time)
        lease_moved(source, args[13])
        return { 0, source, target or '', replaced(target, flags, prefix, time, tonumber(args[7]), args[13],
                          args[14]),
                 holders_here(source, prefix), holders_here(target, prefix) or false,
                 other_keeper(args[3], args[13]) }
    end }

-- mfs_rename_begin parent name txn decider same_parent locked: { 0, entry }
register_rename{ function_name = 'mfs_rename_begin',
    callback = function(_, args)
        local dir, name, txn = 'D' .. args[1], args[2], args[3]
        local entry = redis.call('HGET', dir, name)
        if not entry then
            return fail(errno.ENOENT, 'no entry')
        end
        if #entry > ENTRY then
            return { 3, 1, entry }
        end
        if args[5] ~= '1' and entry_type(entry) == S_IFDIR and
           sub(args[6], 1, 8) ~= sub(entry, 1, 8) then
            return { 7, entry, '' }
        end
        redis.call('HSET', dir, name, entry .. txn .. args[4])
        redis.call('HSET', '#intents', txn, struct.pack('>I8', now()) .. args[1] .. name)
        return { 0, entry }
    end }

-- mfs_rename_commit new_parent new_name entry prefix time stripe_size flags txn same_parent locked
-- sealed todo sid debt whiteout: as mfs_rename, without holders.
register_rename{ function_name = 'mfs_rename_commit',
    callback = function(_, args)
        local to, new_name, source = 'D' .. args[1], args[2], args[3]
        local prefix, time = args[4], args[5]
        local flags, txn = tonumber(args[7]), args[8]
        if redis.call('EXISTS', 'T' .. txn) == 1 then
            return fail(errno.ECANCELED, 'aborted')
        end
        local found = redis.call('HMGET', to, '', new_name)
        local seal, target = found[1], found[2]
        if target and #target > ENTRY then
            return { 3, 2, target }
        end
        local refused = rename_refused(source, target, flags, args[9] == '1', args[10], args[11])
        if refused then
            return refused
        end
        if seal and not target then
            return { 4, seal }
        end
        local becomes = flags == EXCHANGE and target or args[15]
        redis.call('SET', 'T' .. txn, 'C' .. char(#becomes) .. becomes .. args[12])
        if args[12] ~= '' then
            note_transaction(txn)
        end
        redis.call('HSET', to, new_name, source)
        touch_ctime(source, prefix, time)
        lease_moved(source, args[13])
        if flags == EXCHANGE then
            touch_ctime(target, prefix, time)
        end
        return { 0, source, target or '', replaced(target, flags, prefix, time, tonumber(args[6]), args[13],
                          args[14]), false, false,
                 other_keeper(args[1], args[13]) }
    end }

-- mfs_settle parent name txn entry [sid]: if the intent is still there, the source entry becomes that; '' for gone, a
-- whiteout for what `leave` makes of it, '=' for what it is without the intent. (What it is, only this partition
-- knows: a rename that begins again, with the same transaction, may find another inode under the name.) 1 if the entry
-- is that now, and leased to the session; else 0.
redis.register_function{ function_name = 'mfs_settle', flags = { 'allow-oom' },
    callback = function(_, args)
        local dir, name, txn = 'D' .. args[1], args[2], args[3]
        local entry = redis.call('HGET', dir, name)
        if entry and sub(entry, ENTRY + 1, ENTRY + 16) == txn then
            if args[4] == '' or #args[4] > ENTRY then
                leave(args[1], name, args[4])
            elseif args[4] == '=' then
                redis.call('HSET', dir, name, sub(entry, 1, ENTRY))
            else
                redis.call('HSET', dir, name, args[4])
            end
        end
        redis.call('HDEL', '#intents', txn)
        if not args[5] or args[5] == '' or redis.call('HGET', dir, name) ~= args[4] then
            return 0
        end
        lease_moved(args[4], args[5])
        return 1
    end }

-- mfs_reparent ino parent generation time: the directory's parent since its move of that
-- generation.
redis.register_function{ function_name = 'mfs_reparent', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        if rec and (struct.unpack('>I8', args[3])) > (struct.unpack('>I8', rec, 101)) then
            rec = splice(rec, 92, args[2] .. args[3])
            put_record(args[1], splice(rec, 80, args[4]))
        end
    end }

-- The lock on moves, on partition 0: whose transaction has it, which partition decides that, since
-- when (seconds).

-- mfs_move_lock txn decider: { 0, generation } or, when another has it, { 1, txn, decider, age }
redis.register_function{ function_name = 'mfs_move_lock', flags = { 'allow-oom' },
    callback = function(_, args)
        local held = redis.call('GET', '#moving')
        if held then
            local age = now() - (struct.unpack('>I8', held, 19))
            return { 1, sub(held, 1, 16), sub(held, 17, 18), age }
        end
        redis.call('SET', '#moving', args[1] .. args[2] .. struct.pack('>I8', now()))
        return { 0, redis.call('INCR', '#moves') }
    end }

-- mfs_move_unlock txn
redis.register_function{ function_name = 'mfs_move_unlock', flags = { 'allow-oom' },
    callback = function(_, args)
        if redis.call('GETRANGE', '#moving', 0, 15) == args[1] then
            redis.call('DEL', '#moving')
        end
    end }
