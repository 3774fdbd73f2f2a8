/** Milliseconds since the epoch as ISO 8601 in UTC, with `Z`. */
export const timestampOf = (milliseconds: number): string => new Date(milliseconds).toISOString();
