import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blockStarts, closeOf, endOfBlock, type Token, tokensOf } from './lua-tokens.ts';
import { type Mutant, mutantsAt } from './mutant.ts';

/** Names and changes as in Stryker. */
const OPERATORS: Readonly<Record<string, readonly [string, readonly string[]]>> = {
  '==': ['EqualityOperator', ['~=']],
  '~=': ['EqualityOperator', ['==']],
  '<': ['EqualityOperator', ['<=', '>=']],
  '<=': ['EqualityOperator', ['<', '>']],
  '>': ['EqualityOperator', ['>=', '<=']],
  '>=': ['EqualityOperator', ['>', '<']],
  and: ['LogicalOperator', ['or']],
  or: ['LogicalOperator', ['and']],
  '+': ['ArithmeticOperator', ['-']],
  '-': ['ArithmeticOperator', ['+']],
  '*': ['ArithmeticOperator', ['/']],
  '/': ['ArithmeticOperator', ['*']],
  '%': ['ArithmeticOperator', ['*']],
};
const OPERAND_BEFORE = new Set(['word', 'number', 'string']);
const NO_OPERAND = new Set(['return', 'and', 'or', 'not', 'then', 'do', 'else', 'in', 'if']);

interface Found {
  readonly mutator: string;
  readonly replacement: string;
  readonly start: number;
  readonly end: number;
}

/** Stryker does not know Lua. */
export const luaMutants = (root: string, files: readonly string[]): readonly Mutant[] => {
  let number = 0;
  return files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return mutantsAt(
      text,
      changesOf(text).map((found) => ({ ...found, file, id: `lua-${number++}` })),
    );
  });
};

/**
 * Operators swapped, conditions made true or false, `not` and minus signs removed, numbers made one
 * more, and statements that are calls or returns removed.
 */
export const changesOf = (text: string): readonly Found[] => {
  const tokens = tokensOf(text);
  return tokens.flatMap((token, at) => [
    ...swapped(tokens, at),
    ...conditions(tokens, at),
    ...negations(tokens, at),
    ...(token.kind === 'number'
      ? [{ ...spanOf(token), mutator: 'Number', replacement: String(Number(token.text) + 1) }]
      : []),
    ...calls(tokens, at),
    ...returns(tokens, at),
  ]);
};

/** Redis logs `cover:FILE:OFFSET` at each block. */
export const marked = (text: string, file: string): string => {
  let end = text.length;
  let rest = '';
  for (const start of blockStarts(tokensOf(text)).toReversed()) {
    const mark = ` redis.log(redis.LOG_WARNING, 'cover:${file}:${start}') `;
    rest = mark + text.slice(start, end) + rest;
    end = start;
  }
  return text.slice(0, end) + rest;
};

export const blockAt = (text: string, offset: number): number => {
  const tokens = tokensOf(text);
  return (
    blockStarts(tokens)
      .filter((start) => start <= offset && isWithin(tokens, start, offset))
      .at(-1) ?? 0
  );
};

const isWithin = (tokens: readonly Token[], start: number, offset: number): boolean => {
  if (start === tokens[0]?.start) return true;
  const first = tokens.findIndex((token) => token.start >= start);
  return offset < (tokens[endOfBlock(tokens, first)]?.start ?? Infinity);
};

const spanOf = ({ start, end }: Token): { readonly start: number; readonly end: number } => ({
  start,
  end,
});

const isBinary = (before: Token | undefined): boolean =>
  before !== undefined &&
  (OPERAND_BEFORE.has(before.kind)
    ? !NO_OPERAND.has(before.text)
    : [')', ']', '}'].includes(before.text));

const swapped = (tokens: readonly Token[], at: number): readonly Found[] => {
  const token = tokens[at];
  if (!token || token.kind === 'string' || token.kind === 'number') return [];
  const known = Object.hasOwn(OPERATORS, token.text) ? OPERATORS[token.text] : undefined;
  if (!known || !isBinary(tokens[at - 1])) return [];
  const [mutator, replacements] = known;
  return replacements.map((replacement) => ({ ...spanOf(token), mutator, replacement }));
};

/** Not of loops: an endless one stops Redis. */
const conditions = (tokens: readonly Token[], at: number): readonly Found[] => {
  const token = tokens[at];
  const first = tokens[at + 1];
  if (token?.kind !== 'word' || !['if', 'elseif', 'while'].includes(token.text) || !first)
    return [];
  const until = token.text === 'while' ? 'do' : 'then';
  const close = tokens.findIndex(({ text }, place) => place > at && text === until);
  const last = tokens[close - 1];
  if (!last) return [];
  const place = { start: first.start, end: last.end, mutator: 'ConditionalExpression' };
  return [
    { ...place, replacement: 'false' },
    ...(token.text === 'while' ? [] : [{ ...place, replacement: 'true' }]),
  ];
};

const negations = (tokens: readonly Token[], at: number): readonly Found[] => {
  const [token, next] = [tokens[at], tokens[at + 1]];
  if (!token || !next) return [];
  const isNegation =
    (token.kind === 'word' && token.text === 'not') ||
    (token.kind === 'sign' && token.text === '-' && !isBinary(tokens[at - 1]));
  return isNegation
    ? [{ start: token.start, end: next.start, mutator: 'UnaryOperator', replacement: '' }]
    : [];
};

const BEFORE_STATEMENT = new Set(['then', 'do', 'else', 'repeat', 'end', ';']);
const WITHIN =
  /^(?:[#=(,{[+*/%<>:.]|\.\.|==|~=|<=|>=|-|return|and|or|not|in|if|elseif|while|until|function|local|for)$/;

const calls = (tokens: readonly Token[], at: number): readonly Found[] => {
  const [before, token] = [tokens[at - 1], tokens[at]];
  if (token?.kind !== 'word' || KEYWORDS.has(token.text)) return [];
  if (before && !BEFORE_STATEMENT.has(before.text) && WITHIN.test(before.text)) return [];
  let open = at + 1;
  while (tokens[open]?.text === '.' || tokens[open]?.text === ':') open += 2;
  if (tokens[open]?.text !== '(') return [];
  const close = closeOf(tokens, open);
  const last = tokens[close];
  if (!last || /^[.:([=]$/.test(tokens[close + 1]?.text ?? '')) return [];
  return [{ start: token.start, end: last.end, mutator: 'CallStatement', replacement: '' }];
};

const KEYWORDS = new Set([
  ...['and', 'break', 'do', 'else', 'elseif', 'end', 'false', 'for', 'function', 'if', 'in'],
  ...['local', 'nil', 'not', 'or', 'repeat', 'return', 'then', 'true', 'until', 'while'],
]);

const returns = (tokens: readonly Token[], at: number): readonly Found[] => {
  const token = tokens[at];
  if (token?.kind !== 'word' || token.text !== 'return') return [];
  const last = tokens[endOfBlock(tokens, at) - 1];
  return last
    ? [{ start: token.start, end: last.end, mutator: 'ReturnStatement', replacement: '' }]
    : [];
};
