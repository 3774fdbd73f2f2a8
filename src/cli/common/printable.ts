/**
 * Makes foreign text safe for a terminal: no control characters, colours or changes of direction.
 */
export const printable = (text: string): string => text.replace(UNPRINTABLE, '?');

const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
