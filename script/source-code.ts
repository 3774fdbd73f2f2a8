/** Comments are blanked, and in a second text also strings and regular expressions. */
export interface ScannedCode {
  readonly withStrings: string;
  readonly codeOnly: string;
}

type Mode = 'code' | 'line comment' | 'block comment' | "'" | '"' | '`' | 'regex';

/** Keeps lines and columns. Code inside a template's `${…}` counts as code. */
export const scanCode = (source: string): ScannedCode => {
  let withStrings = '';
  let codeOnly = '';
  let mode: Mode = 'code';
  let inClass = false;
  // open braces in the `${` of each template
  const templates: number[] = [];
  const emit = (text: string, kind: 'code' | 'string' | 'comment'): void => {
    const blank = text.replace(/[^\n]/g, ' ');
    withStrings += kind === 'comment' ? blank : text;
    codeOnly += kind === 'code' ? text : blank;
  };
  for (let at = 0; at < source.length; at += 1) {
    const char = source.charAt(at);
    const next = source.charAt(at + 1);
    if (mode === 'code') {
      if (char === '/' && next === '/') mode = 'line comment';
      else if (char === '/' && next === '*') mode = 'block comment';
      else if (char === "'" || char === '"' || char === '`') mode = char;
      else if (char === '/' && beginsRegex(codeOnly)) mode = 'regex';
      else if (char === '{' && templates.length > 0) templates[templates.length - 1]! += 1;
      else if (char === '}' && templates.length > 0) {
        const open = templates[templates.length - 1]!;
        if (open === 0) {
          templates.pop();
          mode = '`';
        } else templates[templates.length - 1] = open - 1;
      }
      emit(char, mode === 'line comment' || mode === 'block comment' ? 'comment' : 'code');
    } else if (mode === 'line comment') {
      if (char === '\n') mode = 'code';
      emit(char, 'comment');
    } else if (mode === 'block comment') {
      if (char === '*' && next === '/') {
        emit('*/', 'comment');
        at += 1;
        mode = 'code';
      } else emit(char, 'comment');
    } else if (char === '\\') {
      emit(char + next, 'string');
      at += 1;
    } else if (mode === '`' && char === '$' && next === '{') {
      emit('${', 'code');
      at += 1;
      templates.push(0);
      mode = 'code';
    } else {
      const ends: boolean =
        mode === 'regex' ? (char === '/' && !inClass) || char === '\n' : char === mode;
      if (mode === 'regex') inClass = char === '[' || (inClass && char !== ']');
      emit(char, ends ? 'code' : 'string');
      if (ends) mode = 'code';
    }
  }
  return { withStrings, codeOnly };
};

/** After a value, a slash divides. */
const beginsRegex = (before: string): boolean => {
  const text = before.trimEnd();
  return (
    text === '' ||
    /[(,=:[!&|?{};+\-*%<>~^]$/.test(text) ||
    /\b(return|typeof|case|in|of|do|else|void|await|yield)$/.test(text)
  );
};

/** As written, also re-exports and lazy imports. */
export const importsOf = ({ withStrings }: ScannedCode): readonly string[] =>
  [...withStrings.matchAll(/(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\()\s*'([^']+)'/g)].map(
    ([, specifier]) => specifier ?? '',
  );
