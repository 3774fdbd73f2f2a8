/** Markup that may be sent as it is. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Shown = string | number | Html | readonly Shown[] | undefined;

/**
 * Makes markup of a template. Whatever is put in is text: it can't become markup, and what would
 * not be seen in it, or turn its order round, is shown by its code point.
 */
export const html = (parts: TemplateStringsArray, ...values: readonly Shown[]): Html =>
  new Html(parts.reduce((text, part, at) => text + shown(values[at - 1]) + part));

const shown = (value: Shown): string => {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'string' || typeof value === 'number') return escaped(visible(`${value}`));
  return value.map(shown).join('');
};

/**
 * Characters that show as nothing, as plain space, or that change the order or the look of others:
 * controls, marks of direction, joiners, private and unassigned ones, halves of pairs, separators,
 * spaces but the plain one, fillers, variation selectors, marks that strike others out or surround
 * them, and those of a pile, which would cover the lines above and below.
 */
const UNSEEN = new RegExp(
  String.raw`(?<=\p{M}{4})\p{M}|` +
    `[${[
      String.raw`\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}`,
      String.raw`\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000`,
      String.raw`\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc`,
      String.raw`\ufe00-\ufe0f\u{e0100}-\u{e01ef}`,
      String.raw`\p{Me}\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb`,
    ].join('')}]`,
  'gu',
);

/** Shows what would not be seen by its code point; lines stay lines. */
export const visible = (text: string): string =>
  text.replaceAll(UNSEEN, (unseen) =>
    unseen === '\n'
      ? '\n'
      : `[U+${(unseen.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"'`]/g, (character) => ENTITIES[character] ?? '');

/** Shows a text that others chose, in one line. */
export const short = (text: string): Html => html`<span class="given short">${text}</span>`;
