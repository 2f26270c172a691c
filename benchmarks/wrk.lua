-- wrk -s wrk.lua URL -- FOLDER FIRST_ID DELAY_MS
--
-- FOLDER holds `request` (a whole HTTP request), `before` and `after` (what
-- stands around the id in a right body). Each request has an id of its own, of
-- nine digits. A response counts as right when its status is 200 and its body
-- is, byte for byte, the answer to an id that was sent and not yet answered.

local PLACEHOLDER, DIGITS = "100000000", 9
-- Microseconds after which an answer is late: `LATE_MS` of load.py.
local LATE = 20000
local threads = {}

local function contents(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function setup(thread)
  threads[#threads + 1] = thread
end

function init(arguments)
  local folder = arguments[1]
  local template = contents(folder .. "/request")
  local at = assert(template:find(PLACEHOLDER, 1, true), "The request has no id.")
  head, tail = template:sub(1, at - 1), template:sub(at + DIGITS)
  before, after = contents(folder .. "/before"), contents(folder .. "/after")
  id = tonumber(arguments[2])
  waiting, wrong, example = {}, 0, ""
  local pause = tonumber(arguments[3])
  if pause > 0 then
    function delay() return pause end
  end
end

function request()
  id = id + 1
  waiting[id] = true
  return head .. id .. tail
end

-- Compares in place: building the expected body would make wrk the slower side
-- where answers are long.
local function stands_at(body, piece, at)
  return body:find(piece, at, true) == at
end

local function is_right(status, body, number)
  local rest = #before + DIGITS + 1
  return status == 200 and number and waiting[number]
    and #body == #before + DIGITS + #after
    and stands_at(body, before, 1) and stands_at(body, after, rest)
end

function response(status, headers, body)
  local answered = body:sub(#before + 1, #before + DIGITS)
  local number = answered:find("^%d+$") and tonumber(answered)
  if is_right(status, body, number) then
    waiting[number] = nil
    return
  end
  wrong = wrong + 1
  if wrong == 1 then
    example = status .. " " .. body:sub(1, 300)
  end
end

function done(summary, latency, requests)
  local wrong, example = 0, ""
  for _, thread in ipairs(threads) do
    wrong = wrong + thread:get("wrong")
    if example == "" then example = thread:get("example") end
  end
  local late = 0
  for index = 1, #latency do
    local value, count = latency(index)
    if value > LATE then late = late + count end
  end
  local errors = summary.errors
  local numbers = {
    "requests", summary.requests, "microseconds", summary.duration, "wrong", wrong,
    "connect", errors.connect, "read", errors.read, "write", errors.write,
    "timeout", errors.timeout, "p50", latency:percentile(50),
    "p99", latency:percentile(99), "p999", latency:percentile(99.9),
    "longest", latency.max, "late", late, "end", 0,
  }
  io.write("\nNUMBERS")
  for _, word in ipairs(numbers) do io.write(" ", word) end
  io.write("\nEXAMPLE ", (example:gsub("%c", " ")), "\n")
end
