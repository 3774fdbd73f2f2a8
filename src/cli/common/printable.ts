/**
 * Makes foreign text safe for a terminal: replaces control characters, colours and changes of text
 * direction by `?`.
 */
export const printable = (text: string): string => text.replace(UNPRINTABLE, '?');

const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
