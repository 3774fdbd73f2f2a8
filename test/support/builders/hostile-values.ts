/** mulberry32: the same seed gives the same requests. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(values: readonly [T, ...T[]]): T {
    return values[this.below(values.length)] ?? values[0];
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }
}

const TEXTS = [
  '',
  ' ',
  '0',
  '-1',
  'shells',
  'default',
  'null',
  'true',
  '{}',
  'a'.repeat(64),
  'a'.repeat(5_000),
  '\u0000',
  'a\u0000b',
  '\ud83d\ude00',
  '\u202e',
  '\ufeff',
  'é',
  '../../etc/passwd',
  '${jndi:x}',
  '%00',
  '%zz',
  "' OR 1=1 --",
  '<script>',
  '1h30m',
  '90s',
  '999999999h',
  '2026-01-01T00:00:00Z',
  '2026-13-45',
  'constructor',
  'hasOwnProperty',
  'toString',
  'Running',
  'admin',
  'a::b',
  'a//b',
  '\r\nX: y',
] as const;

const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.5,
  2,
  300,
  301,
  10_000,
  10_001,
  2 ** 31,
  2 ** 53 - 1,
  -(2 ** 53) + 1,
  1e-320,
  1e21,
  Number.MAX_VALUE,
] as const;

const FIELDS = [
  'poolName',
  'idleTimeout',
  'idleTimeoutSeconds',
  'command',
  'timeoutSeconds',
  'cwd',
  'env',
  'stdin',
  'container',
  'name',
  'templateName',
  'replicas',
  'labels',
  'annotations',
  'template',
  'overrides',
  'instanceType',
  'multiplier',
  'cpu',
  'memory',
  'inlineResources',
  'updateStrategy',
  'image',
  'volumes',
  'imagePullSecret',
  'description',
  'expiresAt',
  'team',
  'user',
  'role',
  '',
  'x',
  'toString',
  'hasOwnProperty',
  'length',
  '\u0000',
  'é',
  'then',
  'toJSON',
] as const;

/** Mostly small, sometimes wide or deep. */
export const hostileValue = (dice: Dice, depth = 0): unknown => {
  const kind = dice.below(depth > 4 ? 5 : 8);
  if (kind <= 1) return dice.pick(TEXTS);
  if (kind === 2) return dice.pick(NUMBERS);
  if (kind === 3) return dice.pick([true, false, null, { length: { toString: null } }]);
  if (kind === 4) return dice.below(1_000);
  if (kind === 5)
    return Array.from({ length: dice.below(dice.chance(0.01) ? 500 : 4) }, () =>
      hostileValue(dice, depth + 1),
    );
  return hostileObject(dice, depth + 1);
};

const hostileObject = (dice: Dice, depth: number): Record<string, unknown> => {
  const value: Record<string, unknown> = {};
  for (let left = dice.below(5); left > 0; left -= 1)
    value[dice.pick(FIELDS)] = hostileValue(dice, depth);
  return value;
};

/** A good body with a fault, any object, or bytes that are no JSON. */
export const hostileBody = (dice: Dice, good: Readonly<Record<string, unknown>>): Buffer => {
  const roll = dice.next();
  if (roll < 0.1) return Buffer.from(JSON.stringify(good));
  if (roll < 0.5)
    return Buffer.from(JSON.stringify({ ...good, [dice.pick(FIELDS)]: hostileValue(dice) }));
  if (roll < 0.7) return Buffer.from(JSON.stringify(hostileValue(dice)));
  const text = Buffer.from(JSON.stringify({ ...good, ...hostileObject(dice, 0) }));
  if (roll < 0.9) return mutated(dice, text);
  if (roll < 0.902) return Buffer.alloc(1_048_577, 0x20);
  return dice.pick([
    Buffer.from('['.repeat(5_000)),
    Buffer.from('{"a":'.repeat(2_000)),
    Buffer.from('{"a":1,"a":2}'),
    Buffer.from('{"__proto__":{"admin":true}}'),
    Buffer.from('{"x":1e999}'),
    Buffer.from('{"x":"\\ud800"}'),
    Buffer.from('\ufeff{}'),
    Buffer.from([0xff, 0xfe, 0x7b, 0]),
    Buffer.alloc(0),
    Buffer.alloc(5_000, 0x20),
  ]);
};

export const mutated = (dice: Dice, bytes: Buffer): Buffer => {
  const list = [...bytes];
  for (let left = 1 + dice.below(4); left > 0; left -= 1) {
    const at = dice.below(list.length + 1);
    const kind = dice.below(3);
    if (kind === 0) list[Math.min(at, Math.max(0, list.length - 1))] = dice.below(256);
    else if (kind === 1) list.splice(at, 1 + dice.below(3));
    else list.splice(at, 0, dice.below(256));
  }
  return Buffer.from(list);
};

/** Never a space or control; escapes may be malformed. */
export const hostileSegment = (dice: Dice): string => {
  const text = dice.pick(TEXTS);
  if (dice.chance(0.2))
    return dice.pick([
      '%',
      '%z',
      '%ff',
      '%c0%af',
      '%2e%2e',
      '%2F',
      '%00',
      '*',
      ';',
      ':',
      '@',
      '..',
      '~',
      "'",
      '[',
      '|',
    ]);
  return encodeURIComponent(text);
};
