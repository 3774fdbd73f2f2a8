import { isUtf8 } from 'node:buffer';
import { invalidArgument } from '../../model/refusals.ts';

const MAX_DEPTH = 64;

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
const LONGEST_FIELD = 256;

/**
 * Linear time and bounded stack. Refuses invalid UTF-8, nesting beyond 64, duplicate keys, lone
 * surrogates, `__proto__`, `constructor` and `prototype`, integers beyond 2^53 - 1 and numbers
 * beyond 1.8e308.
 */
export const parseStrictJson = (bytes: Buffer): unknown => {
  if (!isUtf8(bytes)) throw invalidArgument('body', 'must be UTF-8');
  const text = bytes.toString('utf8');
  checkStructure(text);
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
};

interface Frame {
  /** `key` belongs to the next value. */
  readonly keys: Set<string> | undefined;
  key: string;
  expectsKey: boolean;
  index: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const MINUS = 0x2d;
/** `[` and `{` differ in this bit, as do `]` and `}`. */
const BRACE_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** Refuses what JSON.parse accepts. Invalid JSON may be misread: JSON.parse refuses it. */
const checkStructure = (text: string): void => {
  const strings = new Strings(text);
  const frames: Frame[] = [];
  let top: Frame | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = strings.endOf(at);
      const value = strings.hasEscape(at, end) ? unescapedAt(text, { at, end }, frames) : undefined;
      if (top?.expectsKey === true) noteKey(frames, top, value ?? text.slice(at + 1, end));
      at = end;
    } else if ((code | BRACE_BIT) === OPENING) {
      if (frames.length === MAX_DEPTH)
        throw invalidArgument(fieldOf(frames), `nesting is deeper than ${MAX_DEPTH}`);
      top = openFrame(code === OPENING);
      frames.push(top);
    } else if ((code | BRACE_BIT) === CLOSING) {
      frames.pop();
      top = frames.at(-1);
    } else if (code === COMMA) {
      if (top) nextElement(top);
    } else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(text, at);
      checkNumber(text.slice(at, end), frames);
      at = end - 1;
    }
  }
};

const nextElement = (top: Frame): void => {
  if (top.keys) top.expectsKey = true;
  else top.index += 1;
};

const openFrame = (isObject: boolean): Frame =>
  isObject
    ? { keys: new Set(), key: '', expectsKey: true, index: 0 }
    : { keys: undefined, key: '', expectsKey: false, index: 0 };

const noteKey = (frames: readonly Frame[], top: Frame, key: string): void => {
  top.key = key;
  top.expectsKey = false;
  if (FORBIDDEN_KEYS.has(key)) throw invalidArgument(fieldOf(frames), 'this key is not allowed');
  if (top.keys?.has(key) === true) throw invalidArgument(fieldOf(frames), 'the key appears twice');
  top.keys?.add(key);
};

/** Finds strings by native search; calls must go forward. */
class Strings {
  readonly #text: string;
  #backslash = -1;
  /** Not `indexOf`: V8's optimizer may run that pure call even if the result is unused. */
  readonly #search = /\\/g;

  constructor(text: string) {
    this.#text = text;
  }

  endOf(start: number): number {
    const quote = this.#text.indexOf('"', start + 1);
    if (quote === -1) throw notJson();
    return this.hasEscape(start, quote) ? this.#endAfterEscapes(start) : quote;
  }

  hasEscape(start: number, end: number): boolean {
    if (this.#backslash < start) {
      this.#search.lastIndex = start;
      this.#backslash = this.#search.exec(this.#text)?.index ?? Infinity;
    }
    return this.#backslash < end;
  }

  #endAfterEscapes(start: number): number {
    for (let at = start + 1; at < this.#text.length; at += 1) {
      const code = this.#text.charCodeAt(at);
      if (code === QUOTE) return at;
      if (code === BACKSLASH) at += 1;
    }
    throw notJson();
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

const unescapedAt = (
  text: string,
  { at, end }: { readonly at: number; readonly end: number },
  frames: readonly Frame[],
): string => {
  const value = unescaped(text.slice(at, end + 1));
  if (LONE_SURROGATE.test(value))
    throw invalidArgument(fieldOf(frames), 'contains half a surrogate pair');
  return value;
};

const unescaped = (literal: string): string => {
  try {
    return String(JSON.parse(literal));
  } catch {
    throw notJson();
  }
};

const endOfNumber = (text: string, start: number): number => {
  let at = start + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const isPart =
      isDigit(code) ||
      code === 0x2e ||
      code === 0x2b ||
      code === 0x2d ||
      code === 0x65 ||
      code === 0x45;
    if (!isPart) break;
  }
  return at;
};

const checkNumber = (literal: string, frames: readonly Frame[]): void => {
  const value = Number(literal);
  const unsafe = Number.isInteger(value) ? !Number.isSafeInteger(value) : !Number.isFinite(value);
  if (unsafe) throw invalidArgument(fieldOf(frames), 'the number is out of range');
};

/** Such as `overrides.volumes[2].claimName`; `body` at the top. */
const fieldOf = (frames: readonly Frame[]): string => {
  let field = '';
  for (const frame of frames) {
    if (frame.keys)
      field += frame.expectsKey
        ? ''
        : `${field === '' ? '' : '.'}${frame.key.slice(0, LONGEST_FIELD)}`;
    else field += `[${frame.index}]`;
  }
  return field === '' ? 'body' : field.slice(0, LONGEST_FIELD);
};

const notJson = () => invalidArgument('body', 'must be JSON');
