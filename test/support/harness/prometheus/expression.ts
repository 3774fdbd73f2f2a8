/** The part of PromQL that the rules use. Others are refused. */
export type Expression =
  | { readonly kind: 'number'; readonly value: number }
  | {
      readonly kind: 'selector';
      readonly name: string;
      readonly matchers: readonly Matcher[];
      readonly rangeSeconds?: number;
    }
  | {
      readonly kind: 'aggregate';
      readonly by: readonly string[];
      readonly operator: string;
      readonly of: Expression;
    }
  | { readonly kind: 'call'; readonly name: string; readonly given: readonly Expression[] }
  | {
      readonly kind: 'binary';
      readonly operator: string;
      readonly left: Expression;
      readonly right: Expression;
      readonly on?: readonly string[];
    };

export interface Matcher {
  readonly label: string;
  readonly matches: (value: string) => boolean;
}

const TOKEN =
  /\s*(?:([a-zA-Z_:][a-zA-Z0-9_:]*)|"((?:[^"\\]|\\.)*)"|\[(\d+)([smh])\]|(\d+(?:\.\d+)?)|(==|=~|[-(){},=<>/+]))/gy;
const AGGREGATES = ['sum', 'max', 'min', 'count'];
const CALLS = ['rate', 'increase', 'histogram_quantile', 'absent', 'last_over_time'];
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };
/** From the loosest to the tightest. */
const LEVELS: readonly (readonly string[])[] = [
  ['or'],
  ['and', 'unless'],
  ['==', '>', '<'],
  ['+'],
  ['/'],
];

/** Throws for other than supported expressions. */
export const parseExpression = (text: string): Expression => new Parser(text).whole();

type Token = {
  readonly kind: 'name' | 'text' | 'range' | 'number' | 'sign';
  readonly text: string;
};

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  whole(): Expression {
    const expression = this.#level(0);
    if (this.#at < this.#tokens.length) this.#refuse();
    return expression;
  }

  #level(level: number): Expression {
    const operators = LEVELS[level];
    if (!operators) return this.#primary();
    let left = this.#level(level + 1);
    for (let operator = this.#peek(); operators.includes(operator); operator = this.#peek()) {
      this.#at += 1;
      const on = this.#take('on') ? { on: this.#names() } : {};
      left = { kind: 'binary', operator, left, right: this.#level(level + 1), ...on };
    }
    return left;
  }

  #primary(): Expression {
    const { kind, text } = this.#next();
    if (kind === 'number') return { kind, value: Number(text) };
    if (text === '(') {
      const inner = this.#level(0);
      this.#expect(')');
      return inner;
    }
    if (kind !== 'name') return this.#refuse();
    if (AGGREGATES.includes(text)) return this.#aggregate(text);
    if (this.#peek() === '(')
      return CALLS.includes(text)
        ? { kind: 'call', name: text, given: this.#list(() => this.#level(0)) }
        : this.#refuse();
    return this.#selector(text);
  }

  #aggregate(operator: string): Expression {
    this.#expect('by');
    const by = this.#names();
    this.#expect('(');
    const of = this.#level(0);
    this.#expect(')');
    return { kind: 'aggregate', by, operator, of };
  }

  #selector(name: string): Expression {
    const matchers: Matcher[] = [];
    if (this.#take('{')) {
      do {
        const label = this.#next().text;
        const operator = this.#next().text;
        const wanted = this.#next().text;
        if (operator !== '=' && operator !== '=~') this.#refuse();
        const whole = new RegExp(`^(?:${wanted})$`);
        matchers.push({
          label,
          matches: operator === '=' ? (value) => value === wanted : (value) => whole.test(value),
        });
      } while (this.#take(','));
      this.#expect('}');
    }
    const range = this.#tokens[this.#at];
    if (range?.kind !== 'range') return { kind: 'selector', name, matchers };
    this.#at += 1;
    return { kind: 'selector', name, matchers, rangeSeconds: Number(range.text) };
  }

  #names(): readonly string[] {
    return this.#list(() => this.#next().text);
  }

  #list<T>(one: () => T): readonly T[] {
    this.#expect('(');
    const all = [one()];
    while (this.#take(',')) all.push(one());
    this.#expect(')');
    return all;
  }

  #peek(): string {
    return this.#tokens[this.#at]?.text ?? '';
  }
  #next(): Token {
    return this.#tokens[this.#at++] ?? this.#refuse();
  }
  #expect(text: string): void {
    if (!this.#take(text)) this.#refuse();
  }

  #take(text: string): boolean {
    if (this.#peek() !== text) return false;
    this.#at += 1;
    return true;
  }

  #refuse(): never {
    throw new Error(`not understood at part ${this.#at}: ${this.#text}`);
  }
}

const tokensOf = (text: string): readonly Token[] => {
  const tokens: Token[] = [];
  let end = 0;
  for (const [whole, name, quoted, length, unit = '', number, sign] of text.matchAll(TOKEN)) {
    end += whole.length;
    if (name !== undefined) tokens.push({ kind: 'name', text: name });
    else if (quoted !== undefined) tokens.push({ kind: 'text', text: quoted });
    else if (length !== undefined)
      tokens.push({ kind: 'range', text: String(Number(length) * (SECONDS[unit] ?? 0)) });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else tokens.push({ kind: 'sign', text: sign ?? '' });
  }
  if (text.slice(end).trim() !== '')
    throw new Error(`not understood from character ${end} on: ${text}`);
  return tokens;
};
