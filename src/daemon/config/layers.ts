import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import type { NamedTexts } from './environment.ts';
import type { Setting } from './settings.ts';
import { closest, distance } from 'fastest-levenshtein';

export interface Fault {
  readonly setting: string;
  readonly origin: string;
  readonly problem: string;
}

export interface Layer {
  readonly values: ReadonlyMap<string, { readonly value: unknown; readonly origin: string }>;
  readonly faults: readonly Fault[];
}

const FILE_LIMIT_BYTES = 1_048_576;

/** Ignores empty values. An unknown key is a fault. */
export const fileLayer = (file: string, settings: readonly Setting[]): Layer => {
  const fault = (setting: string, problem: string): Fault => ({ setting, origin: file, problem });
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    return {
      values: new Map(),
      faults: [
        fault('', `can't be read: ${cause instanceof Error ? cause.message : String(cause)}`),
      ],
    };
  }
  if (text.length > FILE_LIMIT_BYTES)
    return { values: new Map(), faults: [fault('', 'is larger than 1 MiB')] };
  const document = parseDocument(text, { prettyErrors: true });
  // Only the first line of a YAML error, since the others quote the file.
  const broken = document.errors.map((error) =>
    fault('', error.message.split('\n')[0] ?? 'is not YAML'),
  );
  if (broken.length > 0) return { values: new Map(), faults: broken };
  return treeLayer(document.toJS({ maxAliasCount: 50 }), settings, file);
};

/**
 * An empty variable counts as absent, unless it is a list. An unknown one is a fault, unless
 * `others` matches it.
 */
export const environmentLayer = (
  env: NamedTexts,
  settings: readonly Setting[],
  others: RegExp,
): Layer => {
  const known = new Map(settings.map((setting) => [setting.variable, setting]));
  const found = Object.entries(env).filter(
    ([name, value]) => value !== undefined && name.startsWith('SANDPOOL_') && !others.test(name),
  );
  return {
    values: new Map(
      found.flatMap(([name, value]) => {
        const setting = known.get(name);
        return setting && value !== undefined && (value !== '' || setting.kind === 'list')
          ? [[setting.path, { value: readText(setting, value), origin: name }]]
          : [];
      }),
    ),
    faults: found
      .filter(([name]) => !known.has(name))
      .map(([name]) => unknownKey(name, [...known.keys()], 'the environment')),
  };
};

/** Ignores options that are not settings. */
export const flagLayer = (options: NamedTexts, settings: readonly Setting[]): Layer => ({
  values: new Map(
    settings.flatMap((setting) => {
      const value = options[setting.option];
      return value === undefined || setting.flag === undefined
        ? []
        : [[setting.path, { value: readText(setting, value), origin: setting.flag }]];
    }),
  ),
  faults: [],
});

const treeLayer = (tree: unknown, settings: readonly Setting[], file: string): Layer => {
  const known = new Map(settings.map((setting) => [setting.path, setting]));
  const values = new Map<string, { value: unknown; origin: string }>();
  const faults: Fault[] = [];
  const visit = (node: unknown, path: string): void => {
    if (node === null || node === undefined) return;
    const setting = known.get(path);
    if (setting) {
      const value =
        setting.kind === 'path' && typeof node === 'string' ? resolve(dirname(file), node) : node;
      values.set(path, { value, origin: file });
    } else if (typeof node !== 'object' || Array.isArray(node)) {
      faults.push({ setting: path, origin: file, problem: 'must be a group of settings' });
    } else {
      for (const [key, child] of Object.entries(node)) {
        const below = path === '' ? key : `${path}.${key}`;
        if (known.has(below) || settings.some(({ path: name }) => name.startsWith(`${below}.`)))
          visit(child, below);
        else faults.push(unknownKey(below, [...known.keys()], file));
      }
    }
  };
  visit(tree, '');
  return { values, faults };
};

const unknownKey = (setting: string, known: readonly string[], origin: string): Fault => {
  const meant = suggestionFor(setting, known);
  return {
    setting,
    origin,
    problem: `is not a setting${meant === undefined ? '' : `; did you mean ${meant}?`}`,
  };
};

/** Leaves an invalid number for the schema to refuse. */
export const readText = (setting: Setting, text: string): unknown => {
  switch (setting.kind) {
    case 'number':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
    case 'list':
      return text === '' ? [] : text.split(',').map((part) => part.trim());
    case 'path':
      return text === '' ? text : resolve(text);
    case 'text':
      return text;
  }
};

/** The known name that a typo probably meant, by full name or by last part. */
const suggestionFor = (name: string, known: readonly string[]): string | undefined => {
  if (known.length === 0 || name.length > MAX_LENGTH) return undefined;
  const whole = closest(name, known);
  if (isNear(name, whole)) return whole;
  const last = lastPart(name);
  return (
    known.find((candidate) => lastPart(candidate).toLowerCase() === last.toLowerCase()) ??
    known.find((candidate) => isNear(last, lastPart(candidate)))
  );
};

/** Longer names are not typos, and edit distance is quadratic. */
const MAX_LENGTH = 100;

const lastPart = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

const isNear = (name: string, candidate: string): boolean =>
  distance(name.toLowerCase(), candidate.toLowerCase()) <=
  Math.min(3, Math.floor(candidate.length / 3));
