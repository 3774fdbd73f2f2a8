/** In code blocks, after `$ `. */

export interface PageLine {
  /** A line that ends with a backslash continues. */
  readonly command: string;
  /** Up to the next prompt. */
  readonly shows: readonly string[];
  /** For the program's own prompt (`bash-5.2$ `). */
  readonly inside: readonly { readonly typed: string; readonly shows: readonly string[] }[];
  /** In the page, from 1. */
  readonly at: number;
}

const PROMPT = /^\$ (.*)$/;
const INNER_PROMPT = /^\S+\$ (.*)$/;

export const pageLines = (page: string): readonly PageLine[] => {
  const found: PageLine[] = [];
  for (const { lines, at } of codeBlocks(page)) {
    for (let index = 0; index < lines.length; index += 1) {
      const start = PROMPT.exec(lines[index] ?? '')?.[1];
      if (start === undefined) continue;
      const first = index;
      let command = start;
      while (command.endsWith('\\') && index + 1 < lines.length)
        command = `${command}\n${lines[(index += 1)] ?? ''}`;
      const below: string[] = [];
      while (index + 1 < lines.length && !PROMPT.test(lines[index + 1] ?? ''))
        below.push(lines[(index += 1)] ?? '');
      found.push({ command, ...split(below), at: at + first });
    }
  }
  return found;
};

/** In the order of the commands. */
export const withShown = (page: string, shown: readonly string[]): string => {
  const lines = page.split('\n');
  const commands = pageLines(page);
  for (let index = commands.length - 1; index >= 0; index -= 1) {
    const line = commands[index];
    if (!line) continue;
    const start = line.at - 1 + line.command.split('\n').length;
    const text = shown[index] ?? '';
    lines.splice(start, line.shows.length, ...(text === '' ? [] : text.split('\n')));
  }
  return lines.join('\n');
};

export const withoutSecrets = (text: string): string =>
  text
    .replaceAll(/"apiKey":"[^"]*"/g, '"apiKey":"<API_KEY>"')
    .replaceAll(/"token":"[^"]*"/g, '"token":"<TOKEN>"');

export const masked = (text: string): string =>
  text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME')
    .replaceAll(
      /"(durationMs|durationSeconds|idleReplicas|startingReplicas|stoppingReplicas|updatedReplicas|outdatedReplicas)":\d+/g,
      '"$1":N',
    )
    .replaceAll(/"processId":"[^"]*","pid":\d+/g, '"processId":"X","pid":N')
    .replaceAll(/"etag":"(?:[^"\\]|\\.)*"/g, '"etag":"X"')
    .replaceAll(/("kind":"Folder","size"):\d+/g, '$1:N') // depends on the file system
    .replaceAll(/"pause":(true|false)/g, '"pause":X') // depends on cgroups
    .replaceAll(/"(keyId|createdBy|isolation|phase)":"[^"]*"/g, '"$1":"X"')
    .replaceAll(
      /("type":"\w+"),"status":"[^"]*","reason":"[^"]*","message":"(?:[^"\\]|\\.)*"/g,
      '$1,"status":"X","reason":"X","message":"X"',
    )
    .replaceAll(/"state":"[^"]*","since":.*,"seenBy"/g, '"state":"X","seenBy"')
    .replaceAll(/"state":"[^"]*","since":"[^"]*","status":"[^"]*"\}/g, '"state":"X"}')
    .replaceAll(/"next":"[^"]*"/g, '"next":"X"')
    .replaceAll(/"outboxes":\{.*\}$/gm, '"outboxes":{}')
    .replaceAll(/"work":\{[^}]*\}/g, '"work":{}')
    .replaceAll(/"(actors|count)":\d+/g, '"$1":N')
    .replaceAll(/"replica":"[^"]*"/g, '"replica":"X"')
    .replaceAll(/"replicas":\[[^\]]*\]/g, '"replicas":[]')
    .replaceAll(/"warnings":\[[^\]]*\]/g, '"warnings":[]')
    .replaceAll(
      /"statistics":\{"total":\d+,"byStatus":\{[^}]*\},"byNamespace":\{[^}]*\}\}/g,
      '"statistics":{}',
    )
    .replaceAll(/"[^"\s]{0,64}-[0-9A-Za-z_-]{16,64}"/g, '"MARK"')
    .replaceAll(/\b[0-9a-f]{64}\b/g, 'HASH')
    .replaceAll(/\b[0-9a-f]{16}\b/g, 'REVISION')
    .replaceAll(/^[0-9A-Za-z]{16}(?=\s|$)/gm, 'KEY')
    .replaceAll(/\b\d+(\.\d+)?(ms|s)\b/g, 'DURATION')
    .replaceAll(/^bash-[\d.]+\$ /gm, 'bash$ ')
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/ $/gm, '')
    .trim();

/** Also with masks. A line `…` stands for any lines. */
export const showsAs = (shown: string, page: string): boolean => {
  const pieces = masked(page)
    .split(/^…$/m)
    .map((piece) => piece.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${pieces.join('[^]*')}$`).test(masked(shown));
};

const codeBlocks = (
  page: string,
): readonly { readonly lines: readonly string[]; readonly at: number }[] => {
  const blocks: { lines: string[]; at: number }[] = [];
  let open: { lines: string[]; at: number } | undefined;
  for (const [index, line] of page.split('\n').entries()) {
    if (!line.startsWith('```')) open?.lines.push(line);
    else if (open) {
      blocks.push(open);
      open = undefined;
    } else open = { lines: [], at: index + 2 };
  }
  return blocks;
};

const split = (below: readonly string[]): Pick<PageLine, 'shows' | 'inside'> => {
  const shows: string[] = [];
  const inside: { typed: string; shows: string[] }[] = [];
  for (const line of below) {
    const typed = INNER_PROMPT.exec(line)?.[1];
    if (typed !== undefined) inside.push({ typed, shows: [] });
    else (inside.at(-1)?.shows ?? shows).push(line);
  }
  return { shows, inside };
};
