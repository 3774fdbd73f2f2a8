/** Trusted markup. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Shown = string | number | Html | readonly Shown[] | undefined;

/**
 * Values become text, never markup. Invisible and order-changing characters show as code points.
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
 * Characters that are invisible, look like a space, or change the order or look of others. Also the
 * fifth and later marks on a character, which would cover neighbouring lines.
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

/** Keeps line breaks. */
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

/** Renders untrusted text in one line. */
export const short = (text: string): Html => html`<span class="given short">${text}</span>`;
