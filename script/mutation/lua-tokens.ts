/** With its offsets. */
export interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'sign';
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const TOKEN =
  /--\[\[[^]*?\]\]|--[^\n]*|(?<word>[A-Za-z_]\w*)|(?<number>0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)|(?<string>'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"|\[\[[^]*?\]\])|(?<sign>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.])/g;

/** Lua 5.1, without comments. */
export const tokensOf = (text: string): readonly Token[] =>
  [...text.matchAll(TOKEN)].flatMap(({ 0: token, index, groups = {} }) =>
    (['word', 'number', 'string', 'sign'] as const)
      .filter((kind) => groups[kind] !== undefined)
      .map((kind) => ({ kind, text: token, start: index, end: index + token.length })),
  );

/** After `then`, `do`, `else`, `repeat` and a function's parameters, and before the first token. */
export const blockStarts = (tokens: readonly Token[]): readonly number[] => {
  const starts = tokens[0] ? [tokens[0].start] : [];
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'word') continue;
    if (['then', 'do', 'else', 'repeat'].includes(token.text)) starts.push(token.end);
    if (token.text === 'function') {
      const close = tokens.slice(at).find(({ text }) => text === ')');
      if (close) starts.push(close.end);
    }
  }
  return starts.toSorted((a, b) => a - b);
};

const OPENS = new Set(['(', '[', '{']);
const CLOSES = new Set([')', ']', '}']);

export const closeOf = (tokens: readonly Token[], at: number): number => {
  let depth = 0;
  for (let place = at; place < tokens.length; place += 1) {
    const { kind, text = '' } = tokens[place] ?? {};
    if (kind !== 'sign') continue;
    if (OPENS.has(text)) depth += 1;
    if (CLOSES.has(text)) depth -= 1;
    if (depth === 0) return place;
  }
  return tokens.length;
};

const BEGINS = new Set(['function', 'then', 'do', 'repeat']);
const ENDS = new Set(['end', 'else', 'elseif', 'until']);

export const endOfBlock = (tokens: readonly Token[], at: number): number => {
  let depth = 0;
  for (let place = at; place < tokens.length; place += 1) {
    const { kind, text = '' } = tokens[place] ?? {};
    if (kind !== 'word') continue;
    if (BEGINS.has(text)) depth += 1;
    if (!ENDS.has(text)) continue;
    if (depth === 0) return place;
    if (text !== 'else' && text !== 'elseif') depth -= 1;
    // the `then` of an elseif continues its `if`
    if (text === 'elseif') depth -= 1;
  }
  return tokens.length;
};
