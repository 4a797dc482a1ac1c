-- fcntl and flock locks: a hash beside the inode. Field: kind ('P' or 'F'), session (8), owner (8).
-- Value: for each range type (1 = read, 2 = write), pid (u32), start and end (doubles, inclusive);
-- an flock has one range over everything. Offsets of 2^53 and more count as the end of everything.

local RANGE = 21 -- bytes of a packed range
local EVERYTHING = 2 ^ 53
local READ, WRITE = 1, 2

local function unpack_ranges(value)
    local ranges = {}
    for at = 1, #value - RANGE + 1, RANGE do
        local kind, pid, first, last = struct.unpack('<BI4dd', value, at)
        ranges[#ranges + 1] = { kind = kind, pid = pid, first = first, last = last }
    end
    return ranges
end

local function pack_ranges(ranges)
    local out = {}
    for i, r in ipairs(ranges) do
        out[i] = struct.pack('<BI4dd', r.kind, r.pid, r.first, r.last)
    end
    return table.concat(out)
end

-- The first lock of another owner that stands in the way of the range: field and range, or nil.
local function conflict(all, field, kind, first, last)
    for i = 1, #all, 2 do
        if all[i] ~= field and byte(all[i]) == byte(field) then
            for _, r in ipairs(unpack_ranges(all[i + 1])) do
                if r.first <= last and r.last >= first and (kind == WRITE or r.kind == WRITE) then
                    return all[i], r
                end
            end
        end
    end
end

-- What is left of an owner's ranges when [first, last] is taken out of them.
local function without(ranges, first, last)
    local out = {}
    for _, r in ipairs(ranges) do
        if r.last < first or r.first > last then
            out[#out + 1] = r
        else
            if r.first < first then
                out[#out + 1] = { kind = r.kind, pid = r.pid, first = r.first, last = first - 1 }
            end
            if r.last > last then
                out[#out + 1] = { kind = r.kind, pid = r.pid, first = last + 1, last = r.last }
            end
        end
    end
    return out
end

-- Sorted, neighbours of one type joined.
local function joined(ranges)
    table.sort(ranges, function(a, b) return a.first < b.first end)
    local out = {}
    for _, r in ipairs(ranges) do
        local before = out[#out]
        if before and before.kind == r.kind and before.pid == r.pid and
           before.last + 1 >= r.first then
            before.last = math.max(before.last, r.last)
        else
            out[#out + 1] = r
        end
    end
    return out
end

local function bounded(offset)
    return math.min(tonumber(offset), EVERYTHING)
end

local function blocker(field, r)
    return { sub(field, 2, 9), sub(field, 10, 17), r.kind, r.pid, string.format('%.0f', r.first),
             r.last >= EVERYTHING and '-1' or string.format('%.0f', r.last) }
end

-- mfs_getlk ino field type start end: nil, or who is in the way: { session, owner, type, pid,
-- start, end or -1 for the end of everything }.
redis.register_function{ function_name = 'mfs_getlk', flags = { 'no-writes' },
    callback = function(_, args)
        local field, r = conflict(redis.call('HGETALL', 'L' .. args[1]), args[2], tonumber(args[3]),
                                  bounded(args[4]), bounded(args[5]))
        return field and blocker(field, r)
    end }

-- mfs_setlk ino field type start end pid; type 0 unlocks. The inode's record, or as getlk.
redis.register_function{ function_name = 'mfs_setlk', flags = { 'allow-oom' },
    callback = function(_, args)
        local ino, field, kind = args[1], args[2], tonumber(args[3])
        local first, last = bounded(args[4]), bounded(args[5])
        local key = 'L' .. ino
        local rec = get_record(ino)
        if not rec then
            return fail(errno.ESTALE, 'no inode')
        end
        if kind > 0 then
            local other, r = conflict(redis.call('HGETALL', key), field, kind, first, last)
            if other then
                return blocker(other, r)
            end
        end
        local ranges = without(unpack_ranges(redis.call('HGET', key, field) or ''), first, last)
        if kind > 0 then
            ranges[#ranges + 1] =
                { kind = kind, pid = tonumber(args[6]), first = first, last = last }
        end
        if #ranges == 0 then
            redis.call('HDEL', key, field)
        else
            redis.call('HSET', key, field, pack_ranges(joined(ranges)))
        end
        return rec
    end }

-- mfs_unlock_session ino sid: drops every lock of a session.
redis.register_function{ function_name = 'mfs_unlock_session', flags = { 'allow-oom' },
    callback = function(_, args)
        local key = 'L' .. args[1]
        for _, field in ipairs(redis.call('HKEYS', key)) do
            if sub(field, 2, 9) == args[2] then
                redis.call('HDEL', key, field)
            end
        end
    end }
