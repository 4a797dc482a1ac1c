-- fcntl and flock locks: a hash beside the inode. Field: kind ('P' or 'F'), session (8), owner (8).
-- Value: for each range type (1 = read, 2 = write), pid (u32), start and end (doubles, inclusive);
-- an flock has one range over everything. Offsets of 2^53 and more count as the end of everything.
-- Behind the ranges, when a descriptor of the open file was closed that may have been the last: when
-- (ms by the partition's clock, double). Whoever changes the owner's locks takes this mark off, as
-- the file is open then.

local RANGE = 21 -- bytes of a packed range
local MARK = 8
local CLOSING = 2000 -- ms; so long after the mark the file is taken for open still
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

local function now_ms()
    local t = redis.call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- After a move the mark is by another clock, which may be ahead of this one.
local function closing(value)
    return #value % RANGE == MARK and
           math.abs(now_ms() - (struct.unpack('<d', value, #value - MARK + 1))) < CLOSING
end

local function in_way(ranges, kind, first, last)
    for _, r in ipairs(ranges) do
        if r.first <= last and r.last >= first and (kind == WRITE or r.kind == WRITE) then
            return r
        end
    end
end

-- A lock of another owner that stands in the way of the range: field, range, and 1 if it may be
-- about to go (0 if not), which is said only when no lock that stays is in the way. Or nil.
local function conflict(all, field, kind, first, last)
    local other, range
    for i = 1, #all, 2 do
        if all[i] ~= field and byte(all[i]) == byte(field) then
            local r = in_way(unpack_ranges(all[i + 1]), kind, first, last)
            if r and not closing(all[i + 1]) then
                return all[i], r, 0
            elseif r then
                other, range = all[i], r
            end
        end
    end
    return other, range, 1
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

local function blocker(field, r, going)
    return { sub(field, 2, 9), sub(field, 10, 17), r.kind, r.pid, string.format('%.0f', r.first),
             r.last >= EVERYTHING and '-1' or string.format('%.0f', r.last),
             going }
end

-- mfs_getlk ino field type start end: nil, or who is in the way: { session, owner, type, pid,
-- start, end or -1 for the end of everything, 1 if all who are in the way may be about to go }.
redis.register_function{ function_name = 'mfs_getlk', flags = { 'no-writes' },
    callback = function(_, args)
        local field, r, going = conflict(redis.call('HGETALL', 'L' .. args[1]), args[2],
                                         tonumber(args[3]), bounded(args[4]), bounded(args[5]))
        return field and blocker(field, r, going)
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
            local other, r, going = conflict(redis.call('HGETALL', key), field, kind, first, last)
            if other then
                return blocker(other, r, going)
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

-- mfs_closing ino owners: locks of these (16 bytes each: session, owner) may be about to go.
redis.register_function{ function_name = 'mfs_closing', flags = { 'allow-oom' },
    callback = function(_, args)
        local key, mark = 'L' .. args[1], struct.pack('<d', now_ms())
        for at = 1, #args[2], 16 do
            for _, kind in ipairs({ 'P', 'F' }) do
                local field = kind .. sub(args[2], at, at + 15)
                local value = redis.call('HGET', key, field)
                if value then
                    local ranges = sub(value, 1, #value - #value % RANGE)
                    redis.call('HSET', key, field, ranges .. mark)
                end
            end
        end
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
