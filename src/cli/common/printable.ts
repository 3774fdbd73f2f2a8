/**
 * Makes others' text fit for a terminal: what would move its cursor, colour it or turn the
 * direction of text shows as `?`.
 */
export const printable = (text: string): string => text.replace(UNPRINTABLE, '?');

const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
