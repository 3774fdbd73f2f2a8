/** The bounds of src/model/process.ts, which this process does not load; a test compares them. */
export const LIVE_PROCESSES = 64;
export const ENDED_PROCESSES = 64;
export const ENDED_FOR_MS = 600_000;
export const KEPT_OUTPUT_BYTES = 1 << 20;
export const INPUT_BYTES = 64 << 10;
