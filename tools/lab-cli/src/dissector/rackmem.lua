-- How datagrams of a rackmem rack are shown by Wireshark and tshark. Above this stand the tables of the wire formats, which
-- `rackmem-lab dissector` writes from the code that encodes them.
--
--   rackmem-lab dissector > rackmem.lua
--   tshark -X lua_script:rackmem.lua -i eth1 -Y rackmem
--
-- A datagram is a head of 32 bytes, what its kind says, and a tag of 16 bytes if it is guarded. Nothing is encrypted.

local rackmem = Proto("rackmem", "rackmem")
local shown = {}

local function declare(kind, name, text, ...)
  local field = ProtoField[kind](name, text, ...)
  shown[#shown + 1] = field
  return field
end

local HEAD, TAG = 32, 16
local KINDS = { [1] = "data", [2] = "greeting", [3] = "single packet", [4] = "single packet about a lock" }
local DATA, GREETING, SINGLE, SINGLE_LOCK = 1, 2, 3, 4
local RECORDS = {
  [1] = "packet", [2] = "packet of zeroes", [3] = "control", [4] = "piece of a packet", [5] = "piece of a control message",
  [6] = "lock", [7] = "piece of a packet about a lock", [8] = "one-sided", [9] = "piece of a one-sided packet",
  [10] = "whereabouts",
}

local head = {
  version = declare("uint8", "rackmem.version", "Version"),
  kind = declare("uint8", "rackmem.kind", "Kind", base.DEC, KINDS),
  from = declare("uint8", "rackmem.from", "From", base.DEC, { [SWITCH] = "switch" }),
  to = declare("uint8", "rackmem.to", "To", base.DEC, { [SWITCH] = "switch" }),
  guard = declare("bool", "rackmem.guarded", "Guarded"),
  counter = declare("uint64", "rackmem.counter", "Counter"),
  theirs = declare("uint64", "rackmem.session.from", "Sender's session", base.HEX),
  mine = declare("uint64", "rackmem.session.to", "Receiver's session", base.HEX),
  tag = declare("bytes", "rackmem.tag", "Tag"),
}
local greeting = {
  { declare("bytes", "rackmem.greeting.session", "Sender's session"), 0, 16 },
  { declare("bytes", "rackmem.greeting.challenge", "Challenge"), 16, 16 },
  { declare("bytes", "rackmem.greeting.echo", "Echo"), 32, 16 },
  { declare("bytes", "rackmem.greeting.known", "Receiver's session, as known"), 48, 16 },
}
local record = {
  kind = declare("uint8", "rackmem.record.kind", "Record", base.DEC, RECORDS),
  length = declare("uint32", "rackmem.record.length", "Length"),
  message = declare("uint64", "rackmem.piece.message", "Message"),
  offset = declare("uint32", "rackmem.piece.offset", "Offset"),
  total = declare("uint32", "rackmem.piece.total", "Of"),
}
local payload = declare("bytes", "rackmem.payload", "Payload")
local onesided = {
  opcode = declare("uint8", "rackmem.verbs.opcode", "Opcode", base.HEX, OPCODES),
  pair = declare("uint24", "rackmem.verbs.pair", "To queue pair", base.HEX),
  number = declare("uint24", "rackmem.verbs.psn", "Sequence number"),
}

-- Fields of a header: one for each line of its table, and an end of it.
for _, header in ipairs({ PACKET, LOCK }) do
  for _, field in ipairs(header.fields) do
    local name = "rackmem." .. header.name .. "." .. field.name
    if field.bit then
      field.shown = declare("bool", name, field.name, 8, nil, 2 ^ field.bit)
    elseif field.bytes == 8 then
      field.shown = declare("uint64", name, field.name, base.HEX)
    else
      field.shown = declare("uint" .. 8 * field.bytes, name, field.name, base.DEC, field.values)
    end
  end
  header.queue = declare("bytes", "rackmem." .. header.name .. ".queue", "Queue")
end
rackmem.fields = shown

local function address(bits)
  return string.format("%d:0x%x", bits:rshift(48):tonumber(), bits:band(UInt64(0xffffffff, 0xffff)):tonumber())
end

local function agent(header, tvb, at)
  local name = header.agents[tvb(at.agent, 1):uint()] or "?"
  return name == "Switch" and "switch" or string.format("%s %d", name, tvb(at.node, 2):le_uint())
end

-- A header, and what travels with it. Returns what it says in a line.
local function show_header(header, tvb, tree)
  if tvb:len() < header.bytes then return "cut short" end
  local branch = tree:add(rackmem, tvb(0, header.bytes), header.title)
  for _, field in ipairs(header.fields) do
    branch:add_le(field.shown, tvb(field.at, field.bytes))
  end
  local length = header.bytes
  if header.queued then
    local queued = tvb(header.queued, 1):uint()
    if queued > 0 and length + queued <= tvb:len() then
      branch:add(header.queue, tvb(length, queued))
    end
    length = math.floor((length + queued + 7) / 8) * 8
  end
  local kind = header.kinds[tvb(3, 1):uint()] or "?"
  local line = string.format(
    "%s %s > %s, %s", kind, agent(header, tvb, header.from), agent(header, tvb, header.to), address(tvb(8, 8):le_uint64()))
  branch:append_text(": " .. line)
  return line, length
end

local function show_payload(tvb, from, tree)
  if from and from < tvb:len() then tree:add(payload, tvb(from, tvb:len() - from)) end
end

local function show_one_sided(tvb, tree)
  local BTH = 8
  if tvb:len() < BTH + 12 then return "cut short" end
  local branch = tree:add(rackmem, tvb(BTH), "One-sided")
  branch:add(onesided.opcode, tvb(BTH, 1))
  branch:add(onesided.pair, tvb(BTH + 5, 3))
  branch:add(onesided.number, tvb(BTH + 9, 3))
  return string.format("%s psn %d", OPCODES[tvb(BTH, 1):uint()] or "?", tvb(BTH + 9, 3):uint())
end

local function show_record(tvb, kind, tree)
  if kind == 1 or kind == 2 then
    local line, length = show_header(PACKET, tvb, tree)
    show_payload(tvb, length, tree)
    return line
  elseif kind == 6 then
    local line, length = show_header(LOCK, tvb, tree)
    show_payload(tvb, length, tree)
    return line
  elseif kind == 8 then
    return show_one_sided(tvb, tree)
  elseif (kind == 4 or kind == 5 or kind == 7 or kind == 9) and tvb:len() >= 16 then
    tree:add_le(record.message, tvb(0, 8))
    tree:add_le(record.offset, tvb(8, 4))
    tree:add_le(record.total, tvb(12, 4))
    show_payload(tvb, 16, tree)
  end
  return RECORDS[kind] or "?"
end

-- Records, one after the other, each at a multiple of 8.
local function show_records(tvb, tree)
  local lines, at = {}, 0
  while at + 8 <= tvb:len() do
    local length, kind = tvb(at, 4):le_uint(), tvb(at + 4, 1):uint()
    if at + 8 + length > tvb:len() then
      lines[#lines + 1] = "cut short"
      break
    end
    local branch = tree:add(rackmem, tvb(at, 8 + length), RECORDS[kind] or "?")
    branch:add_le(record.length, tvb(at, 4))
    branch:add(record.kind, tvb(at + 4, 1))
    if length > 0 then
      lines[#lines + 1] = show_record(tvb(at + 8, length):tvb(), kind, branch)
    end
    at = at + 8 + math.floor((length + 7) / 8) * 8
  end
  return table.concat(lines, "; ")
end

local function peer(number)
  return number == SWITCH and "switch" or "node " .. number
end

function rackmem.dissector(tvb, pinfo, root)
  if tvb:len() < HEAD or tvb(0, 2):string() ~= "RU" then return 0 end
  local kind, guarded = tvb(3, 1):uint(), tvb(6, 1):uint() == 1
  local tree = root:add(rackmem, tvb())
  tree:add(head.version, tvb(2, 1))
  tree:add(head.kind, tvb(3, 1))
  tree:add(head.from, tvb(4, 1))
  tree:add(head.to, tvb(5, 1))
  tree:add(head.guard, tvb(6, 1))
  tree:add_le(head.counter, tvb(8, 8))
  tree:add_le(head.theirs, tvb(16, 8))
  tree:add_le(head.mine, tvb(24, 8))
  local bytes = tvb:len() - HEAD - (guarded and TAG or 0)
  local line = KINDS[kind] or "?"
  if tvb(2, 1):uint() ~= VERSION and kind ~= GREETING then
    line = "of another version"
  elseif bytes > 0 then
    local body = tvb(HEAD, bytes):tvb()
    if kind == DATA then
      line = show_records(body, tree)
    elseif kind == SINGLE then
      line = show_header(PACKET, body, tree)
    elseif kind == SINGLE_LOCK then
      line = show_header(LOCK, body, tree)
    elseif kind == GREETING and bytes >= 64 then
      for _, field in ipairs(greeting) do tree:add(field[1], body(field[2], field[3])) end
    end
  end
  if guarded and bytes >= 0 then tree:add(head.tag, tvb(tvb:len() - TAG, TAG)) end
  pinfo.cols.protocol = "RACKMEM"
  pinfo.cols.info = string.format("%s > %s: %s", peer(tvb(4, 1):uint()), peer(tvb(5, 1):uint()), line)
  return tvb:len()
end

rackmem:register_heuristic("udp", function(tvb, pinfo, root)
  return tvb:len() >= HEAD and tvb(0, 2):string() == "RU" and rackmem.dissector(tvb, pinfo, root) > 0
end)
