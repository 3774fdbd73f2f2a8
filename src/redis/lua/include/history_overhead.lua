-- Bytes of an entry and of an event besides their text: roughly their share of the indexes.
local RECORD_BYTES, EVENT_BYTES = 1300, 100
