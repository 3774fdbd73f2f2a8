-- What an entry and an event count beside their text: about what the indexes take.
local RECORD_BYTES, EVENT_BYTES = 1300, 100
