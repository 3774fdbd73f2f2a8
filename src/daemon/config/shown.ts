import { Document, isMap, isScalar, type Pair } from 'yaml';
import type { Setting } from './settings.ts';

export interface GivenSetting {
  readonly setting: Setting;
  readonly value: unknown;
  readonly origin: string;
}

const MASK = '********';

/** Writes the origin after each value. The file can be loaded again if no value is masked. */
export const configYaml = (given: readonly GivenSetting[]): string => {
  const document = new Document({});
  for (const { setting, value, origin } of given) {
    const path = setting.path.split('.');
    document.setIn(path, document.createNode(masked(setting, value) ?? null));
    const node = document.getIn(path, true);
    if (isScalar(node)) node.comment = ` ${origin}`;
    else commentKey(document, path, origin);
  }
  return document.toString({ lineWidth: 0 });
};

export const configJson = (given: readonly GivenSetting[]): string =>
  `${JSON.stringify(
    {
      settings: given.map(({ setting, value, origin }) => ({
        name: setting.path,
        value: masked(setting, value) ?? null,
        origin,
        variable: setting.variable,
        flag: setting.flag,
      })),
    },
    undefined,
    2,
  )}\n`;

/** Also masks passwords in addresses. */
export const masked = ({ secret }: Pick<Setting, 'secret'>, value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((part: unknown) => masked({ secret }, part));
  if (secret && value !== undefined && value !== null && value !== '') return MASK;
  return typeof value === 'string'
    ? value.replace(/^([a-z][a-z0-9+.-]*:\/\/[^/@:\s]*:)[^/@\s]+@/i, `$1${MASK}@`)
    : value;
};

/** YAML can't hold the comment of a list behind it. */
const commentKey = (document: Document, path: readonly string[], origin: string): void => {
  const map = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(map)) return;
  const pair = map.items.find((item): item is Pair =>
    isScalar(item.key) ? item.key.value === path.at(-1) : item.key === path.at(-1),
  );
  if (pair)
    pair.key = Object.assign(document.createNode(path.at(-1)), { commentBefore: ` ${origin}` });
};
